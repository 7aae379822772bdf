//! The output of agents: any line may come from any of them.

use tenure_core::SystemClock;
use tenure_runner::agents::{Agent, BUILT_IN, CUSTOM, LocalNow, ProcessEnd, Summary};
use tenure_runner::transcript::Transcript;

use crate::mutations::Corpus;

const WORDS: &[&str] = &[
    "\"type\":",
    "\"result\"",
    "\"usage\":",
    "\"error\":",
    "null",
    "-1",
    "1e999",
    "18446744073709551616",
    "{}",
    "[]",
    "\\ud800",
    "\\u0000",
    "try again at 3:05 PM.",
    "Reconnecting... 2/5 (",
    "TENURE-RESULT: done",
];
const RECORDINGS: &str = "crates/tenure-runner/tests/agent-recordings";
/// A summary keeps the beginnings and ends of texts.
const LARGEST_SUMMARY: usize = 256 * 1024;

/// Reads each line of the input as the agent's, and concludes from them in every way in which it may have ended.
fn read(agent: &'static Agent, input: &[u8]) {
    let (mut summary, mut transcript) = (Summary::default(), Transcript::new(Some(agent.name)));
    for line in String::from_utf8_lossy(input).lines() {
        for event in agent.parse(line) {
            summary.add(event);
        }
        for entry in transcript.read(line) {
            assert!(entry.lines().iter().all(|line| !line.contains('\n')), "an entry is shown by line");
        }
    }
    let _ = (summary.usage(), transcript.end());
    let now = LocalNow::read(&SystemClock);
    for end in [ProcessEnd::Exited(0), ProcessEnd::Exited(173), ProcessEnd::Killed, ProcessEnd::Hung] {
        let _ = agent.conclude(end, &summary, &now).sentence(agent);
    }
    assert!(format!("{summary:?}").len() < LARGEST_SUMMARY, "the summary of a run is bounded");
}

fn corpus() -> Corpus {
    Corpus::of(&["fuzz/corpus/agent_output", RECORDINGS], WORDS)
}

macro_rules! targets {
    ($($test:ident($name:literal)),* $(,)?) => {
        const TARGETS: &[&str] = &[$($name),*];

        $(#[test]
        fn $test() {
            let agent = Agent::named($name);
            assert_eq!(agent.name, $name);
            corpus().by_line().run($name, 3000, |input| read(agent, input));
        })*
    };
}

targets! {
    any_output_of_claude_is_read("claude"),
    any_output_of_codex_is_read("codex"),
    any_output_of_copilot_is_read("copilot"),
    any_output_of_gemini_is_read("gemini"),
    any_output_of_opencode_is_read("opencode"),
    any_output_of_agy_is_read("agy"),
    any_output_of_amp_is_read("amp"),
    any_output_of_cursor_is_read("cursor"),
}

#[test]
fn any_output_of_another_program_is_read() {
    corpus().run("custom", 1000, |input| read(CUSTOM, input));
}

#[test]
fn every_agent_has_a_target() {
    let mut known: Vec<&str> = BUILT_IN.iter().map(|agent| agent.name).collect();
    let mut targets = TARGETS.to_vec();
    known.sort_unstable();
    targets.sort_unstable();
    assert_eq!(known, targets);
}
