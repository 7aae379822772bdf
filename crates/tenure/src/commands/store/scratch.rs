//! A private folder for files that are not complete yet.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tenure_core::ErrorCode;

use crate::env::Env;
use crate::report::{CommandResult, Report};
use crate::sys;

/// Removed with everything in it when it is dropped.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn inside(folder: &Path, env: &Env) -> CommandResult<Self> {
        let path = folder.join(format!(".tenure-{}", env.ids.uuid()));
        sys::private_folder()
            .create(&path)
            .map_err(|e| Report::io(&e, ErrorCode::General, "create", &path))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Copies a database file, and the log beside it if there is one, so that the original is not changed.
    pub(super) fn copy_database(&self, file: &Path) -> CommandResult<PathBuf> {
        let copy = self.path("copy");
        std::fs::copy(file, &copy).map_err(|e| Report::io(&e, ErrorCode::General, "read", file))?;
        // The copy has the mode of the original, which may be read-only.
        sys::make_writable(&copy).map_err(|e| Report::io(&e, ErrorCode::General, "write", &copy))?;
        let log = |file: &Path| {
            let mut name = OsString::from(file);
            name.push("-wal");
            PathBuf::from(name)
        };
        if log(file).is_file() {
            std::fs::copy(log(file), log(&copy))
                .map_err(|e| Report::io(&e, ErrorCode::General, "read", &log(file)))?;
        }
        Ok(copy)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
