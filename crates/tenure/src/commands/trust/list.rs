//! `tenure trust list`.

use std::path::Path;

use serde_json::{Value, json};
use tenure_core::config::{TrustRecord, TrustState};

use crate::answer::Answer;
use crate::app::App;
use crate::project::ProjectPaths;
use crate::table::{Table, cut, cut_start, keep};
use crate::text::{Style, Text};
use crate::trust;

/// List the projects that you have trusted, and whether each is still the same
///
/// Example: tenure trust list
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(app: &mut App<'_>, _: Args) -> Answer {
    let records = trust::all_records(app.env);
    let mut table = Table::new([keep("STATE"), keep("SINCE"), cut_start("PATH"), cut("KEYS")]);
    let time = app.local_time();
    let mut rows: Vec<Value> = Vec::new();
    for record in &records {
        let state = state(app, record);
        let keys: Vec<&str> = record.content.keys.keys().map(String::as_str).collect();
        table.styled_row(vec![
            (if state == TrustState::Trusted.as_str() { Style::Good } else { Style::Warn }, state.to_owned()),
            (Style::Plain, time.seconds(record.trusted_at)),
            (Style::Plain, record.path.clone()),
            (Style::Dim, keys.join(", ")),
        ]);
        rows.push(json!({
            "path": record.path,
            "state": state,
            "trustedAt": record.trusted_at,
            "keys": keys,
            "hash": record.content.hash(),
        }));
    }
    let mut text = Text::new();
    if rows.is_empty() {
        text.line("No project is trusted.");
    } else {
        text.table(&table, app.printer.render_options());
    }
    Answer::new(json!({"trusted": rows, "total": rows.len()}), text)
}

/// `missing` if the folder no longer exists; a file that cannot be read counts as changed.
fn state(app: &App<'_>, record: &TrustRecord) -> &'static str {
    let root = Path::new(&record.path);
    if !root.is_dir() {
        return "missing";
    }
    let examined = trust::examine(app.env, &ProjectPaths::new(root));
    examined.map_or(TrustState::Changed, |examined| examined.state).as_str()
}
