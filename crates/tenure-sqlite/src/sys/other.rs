//! Systems on which a network file system is recognised only by its path, and the holder of a lock is not known.

use std::path::{Component, Path, Prefix};

use crate::filesystem::FileSystem;

pub(crate) const FULL_SYNC: Option<&str> = None;

/// The canonical path of a drive that is mapped to a share is that of the share.
pub(crate) fn file_system(folder: &Path) -> FileSystem {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let is_share = matches!(real.components().next(), Some(Component::Prefix(prefix))
        if matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..)));
    FileSystem { network: is_share.then_some("SMB"), is_fuse: false }
}

pub(crate) fn lock_holder(_path: &Path) -> Option<u32> {
    None
}

pub(crate) fn program_name(_pid: u32) -> Option<String> {
    None
}
