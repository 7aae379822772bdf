//! An open file that can be locked, used by both kinds of lock.
//!
//! Guarantees: the lock ends with this value or with this process, whichever is first; a forked child neither keeps
//! nor ends it; reading is bounded regardless of the file's size.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::path::Path;

use crate::sys::file::{self, FileId};
use crate::sys::fork::{self, Registration};

/// Valid lock files have a few hundred bytes.
pub(crate) const MAX_SIZE: usize = 64 * 1024;

/// Below this size, content is replaced by a single write, so that neither a kill nor a reader can observe a partial
/// one.
const ONE_WRITE: u64 = 4096;

#[derive(Debug)]
pub(crate) struct LockFile {
    file: ManuallyDrop<File>,
    registration: Registration,
    locked: bool,
}

/// The content of a lock file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Bytes(Vec<u8>),
    TooLarge,
}

impl LockFile {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::from_opening(|| file::open_existing(path, true))
    }

    /// For inspecting a file without writing to it.
    pub(crate) fn open_read_only(path: &Path) -> io::Result<Self> {
        Self::from_opening(|| file::open_existing(path, false))
    }

    /// Fails if the name exists.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut made = false;
        Self::from_opening(|| {
            // A retry happens only after a concurrent fork, and then the existing file is the one just created.
            if std::mem::replace(&mut made, true) {
                std::fs::remove_file(path)?;
            }
            file::create_new(path)
        })
    }

    /// The guard of all names in `directory`: the directory itself where it can be locked, else a file.
    pub(crate) fn guard_of(directory: &Path) -> io::Result<Self> {
        Self::from_opening(|| file::open_guard(directory))
    }

    pub(crate) fn from_opening(open: impl FnMut() -> io::Result<File>) -> io::Result<Self> {
        let (file, registration) = fork::open_registered(open)?;
        Ok(Self { file: ManuallyDrop::new(file), registration, locked: false })
    }

    pub(crate) fn try_lock(&mut self) -> io::Result<bool> {
        self.locked = file::try_lock(&self.file)?;
        Ok(self.locked)
    }

    /// Makes the drop only close the file, so that a child with a copy of the descriptor keeps the lock.
    pub(crate) fn leave_locked(&mut self) {
        self.locked = false;
    }

    /// `false` in a forked child.
    pub(crate) fn is_this_process(&self) -> bool {
        self.registration.is_this_process()
    }

    /// Whether `path` still names this file.
    pub(crate) fn is_at(&self, path: &Path) -> io::Result<bool> {
        let there = file::id_at(path)?;
        Ok(there.is_some() && there == self.id()?)
    }

    pub(crate) fn id(&self) -> io::Result<Option<FileId>> {
        file::id_of(&self.file)
    }

    pub(crate) fn read(&self) -> io::Result<Content> {
        let mut bytes = vec![0; 1024];
        let mut length = 0;
        loop {
            let Some(room) = bytes.get_mut(length..) else {
                return Ok(Content::TooLarge);
            };
            let read = file::read_at(&self.file, room, length as u64)?;
            if read == 0 {
                bytes.truncate(length);
                return Ok(Content::Bytes(bytes));
            }
            length += read;
            if length > MAX_SIZE {
                return Ok(Content::TooLarge);
            }
            if length == bytes.len() {
                bytes.resize(length * 4, 0);
            }
        }
    }

    /// Replaces the content with `text`. A shorter text is padded with blanks rather than truncated, so that a reader
    /// sees either the old or the new text; JSON allows trailing blanks.
    pub(crate) fn replace(&self, text: &[u8]) -> io::Result<()> {
        let old = self.file.metadata()?.len();
        let mut bytes = text.to_vec();
        match usize::try_from(old) {
            Ok(old_length) if old <= ONE_WRITE => bytes.resize(old_length.max(text.len()), b' '),
            _ => self.file.set_len(0)?,
        }
        self.write_all(&bytes).inspect_err(|_| {
            // A partial text would be unreadable; an empty file is free. The first error is the one returned.
            let _ = self.file.set_len(0);
        })
    }

    /// For a file that no other process can see yet.
    pub(crate) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let mut written = 0;
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match file::write_at(&self.file, rest, written as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    #[cfg(unix)]
    pub(crate) fn duplicate_inheritable(&self) -> io::Result<std::os::fd::OwnedFd> {
        file::duplicate_inheritable(&self.file)
    }
}

impl Drop for LockFile {
    #[expect(
        unsafe_code,
        reason = "a forked child must not close a descriptor that its fork handler has closed"
    )]
    fn drop(&mut self) {
        if !self.registration.is_this_process() {
            return;
        }
        if self.locked {
            // Closing also ends the lock, unless another process has a copy of the descriptor.
            let _ = file::unlock(&self.file);
        }
        self.registration.remove();
        // SAFETY: nothing uses the file after this.
        unsafe { ManuallyDrop::drop(&mut self.file) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacing_keeps_the_length_and_hides_the_old_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        for (old, new) in [("", "{}"), ("{\"long\":\"text\"}", "{}"), ("x", "{\"a\":1}")] {
            std::fs::write(&path, old).unwrap();
            LockFile::open(&path).unwrap().replace(new.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap().trim_end(), new);
        }
        std::fs::write(&path, vec![b'x'; 10_000]).unwrap();
        LockFile::open(&path).unwrap().replace(b"{}").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"{}");
    }

    #[test]
    fn reading_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        for (length, fits) in
            [(0, true), (1023, true), (1024, true), (5000, true), (MAX_SIZE, true), (MAX_SIZE + 1, false)]
        {
            std::fs::write(&path, vec![b'x'; length]).unwrap();
            let content = LockFile::open_read_only(&path).unwrap().read().unwrap();
            match content {
                Content::Bytes(bytes) => assert!(fits && bytes.len() == length),
                Content::TooLarge => assert!(!fits, "{length}"),
            }
        }
    }
}
