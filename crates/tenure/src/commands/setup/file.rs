//! A file of somebody else's that is changed: read, judged, and written whole or not at all.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_core::ErrorCode;

use crate::app::App;
use crate::atomic;
use crate::report::{Outcome, Report};

/// Another process that changes the same file is waited for this long.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Nothing,
    Write(String),
    /// Nothing is left of a file that was made by us.
    Delete,
}

/// A change that is decided and not made yet, with other writers kept away meanwhile.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) path: PathBuf,
    /// Where its symbolic links lead.
    real: PathBuf,
    change: Change,
    /// Somebody was killed while writing it.
    swept: bool,
    _lock: Option<File>,
}

impl Plan {
    /// What `edit` makes of the file's text, which is none if there is no file.
    pub(super) fn of(
        app: &App<'_>,
        path: PathBuf,
        by_hand: &str,
        edit: impl FnOnce(Option<&str>) -> Result<Change, String>,
    ) -> Outcome<Self> {
        let real = atomic::follow(&path).map_err(|e| Report::io(&e, ErrorCode::Config, "read", &path))?;
        let folder = folder_of(&real);
        // Where nobody can be kept away, the last one wins.
        let lock = if app.global.dry_run { None } else { atomic::lock(folder, PATIENCE).ok() };
        let swept = lock.is_some() && atomic::sweep(&real);
        let text = text_of(&path)?;
        let change = edit(text.as_deref()).map_err(|why| unreadable(&path, &why, by_hand))?;
        let is_read_only = real.metadata().is_ok_and(|file| file.permissions().readonly());
        if change != Change::Nothing && is_read_only {
            let refused = io::Error::from(io::ErrorKind::PermissionDenied);
            return Err(Report::io(&refused, ErrorCode::Config, "write", &path).note("it is read-only"));
        }
        Ok(Self { path, real, change, swept, _lock: lock })
    }

    pub(super) fn changes(&self) -> bool {
        self.change != Change::Nothing
    }

    /// Makes the change, unless this is a dry run. A folder at `root` or above it is never ours to remove.
    pub(super) fn carry_out(&self, app: &App<'_>, root: &Path) -> Outcome<()> {
        if app.global.dry_run {
            return Ok(());
        }
        let failed =
            |verb: &'static str| move |e: io::Error| Report::io(&e, ErrorCode::Config, verb, &self.path);
        let folder = folder_of(&self.real);
        match &self.change {
            Change::Nothing => {}
            Change::Write(text) => {
                std::fs::create_dir_all(folder).map_err(failed("write"))?;
                atomic::write_shared(&self.real, text, &app.env.ids.uuid()).map_err(failed("write"))?;
            }
            Change::Delete => std::fs::remove_file(&self.real).map_err(failed("remove"))?,
        }
        let is_gone = self.change == Change::Delete || (self.swept && !self.real.exists());
        if is_gone && folder != root && folder.starts_with(root) {
            // It goes if it is empty, as it was made with the file.
            let _ = std::fs::remove_dir(folder);
        }
        Ok(())
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

pub(super) fn text_of(path: &Path) -> Outcome<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Report::io(&e, ErrorCode::Config, "read", path)),
    }
}

/// What cannot be read is never written over.
pub(super) fn unreadable(path: &Path, why: &str, by_hand: &str) -> Report {
    Report::new(ErrorCode::Config, format!("{}: {why}", path.display()))
        .note(format!("nothing was changed; {by_hand}"))
}
