//! Outcomes kept as files, one folder per store: `~/.tenure/outcomes/STORE/FENCE` (F6).

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use tenure_core::id::Fence;
use tenure_core::outcome::{KeptOutcome, Outcomes};
use tenure_lock::{create_private_folder, open_private};

use crate::sys;

/// Longer than any outcome; its reason has at most a line of output.
const LONGEST: u64 = 64 * 1024;

/// The kept outcomes of one store.
#[derive(Debug, Clone)]
pub struct OutcomeFiles {
    folder: PathBuf,
}

impl OutcomeFiles {
    /// Below `home`, the user's folder of tenure. `store` is the id of the store.
    pub fn new(home: &Path, store: &str) -> Self {
        Self { folder: home.join("outcomes").join(store) }
    }

    fn file(&self, fence: Fence) -> PathBuf {
        self.folder.join(fence.to_string())
    }

    /// The temporary file that [`Outcomes::keep`] writes and renames. Only the supervisor of this lease writes
    /// it.
    fn unfinished(&self, fence: Fence) -> PathBuf {
        self.folder.join(format!("{fence}.new"))
    }

    /// Removes these files of a lease, and the folder with the last one.
    fn remove(&self, files: &[PathBuf]) {
        let removed = files.iter().filter(|file| std::fs::remove_file(file).is_ok()).count();
        if removed > 0 {
            // Fails while other outcomes are kept in the folder.
            let _ = std::fs::remove_dir(&self.folder);
        }
    }

    fn read(&self, fence: Fence) -> io::Result<KeptOutcome> {
        let file = open_private(&self.file(fence), File::options().read(true))?;
        if !sys::is_private(&file.metadata()?) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    }
}

impl Outcomes for OutcomeFiles {
    fn kept(&self, fence: Fence) -> Option<KeptOutcome> {
        let kept = self.read(fence).ok().filter(|kept| kept.fence == fence);
        if kept.is_none() {
            // The lease is being closed. If its supervisor was killed while it wrote this file, no other process
            // will complete it.
            self.remove(&[self.unfinished(fence)]);
        }
        kept
    }

    fn keep(&self, outcome: &KeptOutcome) -> io::Result<()> {
        let unfinished = self.unfinished(outcome.fence);
        self.remove(std::slice::from_ref(&unfinished));
        create_private_folder(&self.folder)?;
        let mut file = open_private(&unfinished, File::options().write(true).create_new(true))?;
        file.write_all(serde_json::to_string(outcome)?.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(unfinished, self.file(outcome.fence))
    }

    fn forget(&self, fence: Fence) {
        self.remove(&[self.file(fence), self.unfinished(fence)]);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use tenure_core::id::{AttemptId, RandomIds};
    use tenure_core::outcome::{AttemptResult, Nonce};

    use super::*;

    fn outcome() -> KeptOutcome {
        KeptOutcome {
            attempt: AttemptId::new("a"),
            fence: Fence::new(7),
            nonce: Nonce::new(&RandomIds),
            exit_code: Some(1),
            result: AttemptResult::Failed { why: "exited with 1: \"no\"".into(), charged: false },
        }
    }

    #[test]
    fn an_outcome_is_read_as_it_was_kept_until_it_is_forgotten() {
        let home = tempfile::tempdir().unwrap();
        let (files, kept) = (OutcomeFiles::new(home.path(), "s"), outcome());
        assert_eq!(files.kept(kept.fence), None);
        files.keep(&kept).unwrap();
        assert_eq!(files.kept(kept.fence), Some(kept.clone()));
        assert_eq!(OutcomeFiles::new(home.path(), "another").kept(kept.fence), None);
        let mode = std::fs::metadata(files.file(kept.fence)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        files.forget(kept.fence);
        assert_eq!(files.kept(kept.fence), None);
        assert!(!home.path().join("outcomes/s").exists(), "the empty folder is removed");
    }

    #[test]
    fn what_a_killed_process_left_unfinished_is_removed_with_the_lease() {
        let home = tempfile::tempdir().unwrap();
        let (files, kept) = (OutcomeFiles::new(home.path(), "s"), outcome());
        let unfinished = || {
            create_private_folder(&files.folder).unwrap();
            std::fs::write(files.unfinished(kept.fence), "{\"attempt\":").unwrap();
        };
        unfinished();
        assert_eq!(files.kept(kept.fence), None);
        assert!(!files.folder.exists());
        unfinished();
        files.keep(&kept).unwrap();
        assert_eq!(files.kept(kept.fence), Some(kept.clone()));
        unfinished();
        files.forget(kept.fence);
        assert!(!files.folder.exists());
    }

    #[test]
    fn a_file_that_others_can_write_or_that_is_a_link_is_ignored() {
        let home = tempfile::tempdir().unwrap();
        let (files, kept) = (OutcomeFiles::new(home.path(), "s"), outcome());
        files.keep(&kept).unwrap();
        let path = files.file(kept.fence);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o620)).unwrap();
        assert_eq!(files.kept(kept.fence), None);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let aside = home.path().join("aside");
        std::fs::rename(&path, &aside).unwrap();
        std::os::unix::fs::symlink(&aside, &path).unwrap();
        assert_eq!(files.kept(kept.fence), None);
    }
}
