//! `tenure config show`.

use serde_json::{Value, json};
use tenure_core::config::{Authority, Config, Origin};
use tenure_core::hints;

use super::{object, resolved};
use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::table::{Table, cut, keep};
use crate::text::{Style, Text};

/// Show every setting, its value, and where the value comes from
///
/// Example: tenure config show
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(app: &mut App<'_>, _args: Args) -> CommandResult<Answer> {
    let config = resolved(app)?;
    let entries = config.entries();
    let mut table = Table::new([keep("KEY"), cut("VALUE"), cut("FROM"), cut("WHAT IT IS")]);
    for entry in &entries {
        let (style, value) = match (entry.value == Value::Null, &entry.origin) {
            (true, _) => (Style::Dim, "-".to_owned()),
            (false, Origin::Default) => (Style::Plain, entry.display.clone()),
            (false, _) => (Style::Bold, entry.display.clone()),
        };
        table.styled_row(vec![
            (Style::Plain, entry.key.clone()),
            (style, value),
            (Style::Dim, place(&entry.origin)),
            (Style::Dim, entry.about.to_owned()),
        ]);
    }
    let mut text = Text::new();
    text.table(&table, app.printer.render_options());
    let rows: Vec<Value> = entries.iter().map(object).collect();
    let ignored: Vec<&str> = config.ignored.iter().map(|setting| setting.key.as_str()).collect();
    let answer = Answer::new(json!({"settings": rows, "total": rows.len(), "ignored": ignored}), text);
    Ok(note_ignored(&config, answer))
}

/// The file name and line (`config path` shows the paths), or the variable or flag.
fn place(origin: &Origin) -> String {
    match origin {
        Origin::Project { line, .. } => format!("project:{line}"),
        Origin::User { line, .. } => format!("user:{line}"),
        other => other.to_string(),
    }
}

/// Lists the ignored settings of the project's file, and why they are ignored.
fn note_ignored(config: &Config, mut answer: Answer) -> Answer {
    let keys = |authority: Authority| -> Vec<&str> {
        let ignored = config.ignored.iter().filter(|setting| setting.authority == authority);
        ignored.map(|setting| setting.key.as_str()).collect()
    };
    let (untrusted, users) = (keys(Authority::NeedsTrust), keys(Authority::UserOnly));
    if !users.is_empty() {
        let line = format!("In the project's file these have no effect: {}", users.join(", "));
        answer.text.styled(Style::Warn, line);
    }
    if untrusted.is_empty() {
        return answer;
    }
    let line = format!(
        "The project is not trusted, so these of its settings have no effect: {}",
        untrusted.join(", ")
    );
    answer.text.styled(Style::Warn, line);
    answer.hint(hints::trust_settings())
}
