//! Opening, naming and locking files on Unix.
//!
//! Guarantees: a symlink in the last component of a path is never followed, opening never blocks, descriptors are not
//! inherited by other programs, and created files are readable by their owner only.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Identifies a file independently of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    #[expect(clippy::useless_conversion, reason = "the widths of these fields differ between systems")]
    fn from_stat(stat: &Stat) -> Option<Self> {
        Some(Self { device: u64::try_from(stat.st_dev).ok()?, inode: u64::from(stat.st_ino) })
    }
}

/// The file that a path leads to, through symbolic links.
pub(crate) fn id_behind(path: &Path) -> io::Result<FileId> {
    let found = std::fs::metadata(path)?;
    Ok(FileId { device: found.dev(), inode: found.ino() })
}

/// Opening does not follow a symbolic link, does not wait for the other end of a pipe, and creates a file for its owner only.
pub(crate) fn make_private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
}

/// Whether a file could not be opened because its path is a symbolic link.
pub(crate) fn refused_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ELOOP)
}

/// Creates folders that only their owner can read.
pub(crate) fn private_folder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// If the path is not a regular file, the error has the kind `InvalidInput`.
pub(crate) fn open_existing(path: &Path, write: bool) -> io::Result<File> {
    let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
    let flags = access | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP) => return Err(not_a_file("a symbolic link")),
        Err(Errno::ISDIR) => return Err(not_a_file("a directory")),
        Err(Errno::NXIO) => return Err(not_a_file("a socket or device")),
        Err(error) => return Err(error.into()),
    };
    match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file),
        FileType::Directory => Err(not_a_file("a directory")),
        _ => Err(not_a_file("a pipe, socket or device")),
    }
}

fn not_a_file(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("the lock file is {what}"))
}

pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?))
}

pub(crate) fn create_dir_all(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

pub(crate) fn id_of(file: &File) -> io::Result<Option<FileId>> {
    Ok(FileId::from_stat(&rustix::fs::fstat(file)?))
}

/// `None` if the path does not exist.
pub(crate) fn id_at(path: &Path) -> io::Result<Option<FileId>> {
    match rustix::fs::lstat(path) {
        Ok(stat) => Ok(FileId::from_stat(&stat)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// `false` if another open file holds the lock, in this process or any other.
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

pub(crate) fn unlock(file: &File) -> io::Result<()> {
    file.unlock()
}

pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buffer, offset)
}

pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    file.write_at(bytes, offset)
}

/// The file that the guard of a directory locks: the directory itself, which leaves no file behind and is not
/// affected by a clean-up of its content.
pub(crate) fn open_guard(directory: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(directory, flags, Mode::empty())?))
}

/// A second descriptor of the same open file that is inherited by programs started from now on.
pub(crate) fn duplicate_inheritable(file: &File) -> io::Result<std::os::fd::OwnedFd> {
    let copy = rustix::io::dup(file.as_fd())?;
    rustix::io::fcntl_setfd(&copy, rustix::io::FdFlags::empty())?;
    Ok(copy)
}

pub(crate) fn stop_inheriting(file: &File) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(file, rustix::io::FdFlags::CLOEXEC)?)
}
