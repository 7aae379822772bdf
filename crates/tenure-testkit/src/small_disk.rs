//! A file system of a few kilobytes, to test a full disk.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Unmounted on drop.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` where mounting is not allowed.
    pub fn mount(at: &Path, kilobytes: u32) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let options = format!("size={kilobytes}k,mode=0700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(at.to_owned()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Fills the disk. Removing the returned file frees the space again.
    pub fn fill(&self) -> PathBuf {
        let filler = self.0.join("filler");
        std::fs::write(&filler, vec![0; 16 * 1024 * 1024]).unwrap_err();
        filler
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}
