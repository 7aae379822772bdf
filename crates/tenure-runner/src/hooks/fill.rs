//! Fills a hook's templates: `{{task.title}}` from the payload, `${TOKEN}` from the environment.
//!
//! Guarantees: a value stays one value wherever it is inserted. In an argument it is plain text, in a URL it is
//! percent-encoded, in a header it has no line breaks, and in a JSON body it is escaped inside a string and a whole JSON
//! value outside of one. [`Filler::redact`] removes the values of all inserted variables from a text.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;

use serde_json::Value;
use tenure_core::text::escape_line;

use crate::template::{Piece, pieces};

/// Why a template could not be filled. Names fields, placeholders and variables, never their values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FillError {
    #[error("{field}: there is no {{{{{name}}}}} for this event")]
    Placeholder { field: String, name: String },
    #[error("{field}: the variable {name} is not set")]
    Variable { field: String, name: String },
    #[error("{field}: the variable {name} is not text")]
    NotText { field: String, name: String },
    #[error("{field}: placeholders are not allowed here, because others write the text that they stand for")]
    NotHere { field: String },
}

#[derive(Debug)]
pub(super) struct Filler<'a> {
    payload: &'a Value,
    vars: &'a BTreeMap<OsString, OsString>,
    used: BTreeSet<String>,
}

impl<'a> Filler<'a> {
    pub(super) fn new(payload: &'a Value, vars: &'a BTreeMap<OsString, OsString>) -> Self {
        Self { payload, vars, used: BTreeSet::new() }
    }

    /// An argument: placeholders and variables are inserted unchanged.
    pub(super) fn argument(&mut self, field: &str, template: &str) -> Result<String, FillError> {
        self.fill(field, template, plain, str::to_owned)
    }

    /// The program to run. Placeholders are refused, because a task's title could choose the program.
    pub(super) fn program(&mut self, field: &str, template: &str) -> Result<String, FillError> {
        if pieces(template).iter().any(|piece| matches!(piece, Piece::Placeholder(_))) {
            return Err(FillError::NotHere { field: field.to_owned() });
        }
        self.argument(field, template)
    }

    /// A URL: placeholders are percent-encoded, variables are inserted unchanged.
    pub(super) fn url(&mut self, field: &str, template: &str) -> Result<String, FillError> {
        self.fill(field, template, |value| percent_encoded(&plain(value)), str::to_owned)
    }

    pub(super) fn header(&mut self, field: &str, template: &str) -> Result<String, FillError> {
        // A variable that was read from a file often ends with an unintended newline.
        self.fill(
            field,
            template,
            |value| escape_line(&plain(value)).into_owned(),
            |text| text.trim_end().to_owned(),
        )
    }

    pub(super) fn json(&mut self, field: &str, template: &str) -> Result<String, FillError> {
        let mut out = String::with_capacity(template.len());
        let mut inside = false;
        for piece in pieces(template) {
            match piece {
                Piece::Text(text) => {
                    inside = ends_inside_string(text, inside);
                    out.push_str(text);
                }
                Piece::Placeholder(name) => {
                    let value = self.lookup(field, name)?;
                    let text = if inside { inner_json(&plain(value)) } else { value.to_string() };
                    out.push_str(&text);
                }
                Piece::Variable(name) => {
                    let text = inner_json(&self.variable(field, name)?);
                    let quote = if inside { "" } else { "\"" };
                    out.extend([quote, text.as_str(), quote]);
                }
            }
        }
        Ok(out)
    }

    /// Replaces the values of inserted variables in a text from a script or a server.
    pub(super) fn redact(&self, text: &str) -> String {
        let mut secrets: Vec<(&str, &str)> = Vec::new();
        for name in &self.used {
            let Some(value) = self.vars.get(&OsString::from(name)).and_then(|value| value.to_str()) else {
                continue;
            };
            secrets.push((name, value));
            // A multi-line key is often printed line by line.
            secrets.extend(value.lines().filter(|line| line.len() >= 8).map(|line| (name.as_str(), line)));
        }
        secrets.retain(|(_, value)| !value.trim().is_empty());
        // Longest first, because one value may be part of another.
        secrets.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        let mut text = text.to_owned();
        for (name, value) in secrets {
            if text.contains(value) {
                text = text.replace(value, &format!("${{{name}}}"));
            }
        }
        text
    }

    fn fill(
        &mut self,
        field: &str,
        template: &str,
        put: impl Fn(&Value) -> String,
        put_variable: impl Fn(&str) -> String,
    ) -> Result<String, FillError> {
        let mut out = String::with_capacity(template.len());
        for piece in pieces(template) {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Placeholder(name) => out.push_str(&put(self.lookup(field, name)?)),
                Piece::Variable(name) => out.push_str(&put_variable(&self.variable(field, name)?)),
            }
        }
        Ok(out)
    }

    fn lookup(&self, field: &str, name: &str) -> Result<&'a Value, FillError> {
        name.split('.')
            .try_fold(self.payload, |value, word| value.get(word))
            .ok_or_else(|| FillError::Placeholder { field: field.to_owned(), name: name.to_owned() })
    }

    fn variable(&mut self, field: &str, name: &str) -> Result<String, FillError> {
        let (field, name) = (field.to_owned(), name.to_owned());
        match self.vars.get(&OsString::from(&name)).map(|value| value.to_str()) {
            None => Err(FillError::Variable { field, name }),
            Some(None) => Err(FillError::NotText { field, name }),
            Some(Some(value)) => {
                self.used.insert(name);
                Ok(value.to_owned())
            }
        }
    }
}

/// A string unchanged, nothing for null, any other value as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Escaped as inside a JSON string, without the quotes.
fn inner_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default().to_owned()
}

fn ends_inside_string(text: &str, mut inside: bool) -> bool {
    let mut escaped = false;
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            _ => {}
        }
    }
    inside
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn vars() -> BTreeMap<OsString, OsString> {
        [("TOKEN", "s3cret\"\n"), ("LONG", "s3cret\"\n-and-more"), ("EMPTY", "")]
            .map(|(name, value)| (name.into(), value.into()))
            .into()
    }

    #[test]
    fn a_title_stays_one_value_wherever_it_is_put() {
        let payload = json!({"task": {"title": "a\"b\n$(rm) ${TOKEN} {{event}} ü", "section": null, "n": 3, "l": ["x"]}});
        let vars = vars();
        let mut fill = Filler::new(&payload, &vars);
        assert_eq!(
            fill.argument("args[0]", "<{{task.title}}>").unwrap(),
            "<a\"b\n$(rm) ${TOKEN} {{event}} ü>"
        );
        assert_eq!(fill.argument("args[0]", "{{task.section}}|{{task.n}}|{{task.l}}").unwrap(), "|3|[\"x\"]");
        assert_eq!(
            fill.url("url", "http://h/?q={{task.l}}&n={{task.n}}").unwrap(),
            "http://h/?q=%5B%22x%22%5D&n=3"
        );
        assert_eq!(fill.header("headers.X", "{{task.title}}").unwrap(), "a\"b\\n$(rm) ${TOKEN} {{event}} ü");
        let body = fill
            .json("body", r#"{"text": "T: {{task.title}}", "whole": {{task.title}}, "none": {{task.section}}, "key": "${TOKEN}", "k2": ${TOKEN}}"#)
            .unwrap();
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["text"], format!("T: {}", payload["task"]["title"].as_str().unwrap()));
        assert_eq!((&body["whole"], &body["none"]), (&payload["task"]["title"], &Value::Null));
        assert_eq!((&body["key"], &body["k2"]), (&json!("s3cret\"\n"), &json!("s3cret\"\n")));
    }

    #[test]
    fn what_is_missing_is_named() {
        let (payload, vars) = (json!({"event": "e"}), vars());
        let mut fill = Filler::new(&payload, &vars);
        let mut message = |template| fill.argument("args[1]", template).unwrap_err().to_string();
        assert_eq!(message("{{task.title}}"), "args[1]: there is no {{task.title}} for this event");
        assert_eq!(message("${NOPE}"), "args[1]: the variable NOPE is not set");
        assert_eq!(fill.argument("args[1]", "${EMPTY}.").unwrap(), ".");
        assert!(matches!(fill.program("command", "./{{event}}"), Err(FillError::NotHere { .. })));
    }

    #[test]
    fn variables_that_were_put_in_are_taken_out_of_messages() {
        let (payload, vars) = (json!({}), vars());
        let mut fill = Filler::new(&payload, &vars);
        fill.header("h", "${TOKEN}${LONG}${EMPTY}").unwrap();
        assert_eq!(fill.redact("bad s3cret\"\n-and-more!"), "bad ${LONG}!");
        assert_eq!(fill.redact("bad -and-more!"), "bad ${LONG}!");
        assert_eq!(fill.redact("fine"), "fine");
    }
}
