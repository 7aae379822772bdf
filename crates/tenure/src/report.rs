//! An error as it is reported: code, message, context for people, and hints for the next step.

use std::path::Path;

use serde_json::{Value, json};
use tenure_core::config::ConfigError;
use tenure_core::duration::format_rounded;
use tenure_core::error::Locked;
use tenure_core::hints::{self, Hint};
use tenure_core::id::{Ids as _, RandomIds};
use tenure_core::lease::Lease;
use tenure_core::{Error, ErrorCode, wire};

use crate::shell_quote::quote;

#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
    /// Boxed, to keep every `Result` with a report small.
    pub(crate) details: Box<Value>,
    /// Lines below the message. They are for people only; programs find the same in `details`.
    pub(crate) context: Vec<String>,
    pub(crate) hints: Vec<Hint>,
    /// Overrides the error code's exit code: a signal's, or a child's.
    pub(crate) exit: Option<u8>,
}

pub(crate) type CommandResult<T> = Result<T, Report>;

impl Report {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Box::new(Value::Null),
            context: Vec::new(),
            hints: Vec::new(),
            exit: None,
        }
    }

    /// Ctrl+C or SIGTERM.
    pub(crate) fn interrupted(code: u8) -> Self {
        Self { exit: Some(code), ..Self::new(ErrorCode::General, "interrupted") }
    }

    /// Prints nothing: the user has stopped a stream on purpose.
    #[must_use]
    pub(crate) fn silent(mut self) -> Self {
        self.message.clear();
        self
    }

    pub(crate) fn exit_code(&self) -> u8 {
        self.exit.unwrap_or_else(|| self.code.exit_code())
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArguments, message)
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: Hint) -> Self {
        self.hints.push(hint);
        self
    }

    /// There is no folder for the user's own files.
    pub(crate) fn no_home() -> Self {
        Self::new(ErrorCode::Config, "neither HOME nor TENURE_HOME is set").hint(hints::choose_home())
    }

    /// Adds a line below the message.
    #[must_use]
    pub(crate) fn note(mut self, line: impl Into<String>) -> Self {
        self.context.push(line.into());
        self
    }

    /// A file system error. A missing permission is `PermissionDenied`, a timeout `WaitTimeout`, and everything else
    /// `otherwise`.
    pub(crate) fn io(error: &std::io::Error, otherwise: ErrorCode, verb: &str, path: &Path) -> Self {
        use std::io::ErrorKind;
        let (code, why) = match error.kind() {
            ErrorKind::PermissionDenied => (ErrorCode::PermissionDenied, "no permission".to_owned()),
            ErrorKind::ReadOnlyFilesystem => {
                (ErrorCode::PermissionDenied, "the file system is read-only".to_owned())
            }
            ErrorKind::TimedOut => (ErrorCode::WaitTimeout, error.to_string()),
            ErrorKind::StorageFull => (otherwise, "the disk is full".to_owned()),
            ErrorKind::InvalidData => (otherwise, "it is not UTF-8 text".to_owned()),
            ErrorKind::IsADirectory => (otherwise, "it is a folder".to_owned()),
            _ => (otherwise, error.to_string()),
        };
        let mut report = Self::new(code, format!("cannot {verb} {}: {why}", path.display()));
        report.details = Box::new(json!({"path": path.to_string_lossy()}));
        report
    }

    /// A configuration error in `file`, in the form `FILE:LINE:COLUMN: MESSAGE` that editors understand.
    pub(crate) fn config(error: &ConfigError, file: Option<&str>) -> Self {
        let code = if error.is_usage() { ErrorCode::InvalidArguments } else { ErrorCode::Config };
        let text = error.to_string();
        let Some(file) = file.filter(|_| !error.is_usage()) else {
            let mut report = Self::new(code, text);
            report.hints.extend(error.hint());
            if let ConfigError::UnknownKey { key, nearest, .. } = error {
                report.details = Box::new(json!({"key": key, "nearest": nearest}));
            }
            return report;
        };
        let Some(at) = error.position() else {
            let mut report = Self::new(code, format!("{file}: {text}"));
            report.hints.extend(error.hint());
            return report;
        };
        let text = text.replacen(&format!(" at {at}"), "", 1);
        let mut report = Self::new(code, format!("{file}:{}:{}: {text}", at.line, at.column));
        report.details = Box::new(json!({"file": file, "line": at.line, "column": at.column}));
        report
    }
}

impl From<Error> for Report {
    fn from(error: Error) -> Self {
        let mut report = Self::new(error.code(), error.to_string());
        report.details = Box::new(json!(wire::details(&error)));
        match &error {
            Error::Store { advice: Some(advice), .. } | Error::StoreDamaged { advice: Some(advice), .. } => {
                report.context.extend(advice.note.clone());
                report.hints.extend(advice.hints.iter().cloned());
            }
            Error::Invalid { hint: Some(hint), .. } | Error::InvalidTransition { hint: Some(hint), .. } => {
                report.hints.push((**hint).clone());
            }
            Error::StoreReplaced { .. } => {
                report.context.push("what this process held in it is lost".to_owned());
            }
            Error::StoreCopied { .. } => {
                report.hints.push(hints::adopt());
            }
            Error::NoProjectId => report.hints.push(hints::add_project_id(RandomIds.uuid())),
            Error::StoreTooNew { .. } => {
                report.context.push("update tenure on this machine".to_owned());
            }
            Error::Untrusted { root, .. } => {
                report.hints.push(hints::trust_at(quote(&root.to_string_lossy())));
            }
            Error::StoreMoved { other, is_complete } => {
                let url = quote(crate::store::setting_of(other));
                let hint = if *is_complete { hints::use_store(url) } else { hints::return_to_store(url) };
                report.hints.push(hint);
            }
            Error::NotInitialized { clone_at, .. } => {
                if let Some(clone) = clone_at {
                    let line = format!("{} has a configuration but no database yet.", clone.display());
                    report.context.push(line);
                }
                report.hints.push(hints::init());
            }
            Error::TaskNotFound { .. } => {
                report.hints.push(hints::list_tasks());
            }
            Error::AgentNotFound { .. } => {
                report.hints.push(hints::list_agents());
            }
            Error::JobNotFound { .. } => report.hints.push(hints::list_jobs()),
            Error::SessionNotFound { .. } => {
                report.hints.push(hints::list_sessions());
                report.hints.push(hints::list_jobs());
            }
            Error::AmbiguousWork { candidates, .. } => {
                report.context.extend(candidates.iter().map(|id| format!("  {id}")));
                report.message = format!("that matches {} of them; use a full id", candidates.len());
            }
            Error::DefinitionChanged { changes, what } => {
                report.context.extend(changes.iter().map(|change| format!("  {change}")));
                report.message = format!("the definition of {what} has changed since it started");
            }
            Error::LockNotFound { .. } => report.hints.push(hints::list_locks()),
            Error::SectionNotFound { similar, .. } => match similar.first() {
                Some(name) => {
                    report.hints.push(hints::show_similar_section(crate::shell_quote::last_arg(name)));
                }
                None => report.hints.push(hints::list_sections()),
            },
            Error::Ambiguous { candidates, more, .. } => {
                let many = if *more { "many" } else { "several" };
                for candidate in candidates {
                    report.context.push(format!("  {}  {}", candidate.key, candidate.title));
                }
                if *more {
                    report.context.push("  …".to_owned());
                }
                report.message = format!("that matches {many} tasks; use a key");
            }
            Error::Locked(locked) => {
                report.context.extend(locked_context(locked));
                report.context.push(format!("Exit code: {} (LOCKED)", error.code().exit_code()));
            }
            Error::WaitTimeout { locked: Some(locked), .. } => {
                report.context.extend(locked_context(locked));
            }
            Error::StillHeld { lease, .. } => report.context.extend(lease_context(lease)),
            Error::NotReady { task, .. } => {
                report.hints.push(hints::why_task(&task.key));
            }
            Error::NothingReady { reserved, in_use } => {
                if let Some(work) = reserved {
                    report.context.push(format!("First in queue: {}", work.first));
                }
                for section in in_use.iter().skip(1) {
                    report.context.push(format!("Also, {section}"));
                }
                report.hints.push(hints::why());
            }
            Error::LeaseLost(lost) | Error::NotHolder(lost) => {
                if let Some(current) = &lost.current {
                    report.context.extend(lease_context(current));
                }
                report.hints.push(hints::show_task(&lost.task.key));
            }
            _ => {}
        }
        report
    }
}

impl From<tenure_demo::Error> for Report {
    fn from(error: tenure_demo::Error) -> Self {
        use tenure_demo::Error as DemoError;
        match error {
            DemoError::Core(error) => error.into(),
            DemoError::File { verb, path, source } => Self::io(&source, ErrorCode::General, verb, &path),
            DemoError::TempFolder { command, path, source } => {
                Self::io(&source, ErrorCode::General, "create", &path)
                    .hint(hints::choose_temp_folder(command))
            }
            DemoError::NotInstalled { install, .. } => {
                Self::new(ErrorCode::General, error.to_string()).hint(hints::install(install))
            }
            DemoError::Interrupted(code) => Self::interrupted(code),
            DemoError::Spawn(_) | DemoError::Bench(_) => Self::new(ErrorCode::General, error.to_string()),
        }
    }
}

/// The holder, the times and the length of the queue. It never suggests forcing a release, because agents follow hints.
fn locked_context(locked: &Locked) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(lease) = &locked.lease {
        lines.extend(lease_context(lease));
        lines.push(format!("Held for: {}", format_rounded(locked.age)));
    }
    if locked.queue > 0 {
        lines.push(format!("Waiting in queue: {}", locked.queue));
    }
    if let Some(first) = &locked.first {
        lines.push(format!("First in queue: {first}"));
    }
    lines
}

fn lease_context(lease: &Lease) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(process) = &lease.process {
        lines.push(format!("Process: {} on {}", process.process.pid, process.hostname));
    }
    lines.push(format!("Lock expires at: {}", lease.expires_at.to_seconds()));
    lines
}
