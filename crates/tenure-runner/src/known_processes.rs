//! A judge that remembers processes which it has found alive.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fd::{AsFd, OwnedFd};
use tenure_core::holder::{Incarnation, Judge, Liveness};
use tenure_lock::ProcessIdentity;

use crate::wait::{Process, until_any};

/// At most this many processes are remembered. The others are inspected each time.
const MOST: usize = 128;

/// A judge for a process that makes many decisions about the same processes, such as a waiter or a runner. From the second time it
/// keeps a descriptor of each that is alive, and polling that costs a twentieth of reading `/proc`. Its answers are those of the judge
/// behind it.
#[derive(Debug)]
pub struct KnownProcesses<J> {
    judge: J,
    /// Without a descriptor, the process was found alive once.
    alive: Mutex<HashMap<ProcessIdentity, Option<OwnedFd>>>,
}

impl<J: Judge> KnownProcesses<J> {
    pub fn new(judge: J) -> Self {
        Self { judge, alive: Mutex::default() }
    }
}

impl<J: Judge> Judge for KnownProcesses<J> {
    fn liveness(&self, process: &Incarnation) -> Liveness {
        let mut alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(exit)) = alive.get(&process.process) {
            if !has_exited(exit) {
                return Liveness::Alive;
            }
            alive.remove(&process.process);
        }
        let found = self.judge.liveness(process);
        if found != Liveness::Alive {
            return found;
        }
        if alive.len() >= MOST {
            alive.retain(|_, exit| exit.as_ref().is_some_and(|exit| !has_exited(exit)));
        }
        let is_full = alive.len() >= MOST;
        match alive.entry(process.process.clone()) {
            Entry::Occupied(mut seen) => {
                // Nothing is remembered where a descriptor cannot be polled for the end of its process.
                seen.insert(Process::open_alive(process, &self.judge).and_then(Process::into_fd));
            }
            Entry::Vacant(new) if !is_full => drop(new.insert(None)),
            Entry::Vacant(_) => {}
        }
        found
    }

    fn is_this_boot(&self, process: &Incarnation) -> bool {
        self.judge.is_this_boot(process)
    }
}

fn has_exited(exit: &OwnedFd) -> bool {
    until_any(&[exit.as_fd()], Duration::ZERO).contains(&true)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tenure_core::holder::ThisMachine;

    use super::*;

    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);

    impl Judge for Counting {
        fn liveness(&self, process: &Incarnation) -> Liveness {
            self.0.fetch_add(1, Ordering::SeqCst);
            ThisMachine.liveness(process)
        }

        fn is_this_boot(&self, process: &Incarnation) -> bool {
            ThisMachine.is_this_boot(process)
        }
    }

    fn start() -> (Child, Incarnation) {
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let process = ProcessIdentity::of(child.id()).unwrap();
        (child, Incarnation { process, hostname: String::new() })
    }

    #[test]
    fn a_process_that_was_found_alive_twice_is_not_inspected_again_until_it_ends() {
        let judge = KnownProcesses::new(Counting::default());
        let (mut child, process) = start();
        if Process::open(child.id()).and_then(Process::into_fd).is_none() {
            child.kill().unwrap();
            return;
        }
        for _ in 0..2 {
            assert_eq!(judge.liveness(&process), Liveness::Alive);
        }
        let inspected = judge.judge.0.load(Ordering::SeqCst);
        for _ in 0..10 {
            assert_eq!(judge.liveness(&process), Liveness::Alive);
        }
        assert_eq!(judge.judge.0.load(Ordering::SeqCst), inspected);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(judge.liveness(&process), Liveness::Dead);
        assert!(judge.alive.lock().unwrap().is_empty());
    }

    #[test]
    fn a_process_that_has_ended_and_was_not_reaped_is_dead() {
        let judge = KnownProcesses::new(ThisMachine);
        let (mut child, process) = start();
        for _ in 0..3 {
            assert_eq!(judge.liveness(&process), Liveness::Alive);
        }
        child.kill().unwrap();
        let end = std::time::Instant::now() + Duration::from_mins(1);
        while judge.liveness(&process) != Liveness::Dead {
            assert!(std::time::Instant::now() < end);
        }
        child.wait().unwrap();
    }

    #[test]
    fn an_earlier_process_with_the_same_pid_is_dead_while_the_later_one_is_remembered() {
        let judge = KnownProcesses::new(ThisMachine);
        let (mut child, process) = start();
        for _ in 0..3 {
            assert_eq!(judge.liveness(&process), Liveness::Alive);
        }
        let mut earlier = process.clone();
        earlier.process.start_time -= 1;
        assert_eq!(judge.liveness(&earlier), Liveness::Dead);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn beyond_the_limit_processes_are_inspected_each_time() {
        let judge = KnownProcesses::new(Counting::default());
        let (mut child, process) = start();
        {
            let mut alive = judge.alive.lock().unwrap();
            for pid in 0..u32::try_from(MOST).unwrap() {
                let exit = Process::open(std::process::id()).and_then(Process::into_fd);
                alive.insert(ProcessIdentity { pid, ..process.process.clone() }, exit);
            }
        }
        for _ in 0..3 {
            assert_eq!(judge.liveness(&process), Liveness::Alive);
        }
        assert!(judge.alive.lock().unwrap().len() <= MOST);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(judge.liveness(&process), Liveness::Dead);
    }
}
