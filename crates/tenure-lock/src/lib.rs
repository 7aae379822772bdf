//! File locks and process identity that survive any race and any kill.
//!
//! Three things, each usable alone, with nothing of tenure below them:
//!
//! - [`ProcessIdentity`] says which life of which process is meant, and whether it goes on: alive, dead or unknown.
//! - [`ResumeLockManager`] gives each session or job to one process at a time. The lock ends with its holder.
//! - [`ExclusiveLock`] lets a tool have a whole directory to itself, and tells daemons to step aside.
//!
//! ```
//! use tenure_lock::{ExclusiveLock, Liveness, ProcessIdentity, ResumeLockManager, should_skip_database};
//!
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path();
//! // One process resumes a session; the others are told who does.
//! let manager = ResumeLockManager::new(dir)?;
//! let lock = manager.acquire("session-abc")?;
//! let refusal = manager.acquire("session-abc").map(|_| ()).unwrap_err().to_string();
//! assert!(refusal.starts_with("Resume already in progress for job session-abc\nLock held by: PID "));
//! assert!(refusal.ends_with("Please wait for the other process to complete."));
//! lock.release()?;
//!
//! // A tool takes the project; a daemon leaves it alone for as long.
//! let guard = ExclusiveLock::acquire(dir, "release-script", "1.0.0")?;
//! let decision = should_skip_database(dir);
//! assert_eq!(decision.log_line().as_deref(), Some("Skipping database (locked by release-script)"));
//! drop(guard);
//! assert!(!should_skip_database(dir).skip);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it guarantees, what it does not
//!
//! | | resume lock | exclusive lock |
//! |---|---|---|
//! | the truth is | an OS lock on the file; the JSON is for reading | the JSON and the process it names |
//! | one holder in any race of ours | yes | yes |
//! | after a kill at any instruction | free at once | stale, and removed by the next check or taker |
//! | holder dead on this host | free | removed |
//! | holder on another host | refused until `acquire_forced` | skipped until a person removes it |
//! | unreadable or malformed file | refused until `acquire_forced` | skipped until a person removes it, never deleted |
//! | empty file | free | malformed |
//! | a living holder, with force | refused | the caller decides, by [`ExclusiveLock::release`] of what was shown |
//!
//! - **Cooperation, not security.** Anybody who may write to the directory can create, change or delete lock files. Tools that
//!   overwrite without looking get no mutual exclusion among themselves; holders notice with [`ResumeLock::verify`] and
//!   [`ExclusiveGuard::is_held`].
//! - **Death is proven or not claimed.** Another boot of the same machine; or a pid that is gone, a zombie, or started at
//!   another time. `EPERM` is alive. Another host or pid namespace is unknown and counts as alive, so **stale locks of
//!   remote hosts need a person**.
//! - **Files that record only pid and hostname** are judged by these, so a recycled pid, or two machines or containers of one
//!   name, can mislead in the way the file format allows. Files of ours record the exact process.
//! - **A fresh exclusive lock written over a stale one is kept** while ours remove the stale one, except by a tool that had
//!   opened the stale file before its removal and writes into it more than 10 ms later.
//! - Power loss: all holders are dead then, and no lock file needs to survive it. What remains of a resume lock is free; an
//!   exclusive lock is flushed before it gets its name, so that it is never found half written.
//!
//! # Where care is needed
//!
//! - **File systems.** Hard links and `flock` are needed: ext4, XFS, Btrfs, ZFS, tmpfs, APFS and NTFS have both. On NFS resume
//!   locks work as far as server and mount options pass `flock` on (not with `local_lock`), and exclusive locks do not, because
//!   a directory cannot be locked there: a check then fails, which means skip. Directories shared between machines by
//!   other means (9p, virtiofs, SMB) pass no locks on and are not safe for resume locks.
//! - **Containers.** Processes that share a directory on one kernel exclude each other, whatever their namespaces and
//!   hostnames, provided they see the same file system: the lower layer of an overlay is another file. A killed
//!   container's resume lock is free at once. Its exclusive lock is not, because pids of another namespace cannot be judged.
//!   Without a machine id (many images) the boot stands in for it, see [`host_id`]. Machine ids cloned with an image, or a
//!   virtual machine resumed twice from one snapshot, make two machines look like one.
//! - **Fork.** A child made by `fork` gives up its copies of our descriptors, and a guard dropped in it does nothing; started
//!   programs never get them. So a lock ends with the process that took it, not with its last descendant. A child that is
//!   meant to keep it is [lent](ResumeLock::lend) the lock and can [adopt](ResumeLockManager::adopt) it. A bare `clone`
//!   system call runs no fork handlers; its child keeps the lock alive until it ends or the parent releases.
//! - **Windows.** Locks are mandatory there, so a far byte is locked rather than the content, and tools can read the JSON. Start
//!   times are dates and take the place of the boot id. A small guard file stays beside an exclusive lock.
//! - **Threads.** Locks belong to open files, not to processes: threads and managers of one process exclude each other like
//!   processes do.
//!
//! # Does my tool work with exclusive locks? Five steps
//!
//! 1. Start the daemon with a short interval.
//! 2. Have the tool write `.exclusive-lock` into the directory that the daemon looks after.
//! 3. Look for `Skipping database (locked by NAME)` in the daemon's log.
//! 4. Have the tool remove the file. Remove it in a clean-up handler, so that an error removes it, too.
//! 5. Look for a normal cycle in the log. A tool that was killed instead shows as `Removed stale lock (NAME), proceeding
//!    with sync`; one whose file is not valid as `Skipping database (lock check failed: malformed lock file: WHY)`.

mod boot_clock;
mod clock;
mod exclusive;
mod host;
mod identity;
mod lock_file;
pub mod measure;
mod resume;
mod sys;
mod text;

pub use boot_clock::BootTime;
pub use exclusive::{
    EXCLUSIVE_LOCK_FILE, ExclusiveError, ExclusiveGuard, ExclusiveLock, ExclusiveStatus, HeldExclusive,
    MalformedLock, Release, SkipDecision, SkipReason, is_process_alive, should_skip_database,
};
pub use host::{boot_id, host_id, hostname};
pub use identity::{Host, Liveness, Probe, ProcessIdentity, is_process_running, judge, judge_by_hostname};
pub use resume::{
    HeldLock, LostReason, Mark, ResumeLock, ResumeLockData, ResumeLockError, ResumeLockManager,
};
