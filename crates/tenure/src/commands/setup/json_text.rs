//! A JSON text that is changed in place.
//!
//! Guarantees: everything but what is put in or taken out stays byte for byte, and taking out what was put in gives the
//! text from before. For that, a new list or object is laid out in lines, and one that was there and empty is filled where
//! it stands: so it is seen later which of the two goes with its last entry. Not guaranteed: this after somebody else has
//! laid out the file anew; then an emptied list or object may go or stay.

use std::ops::Range;

use serde_json::{Map, Value};

#[derive(Debug, Clone)]
pub(super) struct JsonText {
    text: String,
}

/// One step down: a key of an object, or a place in a list.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'s> {
    Key(&'s str),
    Index(usize),
}

/// An entry of an object or a list: where it stands with its key, and its value alone.
#[derive(Debug)]
struct Member {
    key: Option<String>,
    whole: Range<usize>,
    value: Range<usize>,
}

/// What is left after something was taken out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left {
    Something,
    /// It was the last entry of a text that was made for it.
    Nothing,
}

impl JsonText {
    /// A text of an object, without comments: those would not survive others who read and write it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        object_of(text)?;
        Ok(Self { text: text.to_owned() })
    }

    /// A text of its own.
    pub(super) fn new(key: &str, value: Value) -> Self {
        let root = Value::Object(Map::from_iter([(key.to_owned(), value)]));
        Self { text: format!("{root:#}\n") }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    pub(super) fn root(&self) -> Map<String, Value> {
        object_of(&self.text).unwrap_or_default()
    }

    /// Puts an entry last into the object or list at `path`, which must be there.
    pub(super) fn append(&mut self, path: &[Step<'_>], key: Option<&str>, value: &Value) {
        let Some(container) = self.find(path) else { return };
        let members = members(&self.text, &container);
        let (at, before) = match members.last() {
            Some(last) => {
                let begins =
                    members.len().checked_sub(2).map_or(container.start + 1, |i| members[i].whole.end);
                let space = self.text[begins..last.whole.start].rsplit(',').next().unwrap_or_default();
                let space = if members.len() == 1 && space.is_empty() { " " } else { space };
                (last.whole.end, format!(",{space}"))
            }
            None => (container.start + 1, String::new()),
        };
        let margin = match before.rfind('\n') {
            Some(newline) => before[newline + 1..].to_owned(),
            None => self.margin(at),
        };
        let key = key.map(|key| format!("{}: ", Value::from(key))).unwrap_or_default();
        let shown = self.laid_out(value, &margin);
        self.text.insert_str(at, &format!("{before}{key}{shown}"));
    }

    /// Puts another value in the place of the one at `path`.
    #[cfg(feature = "serve")]
    pub(super) fn replace(&mut self, path: &[Step<'_>], value: &Value) {
        let Some(there) = self.find(path) else { return };
        let shown = self.laid_out(value, &self.margin(there.start));
        self.text.replace_range(there, &shown);
    }

    /// Takes the entry at `path` out, and whatever was made for it and is empty without it.
    pub(super) fn cut(&mut self, path: &[Step<'_>]) -> Left {
        let Some((last, above)) = path.split_last() else { return Left::Nothing };
        let Some(container) = self.find(above) else { return Left::Something };
        let members = members(&self.text, &container);
        let Some(index) = place(&members, *last) else { return Left::Something };
        let gone = &members[index].whole;
        let range = if index > 0 {
            members[index - 1].whole.end..gone.end
        } else if let Some(next) = members.get(1) {
            gone.start..next.whole.start
        } else if self.text[container.start..gone.start].contains('\n') {
            return self.cut(above);
        } else {
            gone.clone()
        };
        self.text.replace_range(range, "");
        Left::Something
    }

    fn find(&self, path: &[Step<'_>]) -> Option<Range<usize>> {
        let start = skip_space(&self.text, 0);
        let mut at = start..value_end(&self.text, start);
        for step in path {
            let inside = members(&self.text, &at);
            at = inside.get(place(&inside, *step)?)?.value.clone();
        }
        Some(at)
    }

    /// That of the first line that has any.
    fn indent(&self) -> &str {
        let indents = self.text.lines().map(|line| {
            let rest = line.trim_start_matches([' ', '\t']);
            if rest.is_empty() { "" } else { &line[..line.len() - rest.len()] }
        });
        indents.into_iter().find(|indent| !indent.is_empty()).unwrap_or("  ")
    }

    /// How far the line with this place in it is indented.
    fn margin(&self, at: usize) -> String {
        let line = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        self.text[line..at].chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
    }

    /// No line break stands inside of a JSON string, so every line begins with nothing but its indentation.
    fn laid_out(&self, value: &Value, margin: &str) -> String {
        let indent = self.indent();
        let lines: Vec<String> = format!("{value:#}")
            .lines()
            .map(|line| {
                let rest = line.trim_start_matches(' ');
                format!("{}{rest}", indent.repeat((line.len() - rest.len()) / 2))
            })
            .collect();
        lines.join(&format!("{}{margin}", newline_of(&self.text)))
    }
}

/// As the first line ends.
pub(super) fn newline_of(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

fn object_of(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(root)) => Ok(root),
        Ok(_) => Err("this is no JSON object".to_owned()),
        Err(e) => Err(format!("this is not plain JSON: {e}")),
    }
}

fn place(members: &[Member], step: Step<'_>) -> Option<usize> {
    match step {
        Step::Index(index) => (index < members.len()).then_some(index),
        // Of two with one name the last counts, for everybody who reads JSON.
        Step::Key(key) => members.iter().rposition(|member| member.key.as_deref() == Some(key)),
    }
}

/// The entries of the object or list that stands at `at` in a text that is known to be JSON.
fn members(text: &str, at: &Range<usize>) -> Vec<Member> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let is_object = bytes.get(at.start) == Some(&b'{');
    if !is_object && bytes.get(at.start) != Some(&b'[') {
        return found;
    }
    let mut next = skip_space(text, at.start + 1);
    while next + 1 < at.end {
        let start = next;
        let (key, value) = if is_object {
            let end = value_end(text, start);
            let colon = skip_space(text, end);
            (serde_json::from_str(&text[start..end]).ok(), skip_space(text, colon + 1))
        } else {
            (None, start)
        };
        let end = value_end(text, value);
        found.push(Member { key, whole: start..end, value: value..end });
        // Past the comma, or to the closing bracket.
        let after = skip_space(text, end);
        next = if bytes.get(after) == Some(&b',') { skip_space(text, after + 1) } else { at.end };
    }
    found
}

fn skip_space(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    text.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len()
}

/// Where the value that begins at `from` ends.
fn value_end(text: &str, from: usize) -> usize {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate().skip(from) {
        let closes = match byte {
            _ if escaped => {
                escaped = false;
                false
            }
            b'\\' => {
                escaped = true;
                false
            }
            b'"' => {
                in_string = !in_string;
                !in_string
            }
            _ if in_string => false,
            b'{' | b'[' => {
                depth += 1;
                false
            }
            // What is around it ends here, and so does a number or a word.
            b'}' | b']' | b',' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                true
            }
            _ => false,
        };
        if closes && depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Step::{Index, Key};
    use super::*;

    #[test]
    fn a_new_entry_is_laid_out_like_its_neighbours() {
        let mut text = JsonText::parse("{\n\t\"a\": [1, 2],\n\t\"b\": {}\n}\n").unwrap();
        text.append(&[], Some("c"), &json!({"d": [true]}));
        text.append(&[Key("a")], None, &json!(3));
        text.append(&[Key("b")], Some("x"), &json!("y"));
        assert_eq!(
            text.text(),
            "{\n\t\"a\": [1, 2, 3],\n\t\"b\": {\"x\": \"y\"},\n\t\"c\": {\n\t\t\"d\": [\n\t\t\ttrue\n\t\t]\n\t}\n}\n"
        );
    }

    #[test]
    fn what_is_cut_takes_along_what_was_made_for_it_and_nothing_else() {
        let mut text =
            JsonText::parse("{\n  \"a\": {\n    \"b\": [\n      1\n    ]\n  },\n  \"c\": []\n}").unwrap();
        assert_eq!(text.cut(&[Key("a"), Key("b"), Index(0)]), Left::Something);
        assert_eq!(text.text(), "{\n  \"c\": []\n}");
        assert_eq!(text.cut(&[Key("c")]), Left::Nothing);
        let mut kept = JsonText::parse("{\"a\": {\"b\": [1]}}").unwrap();
        kept.cut(&[Key("a"), Key("b"), Index(0)]);
        assert_eq!(kept.text(), "{\"a\": {\"b\": []}}");
    }

    #[test]
    fn brackets_commas_and_quotes_inside_of_strings_are_text() {
        let odd = r#"{"a,\"}": "]\\", "b": ["{", "}\""], "ü": null}"#;
        let mut text = JsonText::parse(odd).unwrap();
        text.append(&[Key("b")], None, &json!("x"));
        text.append(&[], Some("z"), &json!(-1.5e3));
        assert_eq!(text.root()["b"], json!(["{", "}\"", "x"]));
        text.cut(&[Key("z")]);
        text.cut(&[Key("b"), Index(2)]);
        assert_eq!(text.text(), odd);
        text.cut(&[Key("a,\"}")]);
        assert_eq!(text.text(), r#"{"b": ["{", "}\""], "ü": null}"#);
    }

    #[test]
    fn what_is_no_plain_object_is_not_taken() {
        for text in ["", "// mine\n{}", "[]", "{", "{\"a\": 1,}", "\u{feff}{}", "{} {}"] {
            assert!(JsonText::parse(text).is_err(), "{text:?}");
        }
    }
}
