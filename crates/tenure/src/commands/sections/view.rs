//! A section as JSON, and the answer of verbs that change it.

use serde_json::{Value, json};
use tenure_core::section::Section;
use tenure_core::wire;

use crate::answer::Answer;
use crate::app::App;
use crate::text::Text;

pub(super) fn data(app: &App<'_>, section: &Section) -> Value {
    json!({"section": wire::section(section, app.env.clock.now(), app.env.judge.as_ref())})
}

/// The answer of a verb that changed the section; `verb` is in the past tense.
pub(super) fn changed(app: &App<'_>, section: &Section, verb: &str) -> Answer {
    let mut text = Text::new();
    text.line(format!("{verb} section {}", section.name));
    Answer::new(data(app, section), text)
}
