//! What Unix systems have in common: process groups, sessions, signals, and files with a mode.

use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus};

use process_wrap::std::{CommandWrap, ProcessSession};
use rustix::fs::{Access, CWD, Mode, OFlags, access, openat};
use rustix::process::{Pid, WaitId, WaitIdOptions, geteuid, kill_process_group, waitid};

pub use rustix::process::Signal;

/// A connection within this process, by which one thread wakes another that polls.
pub type LocalStream = UnixStream;

/// The two ends. Closing one makes the other readable.
pub fn local_pair() -> io::Result<(LocalStream, LocalStream)> {
    UnixStream::pair()
}

/// Replaces this process by the command. Returns only on failure.
pub fn exec(command: &mut Command) -> io::Error {
    command.exec()
}

/// The number of the signal that ended a process.
pub fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// The number of this process's user.
pub(crate) fn user() -> u32 {
    geteuid().as_raw()
}

/// The domain of this user's agents in launchd.
pub(crate) fn launchd_domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

/// Whether a file belongs to this user and no other can read or change it.
pub(crate) fn is_private(found: &Metadata) -> bool {
    found.uid() == user() && found.mode().trailing_zeros() >= 6
}

/// A string that differs once a file has changed or was replaced.
pub(crate) fn version_of(found: &Metadata) -> String {
    format!("{}:{}:{}:{}.{}", found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec())
}

pub(crate) fn private_folder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

pub(crate) fn is_executable(path: &Path) -> bool {
    access(path, Access::EXEC_OK).is_ok()
}

pub(crate) fn is_writable(path: &Path) -> bool {
    access(path, Access::WRITE_OK).is_ok()
}

/// Opens a file below a folder. No step of the path may be a symbolic link, and a pipe is opened without waiting.
pub(crate) fn open_below(folder: &Path, below: &[&str]) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut at = openat(CWD, folder, flags | OFlags::DIRECTORY, Mode::empty())?;
    for name in below {
        at = openat(&at, *name, flags, Mode::empty())?;
    }
    Ok(File::from(at))
}

/// Puts the command into its own process group.
pub(crate) fn in_own_group(command: &mut Command) {
    command.process_group(0);
}

/// Puts the command into its own session, without a terminal.
pub(crate) fn in_own_session(command: Command) -> CommandWrap {
    let mut command = CommandWrap::from(command);
    command.wrap(ProcessSession);
    command
}

/// Moves this process into its own session and closes every inherited descriptor except for the standard
/// three.
pub(crate) fn leave_session() {
    // `setsid` fails only for a process-group leader; a freshly spawned process is not one.
    let _ = rustix::process::setsid();
    let Ok(entries) = std::fs::read_dir("/dev/fd") else { return };
    let open: Vec<i32> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|number| *number > 2) {
        // Includes the descriptor of the listing itself, which is already closed.
        let _ = nix::unistd::close(descriptor);
    }
}

pub(super) fn pid_of(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// Signals the process group of this leader.
pub(crate) fn signal_group(leader: u32, signal: Signal) {
    if let Some(group) = pid_of(leader) {
        let _ = kill_process_group(group, signal);
    }
}

const ENDED: WaitIdOptions = WaitIdOptions::EXITED.union(WaitIdOptions::NOHANG);

/// Whether a child has ended. Leaves it unreaped.
pub(crate) fn has_exited(child: u32) -> bool {
    let asked = ENDED | WaitIdOptions::NOWAIT;
    pid_of(child).is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), asked), Ok(None)))
}

/// The exit code of a child, which stays unreaped. None if a signal ended it.
pub(crate) fn exit_of(child: u32) -> Option<i32> {
    waitid(WaitId::Pid(pid_of(child)?), ENDED | WaitIdOptions::NOWAIT).ok().flatten()?.exit_status()
}

/// Waits for the end of a child, which stays unreaped: until then its pid and process group cannot be reused.
pub(crate) fn wait_for_exit(child: u32) {
    if let Some(pid) = pid_of(child) {
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    }
}

/// Reaps a child that has ended.
pub(crate) fn reap(child: u32) {
    if let Some(pid) = pid_of(child) {
        let _ = waitid(WaitId::Pid(pid), ENDED);
    }
}

/// The output of a process, which can be polled.
#[derive(Debug)]
pub(crate) struct OutputPipe(File);

impl OutputPipe {
    /// Makes reads non-blocking, because a process that was left behind may keep the pipe open forever.
    pub(crate) fn without_waiting(pipe: PipeReader) -> io::Result<Self> {
        let pipe = Self::new(pipe)?;
        rustix::io::ioctl_fionbio(&pipe.0, true)?;
        Ok(pipe)
    }

    #[expect(clippy::unnecessary_wraps, reason = "fails on Windows")]
    pub(crate) fn new(pipe: PipeReader) -> io::Result<Self> {
        Ok(Self(File::from(OwnedFd::from(pipe))))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Read for &OutputPipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buffer)
    }
}
