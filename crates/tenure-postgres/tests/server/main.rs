//! The store on a real server: lost answers, restarts, encryption, passwords, missing rights, poolers, standbys.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

mod away;
mod board;
mod claims;
mod copying;
mod durable;
mod following;
mod listening;
mod lost_answers;
mod opening;
mod passwords;
mod pooler;
mod rights;
mod roster;
mod scene;
mod standby;
mod time;
mod tls;
