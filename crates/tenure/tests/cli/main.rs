//! The command line as its users see it, each test in a separate environment.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is a failed test"
)]

mod examples;
mod story;
mod support;
mod work_rows;

mod agents;
mod backup;
mod bad_store;
mod bad_text;
mod bench;
mod claude_session;
mod completions;
mod config;
mod demo;
mod discovery;
mod doctor;
mod dry_run;
mod events;
mod exit_codes;
mod globals;
mod help;
mod hints;
mod hooks;
// It sees which files are opened by inotify.
#[cfg(target_os = "linux")]
mod hostile;
mod init;
mod jobs;
mod links;
mod local_time;
mod locks;
mod man;
mod msg;
mod pager;
mod permissions;
mod prime;
mod projects;
mod runners;
mod sections;
mod seeds;
mod self_check;
mod sessions;
mod setup;
mod status;
mod supervised;
#[cfg(target_os = "linux")]
mod syncs;
mod tables;
mod tasks;
mod trust;
mod unsupported;
mod wakeup;
mod walk;
mod whoami;
mod why;
