//! File locks and process identity that survive any race and any kill.

mod clock;
mod exclusive;
mod host;
mod identity;
mod lock_file;
mod resume;
mod sys;
mod text;

pub use exclusive::{
    EXCLUSIVE_LOCK_FILE, ExclusiveError, ExclusiveGuard, ExclusiveLock, ExclusiveStatus, HeldExclusive,
    MalformedLock, Release, SkipDecision, SkipReason, is_process_alive, should_skip_database,
};
pub use host::{boot_id, host_id, hostname};
pub use identity::{Host, Liveness, Probe, ProcessIdentity, is_process_running, judge, judge_by_hostname};
pub use resume::{
    HeldLock, LostReason, Mark, ResumeLock, ResumeLockData, ResumeLockError, ResumeLockManager,
};
