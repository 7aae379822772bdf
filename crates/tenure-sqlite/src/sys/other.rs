//! Systems on which the kind of a file system and the holder of a lock are not known.

use std::path::Path;

use crate::filesystem::FileSystem;

pub(crate) const FULL_SYNC: Option<&str> = None;

pub(crate) fn file_system(_folder: &Path) -> FileSystem {
    FileSystem::Local
}

pub(crate) fn lock_holder(_path: &Path) -> Option<u32> {
    None
}

pub(crate) fn program_name(_pid: u32) -> Option<String> {
    None
}
