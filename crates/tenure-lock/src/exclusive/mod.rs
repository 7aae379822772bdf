//! Exclusive locks: a tool locks a whole directory, and daemons skip it.
//!
//! The lock is a JSON file, `.exclusive-lock`, that any program may write; a reader evaluates the process that it
//! names. This crate creates it by a hard link, which fails if it exists, and removes it only under a guard, an OS
//! lock on the directory.
//!
//! Guarantees: among any number of processes using this crate exactly one acquires the lock; a stale file is removed
//! only if its holder is proven dead, and a new lock that replaced or overwrote it is not lost; a malformed file is
//! never removed.
//! Does not guarantee anything against tools that simply overwrite or remove the file: the lock is advisory. The only
//! new lock that can be lost is that of a tool which opened the stale file before its removal and writes to it more
//! than 10 ms later. A stale lock of another host needs manual removal.

mod error;
mod guard;
mod guarded_dir;
mod lock;
mod skip;

pub use error::{ExclusiveError, HeldExclusive, MalformedLock};
pub use guard::{ExclusiveGuard, ExclusiveStatus, Release};
pub use lock::{ExclusiveLock, is_process_alive};
pub use skip::{SkipDecision, SkipReason, should_skip_database};

/// The name of the lock file in the directory it locks.
pub const EXCLUSIVE_LOCK_FILE: &str = ".exclusive-lock";
