//! Windows. The permissions of a new file or folder are inherited from the folder that it is in.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use signal_hook::SigId;
use tenure_runner::LocalStream;

pub(crate) const HOME: &str = "USERPROFILE";

pub(crate) const USER: [&str; 2] = ["USERNAME", "USER"];

/// How late Ctrl+C may be noticed.
const CHECK_SIGNAL: Duration = Duration::from_millis(50);

pub(crate) fn nameless_user() -> String {
    "user".to_owned()
}

/// The temporary directory is the user's own.
pub(crate) fn folder_of_user() -> String {
    "tenure".to_owned()
}

/// Not determined on Windows.
pub(crate) fn terminal_size() -> Option<(usize, usize)> {
    None
}

/// There is no such limit.
pub(crate) fn survive_file_size_limit() {}

/// A handler can only set a number, so a thread checks it until the handlers are gone.
pub(crate) fn ring_at(
    _signals: &[i32],
    bell: &LocalStream,
    caught: &Arc<AtomicUsize>,
) -> io::Result<Vec<SigId>> {
    let (mut bell, caught) = (bell.try_clone()?, Arc::clone(caught));
    let check = move || {
        while Arc::strong_count(&caught) > 1 {
            if caught.load(Ordering::SeqCst) != 0 && bell.write_all(&[0]).is_err() {
                return;
            }
            std::thread::sleep(CHECK_SIGNAL);
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(check)?;
    Ok(Vec::new())
}

/// Needed only by the board, which is not supported on Windows yet.
#[cfg(feature = "board")]
pub(crate) const RESIZE_SIGNALS: &[i32] = &[];
#[cfg(feature = "board")]
pub(crate) const STOP_SIGNALS: &[i32] = &[];

#[cfg(feature = "board")]
pub(crate) fn stop_job() {}

#[cfg(feature = "board")]
pub(crate) fn wait_in_job(child: &mut std::process::Child) -> io::Result<bool> {
    child.wait().map(|status| status.success())
}

#[cfg(feature = "board")]
pub(crate) fn terminal_input() -> Option<rustix::fd::BorrowedFd<'static>> {
    None
}

/// The commands for which this matters are not supported on Windows yet.
pub(crate) fn is_in_foreground() -> bool {
    true
}

pub(crate) fn standard_error() -> io::Result<Stdio> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn leave_streams() {}

/// Owners are not compared.
pub(crate) fn other_owner(_found: &Metadata) -> Option<(u32, u32)> {
    None
}

/// Access lists are not read.
pub(crate) fn shared_mode(_found: &Metadata) -> Option<u32> {
    None
}

pub(crate) fn is_writable(found: &Metadata) -> bool {
    !found.permissions().readonly()
}

pub(crate) fn close_to_others(_path: &Path) {}

pub(crate) fn make_writable(path: &Path) -> io::Result<()> {
    let mut permissions = std::fs::metadata(path)?.permissions();
    #[expect(clippy::permissions_set_readonly_false, reason = "on Windows it is an attribute of the file")]
    permissions.set_readonly(false);
    std::fs::set_permissions(path, permissions)
}

pub(crate) fn free_space(_folder: &Path) -> Option<u64> {
    None
}

pub(crate) fn private_folder() -> DirBuilder {
    DirBuilder::new()
}

pub(crate) fn with_mode(options: &mut OpenOptions, _mode: u32) -> &mut OpenOptions {
    options
}

pub(crate) fn copy_mode(file: &File, of: &Metadata) -> io::Result<()> {
    file.set_permissions(of.permissions())
}

/// A folder cannot be locked, so a file in it is locked instead. The file is left behind.
pub(crate) fn open_to_lock(folder: &Path) -> io::Result<File> {
    File::options().write(true).create(true).truncate(false).open(folder.join(".lock"))
}

pub(crate) fn controlling_terminal() -> Option<String> {
    None
}

/// A running binary cannot be deleted, so its path is always valid.
pub(crate) fn running_binary() -> Option<PathBuf> {
    None
}

/// The program that opens a file as a person would.
#[cfg(feature = "web")]
pub(crate) const OPENER: &str = "explorer";

/// Whether all usual browsers resolve the names below `localhost` by themselves.
#[cfg(feature = "web")]
pub(crate) const BROWSERS_KNOW_LOCALHOST: bool = true;

/// Nothing to do: the C library is the system's.
pub(crate) fn resolve_names_without_modules() {}

/// Left to the system's C library.
pub(crate) fn share_one_heap() {}
