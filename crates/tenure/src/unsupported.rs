//! Refuses commands that need processes, on systems where tenure does not supervise processes yet.

use tenure_core::Error;
use tenure_runner::can_supervise;

use crate::report::CommandResult;

/// The commands that start, watch or end processes, or let a timer do so.
const NEED_PROCESSES: &[&str] = &[
    "board",
    "demo",
    "bench",
    "self-check",
    "tasks run",
    "exclusive run",
    "runners start",
    "runners stop",
    "runners wakeup",
    "runners cron",
    "jobs start",
    "jobs work",
    "resume",
    "start-attempt",
    "start-exclusive",
    "keep-lease",
];

/// Refuses a command that cannot work here. `verb` is its name in [`tenure_core::supervised::VERBS`].
pub(crate) fn check(verb: &str) -> CommandResult<()> {
    if NEED_PROCESSES.contains(&verb) { check_flag(&format!("tenure {verb}")) } else { Ok(()) }
}

/// Refuses a part of a command that needs processes.
pub(crate) fn check_flag(what: &str) -> CommandResult<()> {
    if can_supervise() { Ok(()) } else { Err(Error::Unsupported { what: what.to_owned() }.into()) }
}

#[cfg(test)]
mod tests {
    use tenure_core::supervised::VERBS;

    use super::*;

    #[test]
    fn every_command_that_needs_processes_exists() {
        for verb in NEED_PROCESSES {
            assert!(VERBS.iter().any(|(known, ..)| known == verb), "{verb}");
        }
    }
}
