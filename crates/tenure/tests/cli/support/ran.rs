//! What one command line answered.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// Catches what is written to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Paths of the test's folder read `$DIR/…`.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    pub(crate) line: String,
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(super) fn new(line: String, code: i32, out: &[u8], err: &[u8], root: &Path) -> Self {
        let text = |bytes: &[u8]| {
            let text = String::from_utf8(bytes.to_vec()).expect("all output is UTF-8");
            let root = root.to_string_lossy();
            // A column with paths is as wide as this machine's temporary folder is long.
            if text.contains(&*root) { narrow(&text.replace(&*root, "$DIR")) } else { text }
        };
        Self { line: line.replace(&*root.to_string_lossy(), "$DIR"), code, out: text(out), err: text(err) }
    }

    /// The one JSON object on standard output.
    pub(crate) fn envelope(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("no JSON ({e}) from {self}"))
    }

    pub(crate) fn data(&self) -> Value {
        self.envelope()["data"].clone()
    }

    pub(crate) fn error_code(&self) -> String {
        self.envelope()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn message(&self) -> String {
        self.envelope()["error"]["message"].as_str().unwrap_or_default().to_owned()
    }

    /// Asserts the exit code, for chains.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self}");
        self
    }
}

/// Two spaces between columns, however wide they are.
fn narrow(text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let mut columns = line[indent..].split("  ").map(str::trim).filter(|column| !column.is_empty());
        lines.push_str(&line[..indent]);
        lines.push_str(columns.next().unwrap_or_default());
        for column in columns {
            lines.push_str("  ");
            lines.push_str(column);
        }
        lines.push('\n');
    }
    lines
}

impl fmt::Display for Ran {
    /// As a person would see it in a terminal: JSON laid out, standard error marked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "$ {}", self.line)?;
        match serde_json::from_str::<Value>(&self.out) {
            Ok(object) if object.is_object() => {
                writeln!(f, "{}", serde_json::to_string_pretty(&object).unwrap())?;
            }
            _ => f.write_str(&self.out)?,
        }
        for line in self.err.lines() {
            writeln!(f, "! {line}")?;
        }
        if self.code != 0 {
            writeln!(f, "(exit {})", self.code)?;
        }
        Ok(())
    }
}
