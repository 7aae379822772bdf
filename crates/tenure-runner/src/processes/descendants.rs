//! The descendants of a command that were seen while it ran. They stay known when their parent ends and they become children
//! of another process, where the system neither hands them to the supervisor nor shows their mark.
//!
//! The record is also kept in a private file that is named after the attempt, so that a reaper still has it if the supervisor was
//! killed. An entry is a pid with its start time, and counts only for the process that has both.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Instant;

use tenure_lock::{ProcessInfo, open_private};

use crate::sys;

/// The longest record that is read. An attempt with more processes than fit has other problems.
const LARGEST: u64 = 1024 * 1024;

#[derive(Debug, Clone, Default)]
pub struct Descendants {
    /// With their start times, because a pid is given to other processes later.
    seen: HashSet<(u32, u64)>,
    last: Option<Instant>,
    /// Where the record is kept.
    file: Option<PathBuf>,
}

impl Descendants {
    /// An empty record for the attempt with this mark.
    pub(crate) fn of(mark: &str) -> Self {
        Self { file: sys::record_interval().and_then(|_| file_of(mark)), ..Self::default() }
    }

    /// The record that the supervisor of this attempt has left behind, if any.
    pub(super) fn left_behind(mark: &str) -> Option<Self> {
        sys::record_interval()?;
        let file = open_private(&file_of(mark)?, File::options().read(true)).ok()?;
        // In a shared folder, another user could have created the file.
        if !sys::is_private(&file.metadata().ok()?) {
            return None;
        }
        let mut text = String::new();
        file.take(LARGEST).read_to_string(&mut text).ok()?;
        Some(Self { seen: parse(&text), ..Self::default() })
    }

    /// Removes the file of a record whose processes are gone.
    pub(crate) fn forget(mark: &str) {
        if let Some(file) = sys::record_interval().and_then(|_| file_of(mark)) {
            let _ = fs::remove_file(file);
        }
    }

    pub(super) fn contains(&self, pid: u32, start_time: u64) -> bool {
        self.seen.contains(&(pid, start_time))
    }

    #[cfg(test)]
    pub(super) fn insert(&mut self, pid: u32, start_time: u64) {
        self.seen.insert((pid, start_time));
    }

    /// Adds the current descendants of `leader`, on systems that need the record and at most once per interval.
    pub(crate) fn record(&mut self, leader: u32) {
        let Some(interval) = sys::record_interval() else { return };
        if self.last.is_some_and(|last| last.elapsed() < interval) {
            return;
        }
        self.last = Some(Instant::now());
        let Ok(all) = ProcessInfo::all() else { return };
        let before = self.seen.clone();
        self.add_descendants(leader, &all);
        if self.seen != before {
            self.write();
        }
        for (pid, _) in self.seen.difference(&before) {
            tracing::debug!(pid, "recorded a descendant");
        }
    }

    /// Replaces the file as a whole, so that a reader never finds a part of it. Without a file, the supervisor still has the record.
    fn write(&self) {
        let Some(path) = &self.file else { return };
        let new = path.with_extension("new");
        let lines: Vec<String> = self.seen.iter().map(|(pid, start)| format!("{pid} {start}\n")).collect();
        let file = open_private(&new, File::options().write(true).create(true).truncate(true));
        let written = file.and_then(|mut file| file.write_all(lines.concat().as_bytes()));
        let _ = written.and_then(|()| fs::rename(&new, path));
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
            self.seen.extend(more);
        }
    }
}

/// `None` if the mark is not a plain file name. It was read from the store, so it is not trusted.
fn file_of(mark: &str) -> Option<PathBuf> {
    let is_name = !mark.is_empty() && mark.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_name.then(|| tenure_lock::temporary_folder().join(format!("tenure-descendants-{mark}")))
}

fn parse(text: &str) -> HashSet<(u32, u64)> {
    let entry = |line: &str| {
        let (pid, start) = line.split_once(' ')?;
        Some((pid.parse().ok()?, start.parse().ok()?))
    };
    text.lines().filter_map(entry).collect()
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

    #[test]
    fn a_mark_that_is_a_path_names_no_file_and_damaged_lines_are_left_out() {
        assert_eq!(file_of("../x"), None);
        assert_eq!(file_of(""), None);
        let file = file_of("01890000-0000-7000-8000-000000000000").unwrap();
        assert_eq!(file.parent(), Some(tenure_lock::temporary_folder().as_path()));
        assert_eq!(parse("7 70\n8\nx 9\n9 -1\n10 100\n"), HashSet::from([(7, 70), (10, 100)]));
    }
}
