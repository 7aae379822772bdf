//! The log of an attempt: each line with its time, written as it arrives.
//!
//! Memory is bounded by the longest line kept whole, disk by rotation: a log has at most two files. Bytes that are not
//! text, and characters that would move a terminal's cursor, are escaped; a line of JSON stays JSON with the same values.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tenure_core::Clock;
use tenure_core::text::{escape_json, escape_line};
use tenure_lock::create_private_folder;

use super::log::open_for_writing;

/// A longer line is split. An agent's result event with everything that it has said has to fit.
const LONGEST_LINE: usize = 1024 * 1024;
/// How much is read at a time.
const READ_SIZE: usize = 64 * 1024;
/// The size at which a file is renamed to `NAME.1`, replacing the previous one.
const FULL: u64 = 8 * 1024 * 1024;
/// The number of last lines kept in memory, for the record of a failure.
const TAIL_LINES: usize = 20;

#[derive(Debug)]
pub struct AttemptLog {
    path: PathBuf,
    file: Option<File>,
    written: u64,
    tail: Vec<String>,
    clock: Arc<dyn Clock>,
}

impl AttemptLog {
    pub fn create(folder: &Path, name: &str, clock: Arc<dyn Clock>) -> Self {
        let path = folder.join(format!("{name}.log"));
        let file = create_private_folder(folder).and_then(|()| open(&path)).ok();
        Self { path, file, written: 0, tail: Vec::new(), clock }
    }

    /// A log whose file is created with the first line: most items of a job print nothing.
    pub fn lazy(folder: &Path, name: &str, clock: Arc<dyn Clock>) -> Self {
        let path = folder.join(format!("{name}.log"));
        Self { path, file: None, written: 0, tail: Vec::new(), clock }
    }

    /// Creates the file, if it does not exist yet.
    pub fn ensure(&mut self) {
        if self.file.is_none() && self.written == 0 {
            let folder = self.path.parent().map_or(Ok(()), create_private_folder);
            self.file = folder.and_then(|()| open(&self.path)).ok();
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last line that is not blank, which often contains the reason for a failure.
    pub fn last_line(&self) -> Option<String> {
        self.tail.iter().rev().find(|line| !line.trim().is_empty()).cloned()
    }

    /// The last lines.
    pub fn tail(&self) -> &[String] {
        &self.tail
    }

    fn line(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches('\r');
        let shown = if text.starts_with('{') { escape_json(text) } else { escape_line(text) };
        let line = format!("[{}] {shown}\n", self.clock.now());
        self.ensure();
        if self.written + line.len() as u64 > FULL {
            self.rotate();
        }
        if let Some(file) = &mut self.file
            && file.write_all(line.as_bytes()).is_ok()
        {
            self.written += line.len() as u64;
        }
        if self.tail.len() == TAIL_LINES {
            self.tail.remove(0);
        }
        self.tail.push(shown.chars().take(500).collect());
    }

    fn rotate(&mut self) {
        let old = older_part(&self.path);
        self.file = None;
        if fs::rename(&self.path, &old).is_ok() {
            self.file = open(&self.path).ok();
            self.written = 0;
        }
    }
}

/// The file that has the older part of a log.
pub(crate) fn older_part(path: &Path) -> PathBuf {
    let mut old = path.to_path_buf().into_os_string();
    old.push(".1");
    old.into()
}

fn open(path: &Path) -> io::Result<File> {
    open_for_writing(path, File::options().write(true).create(true).truncate(true))
}

/// When the last output was read, to detect silence.
#[derive(Debug)]
pub struct LastOutput {
    since: Instant,
    millis: AtomicU64,
}

impl Default for LastOutput {
    fn default() -> Self {
        Self { since: Instant::now(), millis: AtomicU64::new(0) }
    }
}

impl LastOutput {
    fn touch(&self) {
        let millis = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.millis.store(millis, Ordering::Relaxed);
    }

    /// The time since the last output.
    pub fn silence(&self) -> Duration {
        self.since.elapsed().saturating_sub(Duration::from_millis(self.millis.load(Ordering::Relaxed)))
    }
}

/// Reads until every writer has closed the pipe or `more` returns false.
///
/// `on_line` is called with every line, including a last one without a line end.
pub fn pump(
    mut from: impl Read,
    mut more: impl FnMut() -> bool,
    log: &Mutex<AttemptLog>,
    last: &LastOutput,
    on_line: &mut dyn FnMut(&[u8]),
) {
    let mut buffer = vec![0; READ_SIZE];
    let mut line: Vec<u8> = Vec::new();
    while more() {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        last.touch();
        let Ok(mut log) = log.lock() else { return };
        for piece in buffer[..count].split_inclusive(|b| *b == b'\n') {
            let mut rest = piece;
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.len().min(LONGEST_LINE - line.len()));
                line.extend_from_slice(now);
                rest = later;
                let ended = line.last() == Some(&b'\n');
                if ended {
                    line.pop();
                }
                if ended || line.len() == LONGEST_LINE {
                    on_line(&line);
                    log.line(&line);
                    line.clear();
                }
            }
        }
    }
    if let (false, Ok(mut log)) = (line.is_empty(), log.lock()) {
        on_line(&line);
        log.line(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::SystemClock;

    fn logged(bytes: &[u8]) -> (tempfile::TempDir, Mutex<AttemptLog>) {
        let folder = tempfile::tempdir().unwrap();
        let log = Mutex::new(AttemptLog::create(folder.path(), "a", Arc::new(SystemClock)));
        pump(bytes, || true, &log, &LastOutput::default(), &mut |_| ());
        (folder, log)
    }

    #[test]
    fn escape_sequences_and_invalid_utf_8_are_escaped_in_the_log() {
        let (folder, _log) = logged(b"one\x1b[2J\xff\r\ntwo\n\nno end");
        let text = fs::read_to_string(folder.path().join("a.log")).unwrap();
        assert_eq!(text.lines().count(), 4);
        assert!(!text.contains('\x1b'));
        assert!(text.lines().all(|line| line.starts_with('[')));
        assert!(text.ends_with("no end\n"));
    }

    #[test]
    fn a_line_of_json_stays_json_with_the_same_values() {
        let said = "a\u{202e}b\u{7f}c\u{e0001}d";
        let (folder, _log) = logged(format!("{{\"said\":\"{said}\"}}\n").as_bytes());
        let text = fs::read_to_string(folder.path().join("a.log")).unwrap();
        assert!(text.is_ascii());
        let (_, line) = text.split_once("] ").unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(line).unwrap()["said"], said);
    }

    #[test]
    fn every_line_is_passed_on_including_a_last_one_without_a_line_end() {
        let folder = tempfile::tempdir().unwrap();
        let log = Mutex::new(AttemptLog::create(folder.path(), "a", Arc::new(SystemClock)));
        let mut lines = Vec::new();
        pump(&b"one\ntwo"[..], || true, &log, &LastOutput::default(), &mut |line| lines.push(line.to_vec()));
        assert_eq!(lines, [b"one", b"two"]);
    }

    #[test]
    fn a_long_line_is_written_in_pieces_however_it_arrives() {
        let mut bytes = vec![b'x'; 100];
        bytes.push(b'\n');
        bytes.extend(vec![b'y'; 3 * LONGEST_LINE]);
        let (folder, _log) = logged(&bytes);
        let text = fs::read_to_string(folder.path().join("a.log")).unwrap();
        assert_eq!(text.lines().count(), 4);
        assert!(text.lines().all(|line| line.len() < LONGEST_LINE + 100));
        assert_eq!(text.matches('y').count(), 3 * LONGEST_LINE);
    }

    #[test]
    fn unlimited_output_fills_at_most_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let log = Mutex::new(AttemptLog::create(folder.path(), "a", Arc::new(SystemClock)));
        let flood = io::repeat(b'x').take(40 * 1024 * 1024);
        pump(flood, || true, &log, &LastOutput::default(), &mut |_| ());
        let sizes: Vec<u64> =
            fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| *size <= FULL));
    }
}
