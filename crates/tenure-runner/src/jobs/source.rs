//! A job's list of items: a JSON array, JSON lines, or plain lines, from a file or from standard input.
//!
//! Guaranteed: memory is bounded by the longest item, regardless of the number of items; an item is stored as given;
//! an error names the line. The list is read twice, first to find all errors and then to store it, so standard input
//! is spooled into a file first.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tenure_core::job::ItemSource;
use tenure_core::{Error, Result};

use super::fill::{lookup, plain};

/// Much longer than any item that a command could get as an argument.
const LONGEST_ITEM: usize = 16 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Array,
    JsonLines,
    Lines,
}

/// A list of items that can be read repeatedly.
#[derive(Debug)]
pub struct Items {
    file: File,
    /// The name for messages.
    name: String,
    format: Format,
    source: ItemSource,
}

/// The result of reading a list once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// The number of selected items, and the hash of them in order.
    pub items: u64,
    pub hash: String,
    /// The number of items before filtering.
    pub seen: u64,
}

impl Items {
    pub fn open(source: &ItemSource) -> Result<Self> {
        let (file, name) = match &source.file {
            Some(path) => {
                let cannot =
                    |e: &io::Error| Error::invalid(format!("cannot read the items: {path}: {}", why(e)));
                let file = File::open(path).map_err(|e| cannot(&e))?;
                if file.metadata().map_err(|e| cannot(&e))?.is_dir() {
                    return Err(Error::invalid(format!("cannot read the items: {path} is a folder")));
                }
                // A pipe can be read only once, like standard input.
                let file = if file.metadata().is_ok_and(|m| m.is_file()) { file } else { spool(file)? };
                (file, shown(path))
            }
            None => (spool(io::stdin())?, "standard input".to_owned()),
        };
        let mut items = Self { file, name, format: Format::Lines, source: source.clone() };
        items.format = items.find_format()?;
        Ok(items)
    }

    /// By the file's extension, or else by its first byte.
    fn find_format(&mut self) -> Result<Format> {
        if self.source.path.is_some() {
            return Ok(Format::Array);
        }
        let extension = self.source.file.as_deref().and_then(|file| Path::new(file).extension());
        match extension.and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("jsonl" | "ndjson") => return Ok(Format::JsonLines),
            Some("txt" | "list") => return Ok(Format::Lines),
            _ => {}
        }
        let first = self.reader()?.bytes().find(|byte| !byte.as_ref().is_ok_and(u8::is_ascii_whitespace));
        Ok(match first.transpose().map_err(|e| self.broken(&e))? {
            Some(b'[') => Format::Array,
            Some(b'{') => Format::JsonLines,
            _ => Format::Lines,
        })
    }

    fn reader(&mut self) -> Result<BufReader<&File>> {
        self.file.rewind().map_err(|e| self.broken(&e))?;
        Ok(BufReader::with_capacity(64 * 1024, &self.file))
    }

    fn broken(&self, error: &io::Error) -> Error {
        Error::invalid(format!("cannot read the items: {}: {}", self.name, why(error)))
    }

    /// Reads the whole list and reports every error in it.
    pub fn survey(&mut self) -> Result<Survey> {
        self.survey_with(&mut |_| Ok(()))
    }

    /// Like [`survey`](Self::survey), and passes each selected item to `take`, as JSON.
    pub fn survey_with(&mut self, take: &mut dyn FnMut(String) -> Result<()>) -> Result<Survey> {
        let mut hash = Sha256::new();
        let mut items = 0;
        let seen = self.each(&mut |payload| {
            items += 1;
            hash.update(payload.len().to_le_bytes());
            hash.update(payload.as_bytes());
            take(payload)
        })?;
        Ok(Survey { items, hash: hex(&hash.finalize()), seen })
    }

    /// Passes each selected item to `take`, as JSON. Returns the number of all items.
    pub fn each(&mut self, take: &mut dyn FnMut(String) -> Result<()>) -> Result<u64> {
        let (source, name, format) = (self.source.clone(), self.name.clone(), self.format);
        let reader = self.reader()?;
        let mut filter = ItemFilter { source: &source, name: &name, seen: 0, kept: 0, take, stopped: None };
        match format {
            Format::Array => array(reader, &mut filter)?,
            Format::JsonLines | Format::Lines => lines(reader, format, &mut filter)?,
        }
        match filter.stopped {
            Some(error) => Err(error),
            None => Ok(filter.seen),
        }
    }
}

/// Applies `--filter` and `--max-items`.
struct ItemFilter<'a> {
    source: &'a ItemSource,
    name: &'a str,
    seen: u64,
    kept: u64,
    take: &'a mut dyn FnMut(String) -> Result<()>,
    /// The error of `take`, which ends the reading.
    stopped: Option<Error>,
}

impl ItemFilter<'_> {
    fn is_full(&self) -> bool {
        self.stopped.is_some() || self.source.max_items.is_some_and(|most| self.kept >= most)
    }

    fn offer(&mut self, payload: String) {
        self.seen += 1;
        if self.is_full() || !self.matches(&payload) {
            return;
        }
        self.kept += 1;
        if let Err(error) = (self.take)(payload) {
            self.stopped = Some(error);
        }
    }

    fn matches(&self, payload: &str) -> bool {
        if self.source.filters.is_empty() {
            return true;
        }
        let Ok(value) = serde_json::from_str::<Value>(payload) else { return false };
        self.source
            .filters
            .iter()
            .all(|(field, wanted)| lookup(&value, field).is_some_and(|found| plain(found) == *wanted))
    }
}

fn lines(mut reader: impl BufRead, format: Format, filter: &mut ItemFilter<'_>) -> Result<()> {
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let limit = LONGEST_ITEM as u64 + 1;
        let at = |what: String| Error::invalid(format!("{}:{number}: {what}", filter.name));
        let count = (&mut reader).take(limit).read_until(b'\n', &mut line).map_err(|e| at(why(&e)))?;
        if count == 0 || filter.stopped.is_some() {
            return Ok(());
        }
        if count > LONGEST_ITEM {
            return Err(at(format!("the line is longer than {} MiB", LONGEST_ITEM >> 20)));
        }
        let text = std::str::from_utf8(&line).map_err(|_| at("not UTF-8 text".to_owned()))?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let text = if number == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
        if text.trim().is_empty() {
            continue;
        }
        let payload = if format == Format::JsonLines {
            let value: &RawValue = serde_json::from_str(text.trim()).map_err(|e| at(not_json(&e, number)))?;
            value.get().to_owned()
        } else {
            Value::from(text).to_string()
        };
        filter.offer(payload);
    }
    Ok(())
}

fn not_json(error: &serde_json::Error, line: u64) -> String {
    let text = error.to_string();
    // The parser counts lines within its input, which was one line.
    let what = text.split(" at line ").next().unwrap_or(&text);
    let hint = if line == 1 { "; use --path for a list inside a document" } else { "" };
    format!("not valid JSON: {what} (column {}){hint}", error.column())
}

/// Validates the whole document, including what follows the last selected item.
fn array(reader: impl Read, filter: &mut ItemFilter<'_>) -> Result<()> {
    let name = filter.name.to_owned();
    let pointer = filter.source.path.clone().unwrap_or_default();
    let steps = steps(&pointer)?;
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    let walked = ListSeed { steps: &steps, filter: &mut *filter }.deserialize(&mut deserializer);
    let ended = walked.and_then(|found| deserializer.end().map(|()| found));
    match ended {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::invalid(format!("{name}: there is nothing at {pointer}"))),
        Err(e) if e.line() == 0 => Err(Error::invalid(format!("{name}: {e}"))),
        Err(e) => {
            let text = e.to_string();
            let what = text.split(" at line ").next().unwrap_or(&text);
            let kind = if e.is_data() { "" } else { "not valid JSON: " };
            Err(Error::invalid(format!("{name}:{}: {kind}{what} (column {})", e.line(), e.column())))
        }
    }
}

/// A JSON pointer: `/a/b`, with `~1` for a slash and `~0` for a tilde.
fn steps(pointer: &str) -> Result<Vec<String>> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let Some(rest) = pointer.strip_prefix('/') else {
        let meant = pointer.replace('.', "/");
        return Err(Error::invalid(format!(
            "the path {pointer:?} does not begin with a slash; a pointer is written /{meant}"
        )));
    };
    Ok(rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
}

/// Descends to the list without keeping anything else, and offers its elements one by one. True if the list exists.
struct ListSeed<'a, 'b> {
    steps: &'a [String],
    filter: &'a mut ItemFilter<'b>,
}

impl<'de> DeserializeSeed<'de> for ListSeed<'_, '_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ListSeed<'_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.steps.is_empty() { "a list of items" } else { "an object or a list" })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        if let Some((step, rest)) = self.steps.split_first() {
            let wanted: Option<usize> = step.parse().ok();
            let mut found = false;
            for index in 0.. {
                if wanted == Some(index) {
                    let walk = ListSeed { steps: rest, filter: &mut *self.filter };
                    match list.next_element_seed(walk)? {
                        Some(there) => found = there,
                        None => return Ok(false),
                    }
                } else if list.next_element::<IgnoredAny>()?.is_none() {
                    break;
                }
            }
            return Ok(found);
        }
        while let Some(item) = list.next_element::<Box<RawValue>>()? {
            if item.get().len() > LONGEST_ITEM {
                let megabytes = LONGEST_ITEM >> 20;
                return Err(A::Error::custom(format!("an item is longer than {megabytes} MiB")));
            }
            self.filter.offer(Box::<str>::from(item).into_string());
        }
        Ok(true)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let Some((step, rest)) = self.steps.split_first() else {
            return Err(A::Error::custom(
                "an object where a list of items was expected; name the list with --path",
            ));
        };
        let mut found = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == *step && !found {
                found = map.next_value_seed(ListSeed { steps: rest, filter: &mut *self.filter })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Copies the input into an unnamed file, so that it can be read again.
fn spool(mut from: impl Read) -> Result<File> {
    let copy = || -> io::Result<File> {
        let mut file = tempfile::tempfile()?;
        io::copy(&mut from, &mut file)?;
        Ok(file)
    };
    let mut copy = copy;
    copy().map_err(|e| Error::invalid(format!("cannot read the items: {}", why(&e))))
}

fn shown(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "no permission".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        _ => error.to_string(),
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A short hash of one item, to find it in another list.
pub fn digest(payload: &str) -> [u8; 16] {
    let mut short = [0; 16];
    short.copy_from_slice(&Sha256::digest(payload.as_bytes())[..16]);
    short
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
