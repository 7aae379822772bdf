//! Domain errors as data.
//!
//! The message is for people, the [`ErrorCode`] is public API, and the fields carry what a renderer needs for details
//! and hints. Further wording, colours and exit codes belong to the binary.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::hints::Hint;
use crate::holder::{Holder, Incarnation};
use crate::id::Fence;
use crate::lease::{EndReason, Lease, LeaseState, Resource, ResourceKind};
use crate::task::TaskStatus;

pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident => $text:literal, $exit:literal;)*) => {
        /// The stable name of an error. The number beside each is its exit code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$doc])* $variant,)* }

        impl ErrorCode {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            pub const fn exit_code(self) -> u8 {
                match self { $(Self::$variant => $exit,)* }
            }
        }
    };
}

error_codes! {
    General => "GENERAL_ERROR", 1;
    Store => "STORE_ERROR", 1;
    HookFailed => "HOOK_FAILED", 1;
    AgentFailed => "AGENT_FAILED", 1;
    Unsupported => "UNSUPPORTED", 1;
    InvalidArguments => "INVALID_ARGUMENTS", 2;
    Ambiguous => "AMBIGUOUS", 2;
    DependencyCycle => "DEPENDENCY_CYCLE", 2;
    InvalidTransition => "INVALID_TRANSITION", 2;
    DefinitionChanged => "DEFINITION_CHANGED", 2;
    Config => "CONFIG_ERROR", 3;
    NotInitialized => "NOT_INITIALIZED", 3;
    StoreTooNew => "STORE_TOO_NEW", 3;
    StoreCopied => "STORE_COPIED", 3;
    StoreMoved => "STORE_MOVED", 3;
    TaskNotFound => "TASK_NOT_FOUND", 4;
    SectionNotFound => "SECTION_NOT_FOUND", 4;
    LockNotFound => "LOCK_NOT_FOUND", 4;
    RunnerNotFound => "RUNNER_NOT_FOUND", 4;
    AgentNotFound => "AGENT_NOT_FOUND", 4;
    SessionNotFound => "SESSION_NOT_FOUND", 4;
    JobNotFound => "JOB_NOT_FOUND", 4;
    ProjectNotFound => "PROJECT_NOT_FOUND", 4;
    PermissionDenied => "PERMISSION_DENIED", 5;
    Untrusted => "UNTRUSTED", 5;
    TaskLocked => "TASK_LOCKED", 6;
    SectionLocked => "SECTION_LOCKED", 6;
    RunnerActive => "RUNNER_ACTIVE", 6;
    ExclusiveLocked => "EXCLUSIVE_LOCKED", 6;
    ResumeLocked => "RESUME_LOCKED", 6;
    CheckFailed => "CHECK_FAILED", 7;
    LeaseLost => "LEASE_LOST", 8;
    NotHolder => "NOT_HOLDER", 8;
    Changed => "CHANGED", 8;
    WaitTimeout => "WAIT_TIMEOUT", 9;
    NothingReady => "NOTHING_READY", 10;
    NotReady => "NOT_READY", 10;
}

/// The task that an error refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskName {
    pub id: String,
    pub key: String,
    pub title: String,
    pub status: TaskStatus,
}

/// The resource is held by another holder, or earlier tickets are queued for it.
#[derive(Debug, Clone)]
pub struct Locked {
    pub resource: Resource,
    /// The task's title or the section's name.
    pub name: String,
    /// The requested task, even if it is its section that is held.
    pub task: Option<TaskName>,
    /// `None` while the resource is free but reserved for a waiter.
    pub lease: Option<Lease>,
    /// The number of live tickets before the caller.
    pub queue: usize,
    /// The waiter with the first of those tickets. If there is no lease, the resource is reserved for it.
    pub first: Option<Box<QueuedWaiter>>,
    pub age: Duration,
}

/// A waiter in a queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedWaiter {
    pub holder: Holder,
    pub process: Incarnation,
    /// What it waits for, and the same in words: `task F001`, `any task`.
    pub wish: Resource,
    pub wish_name: String,
    pub since: Timestamp,
}

impl fmt::Display for QueuedWaiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, for {}, since {}", self.holder, self.wish_name, self.since.to_seconds())
    }
}

/// Ready work that goes to waiters before the caller (Q1).
#[derive(Debug, Clone)]
pub struct ReservedWork {
    pub tasks: usize,
    /// The waiter that gets the first of these tasks.
    pub first: QueuedWaiter,
}

impl fmt::Display for ReservedWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tasks {
            1 => f.write_str("1 ready task is reserved for a waiter"),
            tasks => write!(f, "{tasks} ready tasks are reserved for waiters"),
        }
    }
}

/// A serial section with pending tasks that another holder works in.
#[derive(Debug, Clone)]
pub struct SectionInUse {
    pub name: String,
    pub holder: Holder,
    pub expires_at: Timestamp,
    pub pending: u64,
}

impl fmt::Display for SectionInUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "section {:?} is serial, and {} works in it", self.name, self.holder)
    }
}

/// Why the caller's lease no longer authorizes a change.
#[derive(Debug, Clone)]
pub struct Lost {
    pub task: TaskName,
    /// The lease that the caller refers to, if it ever had one.
    pub meant: Option<Lease>,
    pub state: Option<LeaseState>,
    /// The lease that is open now.
    pub current: Option<Lease>,
    /// Whether `current` is held under the caller's own name.
    pub is_own: bool,
    pub shown: Option<Fence>,
}

/// What can be done about an error of the store: a sentence, or commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advice {
    pub note: Option<String>,
    pub hints: Vec<Hint>,
}

impl Advice {
    pub fn note(text: impl Into<String>) -> Option<Box<Self>> {
        Some(Box::new(Self { note: Some(text.into()), hints: Vec::new() }))
    }

    pub fn hints(hints: impl IntoIterator<Item = Hint>) -> Option<Box<Self>> {
        Some(Box::new(Self { note: None, hints: hints.into_iter().collect() }))
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{0}")]
    General(String),
    #[error("{message}")]
    Store { message: String, advice: Option<Box<Advice>> },
    /// What the store contains cannot be used: the file is damaged, or a value is not one that tenure writes. Unlike
    /// [`Error::Store`], retrying later does not help.
    #[error("{message}")]
    StoreDamaged { message: String, advice: Option<Box<Advice>> },
    #[error("this database was written by a newer tenure (schema {found}, this one knows {known})")]
    StoreTooNew { found: i64, known: i64 },
    /// The path no longer leads to the database that was opened.
    #[error("the database {} was {}", path.display(), if *deleted { "deleted" } else { "replaced by another file" })]
    StoreReplaced { path: PathBuf, deleted: bool },
    /// The database is a copy of another project's, which may be in use.
    #[error("{} is a copy of another project's database, so nothing can be changed in it", path.display())]
    StoreCopied { path: PathBuf },
    /// The store does not serve its project: it was copied to `other`, or a copy from `other` is not complete.
    #[error("{}", moved_message(other, *is_complete))]
    StoreMoved { other: String, is_complete: bool },
    #[error("{message}")]
    PermissionDenied { message: String, path: Option<PathBuf> },
    /// No person has trusted what the project at `root` would run or reach.
    #[error("{message}")]
    Untrusted { message: String, root: PathBuf },
    /// Something that this system does not offer yet.
    #[error("{what} is not supported on Windows yet; use WSL")]
    Unsupported { what: String },
    #[error("{message}")]
    Invalid { message: String, hint: Option<Box<Hint>> },
    #[error("{:?} is ambiguous: it matches {}", shortened(reference), list(candidates))]
    Ambiguous { reference: String, candidates: Vec<TaskName>, more: bool },
    /// An import would add a task that is in the project.
    #[error("line {line}: {what}")]
    AlreadyImported { line: usize, what: String },
    #[error("this dependency would create a cycle: {}", path.join(" → "))]
    DependencyCycle { path: Vec<String> },
    #[error("task {} is {}, so it cannot be {verb}", task.key, task.status)]
    InvalidTransition { task: TaskName, verb: &'static str, hint: Option<Box<Hint>> },
    #[error("{0}")]
    Config(String),
    #[error("the project has no project.id, which a shared database needs to tell projects apart")]
    NoProjectId,
    #[error("there is no tenure project in {} or above it", start.display())]
    NotInitialized { start: PathBuf, clone_at: Option<PathBuf> },
    #[error("no task matches {:?}", shortened(reference))]
    TaskNotFound { reference: String },
    #[error("there is no section {:?}", shortened(name))]
    SectionNotFound { name: String, similar: Vec<String> },
    #[error("nothing is held under {:?}", shortened(reference))]
    LockNotFound { reference: String },
    #[error("no job matches {:?}", shortened(reference))]
    JobNotFound { reference: String },
    #[error("no {} matches {:?}", what, shortened(reference))]
    SessionNotFound { reference: String, what: &'static str },
    #[error("{:?} is ambiguous: it matches {}", shortened(reference), candidates.join(", "))]
    AmbiguousWork { reference: String, candidates: Vec<String> },
    #[error("the definition of {what} has changed: {}", changes.join("; "))]
    DefinitionChanged { what: String, changes: Vec<String> },
    #[error("you no longer hold {what}")]
    WorkLost { what: String },
    #[error("there is no agent {:?}", shortened(id))]
    AgentNotFound { id: String },
    #[error("{}", locked_message(.0))]
    Locked(Box<Locked>),
    #[error("{message}")]
    StillHeld { message: String, lease: Box<Lease> },
    #[error("{}", lost_message(.0))]
    LeaseLost(Box<Lost>),
    #[error("{}", not_holder_message(.0))]
    NotHolder(Box<Lost>),
    /// The task is no longer as the caller was shown it.
    #[error("task {} has changed since it was shown", task.key)]
    Changed { task: TaskName },
    #[error("waited {} for {what}", crate::duration::format_short(*waited))]
    WaitTimeout { what: String, waited: Duration, locked: Option<Box<Locked>> },
    #[error("{}", nothing_ready_message(reserved.as_deref(), in_use))]
    NothingReady {
        reserved: Option<Box<ReservedWork>>,
        /// Serial sections that others work in.
        in_use: Vec<SectionInUse>,
    },
    #[error("task {} is not ready: {}", task.key, not_ready_reason(task, blocked_by))]
    NotReady { task: TaskName, blocked_by: Vec<String> },
}

impl Error {
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid { message: message.into(), hint: None }
    }

    pub(crate) fn invalid_with_hint(message: impl Into<String>, hint: Hint) -> Self {
        Self::Invalid { message: message.into(), hint: Some(Box::new(hint)) }
    }

    pub fn store(message: impl Into<String>) -> Self {
        Self::Store { message: message.into(), advice: None }
    }

    /// The store contains something that tenure does not write.
    pub fn damaged(message: impl Into<String>) -> Self {
        Self::StoreDamaged { message: message.into(), advice: None }
    }

    pub fn code(&self) -> ErrorCode {
        match self {
            Self::General(_) => ErrorCode::General,
            Self::Store { .. } | Self::StoreDamaged { .. } | Self::StoreReplaced { .. } => ErrorCode::Store,
            Self::StoreCopied { .. } => ErrorCode::StoreCopied,
            Self::StoreTooNew { .. } => ErrorCode::StoreTooNew,
            Self::StoreMoved { .. } => ErrorCode::StoreMoved,
            Self::PermissionDenied { .. } | Self::StillHeld { .. } => ErrorCode::PermissionDenied,
            Self::Untrusted { .. } => ErrorCode::Untrusted,
            Self::Invalid { .. } | Self::AlreadyImported { .. } => ErrorCode::InvalidArguments,
            Self::Ambiguous { .. } | Self::AmbiguousWork { .. } => ErrorCode::Ambiguous,
            Self::DependencyCycle { .. } => ErrorCode::DependencyCycle,
            Self::Unsupported { .. } => ErrorCode::Unsupported,
            Self::InvalidTransition { .. } => ErrorCode::InvalidTransition,
            Self::Config(_) | Self::NoProjectId => ErrorCode::Config,
            Self::NotInitialized { .. } => ErrorCode::NotInitialized,
            Self::TaskNotFound { .. } => ErrorCode::TaskNotFound,
            Self::SectionNotFound { .. } => ErrorCode::SectionNotFound,
            Self::LockNotFound { .. } => ErrorCode::LockNotFound,
            Self::AgentNotFound { .. } => ErrorCode::AgentNotFound,
            Self::JobNotFound { .. } => ErrorCode::JobNotFound,
            Self::SessionNotFound { .. } => ErrorCode::SessionNotFound,
            Self::DefinitionChanged { .. } => ErrorCode::DefinitionChanged,
            Self::Locked(locked) => match locked.resource.kind {
                ResourceKind::Task => ErrorCode::TaskLocked,
                ResourceKind::Section => ErrorCode::SectionLocked,
                ResourceKind::Runner => ErrorCode::RunnerActive,
                _ => ErrorCode::ResumeLocked,
            },
            Self::LeaseLost(_) | Self::WorkLost { .. } => ErrorCode::LeaseLost,
            Self::NotHolder(_) => ErrorCode::NotHolder,
            Self::Changed { .. } => ErrorCode::Changed,
            Self::WaitTimeout { .. } => ErrorCode::WaitTimeout,
            Self::NothingReady { .. } => ErrorCode::NothingReady,
            Self::NotReady { .. } => ErrorCode::NotReady,
        }
    }
}

fn moved_message(other: &str, is_complete: bool) -> String {
    if is_complete {
        format!("this store was copied to {other} and is sealed; the project continues there")
    } else {
        format!("the copy from {other} to this store is not complete")
    }
}

/// Truncates user input before it is quoted in a message.
fn shortened(text: &str) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

fn list(candidates: &[TaskName]) -> String {
    candidates.iter().map(|c| format!("{} {:?}", c.key, c.title)).collect::<Vec<_>>().join(", ")
}

fn locked_message(locked: &Locked) -> String {
    if let (ResourceKind::Runner, Some(lease)) = (locked.resource.kind, &locked.lease) {
        let runner = runner_message(lease);
        return match locked.name.as_str() {
            "" => format!("this project has a runner already: {runner}"),
            all => format!("{all}, among them {runner}"),
        };
    }
    if let (ResourceKind::Session | ResourceKind::Job, Some(lease)) = (locked.resource.kind, &locked.lease) {
        return resume_message(&locked.resource, lease);
    }
    let what = match locked.resource.kind {
        ResourceKind::Task => format!("Task {:?}", locked.name),
        ResourceKind::Section => format!("Section {:?}", locked.name),
        kind => format!("{} {}", kind.as_str(), locked.name),
    };
    match &locked.lease {
        Some(lease) => format!("{what} is locked by {}", lease.holder),
        None => match &locked.first {
            Some(first) => format!("{what} is reserved for {}", first.holder),
            None => format!("{what} is reserved for the first of {} waiting", locked.queue),
        },
    }
}

fn nothing_ready_message(reserved: Option<&ReservedWork>, in_use: &[SectionInUse]) -> String {
    match (reserved, in_use) {
        (Some(work), _) => format!("nothing is left for you: {work}"),
        (None, []) => "nothing is ready".to_owned(),
        (None, [section, ..]) => format!("nothing is ready: {section}"),
    }
}

/// The wording of the resume lock file's refusal.
fn resume_message(resource: &Resource, lease: &Lease) -> String {
    let since = lease.acquired_at.to_seconds().replace('T', " ").replace('Z', " UTC");
    let owner = match &lease.process {
        Some(owner) => format!("PID {} on {} (acquired {since})", owner.process.pid, owner.hostname),
        None => format!("{} (acquired {since})", lease.holder),
    };
    format!(
        "Resume already in progress for job {}\nLock held by: {owner}\nPlease wait for the other process to complete.",
        resource.id
    )
}

fn runner_message(lease: &Lease) -> String {
    let since = lease.acquired_at.to_seconds();
    match &lease.process {
        Some(owner) => {
            format!("{} (pid {} on {}, since {since})", lease.holder.id, owner.process.pid, owner.hostname)
        }
        None => format!("{} (since {since})", lease.holder.id),
    }
}

fn lost_message(lost: &Lost) -> String {
    let key = &lost.task.key;
    match (&lost.current, lost.state) {
        (Some(current), _) if lost.is_own => {
            format!(
                "that claim of {key} is over: you hold it under a later one, with fence {}",
                current.fence
            )
        }
        (Some(current), _) => format!("you no longer hold {key}: {} has it now", current.holder),
        (None, Some(LeaseState::Ended(EndReason::Completed))) => {
            format!("you no longer hold {key}: it was finished, and is {} now", lost.task.status)
        }
        (None, Some(LeaseState::Ended(reason))) => {
            format!("you no longer hold {key}: the lease has ended ({})", reason.as_str().replace('_', " "))
        }
        (None, Some(LeaseState::Expired)) => format!("you no longer hold {key}: the lease has expired"),
        (None, Some(LeaseState::HolderDead)) => {
            format!("you no longer hold {key}: the process that held it has died")
        }
        (None, _) => format!("you no longer hold {key}"),
    }
}

fn not_holder_message(lost: &Lost) -> String {
    let key = &lost.task.key;
    match &lost.current {
        Some(current) if lost.is_own => {
            format!(
                "you hold {key} under another lease than the one you present: its fence is {}",
                current.fence
            )
        }
        Some(current) => format!("you do not hold {key}: {} does", current.holder),
        None if matches!(lost.task.status, TaskStatus::Pending | TaskStatus::InProgress) => {
            format!("you do not hold {key}: nobody does")
        }
        None => format!("you do not hold {key}: nobody does, and its status is {}", lost.task.status),
    }
}

fn not_ready_reason(task: &TaskName, blocked_by: &[String]) -> String {
    if blocked_by.is_empty() {
        format!("it is {}", task.status)
    } else {
        format!("it waits for {}", blocked_by.join(", "))
    }
}
