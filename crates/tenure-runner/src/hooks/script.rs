//! Runs a script.
//!
//! Guarantees: the arguments are an argv, never a command line; the script runs in a new session without a terminal; the
//! payload is on its standard input as JSON; it never writes to tenure's own output; at the timeout every process in its
//! group is killed. Not guaranteed: reaching a process that left the group, or killing a process that a script left behind
//! when it ended in time.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, PipeReader, Read, Seek, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use process_wrap::std::ChildWrapper;
use rustix::fd::BorrowedFd;
use tenure_core::Error;

use super::outcome::Failure;
use super::wait::{PolledThread, WaitEnd, ready};
use crate::processes::children;
use crate::sys::{self, OutputPipe, Signal};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// How many bytes of output are kept. An outcome quotes one line of them.
const KEPT: usize = 8 * 1024;

pub(super) struct Script<'a> {
    pub(super) program: &'a Path,
    pub(super) args: &'a [String],
    pub(super) root: &'a Path,
    pub(super) vars: &'a BTreeMap<OsString, OsString>,
    pub(super) payload: &'a str,
    pub(super) timeout: Duration,
}

/// How a script ended, and the end of its output.
pub(super) struct ScriptEnd {
    pub(super) result: Result<(), Failure>,
    pub(super) output: String,
}

pub(super) fn run(script: &Script<'_>, stop: Option<BorrowedFd<'_>>) -> ScriptEnd {
    if !sys::can_supervise() {
        let refusal = Error::Unsupported { what: "a hook with a script".to_owned() };
        return ScriptEnd { result: Err(Failure::NotStarted(refusal.to_string())), output: String::new() };
    }
    let started = io::pipe().and_then(|(output, writer)| Ok((start(script, writer)?, output)));
    match started {
        Ok((child, output)) => supervise(child, output, script.timeout, stop),
        Err(error) => {
            ScriptEnd { result: Err(Failure::NotStarted(error.to_string())), output: String::new() }
        }
    }
}

fn start(script: &Script<'_>, output: io::PipeWriter) -> io::Result<Box<dyn ChildWrapper>> {
    let mut command = Command::new(script.program);
    command.args(script.args).current_dir(script.root).env_clear().envs(script.vars);
    command.stdin(input(script.payload)?).stdout(output.try_clone()?).stderr(output);
    let mut command = sys::in_own_session(command);
    Ok(children::start(|| command.spawn(), |child| child.id())?.into_inner())
}

/// An unnamed file: unlike with a pipe, a script that does not read its input cannot block the writer.
fn input(payload: &str) -> io::Result<Stdio> {
    let Ok(mut file) = tempfile::tempfile() else { return Ok(Stdio::null()) };
    file.write_all(payload.as_bytes())?;
    file.rewind()?;
    Ok(Stdio::from(file))
}

fn supervise(
    mut child: Box<dyn ChildWrapper>,
    output: PipeReader,
    timeout: Duration,
    stop: Option<BorrowedFd<'_>>,
) -> ScriptEnd {
    let end = Instant::now() + timeout;
    let pid = child.id();
    let mut tail = Tail::new(output);
    // Waits without reaping: until the child is reaped, its pid and process group cannot be reused.
    let watch = PolledThread::begin(move || sys::wait_for_exit(pid));
    let Ok(watch) = watch else {
        sys::signal_group(pid, Signal::KILL);
        let _ = child.wait();
        return ScriptEnd {
            result: Err(Failure::NotStarted("there are too many threads".into())),
            output: String::new(),
        };
    };
    let over = follow(&watch, &mut tail, stop, end);
    if over != WaitEnd::Done {
        sys::signal_group(pid, Signal::TERM);
        follow(&watch, &mut tail, None, Instant::now() + GRACE);
        sys::signal_group(pid, Signal::KILL);
    }
    let status = child.wait();
    tail.drain();
    let result = match (over, status) {
        (WaitEnd::TimedOut, _) => Err(Failure::TimedOut(timeout)),
        (WaitEnd::Stopped, _) => Err(Failure::Stopped),
        (WaitEnd::Done, Ok(status)) => judge(status),
        (WaitEnd::Done, Err(error)) => Err(Failure::NotStarted(error.to_string())),
    };
    ScriptEnd { result, output: tail.text() }
}

/// Reads the output until the script ends, the time is over, or `stop` is readable.
fn follow<T>(
    watch: &PolledThread<T>,
    tail: &mut Tail,
    stop: Option<BorrowedFd<'_>>,
    end: Instant,
) -> WaitEnd {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let said = tail.source.as_ref().map(OutputPipe::fd);
        let [ended, stopped, has_said] = ready([Some(watch.fd()), stop, said], left);
        if has_said {
            tail.read();
        }
        if ended {
            return WaitEnd::Done;
        }
        if stopped {
            return WaitEnd::Stopped;
        }
        if Instant::now() >= end {
            return WaitEnd::TimedOut;
        }
    }
}

fn judge(status: ExitStatus) -> Result<(), Failure> {
    match (status.code(), sys::signal_of(status)) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(Failure::Exit(code)),
        (None, signal) => Err(Failure::Signal(signal.unwrap_or(0))),
    }
}

/// The last bytes of a process's output.
struct Tail {
    source: Option<OutputPipe>,
    kept: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    fn new(output: PipeReader) -> Self {
        Self { source: OutputPipe::without_waiting(output).ok(), kept: Vec::new(), is_cut: false }
    }

    /// Reads once; `false` if nothing more is available now.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        match self.source.as_ref().map(|mut source| source.read(&mut buffer)) {
            Some(Ok(0)) => self.source = None,
            Some(Ok(length)) => {
                self.kept.extend_from_slice(&buffer[..length]);
                let excess = self.kept.len().saturating_sub(KEPT);
                self.is_cut |= excess > 0;
                self.kept.drain(..excess);
                return true;
            }
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
            Some(Err(_)) | None => self.source = None,
        }
        false
    }

    /// Reads what is already in the pipe. Bounded, because a left-behind process may go on writing.
    fn drain(&mut self) {
        for _ in 0..64 {
            if !self.read() {
                return;
            }
        }
    }

    /// Whole lines only: a line that was cut may contain part of a secret, which redaction would not recognise.
    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.kept).into_owned();
        if !self.is_cut {
            return text;
        }
        text.split_once('\n').map(|(_, whole)| whole.to_owned()).unwrap_or_default()
    }
}
