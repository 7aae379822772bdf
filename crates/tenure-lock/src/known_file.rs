//! Detects that a path no longer leads to the file that was opened.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::sys::file;
pub use crate::sys::file::FileId;

/// Two paths lead to the same file or folder if their ids are equal, even if the paths differ in case or by a link.
impl FileId {
    /// The id of an open file. `None` if the system does not report one.
    pub fn of(file: &File) -> io::Result<Option<Self>> {
        file::id_of(file)
    }

    /// The id of the file or folder that a path leads to, through symbolic links.
    pub fn behind(path: &Path) -> io::Result<Self> {
        file::id_behind(path)
    }
}

/// A file, identified independently of its name, and its path.
///
/// Writes through an open descriptor succeed even if the file was deleted, so a long-lived process checks the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFile {
    path: PathBuf,
    id: FileId,
}

/// What a path leads to, compared with a [`KnownFile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The same file, or a file that cannot be inspected.
    InPlace,
    /// Another file.
    Replaced,
    /// Nothing.
    Deleted,
}

impl KnownFile {
    /// The file that exists now.
    pub fn at(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), id: file::id_behind(path)? })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn presence(&self) -> Presence {
        match file::id_behind(&self.path) {
            Ok(found) if found == self.id => Presence::InPlace,
            Ok(_) => Presence::Replaced,
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Presence::Deleted
            }
            // An unreadable path does not prove that the file is gone.
            Err(_) => Presence::InPlace,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_or_replaced_file_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        std::fs::write(&path, "1").unwrap();
        let file = KnownFile::at(&path).unwrap();
        std::fs::write(&path, "2").unwrap();
        assert_eq!(file.presence(), Presence::InPlace);
        std::fs::write(folder.path().join("new"), "3").unwrap();
        std::fs::rename(folder.path().join("new"), &path).unwrap();
        assert_eq!(file.presence(), Presence::Replaced);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.presence(), Presence::Deleted);
    }
}
