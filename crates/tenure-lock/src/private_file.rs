//! Opens files safely in a folder whose content others may control, for example a cloned repository.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use crate::sys;

/// Opens a file with these options, if it is a regular file: a symbolic link is not followed, and a pipe or a device is not
/// opened. A new file is readable by its owner only (on Windows its permissions are inherited from the folder). Links in the
/// folders that lead to it are followed; see [`create_private_folder`].
///
/// ```
/// use std::fs::File;
/// use tenure_lock::open_private;
///
/// # let dir = tempfile::tempdir()?;
/// # let dir = dir.path();
/// # #[cfg(unix)]
/// std::os::unix::fs::symlink("/etc/hostname", dir.join("link"))?;
/// assert!(open_private(&dir.join("link"), File::options().read(true)).is_err());
/// open_private(&dir.join("log"), File::options().append(true).create(true))?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = sys::file::make_private(options).open(path).map_err(|error| {
        let is_link = sys::file::refused_link(&error) && is_link(path);
        if is_link { refused(path, "a symbolic link, which is not followed") } else { error }
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(refused(path, "not a regular file")) }
}

/// Creates a folder, and its parents, that only its owner can read. Refused if the folder itself is a symbolic link.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    sys::file::private_folder().recursive(true).create(folder)?;
    if is_link(folder) { Err(refused(folder, "a symbolic link, which is not followed")) } else { Ok(()) }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

fn refused(path: &Path, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{} is {what}", path.display()))
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_link_is_neither_read_nor_written_nor_truncated() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "kept").unwrap();
        symlink(&target, &link).unwrap();
        for options in [
            File::options().read(true),
            File::options().append(true).create(true),
            File::options().write(true).create(true).truncate(true),
        ] {
            let error = open_private(&link, options).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
        let nowhere = folder.path().join("nowhere");
        symlink(folder.path().join("new"), &nowhere).unwrap();
        assert!(open_private(&nowhere, File::options().write(true).create(true)).is_err());
        assert!(!folder.path().join("new").exists());
    }

    #[test]
    fn a_pipe_is_refused_without_waiting_for_its_other_end() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(open_private(&pipe, File::options().read(true)).is_err());
        assert!(open_private(&pipe, File::options().append(true)).is_err());
    }

    #[test]
    fn new_files_and_folders_are_private_and_a_linked_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("a/logs");
        create_private_folder(&logs).unwrap();
        create_private_folder(&logs).unwrap();
        let file = logs.join("a.log");
        open_private(&file, File::options().append(true).create(true)).unwrap().write_all(b"x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&logs), mode(&file)), (0o700, 0o600));
        let link = folder.path().join("link");
        symlink(&logs, &link).unwrap();
        assert!(create_private_folder(&link).is_err());
    }
}
