//! Executes work under a lease: the attempt protocol that `tasks run`, runners and jobs share.
//!
//! Guaranteed: an attempt's row and mark are committed before its process exists; its command is executed
//! only while that row says `running`; no process of an attempt outlives it (R2); nothing new starts on a task while the
//! processes of an earlier attempt on this host live; a lost lease ends the work under it.
//! Not guaranteed: reaching a process that has cleared its environment *and* left its process group, after its supervisor
//! was killed, where no control group was delegated; on macOS also a process that runs a system program, whose
//! environment cannot be read there (`docs/platforms.md`).
//!
//! ```
//! use std::time::Duration;
//! use tenure_runner::{renew_every, spec_section::spec_text};
//!
//! // A lease is renewed often enough to survive one missed heartbeat, and at least as often as configured.
//! assert_eq!(renew_every(Duration::from_secs(30), Duration::from_secs(60)), Duration::from_secs(20));
//!
//! // A prompt contains the section of the specification that the task refers to, and never a file outside the project.
//! # let root = tempfile::tempdir()?;
//! # let root = root.path();
//! std::fs::write(root.join("spec.md"), "# Login\n\nA form.\n\n# Logout\n\nA button.\n")?;
//! assert_eq!(spec_text(root, "spec.md#logout")?.text.trim(), "# Logout\n\nA button.");
//! assert!(spec_text(root, "../secret.md").is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod agents;
pub mod daemon;
mod database;
mod detach;
pub mod exclusion;
mod exec_gate;
mod execution;
mod heartbeat;
pub mod hooks;
mod input;
pub mod jobs;
mod known_processes;
mod log_reader;
mod log_watch;
mod outage;
mod outcome;
mod outcome_files;
pub mod preset;
pub mod processes;
mod program;
pub mod prompt;
mod reap;
pub mod retention;
mod run_log;
pub mod spec_section;
mod supervise;
mod sys;
mod template;
pub mod timer;
pub mod transcript;
mod wait;
pub mod wakeup;
mod watch;
mod while_pid;

pub use database::DatabaseFile;
pub use detach::{NO_ATTEMPT, detach};
pub use exec_gate::{ExecRefused, exec_if_running};
pub use execution::{DoorbellRef, Execution};
pub use heartbeat::{
    HeartbeatStep, HeartbeatStore, LeaseLoss, OpenStore, Renew, RenewTask, Renewal, Schedule, drain_doorbell,
    renew_every, request_patience,
};
pub use known_processes::KnownProcesses;
pub use log_reader::LogReader;
pub use log_watch::LogWatch;
pub use outage::Outage;
pub use outcome_files::OutcomeFiles;
pub use processes::Survivor;
pub use program::ProgramError;
pub use reap::{Reaped, Scope, reap_attempts, reap_earlier_attempts};
pub use run_log::RunLog;
pub use supervise::{
    AttemptRecorder, CommandEnd, Exit, LimitCheck, Limits, OutputVerdict, Signals, Supervised, Supervision,
    pass_proof, supervise,
};
pub use sys::{
    LocalStream, SYSTEM_HAS_SANDBOX, Signal, can_supervise, exec, local_pair, real_path, signal_of,
};
pub use wait::{Process, limit_for, until_any, until_any_or};
pub use while_pid::{Kept, keep_while_alive};
