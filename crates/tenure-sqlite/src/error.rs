//! Errors of SQLite and of the file system as errors of tenure.

use std::io;
use std::path::Path;

use rusqlite::ffi::ErrorCode;
use tenure_core::Error;

pub(crate) fn io_error(error: &io::Error, verb: &str, path: &Path) -> Error {
    let why = match error.kind() {
        io::ErrorKind::PermissionDenied => "no permission".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::NotFound => "it is not there".to_owned(),
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

pub(crate) fn sql_error(error: &rusqlite::Error) -> Error {
    let Some(code) = error.sqlite_error_code() else {
        return Error::store(format!("the store answered unexpectedly: {error}"));
    };
    let (message, hint) = match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => (
            "another program keeps the database locked".to_owned(),
            Some(
                "close the program that has an open transaction on .tenure/tenure.db, then try again"
                    .to_owned(),
            ),
        ),
        ErrorCode::DiskFull => (
            "the disk is full; nothing was changed".to_owned(),
            Some("free some space and try again".to_owned()),
        ),
        ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => (
            "the database file is damaged or not a database".to_owned(),
            Some("restore .tenure/tenure.db from a backup, or move it away and run `tenure init`".to_owned()),
        ),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
            return Error::PermissionDenied {
                message: "the database cannot be written: no permission".to_owned(),
                path: None,
            };
        }
        ErrorCode::SystemIoFailure => (format!("the database could not be read or written: {error}"), None),
        _ => (format!("the store failed: {error}"), None),
    };
    Error::Store { message, hint }
}
