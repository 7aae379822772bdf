//! The threshold: the last look before a command becomes itself.
//!
//! The supervisor starts our own binary with the mark in its environment, and that calls [`cross`], which replaces itself
//! by the command if the attempt still runs. Without it there is a moment between the fork and the mark in which a
//! process of the attempt cannot be found: a supervisor that was killed or paused just then would start a second worker
//! after everybody had looked for it. With it, whoever marks the attempt as ending either sees this process, which then
//! carries the mark, or is seen by it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use tenure_core::holder::{Judge, Liveness};
use tenure_core::lease::AttemptState;
use tenure_core::store::{Durability, Store};
use tenure_core::{Error, kernel};

#[derive(Debug)]
pub enum NotStarted {
    /// The attempt is over, or its supervisor is gone.
    Over,
    /// The command cannot be executed; the attempt's row says why.
    Failed(io::Error),
    Store(Error),
}

impl NotStarted {
    /// As shells say it: 127 if there is no such command, 126 if it cannot be executed.
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

/// Becomes the command. Returns only if it cannot.
pub fn cross(store: &dyn Store, judge: &dyn Judge, mark: &str, command: &mut Command) -> NotStarted {
    // Only makes it faster: whoever takes over finds the process by its mark.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let found = store.read(|view| {
        let open = view.open_attempts()?;
        Ok(open.into_iter().find(|a| a.id.as_str() == mark && a.state == AttemptState::Running))
    });
    let attempt = match found {
        Ok(Some(attempt)) if judge.liveness(&attempt.owner) != Liveness::Dead => attempt,
        Ok(_) => return NotStarted::Over,
        Err(error) => return NotStarted::Store(error),
    };
    let error = command.exec();
    let why = format!("cannot run {}: {error}", command.get_program().to_string_lossy());
    match store.write(Durability::Power, |tx| kernel::note_failed_start(tx, &attempt, &why)) {
        Ok(()) => NotStarted::Failed(error),
        Err(error) => NotStarted::Store(error),
    }
}
