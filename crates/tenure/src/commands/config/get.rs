//! `tenure config get`.

use serde_json::{Value, json};
use tenure_core::config::Lookup;

use super::{object, resolved};
use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};
use crate::text::Text;

/// Print the value of a setting, or of every setting in a group
///
/// Prints nothing for a setting that has no value.
///
/// Example: tenure config get locking.leaseTtl
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A key such as `locking.leaseTtl`, or a group such as `locking`
    key: String,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let found = resolved(app)?.get(&args.key).map_err(|e| Report::config(&e, None))?;
    let mut text = Text::new();
    text.block(0, &found.display());
    let mut data = json!({"key": args.key, "value": found.value()});
    if let Some(fields) = data.as_object_mut() {
        match &found {
            Lookup::Setting(entry) => {
                fields.insert("setting".into(), object(entry));
            }
            Lookup::Group { entries, .. } => {
                let rows: Vec<Value> = entries.iter().map(object).collect();
                fields.insert("total".into(), json!(rows.len()));
                fields.insert("settings".into(), Value::Array(rows));
            }
            _ => {}
        }
    }
    Ok(Answer::new(data, text))
}
