//! The kind of file system that the database is on. SQLite's locks do not work across a network.

use std::path::Path;

use tenure_core::{Error, Result};

const NFS: i64 = 0x6969;
const SMB: i64 = 0x517b;
const CIFS: i64 = 0xff53_4d42;
const SMB2: i64 = 0xfe53_4d42;
const PLAN9: i64 = 0x0102_1997;
const FUSE: i64 = 0x6573_5546;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Local,
    Fuse,
}

/// Refuses a network file system.
pub(crate) fn check(folder: &Path) -> Result<Kind> {
    judge(magic(folder))
}

fn judge(magic: Option<i64>) -> Result<Kind> {
    let name = match magic {
        Some(NFS) => "NFS",
        Some(SMB | CIFS | SMB2) => "SMB",
        Some(PLAN9) => "9p",
        Some(FUSE) => return Ok(Kind::Fuse),
        _ => return Ok(Kind::Local),
    };
    Err(Error::Store {
        message: format!(
            "the project is on {name}, where file locks of different machines do not see each other"
        ),
        hint: Some("keep it on a local disk, or set store.url to a PostgreSQL server".to_owned()),
    })
}

#[cfg(target_os = "linux")]
fn magic(folder: &Path) -> Option<i64> {
    rustix::fs::statfs(folder).ok().map(|found| found.f_type & 0xffff_ffff)
}

#[cfg(not(target_os = "linux"))]
fn magic(_folder: &Path) -> Option<i64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_file_system_is_refused_by_name_and_fuse_is_not() {
        for (magic, name) in [(NFS, "NFS"), (CIFS, "SMB"), (PLAN9, "9p")] {
            assert!(judge(Some(magic)).unwrap_err().to_string().contains(name));
        }
        assert_eq!(judge(Some(FUSE)).unwrap(), Kind::Fuse);
        assert_eq!(judge(Some(0xef53)).unwrap(), Kind::Local);
    }
}
