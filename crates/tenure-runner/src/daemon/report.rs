//! Reports of agents that cannot reach the store: a file, or the last line of the final message.
//!
//! The file is `report.json` in a folder of the attempt, named by `TENURE_REPORT`. It is read after all processes of the
//! attempt have ended. Links are not followed, and a file that is too long is ignored.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tenure_lock::create_private_folder;

use crate::sys;

const LARGEST: u64 = 64 * 1024;
const FILE: &str = "report.json";
/// The beginning of the line with the report.
const LINE: &str = "TENURE-RESULT:";

/// What an agent reports about its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AgentReport {
    Done,
    Failed(String),
}

#[derive(Deserialize)]
struct ReportFile {
    result: String,
    #[serde(default)]
    reason: String,
}

/// Creates the folder for the report of an attempt. Returns the path of the report.
pub(crate) fn prepare(folder: &Path, attempt: &str) -> std::io::Result<PathBuf> {
    let own = folder.join(attempt);
    create_private_folder(folder)?;
    create_private_folder(&own)?;
    Ok(own.join(FILE))
}

/// Reads the report of an attempt and removes its folder.
pub(super) fn take(folder: &Path, attempt: &str) -> Option<AgentReport> {
    let found = read(folder, attempt);
    let own = folder.join(attempt);
    let _ = std::fs::remove_file(own.join(FILE));
    let _ = std::fs::remove_dir(own);
    let written: ReportFile = serde_json::from_str(&found?).ok()?;
    by_word(&written.result, written.reason.trim())
}

fn read(folder: &Path, attempt: &str) -> Option<String> {
    let file = sys::open_below(folder, &[attempt, FILE]).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let length = file.take(LARGEST + 1).read_to_string(&mut text).ok()?;
    (length as u64 <= LARGEST).then_some(text)
}

/// The report in the last line of a message.
pub(super) fn in_message(message: &str) -> Option<AgentReport> {
    let line = message
        .lines()
        .map(|line| line.trim_matches([' ', '\t', '\r', '`', '*']))
        .rfind(|l| !l.is_empty())?;
    let said = line.strip_prefix(LINE)?.trim();
    let (word, reason) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
    by_word(word, reason.trim())
}

fn by_word(word: &str, reason: &str) -> Option<AgentReport> {
    match word {
        "done" => Some(AgentReport::Done),
        "failed" if reason.is_empty() => Some(AgentReport::Failed("no reason was given".to_owned())),
        "failed" => Some(AgentReport::Failed(reason.to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_message_may_be_the_report() {
        let failed = |why: &str| Some(AgentReport::Failed(why.to_owned()));
        for (message, report) in [
            ("All tests pass.\n\nTENURE-RESULT: done\n", Some(AgentReport::Done)),
            ("`TENURE-RESULT: done`", Some(AgentReport::Done)),
            ("TENURE-RESULT: failed there is no such page", failed("there is no such page")),
            ("TENURE-RESULT: failed", failed("no reason was given")),
            ("TENURE-RESULT: done\nBut one test fails.", None),
            ("The line is TENURE-RESULT: done", None),
            ("TENURE-RESULT: perhaps", None),
            ("", None),
        ] {
            assert_eq!(in_message(message), report, "{message}");
        }
    }

    #[test]
    fn a_report_file_is_read_once_and_its_folder_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = prepare(folder.path(), "a1").unwrap();
        std::fs::write(&path, r#"{"result": "failed", "reason": "no network"}"#).unwrap();
        assert_eq!(take(folder.path(), "a1"), Some(AgentReport::Failed("no network".to_owned())));
        assert!(!path.parent().unwrap().exists());
        assert_eq!(take(folder.path(), "a1"), None);
    }

    #[test]
    fn links_long_files_and_other_text_are_no_report() {
        let folder = tempfile::tempdir().unwrap();
        let done = folder.path().join("done.json");
        std::fs::write(&done, r#"{"result": "done"}"#).unwrap();
        let link = prepare(folder.path(), "link").unwrap();
        std::os::unix::fs::symlink(&done, &link).unwrap();
        std::os::unix::fs::symlink(folder.path().join("link"), folder.path().join("folder")).unwrap();
        let long = prepare(folder.path(), "long").unwrap();
        std::fs::write(&long, format!(r#"{{"result": "done", "reason": "{}"}}"#, "x".repeat(70_000)))
            .unwrap();
        let other = prepare(folder.path(), "other").unwrap();
        std::fs::write(&other, "done").unwrap();
        for attempt in ["link", "folder", "long", "other", "nobody"] {
            assert_eq!(take(folder.path(), attempt), None, "{attempt}");
        }
        assert!(done.exists());
    }
}
