//! The descendants of a command that were seen while it ran. They stay known when their parent ends and they become children
//! of another process, where the system neither hands them to the supervisor nor shows their mark.

use std::collections::HashSet;
use std::time::Instant;

use tenure_lock::ProcessInfo;

use crate::sys;

#[derive(Debug, Clone, Default)]
pub struct Descendants {
    /// With their start times, because a pid is given to other processes later.
    seen: HashSet<(u32, u64)>,
    last: Option<Instant>,
}

impl Descendants {
    pub(super) fn contains(&self, pid: u32, start_time: u64) -> bool {
        self.seen.contains(&(pid, start_time))
    }

    #[cfg(test)]
    pub(super) fn insert(&mut self, pid: u32, start_time: u64) {
        self.seen.insert((pid, start_time));
    }

    /// Adds the processes that descend from `leader` now, where the system needs that and if the last time is long enough ago.
    pub(crate) fn record(&mut self, leader: u32) {
        let Some(interval) = sys::record_interval() else { return };
        if self.last.is_some_and(|last| last.elapsed() < interval) {
            return;
        }
        self.last = Some(Instant::now());
        if let Ok(all) = ProcessInfo::all() {
            self.add_descendants(leader, &all);
        }
    }

    fn add_descendants(&mut self, leader: u32, all: &[ProcessInfo]) {
        // A process that has ended is forgotten, so the record does not grow with the work.
        self.seen
            .retain(|(pid, start)| all.iter().any(|p| p.pid == *pid && p.start_time == *start && !p.ended));
        loop {
            let known = |pid: u32| pid == leader || self.seen.iter().any(|(seen, _)| *seen == pid);
            let more: Vec<_> = all
                .iter()
                .filter(|p| !p.ended && known(p.parent) && !self.contains(p.pid, p.start_time))
                .map(|p| (p.pid, p.start_time))
                .collect();
            if more.is_empty() {
                return;
            }
            for (pid, _) in &more {
                tracing::debug!(pid, "recorded a descendant");
            }
            self.seen.extend(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32) -> ProcessInfo {
        ProcessInfo {
            pid,
            parent,
            group: 1,
            session: 1,
            terminal: 0,
            start_time: u64::from(pid),
            ended: false,
        }
    }

    #[test]
    fn a_descendant_stays_recorded_after_its_parent_has_ended() {
        let mut record = Descendants::default();
        record.add_descendants(10, &[process(10, 1), process(11, 10), process(12, 11), process(13, 1)]);
        assert!(record.contains(11, 11) && record.contains(12, 12));
        assert!(!record.contains(13, 13), "not a descendant");
        // 11 has ended, 12 went to init and has started 14.
        record.add_descendants(10, &[process(10, 1), process(12, 1), process(14, 12)]);
        assert!(record.contains(12, 12) && record.contains(14, 14));
        assert!(!record.contains(11, 11), "what has ended is forgotten");
    }

    #[test]
    fn a_later_process_with_the_pid_of_a_descendant_is_not_recorded() {
        let mut record = Descendants::default();
        record.add_descendants(10, &[process(10, 1), process(11, 10)]);
        let recycled = ProcessInfo { start_time: 99, ..process(11, 1) };
        record.add_descendants(10, &[process(10, 1), recycled, process(15, 11)]);
        assert!(!record.contains(11, 99) && !record.contains(15, 15));
    }
}
