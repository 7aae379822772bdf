//! Reads messages, one per line, up to a length limit.
//!
//! If a line is too long, only the id of its request is kept, so that the request can be answered with an error.

use std::io::{self, BufRead};

/// Long enough for the longest description with every character escaped, and for the other fields of a task.
pub(crate) const LONGEST: usize = 2 * 1024 * 1024;
/// A longer id is dropped.
const LONGEST_ID: usize = 256;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Whole(Vec<u8>),
    /// Too long; the id of its request as JSON, if it has one.
    TooLong(Option<Vec<u8>>),
}

/// The next line that is not blank, or `None` at the end of the input.
pub(crate) fn next(input: &mut impl BufRead, longest: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut scan: Option<IdScan> = None;
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        // A last line without a line break was cut off when the client disconnected.
        if available.is_empty() {
            return Ok(None);
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        match &mut scan {
            Some(scan) => scan.feed(part),
            None if line.len() + part.len() > longest => {
                let mut started = IdScan::default();
                started.feed(&line);
                started.feed(part);
                line = Vec::new();
                scan = Some(started);
            }
            None => line.extend_from_slice(part),
        }
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_none() {
            continue;
        }
        match scan.take() {
            Some(scan) => return Ok(Some(Line::TooLong(scan.id()))),
            None if line.iter().all(u8::is_ascii_whitespace) => line.clear(),
            None => return Ok(Some(Line::Whole(line))),
        }
    }
}

/// Finds the value of `"id"` at the top level of a JSON object, byte by byte, without keeping anything else.
#[derive(Debug, Default)]
struct IdScan {
    depth: usize,
    in_text: bool,
    escaped: bool,
    /// The last string at the top level, as long as it could be a key.
    text: Vec<u8>,
    /// The scan is after the colon of `"id"`.
    in_id: bool,
    found: Option<Vec<u8>>,
}

impl IdScan {
    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.step(*byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_id {
            let over = !self.in_text && matches!(byte, b',' | b'}');
            if over {
                self.in_id = false;
            } else if let Some(id) = &mut self.found
                && id.len() <= LONGEST_ID
            {
                id.push(byte);
            }
        }
        if self.in_text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_text = false,
                _ if self.depth == 1 && self.text.len() < 8 => self.text.push(byte),
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_text = true;
                self.text.clear();
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 && self.text == b"id" && self.found.is_none() => {
                self.in_id = true;
                self.found = Some(Vec::new());
            }
            _ => {}
        }
    }

    fn id(self) -> Option<Vec<u8>> {
        self.found.filter(|id| id.len() <= LONGEST_ID)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn read(text: &str, longest: usize) -> Vec<Line> {
        // A small buffer, so that lines arrive in several pieces.
        let mut input = BufReader::with_capacity(7, text.as_bytes());
        let mut lines = Vec::new();
        while let Some(line) = next(&mut input, longest).unwrap() {
            lines.push(line);
        }
        lines
    }

    #[test]
    fn lines_come_whole_and_blank_ones_not_at_all() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(read("one\n\n  \r\ntwo two two\ncut off", 100), [whole("one"), whole("two two two")]);
    }

    #[test]
    fn a_line_that_is_too_long_leaves_its_id_wherever_that_stands() {
        let long = "x".repeat(100);
        let first =
            format!(r#"{{"jsonrpc":"2.0","id": 17 ,"method":"m","params":{{"id":3,"text":"{long}"}}}}"#);
        let last =
            format!(r#"{{"method":"m","params":{{"a":["\"id\":5","}}"],"t":"{long}"}},"id":"a,\"}}b"}}"#);
        let none = format!(r#"{{"method":"id","params":{{"id":9,"text":"{long}"}}}}"#);
        let text = format!("{first}\n{last}\n{none}\nshort\n");
        let ids: Vec<_> = read(&text, 50)
            .into_iter()
            .map(|line| match line {
                Line::TooLong(id) => id.map(|id| String::from_utf8(id).unwrap().trim().to_owned()),
                Line::Whole(line) => Some(String::from_utf8(line).unwrap()),
            })
            .collect();
        assert_eq!(
            ids,
            [Some("17".to_owned()), Some(r#""a,\"}b""#.to_owned()), None, Some("short".to_owned())]
        );
    }
}
