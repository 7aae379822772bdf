//! macOS.

use std::path::Path;

use crate::filesystem::FileSystem;

/// `fsync` leaves the data in the disk's cache, which a power loss empties; with these SQLite uses `F_FULLFSYNC`.
pub(crate) const FULL_SYNC: Option<&str> = Some("PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON");

pub(crate) fn file_system(folder: &Path) -> FileSystem {
    let Ok(found) = rustix::fs::statfs(folder) else { return FileSystem::default() };
    let letters = found.f_fstypename.iter().map(|letter| letter.cast_unsigned());
    let name: Vec<u8> = letters.take_while(|letter| *letter != 0).collect();
    let network = match name.as_slice() {
        b"nfs" => Some("NFS"),
        b"smbfs" => Some("SMB"),
        b"afpfs" => Some("AFP"),
        b"webdav" => Some("WebDAV"),
        _ => None,
    };
    FileSystem { network, is_fuse: matches!(name.as_slice(), b"macfuse" | b"osxfuse") }
}

/// The system has no table of locks.
pub(crate) fn lock_holder(_path: &Path) -> Option<u32> {
    None
}

pub(crate) fn program_name(_pid: u32) -> Option<String> {
    None
}
