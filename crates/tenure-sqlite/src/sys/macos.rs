//! macOS.

use std::path::Path;

use crate::filesystem::FileSystem;

/// `fsync` leaves the data in the disk's cache, which a power loss empties; with these SQLite uses `F_FULLFSYNC`.
pub(crate) const FULL_SYNC: Option<&str> = Some("PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON");

pub(crate) fn file_system(folder: &Path) -> FileSystem {
    let Ok(found) = rustix::fs::statfs(folder) else { return FileSystem::Local };
    let name: Vec<u8> = found
        .f_fstypename
        .iter()
        .map(|letter| letter.cast_unsigned())
        .take_while(|letter| *letter != 0)
        .collect();
    match name.as_slice() {
        b"nfs" => FileSystem::Network("NFS"),
        b"smbfs" => FileSystem::Network("SMB"),
        b"afpfs" => FileSystem::Network("AFP"),
        b"webdav" => FileSystem::Network("WebDAV"),
        b"macfuse" | b"osxfuse" => FileSystem::Fuse,
        _ => FileSystem::Local,
    }
}

/// The system has no table of locks.
pub(crate) fn lock_holder(_path: &Path) -> Option<u32> {
    None
}

pub(crate) fn program_name(_pid: u32) -> Option<String> {
    None
}
