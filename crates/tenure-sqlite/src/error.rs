//! Errors of SQLite and of the file system as errors of tenure.

use std::fs::File;
use std::io;
use std::path::Path;

use rusqlite::ffi::ErrorCode;
use tenure_core::Error;
use tenure_core::error::Advice;
use tenure_core::hints;

pub(crate) fn io_error(error: &io::Error, verb: &str, path: &Path) -> Error {
    let why = match error.kind() {
        io::ErrorKind::PermissionDenied => "no permission".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::NotFound => "it does not exist".to_owned(),
        _ => error.to_string(),
    };
    let message = format!("cannot {verb} {}: {why}", path.display());
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Error::PermissionDenied { message, path: Some(path.to_owned()) }
        }
        _ => Error::store(message),
    }
}

const DAMAGED: &str = "the database file is damaged or not a database";

/// The longest path of a database that SQLite opens, in bytes.
const LONGEST_PATH: usize = 512;

pub(crate) fn cannot_open(error: &rusqlite::Error, path: &Path) -> Error {
    let length = path.as_os_str().len();
    match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen) if length > LONGEST_PATH => Error::store(format!(
            "cannot open {}: its path has {length} bytes, and SQLite allows {LONGEST_PATH}",
            path.display()
        )),
        Some(ErrorCode::CannotOpen) => Error::store(format!("cannot open {}: {error}", path.display())),
        _ => sql_error(error),
    }
}

/// SQLite reports a read error of the disk like damage. If the file cannot be read, that is the error to report: the content
/// may be sound.
pub(crate) fn unreadable(error: Error, path: &Path) -> Error {
    match &error {
        Error::StoreDamaged { message, .. } if message == DAMAGED => {
            let read = File::open(path).and_then(|mut file| io::copy(&mut file, &mut io::sink()));
            read.err().map_or(error, |why| io_error(&why, "read", path))
        }
        _ => error,
    }
}

pub(crate) fn sql_error(error: &rusqlite::Error) -> Error {
    let Some(code) = error.sqlite_error_code() else {
        return Error::damaged(format!("unexpected data in the store: {error}"));
    };
    if matches!(error, rusqlite::Error::SqlInputError { .. }) {
        return Error::damaged(format!("the store failed: {error}"));
    }
    let (message, advice) = match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => (
            "the database is locked by another program".to_owned(),
            Advice::note(
                "close the program that has an open transaction on .tenure/tenure.db, then try again",
            ),
        ),
        ErrorCode::DiskFull => (
            "the disk is full; nothing was changed".to_owned(),
            Advice::note("free some space and try again"),
        ),
        ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => {
            return Error::StoreDamaged {
                message: DAMAGED.to_owned(),
                advice: Advice::hints([hints::restore_backup()]),
            };
        }
        // A row that the schema does not allow, or a value of a type that the column does not have.
        ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig => {
            return Error::damaged(format!("the store failed: {error}"));
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
            return Error::PermissionDenied {
                message: "the database cannot be written: no permission".to_owned(),
                path: None,
            };
        }
        ErrorCode::SystemIoFailure => (format!("the database could not be read or written: {error}"), None),
        _ => (format!("the store failed: {error}"), None),
    };
    Error::Store { message, advice }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn damaged() -> Error {
        Error::damaged(DAMAGED)
    }

    #[test]
    fn a_file_that_cannot_be_read_is_not_reported_as_damaged() {
        // Reading the first page of this file is an I/O error.
        let error = unreadable(damaged(), Path::new("/proc/self/mem")).to_string();
        assert!(error.contains("cannot read /proc/self/mem") && error.contains("os error 5"), "{error}");
        let sound = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(unreadable(damaged(), sound.path()).to_string(), DAMAGED);
        let other = unreadable(Error::store("the disk is full"), Path::new("/proc/self/mem"));
        assert_eq!(other.to_string(), "the disk is full");
    }

    #[test]
    fn a_path_that_is_too_long_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut path = folder.path().to_owned();
        for _ in 0..6 {
            path.push("x".repeat(100));
        }
        std::fs::create_dir_all(&path).unwrap();
        path.push("tenure.db");
        let error = rusqlite::Connection::open(&path).unwrap_err();
        let said = cannot_open(&error, &path).to_string();
        assert!(said.contains(&*path.to_string_lossy()) && said.ends_with("SQLite allows 512"), "{said}");
    }
}
