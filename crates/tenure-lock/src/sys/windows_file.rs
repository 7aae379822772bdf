//! Opening, naming and locking files on Windows.
//!
//! Guarantees: a symlink in the last component of a path is not followed, and handles are not inherited.
//! Windows enforces locks: reading a locked range fails. The lock is therefore on one byte far beyond the content, so
//! that other tools can read the JSON while it is held.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::AsRawHandle;
use std::path::Path;

use windows_sys::Win32::Foundation::{ERROR_IO_PENDING, ERROR_LOCK_VIOLATION};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT,
    GetFileInformationByHandle, LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFileEx,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

const LOCKED_BYTE_HIGH: u32 = 0x4000_0000;

/// Identifies a file independently of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    volume: u32,
    index: u64,
}

/// Volume and index, which stay the same when the file is moved within its volume.
impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:{}", self.volume, self.index)
    }
}

/// The file that a path leads to, through symbolic links.
pub(crate) fn id_behind(path: &Path) -> io::Result<FileId> {
    let file = OpenOptions::new().access_mode(0).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)?;
    id_of(&file)?.ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Opening does not follow a symbolic link. The permissions of a new file are inherited from its folder.
pub(crate) fn make_private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
}

/// A symbolic link is opened itself, and is then refused because it is not a regular file.
pub(crate) fn refused_link(_error: &io::Error) -> bool {
    false
}

/// The permissions of a new folder are inherited.
pub(crate) fn private_folder() -> DirBuilder {
    DirBuilder::new()
}

pub(crate) fn open_existing(path: &Path, write: bool) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).write(write).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path)?;
    if file.metadata()?.file_type().is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "the lock file is not a regular file"))
}

pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

pub(crate) fn create_dir_all(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)
}

#[expect(unsafe_code, reason = "std does not expose the file index")]
pub(crate) fn id_of(file: &File) -> io::Result<Option<FileId>> {
    let mut info = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open, and the result is a local.
    if unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut info) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let index = (u64::from(info.nFileIndexHigh) << 32) | u64::from(info.nFileIndexLow);
    Ok(Some(FileId { volume: info.dwVolumeSerialNumber, index }))
}

pub(crate) fn id_at(path: &Path) -> io::Result<Option<FileId>> {
    match OpenOptions::new().access_mode(0).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path) {
        Ok(file) => id_of(&file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[expect(unsafe_code, reason = "std locks the whole file, which would hide the content from readers")]
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    let mut overlapped = locked_byte();
    let flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: the handle is open and synchronous, so the structure is not used after the call.
    if unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut overlapped) } != 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error().and_then(|code| u32::try_from(code).ok()) {
        Some(ERROR_LOCK_VIOLATION | ERROR_IO_PENDING) => Ok(false),
        _ => Err(error),
    }
}

#[expect(unsafe_code, reason = "the counterpart of try_lock")]
pub(crate) fn unlock(file: &File) -> io::Result<()> {
    let mut overlapped = locked_byte();
    // SAFETY: as in try_lock.
    if unsafe { UnlockFileEx(file.as_raw_handle(), 0, 1, 0, &raw mut overlapped) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn locked_byte() -> OVERLAPPED {
    let mut overlapped = OVERLAPPED::default();
    overlapped.Anonymous.Anonymous.OffsetHigh = LOCKED_BYTE_HIGH;
    overlapped
}

pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(buffer, offset)
}

pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    file.seek_write(bytes, offset)
}

/// A directory cannot be locked on Windows, so a separate file is used. It is never removed.
pub(crate) fn open_guard(directory: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(directory.join(".exclusive-lock.guard"))
}
