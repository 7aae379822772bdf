//! `tenure config unset`.

use serde_json::json;
use tenure_core::config::{self, Lookup};

use super::set::{ConfigChange, change};
use super::{object, read, target};
use crate::answer::Answer;
use crate::app::App;
use crate::report::{CommandResult, Report};
use crate::text::Text;

/// Remove one setting, so that the next file or the default applies; the rest of the file is preserved
///
/// Writes to the project's file inside a project, otherwise to your user file.
///
/// Example: tenure config unset runners.preset
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A key such as `locking.leaseTtl`
    key: String,
    /// Remove it from your user file, which applies to all projects
    #[arg(long)]
    user: bool,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let key = &args.key;
    let edit = |text: &str| config::unset(text, key);
    edit("").map_err(|e| Report::config(&e, None))?;
    let (layer, path) = target(app, args.user)?;
    let ConfigChange { changed, effective } = if read(&path)?.is_some() {
        change(app, layer, &path, &edit)?
    } else {
        ConfigChange { changed: false, effective: super::resolved(app)? }
    };
    let mut text = Text::new();
    if changed {
        text.line(format!("{} {key} from {}", app.past("Removed", "Would remove"), path.display()));
    } else {
        text.line(format!("{key} is not set in {}; nothing changed", path.display()));
    }
    let mut data = json!({"layer": layer.as_str(), "file": path.to_string_lossy(), "changed": changed});
    // A preset that was removed completely has no value any more.
    if let (Ok(Lookup::Setting(entry)), Some(fields)) = (effective.get(key), data.as_object_mut()) {
        let value = if entry.display.is_empty() { "no value" } else { &entry.display };
        text.line(format!("  now {value}, from {}", entry.origin));
        fields.insert("setting".into(), object(&entry));
    }
    Ok(Answer::new(data, text))
}
