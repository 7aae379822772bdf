//! The pretend agent: reads its prompt and prints two lines, with a pause whose length the task's description gives.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::time::Duration;

const USUALLY: &str = "Pretend work: takes ";
const AT_FIRST: &str = "The first attempt takes ";

/// A task description that gives the duration of its attempts.
pub(super) fn description(usually: &str, at_first: Option<&str>) -> String {
    let first = at_first.map(|time| format!(" {AT_FIRST}{time}.")).unwrap_or_default();
    format!("{USUALLY}{usually}.{first}")
}

/// Runs `tenure demo --pretend`. Errors are ignored: nothing depends on the output of a pretend agent.
pub fn work() {
    let mut prompt = String::new();
    let _ = std::io::stdin().read_to_string(&mut prompt);
    let time = if is_first_attempt() { duration_after(&prompt, AT_FIRST) } else { None }
        .or_else(|| duration_after(&prompt, USUALLY))
        .unwrap_or_default();
    let _ = writeln!(std::io::stdout(), "reading the task, then working for {time:?}");
    std::thread::sleep(time);
    let _ = writeln!(std::io::stdout(), "done");
}

fn duration_after(prompt: &str, words: &str) -> Option<Duration> {
    let rest = &prompt[prompt.find(words)? + words.len()..];
    let word: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
    tenure_core::duration::parse(&word).ok()
}

/// The first attempt of a task creates its marker file in the project's folder.
fn is_first_attempt() -> bool {
    let Some(task) = std::env::var_os("TENURE_TASK_ID") else { return false };
    std::fs::File::options().write(true).create_new(true).open(marker(&task)).is_ok()
}

pub(super) fn marker(task: &OsStr) -> OsString {
    let mut name = OsString::from(".tried-");
    name.push(task);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_gives_the_duration() {
        let prompt = format!("Task\n\n{}\n", description("300ms", Some("1m")));
        assert_eq!(duration_after(&prompt, USUALLY), Some(Duration::from_millis(300)));
        assert_eq!(duration_after(&prompt, AT_FIRST), Some(Duration::from_mins(1)));
        assert_eq!(duration_after(&description("2s", None), AT_FIRST), None);
    }
}
