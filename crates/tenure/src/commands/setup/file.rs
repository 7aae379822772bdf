//! Changes a file that belongs to another program: it is read, checked, and replaced atomically or left untouched.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_core::ErrorCode;

use crate::app::App;
use crate::atomic;
use crate::report::{CommandResult, Report};

/// How long to wait for another process that changes the same file.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileChange {
    Nothing,
    Write(String),
    /// The file was created by us and nothing else is in it.
    Delete,
}

/// A decided change that is not carried out yet. Holds the lock that keeps other writers out.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) path: PathBuf,
    /// The file that `path` resolves to through symbolic links.
    real: PathBuf,
    change: FileChange,
    /// Whether temporary files of a killed process were removed.
    swept: bool,
    _lock: Option<File>,
}

impl Plan {
    /// Decides the change by calling `edit` with the file's text, or with `None` if there is no file.
    pub(super) fn of(
        app: &App<'_>,
        path: PathBuf,
        by_hand: &str,
        edit: impl FnOnce(Option<&str>) -> Result<FileChange, String>,
    ) -> CommandResult<Self> {
        let real = atomic::follow(&path).map_err(|e| Report::io(&e, ErrorCode::Config, "read", &path))?;
        let folder = folder_of(&real);
        // If the folder cannot be locked, the last writer wins.
        let lock = if app.global.dry_run { None } else { atomic::lock(folder, PATIENCE).ok() };
        let swept = lock.is_some() && atomic::sweep(&real);
        let text = text_of(&path)?;
        let change = edit(text.as_deref()).map_err(|why| unreadable(&path, &why, by_hand))?;
        let is_read_only = real.metadata().is_ok_and(|file| file.permissions().readonly());
        if change != FileChange::Nothing && is_read_only {
            let refused = io::Error::from(io::ErrorKind::PermissionDenied);
            return Err(Report::io(&refused, ErrorCode::Config, "write", &path).note("it is read-only"));
        }
        Ok(Self { path, real, change, swept, _lock: lock })
    }

    pub(super) fn changes(&self) -> bool {
        self.change != FileChange::Nothing
    }

    /// Makes the change, unless this is a dry run. Never removes `root` or a folder above it.
    pub(super) fn carry_out(&self, app: &App<'_>, root: &Path) -> CommandResult<()> {
        if app.global.dry_run {
            return Ok(());
        }
        let failed =
            |verb: &'static str| move |e: io::Error| Report::io(&e, ErrorCode::Config, verb, &self.path);
        let folder = folder_of(&self.real);
        match &self.change {
            FileChange::Nothing => {}
            FileChange::Write(text) => {
                std::fs::create_dir_all(folder).map_err(failed("write"))?;
                atomic::write_shared(&self.real, text, &app.env.ids.uuid()).map_err(failed("write"))?;
            }
            FileChange::Delete => std::fs::remove_file(&self.real).map_err(failed("remove"))?,
        }
        let is_gone = self.change == FileChange::Delete || (self.swept && !self.real.exists());
        if is_gone && folder != root && folder.starts_with(root) {
            // The folder was created with the file; this fails, as it should, if something else is in it.
            let _ = std::fs::remove_dir(folder);
        }
        Ok(())
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

pub(super) fn text_of(path: &Path) -> CommandResult<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Report::io(&e, ErrorCode::Config, "read", path)),
    }
}

/// The error for a file that was not understood and therefore not changed.
pub(super) fn unreadable(path: &Path, why: &str, by_hand: &str) -> Report {
    Report::new(ErrorCode::Config, format!("{}: {why}", path.display()))
        .note(format!("nothing was changed; {by_hand}"))
}

/// The line ending of the first line.
pub(super) fn newline_of(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}
