//! Reads the fields of JSON-like objects. A value of the wrong type is reported with the name of the field and the
//! line of the object, never converted silently.

use serde_json::Value;

use super::ProblemKind;
use super::collect::Collector;

/// A field of the object on `line`.
pub(super) struct ImportField<'a> {
    pub(super) name: &'a str,
    pub(super) line: usize,
}

impl ImportField<'_> {
    /// `null` becomes the empty text. A whole number is accepted as text, because YAML allows `title: 42` without
    /// quotes.
    pub(super) fn text(&self, value: Value, into: &mut Collector) -> String {
        match value {
            Value::String(text) => text,
            Value::Null => String::new(),
            Value::Number(number) if !number.is_f64() => number.to_string(),
            _ => self.wrong(into, "text"),
        }
    }

    /// `None` for `null` and for the empty text.
    pub(super) fn optional_text(&self, value: Value, into: &mut Collector) -> Option<String> {
        Some(self.text(value, into)).filter(|text| !text.is_empty())
    }

    pub(super) fn texts(&self, value: Value, into: &mut Collector) -> Vec<String> {
        match value {
            Value::Null => Vec::new(),
            Value::Array(values) => values.into_iter().map(|value| self.text(value, into)).collect(),
            _ => self.wrong(into, "a list of texts"),
        }
    }

    pub(super) fn whole_number(&self, value: &Value, into: &mut Collector) -> Option<i64> {
        match value {
            Value::Null => None,
            Value::Number(number) if number.as_i64().is_some() => number.as_i64(),
            _ => self.wrong(into, "a whole number"),
        }
    }

    pub(super) fn flag(&self, value: &Value, into: &mut Collector) -> bool {
        match value {
            Value::Null => false,
            Value::Bool(flag) => *flag,
            _ => self.wrong(into, "true or false"),
        }
    }

    /// Reports that the field is not imported, unless its value is empty.
    pub(super) fn unmapped(&self, value: &Value, why: &'static str, into: &mut Collector) {
        if !is_empty_value(value) {
            into.note(self.line, &format!("field `{}`", self.name), why);
        }
    }

    fn wrong<T: Default>(&self, into: &mut Collector, expected: &'static str) -> T {
        into.refuse(self.line, ProblemKind::WrongType { field: self.name.to_owned(), expected });
        T::default()
    }
}

/// Whether the value represents "not set".
pub(super) fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Appends a part with a heading to a description.
pub(super) fn append_part(description: &mut String, heading: &str, part: &str) {
    let part = part.trim_end();
    if part.trim().is_empty() {
        return;
    }
    if !description.trim().is_empty() {
        description.truncate(description.trim_end().len());
        description.push_str("\n\n");
    }
    description.push_str("## ");
    description.push_str(heading);
    description.push_str("\n\n");
    description.push_str(part);
}
