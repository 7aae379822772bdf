//! The exec gate: a last check of the attempt before the process becomes the command.
//!
//! The supervisor starts the tenure binary with the attempt's mark in its environment, and the binary calls
//! [`exec_if_running`], which executes the command if the attempt is still running. Without this step, there is a
//! moment between fork and exec in which a process of the attempt does not carry the mark and cannot be found: if its
//! supervisor were killed or paused then, the command could start after a reaper had searched for it. With it, a
//! process that sets the attempt to ending either finds this process by its mark, or this process sees the new state
//! and does not start.
//!
//! The gate also records this process as the attempt's leader, before it becomes the command: by its process group and its
//! control group, a reaper finds processes that have cleared their environment.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tenure_core::holder::{Judge, Liveness};
use tenure_core::lease::Leader;
use tenure_core::store::{Durability, Store};
use tenure_core::{Error, kernel};
use tenure_lock::fits_socket;

use crate::processes::{cgroup, own_leader};
use crate::sys;

/// The pause between tries while the store does not answer. The supervisor decides when to give up.
const RETRY: Duration = Duration::from_millis(200);

const TMUX_PREFIX: &str = "tenure-tmux-";

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

/// The exit code for a program that does not exist, as in shells.
pub(crate) const NOT_FOUND: u8 = 127;

pub(crate) fn exit_code_of(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { 126 }
}

/// The message without the error number that the standard library appends.
pub(crate) fn cannot_run(command: &Command, error: &io::Error) -> String {
    let text = error.to_string();
    let why = text.split_once(" (os error").map_or(text.as_str(), |(why, _)| why);
    format!("cannot run {}: {why}", command.get_program().to_string_lossy())
}

/// Replaces this process by the command. Returns only on failure.
///
/// `sockets` is a folder for this user's sockets. The attempt gets its own subfolder for tmux servers. `None` for a
/// command that a person sees on a terminal.
pub fn exec_if_running(
    store: &dyn Store,
    judge: &dyn Judge,
    mark: &str,
    sockets: Option<&Path>,
    command: &mut Command,
) -> ExecRefused {
    sys::end_with_parent();
    let Some(mut leader) = own_leader() else {
        return ExecRefused::Failed(io::Error::other("the list of processes does not show this process"));
    };
    let text = |path: PathBuf| path.into_os_string().into_string().ok();
    leader.cgroup = cgroup::planned(mark).and_then(text);
    leader.tmux_folder = sockets.map(|folder| tmux_folder(folder, mark)).and_then(text);
    let attempt = loop {
        match store.write(Durability::Process, |tx| kernel::note_leader(tx, mark, &leader)) {
            Ok(Some(attempt)) if judge.liveness(&attempt.owner) != Liveness::Dead => break attempt,
            Ok(_) => return ExecRefused::Over,
            Err(Error::Store { .. }) => std::thread::sleep(RETRY),
            Err(error) => return ExecRefused::Store(error),
        }
    };
    if let Some(folder) = &leader.cgroup {
        cgroup::enter(Path::new(folder));
    }
    if let Some(folder) = leader.tmux_folder.as_ref().filter(|folder| create_private(folder)) {
        // Keeps the attempt's tmux server separate from the one in which a person opens windows.
        command.env("TMUX_TMPDIR", folder).env_remove("TMUX").env_remove("TMUX_PANE");
    }
    let error = sys::exec(command);
    let why = cannot_run(command, &error);
    match store.write(Durability::Power, |tx| kernel::note_failed_start(tx, &attempt, &why)) {
        Ok(()) => ExecRefused::Failed(error),
        Err(error) => ExecRefused::Store(error),
    }
}

/// Where tmux makes the folder `tmux-UID` with its socket `default`. In `/tmp`, as without tenure, if the path below `sockets`
/// would be too long for a socket.
fn tmux_folder(sockets: &Path, mark: &str) -> PathBuf {
    let below = |folder: &Path| folder.join(format!("{TMUX_PREFIX}{mark}"));
    let folder = below(sockets);
    let uid = sys::user();
    if fits_socket(&folder.join(format!("tmux-{uid}/default"))) { folder } else { below(Path::new("/tmp")) }
}

fn create_private(folder: &str) -> bool {
    sys::private_folder().create(folder).is_ok()
}

/// Removes what the gate created for an attempt whose processes are gone.
pub(crate) fn remove_traces(mark: &str, leader: &Leader) {
    if let Some(folder) = &leader.cgroup {
        cgroup::remove(Path::new(folder), mark);
    }
    // The path was read from the store, so only its name is trusted.
    let folder = leader.tmux_folder.as_ref().map(Path::new);
    let name = format!("{TMUX_PREFIX}{mark}");
    if let Some(folder) = folder.filter(|folder| folder.file_name().is_some_and(|found| *found == *name)) {
        let _ = fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_of_a_tmux_server_has_a_path_that_fits() {
        let mark = "01890000-0000-7000-8000-000000000000";
        let short = Path::new("/run/user/1000");
        assert_eq!(tmux_folder(short, mark), short.join(format!("{TMUX_PREFIX}{mark}")));
        let long = PathBuf::from(format!("/var/folders/{}", "x".repeat(50)));
        assert_eq!(tmux_folder(&long, mark), Path::new("/tmp").join(format!("{TMUX_PREFIX}{mark}")));
    }
}
