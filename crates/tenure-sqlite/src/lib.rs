//! tenure's store on stock SQLite, bundled: one file, no service.
//!
//! Guaranteed: writers of several processes take turns through the gate; a body that fails changes nothing; a grant or
//! a status change survives power loss; a database with a newer schema is never changed. Not guaranteed: anything on a
//! network file system, which is refused.
//!
//! The rules are in the core; this runs them on a store:
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use tenure_core::holder::{Caller, Holder, ThisMachine};
//! use tenure_core::kernel::{Finish, Terms, Verdict, acquire_task, finish};
//! use tenure_core::rules::{AddTask, add_task};
//! use tenure_core::store::{Durability, Store};
//! use tenure_core::{Context, Policy, SystemClock, id::RandomIds, id::TaskId, reference};
//! use tenure_sqlite::{OpenOptions, SqliteStore};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("tenure.db");
//! let store: Box<dyn Store> = Box::new(SqliteStore::create(&path, OpenOptions::new(Arc::new(SystemClock)))?);
//! let policy = Policy { ticket_life: Duration::from_secs(15), max_attempts: 3, max_rejections: 5, review: false };
//! let ctx = Context::new(&ThisMachine, &RandomIds, policy);
//! let (ann, bob) = (Caller::new(Holder::agent("ann")), Caller::new(Holder::agent("bob")));
//!
//! let new = AddTask { title: "Fix the login page".into(), key: Some("F001".into()), ..AddTask::default() };
//! let id = store.write(Durability::Power, |tx| add_task(tx, &ctx, &ann, &new))?.id;
//! let claim = |who: &Caller| {
//!     let terms = Terms::new(Duration::from_secs(900));
//!     store.write(Durability::Power, |tx| acquire_task(tx, &ctx, who, &TaskId::new(id.as_str()), &terms))
//! };
//!
//! // One of them is granted the task, and the other's refusal names the holder.
//! let lease = claim(&ann)?.granted()?.lease;
//! let Verdict::Refused(refused) = claim(&bob)? else { unreachable!() };
//! assert_eq!(refused.lease.map(|lease| lease.fence), Some(lease.fence));
//!
//! // Only the holder finishes it.
//! let done = |who: &Caller| {
//!     store.write(Durability::Power, |tx| {
//!         let name = reference::task(tx, "F001")?;
//!         finish(tx, &ctx, who, &name, Finish::Done, false)
//!     })
//! };
//! assert!(done(&bob).is_err());
//! done(&ann)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backup;
mod connection;
mod copying;
mod counts;
mod directory;
mod directory_wakeup;
#[cfg(unix)]
mod doorbell;
#[cfg(not(unix))]
#[path = "no_doorbell.rs"]
mod doorbell;
mod error;
mod filesystem;
mod follow;
mod gate;
mod handle;
mod identity;
mod integrity;
mod log;
mod migrate;
mod open_mark;
mod ready;
mod rows;
mod sys;
mod tasks;

pub use backup::{is_damaged, set_aside};
pub use connection::{OpenOptions, SqliteStore};
pub use directory::{Directory, KnownProject, KnownRunner};
pub use directory_wakeup::IdleProject;
pub use doorbell::{Doorbell, sweep_doorbells};
pub use follow::Watch;
pub use gate::writer_of;
pub use handle::close_left_open;
