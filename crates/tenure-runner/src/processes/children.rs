//! The supervisor as the parent of orphans: processes of an attempt whose parent has ended become its children, so that
//! they are found although they left their group and cleared their environment.
//!
//! The children that this process started itself are registered, because only others may be reaped here.

use std::collections::HashSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_lock::ProcessInfo;

use crate::sys;

#[derive(Debug, Default)]
struct Registry {
    started: HashSet<u32>,
    /// How many attempts this process supervises now.
    attempts: usize,
    adopts: bool,
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

fn registry<T>(change: impl FnOnce(&mut Registry) -> T) -> T {
    let mut guard: MutexGuard<'_, Option<Registry>> = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    change(guard.get_or_insert_default())
}

/// Starts a child of this process. Every child that may run beside an attempt is started in this way.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    start(|| command.spawn(), Child::id)
}

/// Like [`spawn`], for other types of children.
pub(crate) fn start<T>(spawn: impl FnOnce() -> io::Result<T>, pid: impl Fn(&T) -> u32) -> io::Result<T> {
    // Locked while the child is started, so that it is registered before it can be mistaken for an orphan.
    registry(|registry| {
        let child = spawn()?;
        registry.started.insert(pid(&child));
        Ok(child)
    })
}

/// This process supervises an attempt as long as this exists.
#[derive(Debug)]
pub(crate) struct Supervising(());

impl Supervising {
    pub(crate) fn begin() -> Self {
        registry(|registry| {
            registry.attempts += 1;
            registry.adopts = registry.adopts || sys::adopt_orphans();
        });
        Self(())
    }
}

impl Drop for Supervising {
    fn drop(&mut self) {
        registry(|registry| registry.attempts = registry.attempts.saturating_sub(1));
    }
}

/// Of these children of this process, those that were handed to it as orphans. None while it supervises several attempts,
/// because an orphan may be of any of them.
pub(super) fn orphans(children: impl Iterator<Item = u32>) -> HashSet<u32> {
    registry(|registry| {
        if !registry.adopts || registry.attempts > 1 {
            return HashSet::new();
        }
        children.filter(|pid| !registry.started.contains(pid)).collect()
    })
}

/// Reaps the orphans that have ended. Without this they would remain as zombies until this process ends.
pub(crate) fn reap_orphans() {
    registry(|registry| {
        if !registry.adopts {
            return;
        }
        // Listed while no child can be started, so every child of this process is already registered.
        let Some(listed) = ProcessInfo::own_children() else { return };
        registry.started.retain(|pid| listed.contains(pid));
        for pid in listed.iter().filter(|pid| !registry.started.contains(pid)) {
            sys::reap(*pid);
        }
    });
}
