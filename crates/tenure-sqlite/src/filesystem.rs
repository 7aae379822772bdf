//! The kind of file system that the database is on. SQLite's locks do not work across a network.

use std::path::Path;

use tenure_core::error::Advice;
use tenure_core::{Error, Result};

use crate::sys;

/// What the operating system reports about a file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FileSystem {
    /// The name, if it is a network file system.
    pub(crate) network: Option<&'static str>,
    pub(crate) is_fuse: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Local,
    Fuse,
}

/// Refuses a network file system.
pub(crate) fn check(folder: &Path) -> Result<Kind> {
    judge(sys::file_system(folder))
}

fn judge(found: FileSystem) -> Result<Kind> {
    let Some(name) = found.network else {
        return Ok(if found.is_fuse { Kind::Fuse } else { Kind::Local });
    };
    Err(Error::Store {
        message: format!(
            "the project is on {name}, where file locks of different machines do not see each other"
        ),
        advice: Advice::note("keep it on a local disk, or set store.url to a PostgreSQL server"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_file_system_is_refused_by_name_and_fuse_is_not() {
        let network = FileSystem { network: Some("NFS"), is_fuse: false };
        assert!(judge(network).unwrap_err().to_string().contains("NFS"));
        assert_eq!(judge(FileSystem { network: None, is_fuse: true }).unwrap(), Kind::Fuse);
        assert_eq!(judge(FileSystem::default()).unwrap(), Kind::Local);
    }
}
