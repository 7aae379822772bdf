//! Detects that the database is no longer the file that was opened.
//!
//! Writes through an open descriptor succeed even if the file was deleted, so long-lived lease holders compare the
//! path's inode.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::heartbeat::LeaseLoss;

#[derive(Debug, Clone)]
pub struct DatabaseFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl DatabaseFile {
    /// The file that exists now.
    pub fn at(path: &Path) -> io::Result<Self> {
        let found = std::fs::metadata(path)?;
        Ok(Self { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }

    /// How the file was lost, if its path no longer leads to it.
    pub fn loss(&self) -> Option<LeaseLoss> {
        match std::fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == (self.device, self.inode) => None,
            Ok(_) => Some(LeaseLoss::Replaced(self.path.clone())),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Some(LeaseLoss::Deleted(self.path.clone()))
            }
            // An unreadable path does not prove that the file is gone; the renewal decides.
            Err(_) => None,
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
        let file = DatabaseFile::at(&path).unwrap();
        std::fs::write(&path, "2").unwrap();
        assert!(file.loss().is_none());
        std::fs::write(folder.path().join("new"), "3").unwrap();
        std::fs::rename(folder.path().join("new"), &path).unwrap();
        assert!(matches!(file.loss(), Some(LeaseLoss::Replaced(_))));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(file.loss(), Some(LeaseLoss::Deleted(_))));
    }
}
