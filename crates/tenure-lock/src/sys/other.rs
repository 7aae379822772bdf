//! Unsupported systems: no process is ever proven dead.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::identity::Probe;
use crate::process_info::ProcessInfo;

/// The smallest size among common Unix systems.
pub(crate) const SOCKET_PATH_SIZE: usize = 104;

/// Whether it counts suspend depends on the system.
pub(crate) fn boot_time() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// The clock starts with the process.
pub(crate) fn boot_time_offset() -> Option<i64> {
    None
}

pub(crate) fn hostname() -> String {
    std::env::var("HOSTNAME").unwrap_or_default()
}

pub(crate) fn machine_id() -> Option<String> {
    None
}

pub(crate) fn boot_id() -> Option<String> {
    None
}

pub(crate) fn pid_namespace() -> u64 {
    0
}

pub(crate) fn own_start_time() -> Option<u64> {
    None
}

pub(crate) fn probe(pid: u32) -> Probe {
    if pid == 0 { Probe::Gone } else { Probe::Unclear }
}

pub(crate) fn exists(pid: u32) -> bool {
    probe(pid) != Probe::Gone
}

pub(crate) fn list() -> io::Result<Vec<ProcessInfo>> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn info(_pid: u32) -> Option<ProcessInfo> {
    None
}

pub(crate) fn environment(_pid: u32) -> Option<Vec<u8>> {
    None
}

pub(crate) fn command_line(_pid: u32) -> Vec<u8> {
    Vec::new()
}

pub(crate) fn belongs_to(_pid: u32, _uid: u32) -> bool {
    false
}

pub(crate) fn open_terminals(_pid: u32) -> Vec<u32> {
    Vec::new()
}

pub(crate) fn present_start_time() -> u64 {
    0
}

pub(crate) fn children() -> Option<HashSet<u32>> {
    None
}

pub(crate) fn temporary_folder() -> PathBuf {
    std::env::temp_dir()
}
