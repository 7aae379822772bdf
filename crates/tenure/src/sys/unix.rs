//! What Unix systems have in common.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use signal_hook::SigId;
use tenure_runner::LocalStream;

/// The variable with the user's home folder.
pub(crate) const HOME: &str = "HOME";

/// The variables with the user's name.
pub(crate) const USER: [&str; 2] = ["USER", "LOGNAME"];

/// A name for a user without one.
pub(crate) fn nameless_user() -> String {
    format!("uid{}", rustix::process::getuid().as_raw())
}

/// A folder name that differs between users who share the temporary directory.
pub(crate) fn folder_of_user() -> String {
    format!("tenure-{}", rustix::process::geteuid().as_raw())
}

/// The columns and rows of the terminal on standard output, else of the one on standard error. A terminal that does not know
/// its size reports 0.
pub(crate) fn terminal_size() -> Option<(usize, usize)> {
    use rustix::termios::tcgetwinsize;
    let size = tcgetwinsize(io::stdout()).or_else(|_| tcgetwinsize(io::stderr())).ok()?;
    Some((usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// Makes a write beyond RLIMIT_FSIZE fail like one on a full disk, instead of killing the process. Programs that this process
/// starts get the default again.
pub(crate) fn survive_file_size_limit() {
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// Makes the other end of `bell` readable when one of these signals arrives. The signals also set `_caught`.
pub(crate) fn ring_at(
    signals: &[i32],
    bell: &LocalStream,
    _caught: &Arc<AtomicUsize>,
) -> io::Result<Vec<SigId>> {
    signals.iter().map(|signal| signal_hook::low_level::pipe::register(*signal, bell.try_clone()?)).collect()
}

/// Sent when the size of the terminal has changed.
#[cfg(feature = "board")]
pub(crate) const RESIZE_SIGNALS: &[i32] = &[signal_hook::consts::SIGWINCH];

/// Sent to stop a job, as a shell does for Ctrl+Z.
#[cfg(feature = "board")]
pub(crate) const STOP_SIGNALS: &[i32] = &[signal_hook::consts::SIGTSTP];

/// Stops the job that this process belongs to until it is continued, although this process handles the signal.
#[cfg(feature = "board")]
pub(crate) fn stop_job() {
    let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
    let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP);
}

/// Waits for a program that was started in this process's job, and returns whether it succeeded. If the program is stopped, for
/// example by Ctrl+Z, so is the whole job.
#[cfg(feature = "board")]
pub(crate) fn wait_in_job(child: &mut std::process::Child) -> io::Result<bool> {
    use rustix::process::{Pid, WaitOptions, waitpid};
    let pid = Pid::from_child(child);
    loop {
        match waitpid(Some(pid), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => stop_job(),
            Ok(Some((_, status))) => return Ok(status.exit_status() == Some(0)),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Readable when something was typed.
#[cfg(feature = "board")]
#[expect(clippy::unnecessary_wraps, reason = "Windows has none")]
pub(crate) fn terminal_input() -> Option<rustix::fd::BorrowedFd<'static>> {
    Some(rustix::stdio::stdin())
}

/// Whether Ctrl+C at the terminal reaches this process, and with it the whole foreground process group.
pub(crate) fn is_in_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// This process's standard error, as the output of a command.
pub(crate) fn standard_error() -> io::Result<Stdio> {
    io::stderr().as_fd().try_clone_to_owned().map(Stdio::from)
}

/// Redirects the standard streams to `/dev/null`.
pub(crate) fn leave_streams() {
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

/// The owner of a file, if that is another user; and this user.
pub(crate) fn other_owner(found: &Metadata) -> Option<(u32, u32)> {
    let me = rustix::process::geteuid().as_raw();
    (found.uid() != me).then_some((found.uid(), me))
}

/// The mode of a file that other users can access.
pub(crate) fn shared_mode(found: &Metadata) -> Option<u32> {
    (found.mode() & 0o077 != 0).then_some(found.mode() & 0o777)
}

/// Whether its owner may write a file.
pub(crate) fn is_writable(found: &Metadata) -> bool {
    found.mode() & 0o200 != 0
}

/// Removes other users' permissions.
pub(crate) fn close_to_others(path: &Path) {
    let Ok(found) = path.symlink_metadata() else { return };
    let mode = found.permissions().mode();
    if !found.is_symlink() && mode & 0o077 != 0 {
        let _ = std::fs::set_permissions(path, Permissions::from_mode(mode & 0o700));
    }
}

/// Lets this user write a file, and no other read it.
pub(crate) fn make_writable(path: &Path) -> io::Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(0o600))
}

/// The free bytes of the disk that a folder is on.
pub(crate) fn free_space(folder: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(folder).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize))
}

/// Creates folders that only their owner can read.
pub(crate) fn private_folder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// A new file gets this mode, less the umask.
pub(crate) fn with_mode(options: &mut OpenOptions, mode: u32) -> &mut OpenOptions {
    options.mode(mode)
}

/// Gives a file the mode of another.
pub(crate) fn copy_mode(file: &File, of: &Metadata) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(of.permissions().mode() & 0o7777))
}

/// What is locked to exclude other writers of a folder's files: the folder itself.
pub(crate) fn open_to_lock(folder: &Path) -> io::Result<File> {
    File::open(folder)
}
