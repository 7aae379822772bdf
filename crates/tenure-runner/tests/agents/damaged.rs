//! Damaged output: no line is fatal, and nothing is concluded from garbage.
//!
//! `TENURE_TEST_SEED` repeats a random run.

use serde_json::Value;
use tenure_core::Ending;
use tenure_runner::agents::{BUILT_IN, ProcessEnd};
use tenure_testkit::cli::Dice;

use super::{concluded, recordings};

const ENDS: [ProcessEnd; 8] = [
    ProcessEnd::Exited(0),
    ProcessEnd::Exited(1),
    ProcessEnd::Exited(173),
    ProcessEnd::Killed,
    ProcessEnd::Hung,
    ProcessEnd::TimedOut,
    ProcessEnd::Stopped,
    ProcessEnd::LeaseLost,
];

#[test]
fn damaged_recordings_never_panic_and_a_failure_is_never_done() {
    let mut dice = Dice::for_test("damaged_recordings");
    for run in recordings() {
        // The plain format of opencode has no result event: there an exit code of 0 is all that is known.
        let typed = run.agent.name != "opencode";
        for _ in 0..40 {
            let damaged = damage(&mut dice, &run.output);
            for end in ENDS {
                let ending = concluded(run.agent, &damaged, end).ending;
                // Without the line about it, a denied permission leaves no trace.
                let good = matches!(run.expect.as_str(), "done" | "permission_denied");
                let may_be_done = end == ProcessEnd::Exited(0) && (good || !typed);
                assert!(may_be_done || ending != Ending::Done, "{}: {end:?}\n{damaged}", run.name);
            }
        }
    }
}

#[test]
fn nothing_is_concluded_from_garbage() {
    let mut dice = Dice::for_test("garbage");
    for agent in BUILT_IN {
        for _ in 0..300 {
            let garbage: String = (0..dice.below(20)).map(|_| line(&mut dice) + "\n").collect();
            for (end, expected) in [
                (ProcessEnd::Exited(0), Ending::Unclassified),
                (ProcessEnd::Exited(1), Ending::Unclassified),
                (ProcessEnd::Killed, Ending::Crashed),
                (ProcessEnd::Hung, Ending::Hung),
            ] {
                let ending = concluded(agent, &garbage, end).ending;
                assert_eq!(ending, expected, "{}: {end:?}\n{garbage}", agent.name);
            }
        }
    }
}

/// A few of: bytes that are changed or cut, lines that are dropped, repeated or swapped, and values of another type.
fn damage(dice: &mut Dice, output: &str) -> String {
    let mut lines: Vec<Vec<u8>> = output.lines().map(|line| line.as_bytes().to_vec()).collect();
    for _ in 0..=dice.below(4) {
        if lines.is_empty() {
            break;
        }
        let (at, other) = (index(dice, lines.len()), index(dice, lines.len()));
        match dice.below(6) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(other, lines[at].clone()),
            2 => lines.swap(at, other),
            3 => {
                let cut = index(dice, lines[at].len() + 1);
                lines[at].truncate(cut);
            }
            4 if !lines[at].is_empty() => {
                let byte = index(dice, lines[at].len());
                lines[at][byte] = u8::try_from(dice.below(256)).unwrap();
            }
            _ => {
                if let Ok(mut value) = serde_json::from_slice::<Value>(&lines[at]) {
                    replace(dice, &mut value);
                    lines[at] = value.to_string().into_bytes();
                }
            }
        }
    }
    String::from_utf8_lossy(&lines.join(&b'\n')).into_owned()
}

/// Replaces a random part of a value by one of another type.
fn replace(dice: &mut Dice, value: &mut Value) {
    let size = match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    };
    if size == 0 || dice.one_in(4) {
        *value = match dice.below(6) {
            0 => Value::Null,
            1 => Value::from(dice.roll()),
            2 => Value::from(-1.5e300),
            3 => Value::from("\u{0}é\n{"),
            4 => Value::Array(vec![Value::Null]),
            _ => Value::Object(serde_json::Map::new()),
        };
        return;
    }
    let at = index(dice, size);
    match value {
        Value::Array(items) => replace(dice, &mut items[at]),
        Value::Object(fields) => replace(dice, fields.values_mut().nth(at).unwrap()),
        _ => {}
    }
}

/// A line that no version of any program has printed.
fn line(dice: &mut Dice) -> String {
    match dice.below(4) {
        0 => String::from_utf8_lossy(
            &(0..dice.below(80)).map(|_| dice.roll().to_le_bytes()[0]).collect::<Vec<_>>(),
        )
        .replace('\n', " "),
        1 => format!("{{\"type\":\"tomorrow.{}\",\"message\":\"done\"}}", dice.below(9)),
        2 => "{\"type\":\"result\"".to_owned(),
        _ => {
            (*dice.pick(&["", "{", "{}", "null", "[1]", "{\"type\":7}", "\u{1b}[0m", "\"done\""])).to_owned()
        }
    }
}

fn index(dice: &mut Dice, bound: usize) -> usize {
    usize::try_from(dice.below(bound as u64)).unwrap()
}
