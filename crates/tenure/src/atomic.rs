//! Replaces a small file atomically.
//!
//! Guarantees: a reader sees the old text or the new one, even after a kill or a power cut; the file keeps its mode; a
//! symbolic link stays one, and what it points to is replaced. Not guaranteed: that two writers see each other's text.
//! For that, hold [`lock`] from before reading until after writing.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::sys;

/// The maximum length of a chain of symbolic links, the same as Linux's.
const MAX_LINKS: usize = 40;

/// Writes `text` to `path`, creating the file with mode 0600 if it does not exist. `mark` makes the name of the temporary
/// file unique.
pub(crate) fn write(path: &Path, text: &str, mark: &str) -> io::Result<()> {
    replace(path, text, mark, 0o600)
}

/// Like [`write`], for a file that other users may read: a new file gets its mode from the umask.
pub(crate) fn write_shared(path: &Path, text: &str, mark: &str) -> io::Result<()> {
    replace(path, text, mark, 0o666)
}

/// Removes the temporary files that killed writers of `path` left behind, and returns whether there were any. Only files
/// whose mark is a UUID are removed. The caller must hold [`lock`], so that no other writer is alive.
pub(crate) fn sweep(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(Path::new("."));
    let prefix = format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy());
    let is_left = |name: &str| {
        let mark = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".new"));
        mark.is_some_and(|mark| mark.len() == 36 && mark.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-'))
    };
    let mut found = false;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_left(&entry.file_name().to_string_lossy()) {
            found |= fs::remove_file(entry.path()).is_ok();
        }
    }
    found
}

/// Like [`write`], but always creates a new file with mode 0600, so that readers of an old file, or the target of a
/// link, never see the text.
#[cfg(any(feature = "board", feature = "serve", feature = "web"))]
pub(crate) fn write_secret(path: &Path, text: &str, mark: &str) -> io::Result<()> {
    rename_over(path, mark, |temporary| write_to(temporary, None, text, 0o600))
}

fn replace(path: &Path, text: &str, mark: &str, mode: u32) -> io::Result<()> {
    let path = follow(path)?;
    rename_over(&path, mark, |temporary| write_to(temporary, Some(&path), text, mode))
}

/// Replaces `path` by a file that `make` writes.
fn rename_over(path: &Path, mark: &str, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}.{mark}.new"));
    let outcome = make(&temporary).and_then(|()| fs::rename(&temporary, path));
    if outcome.is_err() {
        let _ = fs::remove_file(&temporary);
        return outcome;
    }
    // Makes the rename survive power loss, on file systems that support syncing a folder.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// `old`: the file whose mode is kept, if it exists.
fn write_to(temporary: &Path, old: Option<&Path>, text: &str, mode: u32) -> io::Result<()> {
    let mut options = File::options();
    let mut file = sys::with_mode(options.write(true).create_new(true), mode).open(temporary)?;
    if let Some(Ok(old)) = old.map(fs::metadata) {
        sys::copy_mode(&file, &old)?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The end of a chain of symbolic links, whether or not a file exists there.
pub(crate) fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&at) {
            Ok(target) => at = at.parent().unwrap_or(Path::new(".")).join(target),
            Err(_) => return Ok(at),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Creates a folder with mode 0700, and its parents.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    sys::private_folder().recursive(true).create(folder)
}

/// Excludes other writers of the folder's files until it is dropped. The folder itself is locked where that is possible, so
/// that no lock file is left behind.
pub(crate) fn lock(folder: &Path, patience: Duration) -> io::Result<File> {
    let file = sys::open_to_lock(folder)?;
    let deadline = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::Error(error)) => return Err(error),
            Err(fs::TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it is locked by another process"));
            }
            Err(fs::TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}
