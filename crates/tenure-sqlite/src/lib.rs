//! tenure's store on stock SQLite, bundled: one file, no service.
//!
//! Guaranteed: writes are serialised fairly between processes by the [`gate`]; a body that fails leaves nothing
//! behind; a grant or a status change survives power loss; a database from the future is never touched.
//! Not guaranteed: anything on a network file system, which is refused.

mod connection;
mod copying;
mod directory;
mod doorbell;
mod error;
mod feed;
mod filesystem;
mod gate;
mod jobs;
mod leases;
mod migrate;
mod rows;
mod runners;
mod sections;
mod sessions;
mod tasks;

pub use connection::{OpenOptions, SqliteStore};
pub use directory::{Directory, KnownProject, KnownRunner};
pub use doorbell::Doorbell;
