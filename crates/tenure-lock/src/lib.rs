//! File locks and process identity that are safe under races and kills.
//!
//! Three independent parts, none of which depends on the rest of tenure:
//!
//! - [`ProcessIdentity`] identifies a process and determines whether it is alive, dead or unknown.
//! - [`ResumeLockManager`] locks a session or job for one process at a time. The lock ends with its holder.
//! - [`ExclusiveLock`] lets a tool lock a whole directory, and makes daemons skip it.
//!
//! ```
//! use tenure_lock::{ExclusiveLock, Liveness, ProcessIdentity, ResumeLockManager, should_skip_database};
//!
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path();
//! // One process resumes a session; the others are refused with its pid.
//! let manager = ResumeLockManager::new(dir)?;
//! let lock = manager.acquire("session-abc")?;
//! let refusal = manager.acquire("session-abc").map(|_| ()).unwrap_err().to_string();
//! assert!(refusal.starts_with("Resume already in progress for job session-abc\nLock held by: PID "));
//! assert!(refusal.ends_with("Please wait for the other process to complete."));
//! lock.release()?;
//!
//! // A tool locks the project; a daemon skips it until the lock is released.
//! let guard = ExclusiveLock::acquire(dir, "release-script", "1.0.0")?;
//! let decision = should_skip_database(dir);
//! assert_eq!(decision.log_line().as_deref(), Some("Skipping database (locked by release-script)"));
//! drop(guard);
//! assert!(!should_skip_database(dir).skip);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees and limits
//!
//! | | resume lock | exclusive lock |
//! |---|---|---|
//! | the lock is | an OS lock on the file; the JSON is informative | the JSON and the process it names |
//! | one holder in any race between users of this crate | yes | yes |
//! | after a kill at any instruction | free at once | stale, and removed by the next check or acquisition |
//! | holder dead on this host | free | removed |
//! | holder on another host | refused until `acquire_forced` | skipped until removed manually |
//! | unreadable or malformed file | refused until `acquire_forced` | skipped until removed manually, never deleted |
//! | empty file | free | malformed |
//! | live holder, with force | refused | the caller decides, with [`ExclusiveLock::release`] of the lock that was read |
//!
//! - **Advisory, not security.** Any program with write access to the directory can create, change or delete lock files. Tools
//!   that overwrite unconditionally do not exclude each other; holders detect it with [`ResumeLock::verify`] and
//!   [`ExclusiveGuard::is_held`].
//! - **Death is proven or not claimed.** Proof is another boot of the same machine, or a pid that does not exist, is a zombie,
//!   or has another start time. `EPERM` means alive. Another host or pid namespace is unknown and counts as alive, so
//!   **stale locks of remote hosts need manual removal**.
//! - **Files that record only pid and hostname** are evaluated by these, so a recycled pid, or two machines or containers with
//!   the same name, can mislead. Files written by this crate record the exact process.
//! - **A new exclusive lock that overwrites a stale one is kept** while this crate removes the stale one, unless the tool
//!   opened the stale file before its removal and writes to it more than 10 ms later.
//! - Power loss: all holders are dead afterwards, and no lock file needs to survive. A remaining resume lock is free; an
//!   exclusive lock is flushed before it gets its name, so that it is never found incomplete.
//!
//! # Platform notes
//!
//! - **File systems.** Hard links and `flock` are required: ext4, XFS, Btrfs, ZFS, tmpfs, APFS and NTFS have both. On NFS,
//!   resume locks work as far as server and mount options support `flock` (not with `local_lock`), and exclusive locks do
//!   not, because a directory cannot be locked there: a check then fails, which means skip. Directories shared between
//!   machines by other means (9p, virtiofs, SMB) do not propagate locks and are not safe for resume locks.
//! - **Containers.** Processes that share a directory on one kernel exclude each other, whatever their namespaces and
//!   hostnames, provided they see the same file system: the lower layer of an overlay is another file. The resume lock of
//!   a killed container is free at once. Its exclusive lock is not, because pids of another namespace cannot be checked.
//!   Without a machine id (many images) the boot id replaces it, see [`host_id`]. Machine ids cloned with an image, or a
//!   virtual machine resumed twice from one snapshot, make two machines look like one.
//! - **Fork.** A child created by `fork` closes its copies of the descriptors, and a guard dropped in it does nothing; other
//!   programs never inherit them. A lock therefore ends with the process that acquired it, not with its last descendant. A
//!   child that should keep the lock can be [lent](ResumeLock::lend) it and can [adopt](ResumeLockManager::adopt) it. A
//!   bare `clone` system call runs no fork handlers; its child keeps the lock until it ends or the parent releases.
//! - **Windows.** Locks are mandatory there, so a byte far beyond the content is locked, and tools can read the JSON. Start
//!   times are absolute and replace the boot id. A small guard file remains next to an exclusive lock.
//! - **Threads.** Locks belong to open files, not to processes: threads and managers of one process exclude each other like
//!   processes do.
//!
//! # Testing a tool with exclusive locks
//!
//! 1. Start the daemon with a short interval.
//! 2. Have the tool write `.exclusive-lock` into the directory that the daemon works on.
//! 3. Check for `Skipping database (locked by NAME)` in the daemon's log.
//! 4. Have the tool remove the file, in a clean-up handler so that it is also removed after an error.
//! 5. Check for a normal cycle in the log. If the tool was killed, the log contains `Removed stale lock (NAME), proceeding
//!    with sync`; if its file is not valid, `Skipping database (lock check failed: malformed lock file: WHY)`.

mod boot_clock;
mod clock;
mod exclusive;
mod host;
mod identity;
mod known_file;
mod lock_file;
pub mod measure;
mod private_file;
mod process_info;
mod resume;
mod socket_path;
mod sys;
mod text;

pub use boot_clock::{BootTime, millis_since_boot};
pub use exclusive::{
    EXCLUSIVE_LOCK_FILE, ExclusiveError, ExclusiveGuard, ExclusiveLock, ExclusiveStatus, HeldExclusive,
    MalformedLock, Release, SkipDecision, SkipReason, is_process_alive, should_skip_database,
};
pub use host::{boot_id, host_id, hostname};
pub use identity::{Host, Liveness, Probe, ProcessIdentity, is_process_running, judge, judge_by_hostname};
pub use known_file::{FileId, KnownFile, Presence};
pub use private_file::{create_private_folder, open_private};
pub use process_info::ProcessInfo;
pub use resume::{
    HeldLock, LostReason, Mark, ResumeLock, ResumeLockData, ResumeLockError, ResumeLockManager,
};
pub use socket_path::{fits_socket, temporary_folder};
#[cfg(target_os = "macos")]
pub use sys::kqueue::EventQueue;

/// The example in the README is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
