//! `tenure config get`.

use serde_json::{Value, json};
use tenure_core::config::{Config, KEYS, Lookup, Origin, Setting};
use tenure_runner::preset::{PresetSource, built_in_command};

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
    let config = resolved(app)?;
    let found = match config.get(&args.key) {
        Ok(Lookup::Setting(entry)) if entry.value == Value::Null => built_in(app, &config, &args.key),
        Err(_) => built_in(app, &config, &args.key),
        Ok(_) => None,
    };
    let found = found.map_or_else(|| config.get(&args.key), Ok).map_err(|e| Report::config(&e, None))?;
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

/// The command of a built-in preset that no file changes.
fn built_in(app: &mut App<'_>, config: &Config, key: &str) -> Option<Lookup> {
    let name = key.strip_prefix("presets.")?.strip_suffix(".command")?;
    let path = app.env.vars.get(std::ffi::OsStr::new("PATH"));
    let source = PresetSource::of(config, &app.env.cwd, path.map(|path| &**path));
    let (command, obstacle) = built_in_command(name, &source)?;
    if let Some(obstacle) = obstacle {
        app.printer.warn(&format!("{name} cannot be started with this configuration: {obstacle}"));
    }
    let display = json!(command).to_string();
    let about = KEYS.iter().find(|known| known.name == "presets.*.command").map_or("", |known| known.about);
    let (key, value, origin) = (key.to_owned(), json!(command), Origin::Default);
    Some(Lookup::Setting(Setting { key, value, display, origin, about }))
}
