//! The screens of a scenario as text, without what differs from run to run.

use std::fmt::Write as _;

use insta::internals::SnapshotContents;
use insta::{Comparator, Snapshot};
use tenure_testkit::cli::Terminal;

use crate::Desk;

pub(crate) struct Screens<'a> {
    desk: &'a Desk,
    /// Texts that differ from run to run, and their replacements.
    replaced: Vec<(String, &'static str)>,
    text: String,
}

impl<'a> Screens<'a> {
    pub(crate) fn of(desk: &'a Desk) -> Self {
        Self { desk, replaced: Vec::new(), text: String::new() }
    }

    pub(crate) fn replace(&mut self, text: &str, by: &'static str) {
        self.replaced.push((text.to_owned(), by));
    }

    /// Runs the lines in a window one by one, keeps its screen, and empties it.
    #[track_caller]
    pub(crate) fn play(&mut self, window: &str, terminal: &Terminal, lines: &[&str]) {
        for line in lines {
            terminal.run(line);
        }
        self.keep(window, terminal);
    }

    /// Keeps the screen of a window, and empties it.
    pub(crate) fn keep(&mut self, window: &str, terminal: &Terminal) {
        self.look(window, terminal);
        terminal.clear();
    }

    /// Keeps the screen of a window in which a command still runs.
    pub(crate) fn look(&mut self, window: &str, terminal: &Terminal) {
        let screen = terminal.screen();
        let sandbox = self.desk.sandbox.path("").to_string_lossy().trim_end_matches('/').to_owned();
        let mut screen = screen.replace(&sandbox, "/tmp/sandbox");
        for (text, by) in &self.replaced {
            screen = screen.replace(text, by);
            // It may also be broken at the end of a line.
            for at in 1..text.len() {
                let (start, rest) = text.split_at(at);
                screen = screen.replace(&format!("{start}\n{rest}"), by);
            }
        }
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let host = host.trim().to_owned();
        let _ = writeln!(self.text, "--- {window}");
        for line in screen.trim_end().lines() {
            self.text.push_str(masked(line.trim_end(), &host).trim_end());
            self.text.push('\n');
        }
        self.text.push('\n');
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// A line in which ids, times, durations, large numbers and the machine's name are replaced by their kind. The distance between the
/// columns of such a line and of its heading depends on them, and is left out.
fn masked(line: &str, host: &str) -> String {
    if line.starts_with('─') {
        return "────".to_owned();
    }
    let is_heading = ["HEARTBEAT", "EXPIRES", "DECISION", "UPDATED"].iter().any(|word| line.contains(word));
    let mut is_masked = is_heading;
    let mut last_masked = 0;
    let mut words: Vec<String> = Vec::new();
    for word in line.trim_start().split(' ') {
        let core = word.trim_matches(|c: char| "(),.;:'\"[]".contains(c));
        let follows_on = words.last().is_some_and(|word| word == "on");
        let kind = if follows_on && core == host { Some("HOST") } else { kind_of(core) };
        is_masked |= kind.is_some();
        last_masked = if kind.is_some() { words.len() } else { last_masked };
        words.push(kind.map_or_else(|| word.to_owned(), |kind| word.replace(core, kind)));
    }
    if !is_masked {
        return line.to_owned();
    }
    if line.ends_with('…') {
        // How much of the rest is shown depends on what was replaced.
        words.truncate(last_masked + 1);
        words.push("…".to_owned());
    }
    let mut text = " ".repeat(line.len() - line.trim_start().len());
    for (at, word) in words.iter().enumerate() {
        match (word.is_empty(), at > 0 && words[at - 1].is_empty()) {
            (true, true) => {}
            (true, false) => text.push(' '),
            (false, false) if at == 0 => text.push_str(word),
            (false, _) => {
                text.push(' ');
                text.push_str(word);
            }
        }
    }
    text
}

fn kind_of(word: &str) -> Option<&'static str> {
    let shape: String = word
        .chars()
        .map(|c| match c {
            '0'..='9' => '0',
            'a'..='f' => 'x',
            other => other,
        })
        .collect();
    let is_hex = |text: &str| text.chars().all(|c| c == '0' || c == 'x');
    match shape.as_str() {
        "00:00:00" | "00:00" => return Some("TIME"),
        "0000-00-00" => return Some("DATE"),
        _ if shape.starts_with("0000-00-00T00:00:00") => return Some("MOMENT"),
        _ => {}
    }
    if word.is_empty() {
        return None;
    }
    if shape.len() == 36 && shape.split('-').count() == 5 {
        return Some("UUID");
    }
    if shape.len() == 8 && is_hex(&shape) && shape.contains('0') {
        return Some("ID");
    }
    if word.len() == 9 && word.starts_with('L') && word[1..].bytes().all(|b| b.is_ascii_hexdigit()) {
        return Some("LEASE");
    }
    if word.len() > 3 && word.bytes().all(|b| b.is_ascii_digit()) {
        return Some("NUMBER");
    }
    is_duration(word).then_some("DURATION")
}

/// `15m`, `1h59m58s`, `3.4s`, `120ms`.
fn is_duration(word: &str) -> bool {
    let mut rest = word;
    while !rest.is_empty() {
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        if number.len() == rest.len() {
            return false;
        }
        let unit = ["ms", "s", "m", "h", "d"].into_iter().find(|unit| {
            number
                .strip_prefix(unit)
                .is_some_and(|after| after.is_empty() || after.starts_with(|c: char| c.is_ascii_digit()))
        });
        let Some(unit) = unit else { return false };
        rest = &number[unit.len()..];
    }
    !word.is_empty()
}

/// Compares snapshots without their white space: the length of a process number moves columns and the ends of lines.
pub(crate) fn unspaced() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_comparator(Box::new(Unspaced));
    settings
}

struct Unspaced;

impl Comparator for Unspaced {
    fn matches(&self, reference: &Snapshot, test: &Snapshot) -> bool {
        let of = |snapshot: &Snapshot| match snapshot.contents() {
            SnapshotContents::Text(text) => {
                Some(text.to_string().chars().filter(|c| !c.is_whitespace()).collect::<String>())
            }
            SnapshotContents::Binary(_) => None,
        };
        of(reference) == of(test)
    }

    fn dyn_clone(&self) -> Box<dyn Comparator> {
        Box::new(Self)
    }
}
