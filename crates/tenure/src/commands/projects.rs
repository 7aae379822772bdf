//! `tenure projects`: the global registry, a directory of paths.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_core::ErrorCode;
use tenure_sqlite::{Directory, KnownProject};

use crate::answer::Answer;
use crate::app::App;
use crate::project;
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

impl crate::verbs::Group for Args {
    const VERBS: &'static [crate::fast_parser::Definition] = &[];

    fn without_verb(command: clap::Command) -> clap::Command {
        <Self as clap::Args>::augment_args(command)
    }

    fn verb_name(&self) -> &'static str {
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

fn is_there(project: &KnownProject) -> bool {
    project.path.join(project::FOLDER).join(project::DATABASE).exists()
}

/// Where the project that was at `path` is now, as far as the registry knows: by its id, which a clone shares.
pub(super) fn moved_to<'a>(path: &Path, known: &[&'a KnownProject]) -> Option<&'a Path> {
    let id = known.iter().find(|project| project.path == path)?.project_id.as_ref()?;
    let same = |other: &&&KnownProject| {
        other.path != path && other.project_id.as_ref() == Some(id) && is_there(other)
    };
    known.iter().find(same).map(|other| other.path.as_path())
}

/// Whether the project is still where it was registered.
fn state(project: &KnownProject) -> &'static str {
    if !is_there(project) {
        "missing"
    } else if project.enabled {
        "enabled"
    } else {
        "disabled"
    }
}

fn object(project: &KnownProject) -> Value {
    json!({
        "path": project.path,
        "name": project.name,
        "enabled": project.enabled,
        "state": state(project),
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
    let all: Vec<&KnownProject> = projects.iter().collect();
    let gone_to =
        |project: &KnownProject| if is_there(project) { None } else { moved_to(&project.path, &all) };
    let mut text = Text::new();
    if projects.is_empty() {
        text.line("No projects yet.");
    } else {
        let mut table = Table::new(&["NAME", "STATE", "PATH"]);
        for project in &projects {
            let style = if state(project) == "missing" { Style::Warn } else { Style::Plain };
            let path = project.path.to_string_lossy();
            let moved = gone_to(project).map(|to| format!(" (now at {})", to.display())).unwrap_or_default();
            table.styled_row(vec![
                (Style::Plain, project.name.clone().unwrap_or_default()),
                (style, state(project).to_owned()),
                (Style::Plain, format!("{path}{moved}")),
            ]);
        }
        text.table(&table, app.printer.look());
    }
    let rows: Vec<_> = projects
        .iter()
        .map(|project| {
            let mut row = object(project);
            if let (Some(to), Some(fields)) = (gone_to(project), row.as_object_mut()) {
                fields.insert("movedTo".into(), json!(to));
            }
            row
        })
        .collect();
    let mut answer = Answer::new(json!({"projects": rows, "total": rows.len()}), text);
    if let Some(gone) = projects.iter().find(|project| !is_there(project)) {
        let path = crate::shell::last(&gone.path.to_string_lossy());
        answer = answer.hint("forget one that is gone", format!("tenure projects remove {path}"));
    }
    Ok(if projects.is_empty() { answer.hint("make one here", "tenure init") } else { answer })
}

fn add(app: &mut App<'_>, path: Option<PathBuf>) -> Outcome<Answer> {
    let start = match path {
        Some(path) => app.folder(&path)?,
        None => app.start()?,
    };
    let place = app.find_from(&start)?;
    let tenure_core::config::Project { name, id } = app.config(Some(&place))?.project;
    let mut text = Text::new();
    text.line(format!("{} {}", app.past("Registered", "Would register"), place.root.display()));
    if app.global.dry_run {
        return Ok(Answer::new(json!({"project": {"path": place.root, "name": name}}), text));
    }
    let directory = app.directory()?;
    directory.register(&place.root, name.as_deref(), id.map(|id| id.to_string()).as_deref())?;
    let project = directory.project(&place.root)?;
    Ok(Answer::new(json!({"project": project.as_ref().map(object)}), text))
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
        None => app.find().map_or_else(|_| app.env.cwd.clone(), |place| place.root),
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
    Ok(Answer::new(json!({"project": object(&after)}), text))
}
