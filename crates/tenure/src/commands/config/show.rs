//! `tenure config show`.

use serde_json::{Value, json};
use tenure_core::config::Origin;

use super::{object, resolved};
use crate::answer::Answer;
use crate::app::App;
use crate::report::CommandResult;
use crate::text::{Style, Table, Text};

/// Show every setting, its value, and where the value comes from
///
/// Example: tenure config show
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(app: &mut App<'_>, _args: Args) -> CommandResult<Answer> {
    let entries = resolved(app)?.entries();
    let mut table = Table::new(&["KEY", "VALUE", "FROM", "WHAT IT IS"]);
    for entry in &entries {
        let (style, value) = match (entry.value == Value::Null, &entry.origin) {
            (true, _) => (Style::Dim, "-".to_owned()),
            (false, Origin::Default) => (Style::Plain, entry.display.clone()),
            (false, _) => (Style::Bold, entry.display.clone()),
        };
        table.styled_row(vec![
            (Style::Plain, entry.key.clone()),
            (style, value),
            (Style::Dim, entry.origin.to_string()),
            (Style::Dim, entry.about.to_owned()),
        ]);
    }
    let mut text = Text::new();
    text.table(&table, app.printer.render_options());
    let rows: Vec<Value> = entries.iter().map(object).collect();
    Ok(Answer::new(json!({"settings": rows, "total": rows.len()}), text))
}
