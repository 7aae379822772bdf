//! The pretend agent: reads its prompt, says a few lines, and takes as long as the task's description tells it to.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::time::Duration;

/// How long the work takes, and how long the first time.
pub(super) fn description(usually: &str, at_first: Option<&str>) -> String {
    let first = at_first.map(|time| format!(" The first attempt takes {time}.")).unwrap_or_default();
    format!("Pretend work: takes {usually}.{first}")
}

/// Ends with the process: nobody asks a pretend agent what it did.
pub(super) fn work() {
    let mut prompt = String::new();
    let _ = std::io::stdin().read_to_string(&mut prompt);
    let time = if is_first_attempt() { after(&prompt, "The first attempt takes ") } else { None }
        .or_else(|| after(&prompt, "Pretend work: takes "))
        .unwrap_or_default();
    let _ = writeln!(std::io::stdout(), "reading the task, then working for {time:?}");
    std::thread::sleep(time);
    let _ = writeln!(std::io::stdout(), "that was it");
}

fn after(prompt: &str, words: &str) -> Option<Duration> {
    let rest = &prompt[prompt.find(words)? + words.len()..];
    let word: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
    tenure_core::duration::parse(&word).ok()
}

/// Whoever comes first leaves a mark beside the project's files.
fn is_first_attempt() -> bool {
    let Some(task) = std::env::var_os("TENURE_TASK_ID") else { return false };
    std::fs::File::options().write(true).create_new(true).open(mark(&task)).is_ok()
}

pub(super) fn mark(task: &OsStr) -> OsString {
    let mut name = OsString::from(".tried-");
    name.push(task);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_says_how_long_it_takes() {
        let prompt = format!("Task\n\n{}\n", description("300ms", Some("1m")));
        assert_eq!(after(&prompt, "Pretend work: takes "), Some(Duration::from_millis(300)));
        assert_eq!(after(&prompt, "The first attempt takes "), Some(Duration::from_mins(1)));
        assert_eq!(after(&description("2s", None), "The first attempt takes "), None);
    }
}
