//! Exclusive locks: a tool takes a whole directory to itself, and daemons step aside.
//!
//! The lock is a JSON file, `.exclusive-lock`, that any program may write; whoever finds it judges the process it names.
//! Our own processes make it by a hard link, which fails if it exists, and remove it only under a guard, an OS lock on the
//! directory.
//!
//! Guarantees: of any number of our processes exactly one acquires; a stale file is removed only if its holder is proven
//! dead, and a fresh one that took its place or was written over it is not lost; a malformed file is never removed.
//! Does not guarantee anything against tools that simply overwrite or remove the file: it is cooperation, not security.
//! The one fresh text that can be lost is that of a tool which had opened the stale file before its removal and writes
//! into it more than 10 ms later. A stale lock of another host needs a person.

mod error;
mod guard;
mod lock;
mod place;
mod skip;

pub use error::{ExclusiveError, HeldExclusive, MalformedLock};
pub use guard::{ExclusiveGuard, ExclusiveStatus, Release};
pub use lock::{ExclusiveLock, is_process_alive};
pub use skip::{SkipDecision, SkipReason, should_skip_database};

/// The name of the lock file in the directory it locks.
pub const EXCLUSIVE_LOCK_FILE: &str = ".exclusive-lock";
