//! The command line as its users see it, in worlds of its own.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failed expectation is a failed test, and a skipped one says so"
)]

#[path = "../support/mod.rs"]
mod support;

mod story;

mod agents;
mod config;
mod demo;
mod events;
mod help;
mod hooks;
mod init;
mod locks;
mod msg;
mod projects;
mod sections;
mod status;
mod tasks;
mod whoami;
mod why;
