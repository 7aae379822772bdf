//! The folder for this user's sockets, and the limit on the length of their paths.

use std::path::{Path, PathBuf};

use crate::sys::process as sys;

/// The folder for this user's temporary files. Others may be able to write there, so private files go into a folder below
/// it.
pub fn temporary_folder() -> PathBuf {
    sys::temporary_folder()
}

/// Whether a socket can have this path.
pub fn fits_socket(path: &Path) -> bool {
    path.as_os_str().len() < sys::SOCKET_PATH_SIZE
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn the_longest_path_that_fits_can_be_bound_and_a_longer_one_cannot() {
        let folder = tempfile::Builder::new().prefix("s").tempdir_in(temporary_folder()).unwrap();
        let mut path = folder.path().join("x");
        while fits_socket(&path.with_file_name(format!("{}x", path.file_name().unwrap().display()))) {
            path = path.with_file_name(format!("{}x", path.file_name().unwrap().display()));
        }
        UnixDatagram::bind(&path).unwrap();
        let longer = path.with_file_name(format!("{}x", path.file_name().unwrap().display()));
        assert!(!fits_socket(&longer) && UnixDatagram::bind(&longer).is_err());
    }
}
