//! Is the database still the file that was opened?
//!
//! An open descriptor writes happily into a file that was deleted, so whoever holds a lease for long compares the name.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::heartbeat::Loss;

#[derive(Debug, Clone)]
pub struct DatabaseFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl DatabaseFile {
    /// The file that is there now.
    pub fn at(path: &Path) -> io::Result<Self> {
        let found = std::fs::metadata(path)?;
        Ok(Self { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }

    /// What has become of it, if it is no longer there under its name.
    pub fn loss(&self) -> Option<Loss> {
        match std::fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (self.device, self.inode) => None,
            Ok(_) => Some(Loss::Replaced(self.path.clone())),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Some(Loss::Deleted(self.path.clone()))
            }
            // Not to be seen for the moment is not gone; the renewal says the rest.
            Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_missed_when_it_is_deleted_or_another_has_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        std::fs::write(&path, "1").unwrap();
        let file = DatabaseFile::at(&path).unwrap();
        std::fs::write(&path, "2").unwrap();
        assert!(file.loss().is_none());
        std::fs::write(folder.path().join("new"), "3").unwrap();
        std::fs::rename(folder.path().join("new"), &path).unwrap();
        assert!(matches!(file.loss(), Some(Loss::Replaced(_))));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(file.loss(), Some(Loss::Deleted(_))));
    }
}
