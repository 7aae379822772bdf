//! Reads the log of an attempt line by line, even while it is still being written and rotated.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use tenure_lock::{FileId, open_private};

use crate::daemon::output::older_part;

/// The rest of a longer line is left out. Escaping can make a line of a log longer than the one that the agent printed.
const LONGEST_LINE: usize = 4 * 1024 * 1024;

/// Reads the lines of a log, oldest first.
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    file: BufReader<File>,
    id: Option<FileId>,
    line: Vec<u8>,
    /// The last line was too long, and its rest has yet to be skipped.
    skipping: bool,
}

impl LogReader {
    /// Starts with the older part of a log that was rotated.
    pub fn open(path: &Path) -> io::Result<Self> {
        match Self::part(path, &older_part(path)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Self::part(path, path),
            older => older,
        }
    }

    /// Starts after what is written already.
    pub fn open_at_end(path: &Path) -> io::Result<Self> {
        let mut reader = Self::part(path, path)?;
        reader.file.seek(SeekFrom::End(0))?;
        Ok(reader)
    }

    fn part(path: &Path, part: &Path) -> io::Result<Self> {
        let file = open_private(part, File::options().read(true))?;
        let id = FileId::of(&file)?;
        let (file, path) = (BufReader::new(file), path.to_path_buf());
        Ok(Self { path, file, id, line: Vec::new(), skipping: false })
    }

    /// The next complete line, without its end. `None` if there is none yet.
    pub fn next_line(&mut self) -> io::Result<Option<String>> {
        loop {
            if self.read_line()? {
                let line = String::from_utf8_lossy(&self.line).into_owned();
                self.line.clear();
                return Ok(Some(line));
            }
            if !self.go_on()? {
                return Ok(None);
            }
        }
    }

    /// False at the end of the file.
    fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let found = self.file.fill_buf()?;
            if found.is_empty() {
                return Ok(false);
            }
            let end = found.iter().position(|byte| *byte == b'\n');
            let piece = &found[..end.unwrap_or(found.len())];
            let room = LONGEST_LINE - self.line.len();
            let kept = if self.skipping { 0 } else { piece.len().min(room) };
            self.line.extend_from_slice(&piece[..kept]);
            let cut = !self.skipping && kept < piece.len();
            let skipped = self.skipping;
            self.skipping = end.is_none() && (skipped || cut);
            let used = piece.len() + usize::from(end.is_some());
            self.file.consume(used);
            // A line that is too long is returned at the cut; its rest is not a line.
            if cut || (end.is_some() && !skipped) {
                return Ok(true);
            }
        }
    }

    /// At the end of a part, continues with the next one if the log was rotated.
    fn go_on(&mut self) -> io::Result<bool> {
        let id = |path: &Path| FileId::behind(path).ok();
        let (newest, older) = (id(&self.path), older_part(&self.path));
        if newest.is_none() || newest == self.id {
            return Ok(false);
        }
        let is_unread = id(&older).is_some_and(|found| Some(found) != self.id);
        let part = if is_unread { older } else { self.path.clone() };
        *self = Self::part(&self.path, &part)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn rest(reader: &mut LogReader) -> Vec<String> {
        std::iter::from_fn(|| reader.next_line().unwrap()).collect()
    }

    #[test]
    fn lines_are_read_once_they_are_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        let mut log = File::create(&path).unwrap();
        log.write_all(b"one\ntw").unwrap();
        let mut reader = LogReader::open(&path).unwrap();
        assert_eq!(rest(&mut reader), ["one"]);
        log.write_all(b"o\n").unwrap();
        assert_eq!(rest(&mut reader), ["two"]);
    }

    #[test]
    fn no_line_is_lost_or_repeated_when_the_log_is_rotated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        let rotate = |text: &str| {
            std::fs::rename(&path, older_part(&path)).unwrap();
            std::fs::write(&path, text).unwrap();
        };
        std::fs::write(&path, "1\n").unwrap();
        rotate("2\n");
        let mut reader = LogReader::open(&path).unwrap();
        assert_eq!(rest(&mut reader), ["1", "2"]);
        rotate("3\n");
        assert_eq!(rest(&mut reader), ["3"]);
        rotate("4\n");
        rotate("5\n");
        assert_eq!(rest(&mut reader), ["4", "5"]);
    }

    #[test]
    fn the_rest_of_a_line_that_is_too_long_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        let long = "x".repeat(2 * LONGEST_LINE + 7);
        for text in [format!("{long}\nafter\n"), format!("{}\nafter\n", &long[..LONGEST_LINE])] {
            std::fs::write(&path, text).unwrap();
            let lines = rest(&mut LogReader::open(&path).unwrap());
            let lengths: Vec<usize> = lines.iter().map(String::len).collect();
            assert_eq!(lengths, [LONGEST_LINE, 5]);
        }
    }
}
