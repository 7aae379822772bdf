//! Facts about the processes of this machine, for programs that find and end the processes they have started.
//!
//! Does not guarantee that a fact is still true when it is used: a caller compares pid and start time again before it acts.

use std::collections::HashSet;
use std::io;

use crate::sys::process as sys;

/// A process, as the system lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    pub pid: u32,
    pub parent: u32,
    /// The process group; 0 on Windows.
    pub group: u32,
    /// 0 if unknown.
    pub session: u32,
    /// The device number of the controlling terminal; 0 without one.
    pub terminal: u32,
    /// As in [`ProcessIdentity::start_time`](crate::ProcessIdentity::start_time).
    pub start_time: u64,
    /// It has ended and has not been reaped yet.
    pub ended: bool,
}

impl ProcessInfo {
    /// The process that has this pid now.
    pub fn of(pid: u32) -> Option<Self> {
        sys::info(pid)
    }

    /// Every visible process, except kernel threads.
    pub fn all() -> io::Result<Vec<Self>> {
        sys::list()
    }

    /// Whether the pid still belongs to the process that started at that time, and that process has not ended.
    pub fn is_running_since(pid: u32, start_time: u64) -> bool {
        Self::of(pid).is_some_and(|now| now.start_time == start_time && !now.ended)
    }

    /// A process and its ancestors, up to the first that is not visible.
    pub fn ancestors(pid: u32) -> Vec<u32> {
        let mut line = Vec::new();
        let mut next = pid;
        while next != 0 && !line.contains(&next) {
            line.push(next);
            next = Self::of(next).map_or(0, |info| info.parent);
        }
        line
    }

    /// The process that started this one, if it can be seen and has not ended.
    pub fn own_parent() -> Option<u32> {
        Self::of(std::process::id()).map(|own| own.parent).filter(|parent| *parent != 0)
    }

    /// The environment with which a process was started, as `NAME=VALUE` with a NUL after each. None or empty if it cannot be
    /// read. That is so for processes of other users, on macOS also for system programs such as `/bin/sh`, and on Windows for
    /// all processes.
    pub fn environment(pid: u32) -> Option<Vec<u8>> {
        sys::environment(pid)
    }

    /// The arguments of a process with a NUL after each, else the name of its program.
    pub fn command_line(pid: u32) -> Vec<u8> {
        sys::command_line(pid)
    }

    /// Compares both real and effective user: a process that has changed its privileges belongs to no user.
    pub fn belongs_to(pid: u32, uid: u32) -> bool {
        sys::belongs_to(pid, uid)
    }

    /// The device numbers of the terminals that a process has open.
    pub fn open_terminals(pid: u32) -> Vec<u32> {
        sys::open_terminals(pid)
    }

    /// The start time of a process that would start now.
    pub fn present_start_time() -> u64 {
        sys::present_start_time()
    }

    /// The children of the calling process, including those that have ended. None if they cannot be listed.
    pub fn own_children() -> Option<HashSet<u32>> {
        sys::children()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that lasts until it is killed.
    fn child() -> std::process::Child {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        // Never ends by itself, because its input never does.
        command.args(["--exact", "process_info::tests::waits_for_its_input", "--include-ignored"]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap()
    }

    #[test]
    #[ignore = "is the child of another test"]
    fn waits_for_its_input() {
        let _ = io::stdin().read_line(&mut String::new());
    }

    #[test]
    fn a_process_is_listed_with_its_parent_until_it_has_ended() {
        let me = std::process::id();
        let mut child = child();
        let found = ProcessInfo::of(child.id()).unwrap();
        assert_eq!((found.parent, found.ended), (me, false));
        assert!(ProcessInfo::all().unwrap().iter().any(|info| info.pid == child.id()));
        assert!(ProcessInfo::own_children().is_none_or(|listed| listed.contains(&child.id())));
        assert!(ProcessInfo::is_running_since(child.id(), found.start_time));
        assert!(!ProcessInfo::is_running_since(child.id(), found.start_time + 1));
        assert!(found.start_time <= ProcessInfo::present_start_time());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!ProcessInfo::is_running_since(child.id(), found.start_time));
    }

    #[test]
    fn the_ancestors_of_a_process_are_found() {
        let me = std::process::id();
        let line = ProcessInfo::ancestors(me);
        assert_eq!(line.first(), Some(&me));
        let parent = ProcessInfo::own_parent();
        assert_eq!(line.get(1), parent.as_ref());
    }
}

#[cfg(all(test, unix))]
mod tests_unix {
    use super::*;

    #[test]
    fn this_process_is_listed_with_its_parent_its_arguments_and_its_user() {
        let me = std::process::id();
        assert_eq!(ProcessInfo::own_parent(), Some(std::os::unix::process::parent_id()));
        let uid = rustix::process::geteuid().as_raw();
        assert!(ProcessInfo::belongs_to(me, uid) && !ProcessInfo::belongs_to(me, uid + 1));
        let name = std::env::args().next().unwrap();
        assert!(ProcessInfo::command_line(me).starts_with(name.as_bytes()));
    }
}
