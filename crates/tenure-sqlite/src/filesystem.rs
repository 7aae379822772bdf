//! The kind of file system that the database is on. SQLite's locks do not work across a network.

use std::path::Path;

use tenure_core::{Error, Result};

use crate::sys;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileSystem {
    /// Also one that is not known.
    Local,
    Fuse,
    /// With its name.
    Network(&'static str),
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
    let name = match found {
        FileSystem::Network(name) => name,
        FileSystem::Fuse => return Ok(Kind::Fuse),
        FileSystem::Local => return Ok(Kind::Local),
    };
    Err(Error::Store {
        message: format!(
            "the project is on {name}, where file locks of different machines do not see each other"
        ),
        hint: Some("keep it on a local disk, or set store.url to a PostgreSQL server".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_file_system_is_refused_by_name_and_fuse_is_not() {
        assert!(judge(FileSystem::Network("NFS")).unwrap_err().to_string().contains("NFS"));
        assert_eq!(judge(FileSystem::Fuse).unwrap(), Kind::Fuse);
        assert_eq!(judge(FileSystem::Local).unwrap(), Kind::Local);
    }
}
