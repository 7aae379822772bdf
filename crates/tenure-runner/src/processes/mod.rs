//! The processes of an attempt: finding them and ending them.
//!
//! A process belongs to an attempt if it has our uid, lives in our pid namespace, and carries the attempt's mark in its
//! environment or shares a process group with one that does.
//!
//! Guaranteed: each process is signalled through a descriptor that was opened before it was verified, so a pid that was
//! given away again is never hit; neither is the caller, an ancestor of it, or another user's process. When [`end`] says
//! that nothing is left, nothing was left in two looks in a row.
//! Not guaranteed: finding a process that has cleared its environment and left the group, or whose environment may not be
//! read (it gained privileges).

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::wait;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

mod single;

#[cfg(target_os = "linux")]
use linux as sys;
#[cfg(not(target_os = "linux"))]
use other as sys;

pub use single::signal_one;

/// How long a process may take to die of SIGKILL before it is called a survivor.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Between two looks, if no descriptor tells of a death before.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// What ties processes to an attempt.
#[derive(Debug, Clone, Copy)]
pub struct Bond<'a> {
    /// The value of `TENURE_ATTEMPT`.
    pub mark: &'a str,
    /// A process group that is known to be the attempt's, because its leader is a child that was not collected yet.
    pub group: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
pub enum Manner {
    /// SIGKILL: the right to work is gone already.
    AtOnce,
    /// First `signal`, so that they can tidy up, and SIGKILL for what is left after `grace`.
    Orderly { signal: Signal, grace: Duration },
}

/// A process that SIGKILL did not end in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    pub pid: u32,
    pub command: String,
}

/// What is left of an attempt after [`end`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left {
    /// Nearly always none.
    pub survivors: Vec<Survivor>,
    /// The caller itself, or an ancestor of it, belongs to the attempt. Those were not touched.
    pub own_line: bool,
}

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.pid, self.command)
    }
}

/// One life of one process, as a look found it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Member {
    pid: u32,
    start_time: u64,
    group: u32,
}

/// What looks at processes and signals them.
trait Sight {
    /// The living members of the attempt, less the caller and its ancestors.
    fn look(&mut self) -> io::Result<Vec<Member>>;
    /// Signals that very process, if it still is the one that was seen. A descriptor that tells of its end.
    fn strike(&mut self, member: &Member, signal: Option<Signal>) -> Option<OwnedFd>;
    fn name(&self, member: &Member) -> String;
    /// Did the last look find the caller or an ancestor of it among the members?
    fn met_own_line(&self) -> bool;
}

/// Ends every process of the attempt, and says what could not or must not be ended.
pub fn end(bond: Bond<'_>, manner: Manner) -> io::Result<Left> {
    let mut eyes = sys::Eyes::new(bond)?;
    let survivors = end_within(&mut eyes, manner, PATIENCE)?;
    Ok(Left { survivors, own_line: eyes.met_own_line() })
}

/// What lives of the attempt, less the caller and its ancestors. Nothing is signalled.
pub fn find(bond: Bond<'_>) -> io::Result<Vec<Survivor>> {
    let mut eyes = sys::Eyes::new(bond)?;
    let members = eyes.look()?;
    Ok(members.iter().map(|m| Survivor { pid: m.pid, command: eyes.name(m) }).collect())
}

fn end_within(sight: &mut dyn Sight, manner: Manner, patience: Duration) -> io::Result<Vec<Survivor>> {
    let (first, grace) = match manner {
        Manner::AtOnce => (Signal::KILL, Duration::ZERO),
        Manner::Orderly { signal, grace } => (signal, grace),
    };
    let kill_at = Instant::now() + grace;
    let give_up = kill_at + patience;
    let mut asked = false;
    let mut empty_looks = 0;
    loop {
        let members = sight.look()?;
        if members.is_empty() {
            // A process may fork behind the look's back and exit before its eye; the child is there the next time.
            empty_looks += 1;
            if empty_looks == 2 {
                return Ok(Vec::new());
            }
            continue;
        }
        empty_looks = 0;
        let now = Instant::now();
        if now >= give_up {
            return Ok(members.iter().map(|m| Survivor { pid: m.pid, command: sight.name(m) }).collect());
        }
        let killing = now >= kill_at;
        let signal = match (killing, asked) {
            (true, _) => Some(Signal::KILL),
            (false, false) => Some(first),
            // Asked once: what a process starts in order to tidy up is left to do so.
            (false, true) => None,
        };
        asked = true;
        let watched: Vec<OwnedFd> = members.iter().filter_map(|m| sight.strike(m, signal)).collect();
        let until = if killing { give_up } else { kill_at };
        wait::until_all_end(&watched, until.saturating_duration_since(now).min(LOOK_AGAIN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes that exist only here, each with the number of signals that it takes to end it.
    #[derive(Default)]
    struct Pretend {
        alive: Vec<(Member, usize)>,
        struck: Vec<(u32, Option<Signal>)>,
        /// Shown in one look, and gone in the next.
        hidden_once: bool,
    }

    fn member(pid: u32) -> Member {
        Member { pid, start_time: 1, group: 1 }
    }

    impl Sight for Pretend {
        fn look(&mut self) -> io::Result<Vec<Member>> {
            if std::mem::take(&mut self.hidden_once) {
                return Ok(Vec::new());
            }
            Ok(self.alive.iter().map(|(m, _)| m.clone()).collect())
        }

        fn strike(&mut self, member: &Member, signal: Option<Signal>) -> Option<OwnedFd> {
            self.struck.push((member.pid, signal));
            for (m, lives) in &mut self.alive {
                if m == member && signal.is_some() {
                    *lives = lives.saturating_sub(1);
                }
            }
            self.alive.retain(|(_, lives)| *lives > 0);
            None
        }

        fn name(&self, member: &Member) -> String {
            format!("pretend-{}", member.pid)
        }

        fn met_own_line(&self) -> bool {
            false
        }
    }

    #[test]
    fn what_does_not_die_is_returned_by_name() {
        let mut sight =
            Pretend { alive: vec![(member(7), usize::MAX), (member(8), 1)], ..Pretend::default() };
        let left = end_within(&mut sight, Manner::AtOnce, Duration::from_millis(1)).unwrap();
        assert_eq!(left, [Survivor { pid: 7, command: "pretend-7".into() }]);
    }

    #[test]
    fn a_process_that_one_look_missed_is_ended_all_the_same() {
        let mut sight = Pretend { alive: vec![(member(7), 1)], hidden_once: true, ..Pretend::default() };
        assert!(end_within(&mut sight, Manner::AtOnce, PATIENCE).unwrap().is_empty());
        assert!(sight.alive.is_empty());
    }

    #[test]
    fn an_orderly_end_asks_once_and_kills_after_the_grace() {
        let mut sight = Pretend { alive: vec![(member(7), 2)], ..Pretend::default() };
        let manner = Manner::Orderly { signal: Signal::TERM, grace: Duration::from_millis(20) };
        assert!(end_within(&mut sight, manner, PATIENCE).unwrap().is_empty());
        let signals: Vec<_> = sight.struck.iter().filter_map(|(_, signal)| *signal).collect();
        assert_eq!(signals, [Signal::TERM, Signal::KILL]);
    }
}
