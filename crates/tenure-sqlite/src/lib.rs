//! tenure's store on stock SQLite, bundled: one file, no service.
//!
//! Guaranteed: writes are serialised fairly between processes by the [`gate`]; a body that fails leaves nothing
//! behind; a grant or a status change survives power loss; a database from the future is never touched.
//! Not guaranteed: anything on a network file system, which is refused.

mod connection;
mod copying;
mod directory;
mod directory_wakeup;
mod doorbell;
mod error;
mod feed;
mod filesystem;
mod gate;
mod integrity;
mod jobs;
mod leases;
mod migrate;
mod ready;
mod rows;
mod runners;
mod sections;
mod sessions;
mod task_changes;
mod tasks;

pub use connection::{OpenOptions, SqliteStore};
pub use directory::{Directory, KnownProject, KnownRunner};
pub use directory_wakeup::IdleProject;
pub use doorbell::{Doorbell, sweep_doorbells};
pub use gate::writer_of;
