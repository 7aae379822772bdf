//! Resume locks: one holder per session or job, among all processes that share a directory.
//!
//! The lock is an OS lock on an open file, which the kernel releases when its holder ends. The JSON in the file is
//! informative. The name `ID.lock` follows two rules: it is created only by a hard link, which fails if it exists,
//! and it is removed, or its text replaced, only by a process that has the OS lock on the file it names.
//!
//! Guarantees: exactly one holder in any race; a kill at any instruction leaves nothing that needs manual clean-up; a
//! remote holder or an unreadable file is never overridden without `force`; a live OS lock never; ids cannot leave
//! the directory.
//! Does not guarantee anything against tools that remove or overwrite the file regardless; [`ResumeLock::verify`]
//! detects it.

mod data;
mod error;
mod id;
#[cfg(unix)]
mod inherit;
mod lock;
mod manager;

pub(crate) use data::nonce;
pub use data::{Mark, ResumeLockData};
pub use error::{HeldLock, LostReason, ResumeLockError};
pub use lock::ResumeLock;
pub use manager::ResumeLockManager;
