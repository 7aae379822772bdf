//! `tenure init`: creates a project.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tenure_core::config::{self, Config, Document};
use tenure_core::hints;
use tenure_core::{Error, ErrorCode};
use tenure_lock::open_private;
use tenure_sqlite::Directory;

use crate::answer::Answer;
use crate::app::App;
use crate::atomic;
use crate::project::{self, ProjectPaths};
use crate::report::{CommandResult, Report};
use crate::shell_quote::quote;
use crate::store::Source;
use crate::sys;
use crate::text::{Style, Text};
use crate::trust;

/// Create a project in this folder: `.tenure/` with its database and configuration
///
/// Runtime files are added to `.gitignore`; commit `.tenure/config.yaml`. Running it again only renews the registration.
///
/// Example: tenure init --name shop
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The project's name (default: the folder's)
    #[arg(long, value_name = "N")]
    name: Option<String>,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let start = app.start()?;
    let home = app.env.home();
    let paths = project::paths_for_init(&start, home.as_deref())?;
    if let Some(name) = &args.name {
        tenure_core::text::check_display_name(name).map_err(Error::from)?;
    }
    crate::ownership::check(&paths, app.env)?;
    crate::tracked::refuse(app.env, &paths)?;
    // A clone has a configuration already. If it is invalid, nothing is created.
    let tracked = app.config(Some(&paths))?;
    let existed = is_complete(&app.source(&paths, &tracked)?)?;
    let given = args.name.clone().unwrap_or_else(|| {
        paths.root.file_name().map_or_else(|| "project".to_owned(), |n| n.to_string_lossy().into_owned())
    });
    let mut text = Text::new();
    if app.global.dry_run {
        let verb = if existed { "register" } else { "create" };
        text.line(format!("Would {verb} {}", paths.folder().display()));
        let name = tracked.project.name.unwrap_or(given);
        return Ok(Answer::new(json!({"path": paths.root, "name": name, "created": !existed}), text));
    }
    let Made { config, is_copy, has_ignored } = make(&paths, &given, app)?;
    let examined = trust::examine(app.env, &paths)?;
    let name = config.project.name.clone().unwrap_or(given);
    let id = config.project.id.map(|id| id.to_string());
    if let Err(report) = register(app, &paths, Some(&name), id.as_deref()) {
        app.printer.warn(&format!("the project was not registered: {}", report.message));
    }
    if existed {
        text.line(format!("{} is already a project; nothing changed.", paths.root.display()));
    } else {
        text.styled(Style::Good, "Made").and(Style::Plain, format!(" {}", paths.folder().display()));
    }
    if has_ignored {
        text.line("  Added its runtime files to .gitignore");
    }
    let mut answer = Answer::new(
        json!({
            "path": paths.root,
            "name": name,
            "projectId": id,
            "created": !existed,
        }),
        text,
    );
    if let Some(other) = args.name.filter(|other| *other != name) {
        answer.text.line(format!("  It keeps its name: {name}"));
        answer = answer.hint(hints::rename_project(quote(&other)));
    }
    let ignored = paths.root.join(".gitignore");
    if !existed && crate::links::is_link(&ignored) {
        app.printer.warn(&format!(
            "{} is a symbolic link, so nothing was added to it; make git ignore .tenure/* except config.yaml",
            ignored.display()
        ));
    }
    if is_copy {
        answer.text.line("  Its database is a copy of another project's and can only be read.");
        return Ok(answer.hint(hints::adopt()));
    }
    if !examined.allows_agents(app.env) {
        answer = answer.hint(hints::trust_settings());
    }
    Ok(answer.hint(hints::add_task()).hint(hints::claim_next()))
}

/// Whether the store exists. The database file is created last, so an `init` that was killed leaves at most an empty one,
/// and the next `init` continues.
fn is_complete(source: &Source) -> CommandResult<bool> {
    match source {
        // Not opened: `init` leaves a damaged database alone.
        Source::Sqlite { path, .. } => {
            Ok(path.symlink_metadata().is_ok_and(|found| !found.is_file() || found.len() > 0))
        }
        Source::Postgres { .. } => Ok(source.find()?.is_some()),
    }
}

/// How long to wait for concurrent `init`s, each of which takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// A project that has everything it needs.
struct Made {
    config: Config,
    /// Its database is a copy of another project's.
    is_copy: bool,
    /// `.gitignore` was changed.
    has_ignored: bool,
}

/// Creates everything below `.tenure/`, under a lock: of several concurrent processes the first creates it.
fn make(paths: &ProjectPaths, name: &str, app: &mut App<'_>) -> CommandResult<Made> {
    let folder = paths.folder();
    match sys::private_folder().create(&folder) {
        Ok(()) => {}
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && folder.is_dir() => {}
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(Report::new(
                ErrorCode::Config,
                format!("{} exists and is not a folder", folder.display()),
            ));
        }
        Err(e) => return Err(io(&e, "create", &folder)),
    }
    let patience = app.global.timeout.map_or(PATIENCE, |limit| limit.min(PATIENCE));
    let _lock = atomic::lock(&folder, patience).map_err(|e| io(&e, "lock", &folder))?;
    make_private(paths);
    let before = app.config(Some(paths))?;
    let source = app.source(paths, &before)?;
    let mut has_ignored = false;
    if !is_complete(&source)? {
        if !paths.config().exists() {
            let text = format!(
                "# tenure's settings for this project; commit this file. `tenure config show` lists every setting.\n\
                 project:\n  id: {}\n  name: {}\n",
                app.env.ids.uuid(),
                serde_json::to_string(name).unwrap_or_default(),
            );
            write_config(app, paths, &text)?;
            trust_new(app, paths, &text)?;
        } else if before.project.id.is_none() && source.is_on_server() {
            identify(app, paths, before.project.name.is_none().then_some(name))?;
        }
        has_ignored = ignore_runtime_files(&paths.root)?;
    }
    let config = app.config(Some(paths))?;
    let store = app.source(paths, &config)?.create(config.project.name.as_deref().unwrap_or(name))?;
    Ok(Made { config, is_copy: store.is_copy(), has_ignored })
}

/// Removes other users' permissions from existing files, for example in a clone. The configuration may stay readable; the
/// folder around it does not. `doctor` reports what could not be changed.
fn make_private(paths: &ProjectPaths) {
    let folder = paths.folder();
    sys::close_to_others(&folder);
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        if entry.path() != paths.config() {
            sys::close_to_others(&entry.path());
        }
    }
}

/// Trusts the file, because the user has just created it. A home that cannot be written does not stop `init`.
fn trust_new(app: &mut App<'_>, paths: &ProjectPaths, text: &str) -> CommandResult<()> {
    let document = Document::parse(text).map_err(|e| Report::config(&e, None))?;
    if let Err(report) = trust::examine_document(app.env, paths, document).save(app.env) {
        app.printer
            .warn(&format!("the project is not trusted, so no agent is started in it: {}", report.message));
    }
    Ok(())
}

/// Adds the project's id, and its name if that is missing, to a configuration that exists. A database that many
/// projects share identifies each project by its id, regardless of the folders of its clones.
pub(crate) fn identify(app: &App<'_>, paths: &ProjectPaths, name: Option<&str>) -> CommandResult<()> {
    let path = paths.config();
    let mut text = fs::read_to_string(&path).map_err(|e| io(&e, "read", &path))?;
    let id = app.env.ids.uuid();
    for (key, value) in [("project.id", Some(id.as_str())), ("project.name", name)] {
        let Some(value) = value else { continue };
        text = config::set(&text, key, value).map_err(|error| {
            Report::config(&error, Some(&path.to_string_lossy())).hint(hints::edit_by_hand(""))
        })?;
    }
    write_config(app, paths, &text)
}

fn write_config(app: &App<'_>, paths: &ProjectPaths, text: &str) -> CommandResult<()> {
    let path = paths.config();
    atomic::write(&path, text, &app.env.ids.hex8()).map_err(|e| io(&e, "write", &path))
}

const IGNORED: [&str; 2] = [".tenure/*", "!.tenure/config.yaml"];

/// Returns whether the file was changed.
fn ignore_runtime_files(root: &Path) -> CommandResult<bool> {
    let path = root.join(".gitignore");
    let mut before = String::new();
    let read =
        open_private(&path, File::options().read(true)).and_then(|mut file| file.read_to_string(&mut before));
    match read {
        Ok(_) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        // Not UTF-8, not readable, or a symbolic link: left unchanged.
        Err(_) => return Ok(false),
    }
    if IGNORED.iter().all(|line| before.lines().any(|l| l.trim() == *line)) {
        return Ok(false);
    }
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let addition = format!("{gap}# tenure's runtime files\n{}\n{}\n", IGNORED[0], IGNORED[1]);
    open_shared(&path)
        .and_then(|mut file| file.write_all(addition.as_bytes()))
        .map_err(|e| io(&e, "write", &path))?;
    Ok(true)
}

/// Opens a file for appending that other users may read, if it is not a symbolic link.
fn open_shared(path: &Path) -> std::io::Result<File> {
    match File::options().append(true).create_new(true).open(path) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            open_private(path, File::options().append(true))
        }
        opened => opened,
    }
}

fn io(error: &std::io::Error, verb: &str, path: &Path) -> Report {
    Report::io(error, ErrorCode::General, verb, path)
}

pub(crate) fn register(
    app: &App<'_>,
    paths: &ProjectPaths,
    name: Option<&str>,
    id: Option<&str>,
) -> CommandResult<()> {
    let directory: Directory = app.directory()?;
    Ok(directory.register(&paths.root, name, id)?)
}
