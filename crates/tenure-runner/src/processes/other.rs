//! Where nothing shows the environment of other processes, only a group that is known for certain can be ended.
//!
//! So what a supervisor started is ended by that supervisor; what a dead one left behind is not found.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::{Bond, Member, Sight};

#[derive(Debug)]
pub(super) struct Eyes {
    group: Option<u32>,
}

impl Eyes {
    #[expect(clippy::unnecessary_wraps, reason = "the same interface as where it can fail")]
    pub(super) fn new(bond: Bond<'_>) -> io::Result<Self> {
        Ok(Self { group: bond.group })
    }
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

impl Sight for Eyes {
    fn look(&mut self) -> io::Result<Vec<Member>> {
        let group = self.group.filter(|g| pid(*g).is_some_and(|p| test_kill_process_group(p).is_ok()));
        Ok(group.map(|group| Member { pid: group, start_time: 0, group }).into_iter().collect())
    }

    fn strike(&mut self, member: &Member, signal: Option<Signal>) -> Option<OwnedFd> {
        let _ = kill_process_group(pid(member.group)?, signal?);
        None
    }

    fn name(&self, member: &Member) -> String {
        format!("process group {}", member.group)
    }

    fn met_own_line(&self) -> bool {
        false
    }
}
