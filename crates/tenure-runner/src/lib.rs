//! Executing work under a lease: the attempt protocol, which `tasks run`, runners and jobs share.
//!
//! Guaranteed, on Linux: an attempt's row and mark are committed before its process exists; its command becomes itself
//! only while that row says `running`; no process of an attempt outlives it (R2); nothing new starts on a task while the
//! processes of an earlier attempt on this host live; a lease that is lost ends the work under it.
//! Not guaranteed: reaching a process that has cleared its environment *and* left its process group.

pub mod anchor;
mod beat;
pub mod daemon;
mod database;
mod detach;
mod ending;
pub mod hooks;
mod input;
pub mod jobs;
mod keeper;
mod lockout;
mod outcome;
pub mod preset;
pub mod processes;
mod program;
pub mod prompt;
mod supervise;
mod template;
mod terminal;
mod threshold;
mod wait;
mod watch;

pub use beat::{Loss, OpenStore};
pub use database::DatabaseFile;
pub use detach::detach;
pub use ending::{Cleared, Scope, finish_ending};
pub use keeper::{Kept, keep};
pub use processes::Survivor;
pub use program::ProgramError;
pub use supervise::{Ended, Exit, Limits, Look, Signals, Steps, Supervised, Supervision, supervise};
pub use threshold::{NotStarted, cross};
