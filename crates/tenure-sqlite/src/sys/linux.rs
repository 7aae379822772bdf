//! Linux.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::filesystem::FileSystem;

/// `fsync` writes to the disk itself.
pub(crate) const FULL_SYNC: Option<&str> = None;

const NFS: i64 = 0x6969;
const SMB: i64 = 0x517b;
const CIFS: i64 = 0xff53_4d42;
const SMB2: i64 = 0xfe53_4d42;
const PLAN9: i64 = 0x0102_1997;
const FUSE: i64 = 0x6573_5546;

pub(crate) fn file_system(folder: &Path) -> FileSystem {
    let magic = rustix::fs::statfs(folder).ok().map(|found| found.f_type & 0xffff_ffff);
    magic.map(of_magic).unwrap_or_default()
}

fn of_magic(magic: i64) -> FileSystem {
    let network = match magic {
        NFS => Some("NFS"),
        SMB | CIFS | SMB2 => Some("SMB"),
        PLAN9 => Some("9p"),
        _ => None,
    };
    FileSystem { network, is_fuse: magic == FUSE }
}

/// The process that holds the OS lock on a file, from the kernel's table of locks.
pub(crate) fn lock_holder(path: &Path) -> Option<u32> {
    let inode = std::fs::metadata(path).ok()?.ino().to_string();
    let table = std::fs::read_to_string("/proc/locks").ok()?;
    table.lines().filter(|line| !line.contains("->")).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (pid, place) = (fields.get(4)?, fields.get(5)?);
        (place.rsplit(':').next() == Some(inode.as_str())).then(|| pid.parse().ok())?
    })
}

pub(crate) fn program_name(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_is_known_by_its_number() {
        for (magic, name) in [(NFS, "NFS"), (CIFS, "SMB"), (PLAN9, "9p")] {
            assert_eq!(of_magic(magic), FileSystem { network: Some(name), is_fuse: false });
        }
        assert_eq!(of_magic(FUSE), FileSystem { network: None, is_fuse: true });
        assert_eq!(of_magic(0xef53), FileSystem::default());
    }
}
