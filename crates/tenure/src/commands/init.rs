//! `tenure init`: make a project here.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use serde_json::json;
use tenure_core::{Error, ErrorCode};
use tenure_sqlite::{Directory, SqliteStore};

use crate::answer::Answer;
use crate::app::App;
use crate::project::{self, Place};
use crate::report::{Outcome, Report};
use crate::text::{Style, Text};

/// Make a project here: `.tenure/` with its database and configuration
///
/// Runtime files go into `.gitignore`; `.tenure/config.yaml` is yours to commit. Running it again changes nothing but the
/// registration.
///
/// Example: tenure init --name shop
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The project's name (default: the folder's)
    #[arg(long, value_name = "N")]
    name: Option<String>,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    let start = app.start()?;
    let home = app.env.home();
    let place = project::place_for_init(&start, home.as_deref())?;
    if let Some(name) = &args.name {
        tenure_core::text::check_label(name).map_err(Error::from)?;
    }
    let existed = place.database().symlink_metadata().is_ok();
    if existed {
        crate::ownership::check(&place, app.env)?;
    }
    let given = args.name.unwrap_or_else(|| {
        place.root.file_name().map_or_else(|| "project".to_owned(), |n| n.to_string_lossy().into_owned())
    });
    if app.global.dry_run {
        let mut text = Text::new();
        text.line(format!(
            "Would {} {}",
            if existed { "register" } else { "make" },
            place.folder().display()
        ));
        return Ok(Answer::new(json!({"path": place.root, "created": !existed, "dryRun": true}), text));
    }
    make(&place, &given, app)?;
    let config = app.config(Some(&place))?;
    let name = config.project.name.clone().unwrap_or(given);
    let registered = register(app, &place, &name);

    let mut text = Text::new();
    if existed {
        text.line(format!("{} is a project already; nothing was changed.", place.root.display()));
    } else {
        text.styled(Style::Good, "Made").and(Style::Plain, format!(" {}", place.folder().display()));
    }
    if let Err(report) = registered {
        app.printer.warn(&format!("the project was not registered: {}", report.message));
    }
    let data = json!({
        "path": place.root,
        "name": name,
        "projectId": config.project.id.map(|id| id.to_string()),
        "created": !existed,
    });
    Ok(Answer::new(data, text)
        .hint("add a task", "tenure tasks add 'Fix the login page'")
        .hint("take the next one", "tenure tasks next --claim"))
}

/// Everything below `.tenure/`. Many may do this at once: the first one makes it, under a lock.
fn make(place: &Place, name: &str, app: &App<'_>) -> Outcome<()> {
    let folder = place.folder();
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Ok(()) => {}
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(io(&e, "make", &folder)),
    }
    let lock_path = folder.join("init.lock");
    let lock = private(&lock_path, true).map_err(|e| io(&e, "open", &lock_path))?;
    lock.lock().map_err(|e| io(&e, "lock", &lock_path))?;
    let config = place.config();
    if !config.exists() {
        let text = format!(
            "# tenure: this file is yours to commit. `tenure config show` lists every setting.\n\
             project:\n  id: {}\n  name: {}\n",
            app.env.ids.uuid(),
            serde_json::to_string(name).unwrap_or_default(),
        );
        write_new(&config, &text).map_err(|e| io(&e, "write", &config))?;
    }
    ignore_runtime_files(&place.root)?;
    SqliteStore::create(&place.database(), app.store_options())?;
    Ok(())
}

const IGNORED: [&str; 2] = [".tenure/*", "!.tenure/config.yaml"];

fn ignore_runtime_files(root: &Path) -> Outcome<()> {
    let path = root.join(".gitignore");
    let before = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        // Not text, or not ours to read: leave it alone.
        Err(_) => return Ok(()),
    };
    if IGNORED.iter().all(|line| before.lines().any(|l| l.trim() == *line)) {
        return Ok(());
    }
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let addition = format!("{gap}# tenure's runtime files\n{}\n{}\n", IGNORED[0], IGNORED[1]);
    File::options()
        .append(true)
        .create(true)
        .open(&path)
        .and_then(|mut file| file.write_all(addition.as_bytes()))
        .map_err(|e| io(&e, "write", &path))
}

/// Whole or not at all: a kill in between must not leave an empty configuration.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let temporary = path.with_extension("yaml.new");
    let mut file = private(&temporary, true)?;
    file.set_len(0)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}

fn private(path: &Path, create: bool) -> std::io::Result<File> {
    File::options().read(true).write(true).create(create).truncate(false).mode(0o600).open(path)
}

fn io(error: &std::io::Error, verb: &str, path: &Path) -> Report {
    let code = match error.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            ErrorCode::PermissionDenied
        }
        _ => ErrorCode::General,
    };
    Report::new(code, format!("cannot {verb} {}: {error}", path.display()))
}

fn register(app: &App<'_>, place: &Place, name: &str) -> Outcome<()> {
    let directory: Directory = app.directory()?;
    Ok(directory.register(&place.root, Some(name))?)
}
