//! The exec gate: a last check of the attempt before the process becomes the command.
//!
//! The supervisor starts the tenure binary with the attempt's mark in its environment, and the binary calls
//! [`exec_if_running`], which executes the command if the attempt is still running. Without this step, there is a
//! moment between fork and exec in which a process of the attempt does not carry the mark and cannot be found: if its
//! supervisor were killed or paused then, the command could start after a reaper had searched for it. With it, a
//! process that sets the attempt to ending either finds this process by its mark, or this process sees the new state
//! and does not start.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use tenure_core::holder::{Judge, Liveness};
use tenure_core::lease::AttemptState;
use tenure_core::store::{Durability, Store};
use tenure_core::{Error, kernel};

#[derive(Debug)]
pub enum ExecRefused {
    /// The attempt is over, or its supervisor is gone.
    Over,
    /// The command cannot be executed; the reason is recorded in the attempt's row.
    Failed(io::Error),
    Store(Error),
}

impl ExecRefused {
    /// The exit code that shells use: 127 if the command does not exist, 126 if it cannot be executed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Over => 8,
            Self::Failed(e) => exit_code_of(e),
            Self::Store(_) => 1,
        }
    }
}

pub(crate) fn exit_code_of(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

/// The message without the error number that the standard library appends.
pub(crate) fn cannot_run(command: &Command, error: &io::Error) -> String {
    let text = error.to_string();
    let why = text.split_once(" (os error").map_or(text.as_str(), |(why, _)| why);
    format!("cannot run {}: {why}", command.get_program().to_string_lossy())
}

/// Replaces this process by the command. Returns only on failure.
pub fn exec_if_running(
    store: &dyn Store,
    judge: &dyn Judge,
    mark: &str,
    command: &mut Command,
) -> ExecRefused {
    // Only shortens the time to a takeover, which finds the process by its mark in any case.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let found = store.read(|view| {
        let open = view.open_attempts()?;
        Ok(open.into_iter().find(|a| a.id.as_str() == mark && a.state == AttemptState::Running))
    });
    let attempt = match found {
        Ok(Some(attempt)) if judge.liveness(&attempt.owner) != Liveness::Dead => attempt,
        Ok(_) => return ExecRefused::Over,
        Err(error) => return ExecRefused::Store(error),
    };
    let error = command.exec();
    let why = cannot_run(command, &error);
    match store.write(Durability::Power, |tx| kernel::note_failed_start(tx, &attempt, &why)) {
        Ok(()) => ExecRefused::Failed(error),
        Err(error) => ExecRefused::Store(error),
    }
}
