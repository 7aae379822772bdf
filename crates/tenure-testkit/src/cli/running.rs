//! One process of the binary, with a deadline.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Signal, WaitId, WaitIdOptions, waitid};
use serde_json::Value;

use super::processes;
use super::waiting::HANG;

/// The result of a process that has ended.
#[derive(Debug)]
pub struct Answer {
    /// `None` if a signal ended the process.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Answer {
    /// The `data` in the output of a command, which must have succeeded.
    #[track_caller]
    pub fn data(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.json()["data"].clone()
    }

    /// The exit code as a shell reports it: 128 and the number of the signal that ended the process.
    pub fn shell_code(&self) -> i32 {
        self.code.unwrap_or_else(|| 128 + self.signal.unwrap_or_default())
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

/// A running process. Its output goes to unnamed files, so that it never waits for a reader. Killed on drop.
#[derive(Debug)]
pub struct Running {
    child: Child,
    out: File,
    err: File,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        let (out, err) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        command.stdout(out.try_clone().unwrap()).stderr(err.try_clone().unwrap());
        Self { child: command.spawn().unwrap(), out, err }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        processes::signal(self.pid(), signal);
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// What it has written to standard error so far.
    pub fn so_far(&self) -> String {
        text_of(&self.err)
    }

    /// What it has written to standard output so far.
    pub fn output_so_far(&self) -> String {
        text_of(&self.out)
    }

    /// Whether the process ends within `time`. Does not reap it.
    pub fn ends_within(&self, time: Duration) -> bool {
        let pid = processes::os_pid(self.pid());
        let (ended, end) = std::sync::mpsc::channel();
        // The thread may outlive this call. It ends with the process, which is killed on drop.
        std::thread::spawn(move || {
            let waited = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            let _ = ended.send(waited.is_ok());
        });
        end.recv_timeout(time).is_ok()
    }

    /// Waits until the process has ended; fails the test if that takes longer than [`HANG`].
    #[track_caller]
    pub fn end(mut self) -> Answer {
        let ended = self.child.try_wait().unwrap().is_some() || self.ends_within(HANG);
        if !ended {
            self.signal(Signal::KILL);
        }
        let status = self.child.wait().unwrap();
        let answer = Answer {
            code: status.code(),
            signal: status.signal(),
            out: text_of(&self.out),
            err: self.so_far(),
        };
        assert!(ended, "still running after {HANG:?}: {answer:?}");
        answer
    }

    /// [`Running::end`], with the processor time that the process has used.
    pub fn end_with_cpu(self) -> (Answer, Duration) {
        let pid = processes::os_pid(self.pid());
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        let used = processes::cpu(self.pid());
        (self.end(), used)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads at explicit offsets, because the file's position is shared with the writers.
fn text_of(file: &File) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        match file.read_at(&mut buffer, bytes.len() as u64).unwrap() {
            0 => return String::from_utf8_lossy(&bytes).into_owned(),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}
