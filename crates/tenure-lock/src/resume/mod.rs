//! Resume locks: one holder per session or job, among all processes that share a directory.
//!
//! The truth is an OS lock on an open file, which the kernel ends with its holder. The JSON in the file is for people and
//! for tools that only know JSON. The name `ID.lock` changes hands by two rules: it is made only by a hard link, which
//! fails if it exists, and it is removed, or its text replaced, only by whoever has the OS lock on the file it names.
//!
//! Guarantees: exactly one holder in any race; a kill at any instruction leaves nothing of ours that needs a person; a
//! remote holder or an unreadable file is never robbed without `force`; a living OS lock never; ids cannot leave the
//! directory.
//! Does not guarantee anything against tools that remove or overwrite the file regardless; [`ResumeLock::verify`] notices.

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
