//! tenure's store on PostgreSQL: the same rules on rows that several machines share.
//!
//! Guaranteed: the write transactions of a project run one after the other, except claims of the next task, which may
//! share a turn; the only clock is the server's, read after a transaction's turn has begun; a commit whose answer was
//! lost is never made twice; a password is never part of a message; a server in recovery is refused, because its grants
//! may be lost. Not guaranteed: commits of a primary that is lost before its standby has received them. That requires
//! the server's synchronous replication.
//!
//! ```
//! use tenure_postgres::{Address, Surroundings};
//!
//! let address = Address::parse("postgres://ann:secret@db.example/work", &Surroundings::default())?;
//! assert_eq!(address.to_string(), "postgres://ann@db.example:5432/work");
//! # Ok::<(), tenure_core::Error>(())
//! ```

mod address;
mod clock;
mod commit;
mod connect;
mod connection;
mod copying;
mod doorbell;
mod error;
mod follow;
mod integrity;
mod leases;
mod migrate;
mod notifications;
mod open_transaction;
mod passwords;
mod prefetched;
mod readiness;
mod retries;
mod roster;
mod rows;
mod run_transaction;
mod services;
mod store;
mod sys;
mod task_query;
mod tasks;
mod tls;
mod transaction;
mod write_buffer;

pub use address::{Address, Surroundings};
pub use clock::ServerClock;
pub use doorbell::Doorbell;
pub use roster::RosterOptions;
pub use store::{OpenOptions, PostgresStore};
