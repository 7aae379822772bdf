//! `tenure projects`: the global registry, a directory of paths.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_core::ErrorCode;
use tenure_sqlite::{Directory, KnownProject};

use crate::answer::Answer;
use crate::app::App;
use crate::candidates::unregistered;
use crate::report::{Outcome, Report};
use crate::text::{Style, Table, Text};

/// The projects on this machine that tenure looks after
///
/// Example: tenure projects list
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List them
    ///
    /// Example: tenure projects list
    List,
    /// Register a project
    ///
    /// Example: tenure projects add ~/src/shop
    Add {
        /// Its folder (default: this one)
        path: Option<PathBuf>,
    },
    /// Forget a project; its files stay
    ///
    /// Example: tenure projects remove ~/src/shop
    Remove {
        /// Its folder (default: this one)
        path: Option<PathBuf>,
    },
    /// Let wake-up look after a project again
    ///
    /// Example: tenure projects enable ~/src/shop
    Enable {
        /// Its folder (default: this one)
        path: Option<PathBuf>,
    },
    /// Keep wake-up away from a project
    ///
    /// Example: tenure projects disable ~/src/shop
    Disable {
        /// Its folder (default: this one)
        path: Option<PathBuf>,
    },
}

impl Args {
    pub(crate) fn subcommand(&self) -> &'static str {
        match self.verb {
            None | Some(Verb::List) => "list",
            Some(Verb::Add { .. }) => "add",
            Some(Verb::Remove { .. }) => "remove",
            Some(Verb::Enable { .. }) => "enable",
            Some(Verb::Disable { .. }) => "disable",
        }
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    match args.verb.unwrap_or(Verb::List) {
        Verb::List => list(app),
        Verb::Add { path } => add(app, path),
        Verb::Remove { path } => change(app, path, "Removed", "remove", Directory::remove),
        Verb::Enable { path } => change(app, path, "Enabled", "enable", |d, p| d.set_enabled(p, true)),
        Verb::Disable { path } => change(app, path, "Disabled", "disable", |d, p| d.set_enabled(p, false)),
    }
}

/// Where the project that was at `path` is now, according to the registry: by its id, which a clone shares.
pub(super) fn moved_to<'a>(app: &App<'_>, path: &Path, known: &'a [KnownProject]) -> Option<&'a Path> {
    let id = known.iter().find(|project| project.path == path)?.project_id.as_ref()?;
    let same = |other: &&KnownProject| {
        other.path != path && other.project_id.as_ref() == Some(id) && app.project_at(&other.path).is_some()
    };
    known.iter().find(same).map(|other| other.path.as_path())
}

const MISSING: &str = "missing";
/// Wake-up's decision has the same name.
const UNREGISTERED: &str = "unregistered";

/// Whether the project is still where it was registered, and wake-up serves it.
fn state(app: &App<'_>, project: &KnownProject) -> &'static str {
    if app.project_at(&project.path).is_none() {
        MISSING
    } else if project.enabled {
        "enabled"
    } else {
        "disabled"
    }
}

fn object(project: &KnownProject, state: &str) -> Value {
    json!({
        "path": project.path,
        "name": project.name,
        "enabled": project.enabled,
        "state": state,
        "registeredAt": project.registered_at,
        "lastSeenAt": project.last_seen_at,
    })
}

fn list(app: &mut App<'_>) -> Outcome<Answer> {
    let home = app.home()?;
    let projects = match Directory::open_existing(&home, app.env.clock.clone())? {
        Some(directory) => directory.projects()?,
        None => Vec::new(),
    };
    // The registry can be read without a valid configuration.
    let candidates = unregistered(app, &projects).unwrap_or_else(|report| {
        app.printer.warn(&format!("projects that are not registered are not listed: {}", report.message));
        BTreeMap::new()
    });
    let mut table = Table::new(&["NAME", "STATE", "PATH"]);
    let mut rows = Vec::new();
    let mut missing = None;
    for project in &projects {
        let state = state(app, project);
        let mut row = object(project, state);
        let mut shown = project.path.to_string_lossy().into_owned();
        if state == MISSING {
            missing = missing.or(Some(&project.path));
            if let (Some(to), Some(fields)) = (moved_to(app, &project.path, &projects), row.as_object_mut()) {
                shown.push_str(&format!(" (now at {})", to.display()));
                fields.insert("movedTo".into(), json!(to));
            }
        }
        let style = if state == MISSING { Style::Warn } else { Style::Plain };
        table.styled_row(vec![
            (Style::Plain, project.name.clone().unwrap_or_default()),
            (style, state.to_owned()),
            (Style::Plain, shown),
        ]);
        rows.push(row);
    }
    for path in candidates.keys() {
        table.styled_row(vec![
            (Style::Plain, String::new()),
            (Style::Warn, UNREGISTERED.to_owned()),
            (Style::Plain, path.to_string_lossy().into_owned()),
        ]);
        rows.push(json!({
            "path": path,
            "name": null,
            "enabled": false,
            "state": UNREGISTERED,
            "registeredAt": null,
            "lastSeenAt": null,
        }));
    }
    let mut text = Text::new();
    if rows.is_empty() {
        text.line("No projects yet.");
    } else {
        text.table(&table, app.printer.look());
    }
    let mut answer = Answer::new(json!({"projects": rows, "total": rows.len()}), text);
    if let Some(path) = missing {
        let path = crate::shell::last(&path.to_string_lossy());
        answer = answer.hint("forget one that is gone", format!("tenure projects remove {path}"));
    }
    answer.hints.extend(candidates.into_values());
    Ok(if rows.is_empty() { answer.hint("make one here", "tenure init") } else { answer })
}

fn add(app: &mut App<'_>, path: Option<PathBuf>) -> Outcome<Answer> {
    let start = match path {
        Some(path) => app.folder(&path)?,
        None => app.start()?,
    };
    let project = app.find_from(&start)?;
    let root = project.paths.root;
    let tenure_core::config::Project { name, id } = project.config?.project;
    let mut text = Text::new();
    text.line(format!("{} {}", app.past("Registered", "Would register"), root.display()));
    if app.global.dry_run {
        return Ok(Answer::new(json!({"project": {"path": root, "name": name}}), text));
    }
    let directory = app.directory()?;
    directory.register(&root, name.as_deref(), id.map(|id| id.to_string()).as_deref())?;
    let project = directory.project(&root)?;
    let object = project.map(|project| object(&project, state(app, &project)));
    Ok(Answer::new(json!({"project": object}), text))
}

fn change(
    app: &mut App<'_>,
    path: Option<PathBuf>,
    done: &str,
    verb: &str,
    act: impl Fn(&Directory, &Path) -> tenure_core::Result<bool>,
) -> Outcome<Answer> {
    let path = match path {
        Some(path) => app.env.cwd.join(path),
        None => app.find().map_or_else(|_| app.env.cwd.clone(), |project| project.paths.root),
    };
    let path = path.canonicalize().unwrap_or(path);
    let not_registered = || {
        Report::new(ErrorCode::General, format!("{} is not registered", path.display()))
            .hint("see which are", "tenure projects list")
    };
    let directory =
        Directory::open_existing(&app.home()?, app.env.clock.clone())?.ok_or_else(not_registered)?;
    let project = directory.project(&path)?.ok_or_else(not_registered)?;
    if !app.global.dry_run {
        act(&directory, &path)?;
    }
    let mut text = Text::new();
    let would = format!("Would {verb}");
    text.line(format!("{} {}", if app.global.dry_run { &would } else { done }, path.display()));
    let after = directory.project(&path)?.unwrap_or(project);
    Ok(Answer::new(json!({"project": object(&after, state(app, &after))}), text))
}
