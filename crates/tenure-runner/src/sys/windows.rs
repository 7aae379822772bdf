//! Windows: processes are not supervised yet. Commands that need supervision are refused beforehand ([`can_supervise`]), so
//! these functions only have to be harmless: no process is found, opened or ended.

use std::convert::Infallible;
use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, PipeReader, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::windows::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use process_wrap::std::CommandWrap;
use rustix::fd::{BorrowedFd, OwnedFd};
use tenure_lock::BootTime;

use crate::timer::{Kind, Machine};

/// Whether commands can be run under a lease.
pub fn can_supervise() -> bool {
    false
}

/// Whether agents can use a sandbox that is part of the system.
pub const SYSTEM_HAS_SANDBOX: bool = false;

/// The longest argument that the system accepts: a whole command line.
pub(crate) const LONGEST_ARGUMENT: usize = 32 * 1024;

/// The names of signals, none of which can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal(&'static str);

impl Signal {
    pub const INT: Self = Self("SIGINT");
    pub const KILL: Self = Self("SIGKILL");
    pub const TERM: Self = Self("SIGTERM");
}

/// Never constructed: logs are polled on Windows.
#[derive(Debug)]
pub(crate) enum GrowthWatch {}

impl GrowthWatch {
    pub(crate) fn new() -> io::Result<Self> {
        Err(unsupported())
    }

    pub(crate) fn restart(&mut self, _path: &Path) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "not supported on Windows yet; use WSL")
}

/// A connection within this process, by which one thread wakes another that polls.
pub type LocalStream = TcpStream;

/// The two ends. Closing one makes the other readable.
pub fn local_pair() -> io::Result<(LocalStream, LocalStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let ours = TcpStream::connect(listener.local_addr()?)?;
    loop {
        let (theirs, peer) = listener.accept()?;
        // Another program may have connected first.
        if peer == ours.local_addr()? {
            return Ok((ours, theirs));
        }
    }
}

/// A canonical path: no links, so the same folder always has the same path, in the case in which the names were created. A path
/// on a drive is returned without the `\\?\` prefix.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    let real = path.canonicalize()?;
    let short = real.to_str().and_then(|text| text.strip_prefix(r"\\?\"));
    let is_of_drive = |text: &&str| text.as_bytes().get(1) == Some(&b':');
    Ok(short.filter(is_of_drive).map_or_else(|| real.clone(), PathBuf::from))
}

/// A program cannot replace itself.
pub fn exec(_command: &mut Command) -> io::Error {
    unsupported()
}

/// No process is ended by a signal.
pub fn signal_of(_status: ExitStatus) -> Option<i32> {
    None
}

/// Users have no numbers.
pub(crate) fn user() -> u32 {
    0
}

/// There is no launchd.
pub(crate) fn launchd_domain() -> String {
    String::new()
}

/// The permission to read a file is inherited from its folder, which is in the user's own.
pub(crate) fn is_private(_found: &Metadata) -> bool {
    true
}

/// What shows that a file has changed.
pub(crate) fn version_of(found: &Metadata) -> String {
    format!("{}:{:?}:{:?}", found.len(), found.created().ok(), found.modified().ok())
}

pub(crate) fn private_folder() -> DirBuilder {
    DirBuilder::new()
}

/// Not checked: starting the program decides.
pub(crate) fn is_executable(_path: &Path) -> bool {
    true
}

pub(crate) fn is_writable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.permissions().readonly())
}

/// Opens a file below a folder. The last step of the path may not be a symbolic link.
pub(crate) fn open_below(folder: &Path, below: &[&str]) -> io::Result<File> {
    let path = below.iter().fold(folder.to_owned(), |path, name| path.join(name));
    tenure_lock::open_private(&path, File::options().read(true))
}

pub(crate) fn in_own_group(_command: &mut Command) {}

/// The command gets no console.
pub(crate) fn in_own_session(mut command: Command) -> CommandWrap {
    const DETACHED_PROCESS: u32 = 0x8;
    command.creation_flags(DETACHED_PROCESS);
    CommandWrap::from(command)
}

pub(crate) fn leave_session() {}

pub(crate) fn signal_group(_leader: u32, _signal: Signal) {}

pub(crate) fn has_exited(_child: u32) -> bool {
    true
}

pub(crate) fn exit_of(_child: u32) -> Option<i32> {
    None
}

pub(crate) fn wait_for_exit(_child: u32) {}

/// There are no zombies.
pub(crate) fn reap(_child: u32) {}

/// Never constructed: a pipe cannot be polled.
#[derive(Debug)]
pub(crate) struct OutputPipe(Infallible);

impl OutputPipe {
    pub(crate) fn new(_pipe: PipeReader) -> io::Result<Self> {
        Err(unsupported())
    }

    pub(crate) fn without_waiting(_pipe: PipeReader) -> io::Result<Self> {
        Err(unsupported())
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}

impl Read for &OutputPipe {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}

/// Never constructed: a console has no foreground to hand over.
#[derive(Debug)]
pub(crate) struct Foreground(Infallible);

impl Foreground {
    pub(crate) fn hand_to(_command: u32) -> Option<Self> {
        None
    }

    pub(crate) fn follow(&self) {
        match self.0 {}
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}

/// Never constructed: the end of a process is polled for instead.
#[derive(Debug)]
pub(crate) struct Handle(Infallible);

impl Handle {
    pub(crate) fn open(_pid: u32) -> Option<Self> {
        None
    }

    pub(crate) fn signal(&self, _signal: Signal) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn exit(&self) -> Option<BorrowedFd<'_>> {
        match self.0 {}
    }

    pub(crate) fn into_exit(self) -> Option<OwnedFd> {
        match self.0 {}
    }
}

/// Not available: waits check the clock repeatedly instead, to notice the end of a sleep.
pub(crate) fn boot_timer(_at: BootTime) -> Option<OwnedFd> {
    None
}

pub(crate) fn environment(_pid: u32) -> Option<Vec<u8>> {
    None
}

pub(crate) fn adopt_orphans() -> bool {
    false
}

pub(crate) fn record_interval() -> Option<Duration> {
    None
}

pub(crate) fn end_with_parent() {}

pub(crate) fn control_group() -> Option<PathBuf> {
    None
}

pub(crate) fn file_in_memory() -> Option<File> {
    None
}

pub(crate) fn usual_timer(_machine: &Machine) -> Option<Kind> {
    None
}
