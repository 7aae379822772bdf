//! The verbs of the board: their keys, when they apply, and the command that each one runs.
//!
//! A verb is an ordinary command of this program, so the board has no rights and no rules of its own.

use tenure_core::board::TaskLine;
use tenure_core::holder::Holder;
use tenure_core::lease::LeaseState;
use tenure_core::task::TaskStatus;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Claim,
    Done,
    Release,
    Evict,
    Retry,
    Skip,
    Approve,
    Reject,
    Add,
    Message,
}

/// What has to be typed before a verb runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    Nothing,
    /// A yes to this question.
    Yes(&'static str),
    /// A text.
    Text(&'static str),
}

impl Verb {
    pub(super) const ALL: [Self; 10] = [
        Self::Claim,
        Self::Done,
        Self::Release,
        Self::Evict,
        Self::Retry,
        Self::Skip,
        Self::Approve,
        Self::Reject,
        Self::Add,
        Self::Message,
    ];

    pub(super) const fn key(self) -> char {
        match self {
            Self::Claim => 'c',
            Self::Done => 'd',
            Self::Release => 'r',
            Self::Evict => 'e',
            Self::Retry => 't',
            Self::Skip => 's',
            Self::Approve => 'a',
            Self::Reject => 'x',
            Self::Add => 'n',
            Self::Message => 'm',
        }
    }

    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Done => "done",
            Self::Release => "release",
            Self::Evict => "evict",
            Self::Retry => "retry",
            Self::Skip => "skip",
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::Add => "new",
            Self::Message => "msg",
        }
    }

    /// What the verb does, for the help.
    pub(super) const fn meaning(self) -> &'static str {
        match self {
            Self::Claim => "claim the task for yourself",
            Self::Done => "mark your task done",
            Self::Release => "give your task back",
            Self::Evict => "end the lease of another holder",
            Self::Retry => "retry a failed or skipped task",
            Self::Skip => "skip the task",
            Self::Approve => "approve a task in review",
            Self::Reject => "reject it with a remark",
            Self::Add => "add a task to this section",
            Self::Message => "leave a message on the task",
        }
    }

    pub(super) const fn asks(self) -> Asks {
        match self {
            Self::Claim | Self::Done | Self::Release | Self::Retry | Self::Approve => Asks::Nothing,
            Self::Evict => Asks::Yes("End the lease of another holder of"),
            Self::Skip => Asks::Yes("Skip"),
            Self::Reject => Asks::Text("Remark for rejecting"),
            Self::Add => Asks::Text("Title of the new task"),
            Self::Message => Asks::Text("Message on"),
        }
    }

    pub(super) fn of_key(key: char) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.key() == key)
    }

    /// Whether the verb can succeed on the selected task, as far as the board knows.
    pub(super) fn applies(self, task: Option<&TaskLine>, me: &Holder) -> bool {
        let Some(task) = task else { return self == Self::Add };
        let lease = task.lease.as_ref();
        let is_live = lease.is_some_and(|lease| lease.state == LeaseState::Live);
        let is_mine = lease.is_some_and(|lease| lease.holder == *me);
        match self {
            Self::Claim => task.ready || (task.status == TaskStatus::InProgress && !is_live),
            Self::Done | Self::Release => is_mine,
            Self::Evict => lease.is_some() && !is_mine,
            Self::Retry => matches!(task.status, TaskStatus::Failed | TaskStatus::Skipped),
            Self::Skip => !task.status.is_finished() && !is_live,
            Self::Approve => task.status == TaskStatus::Review,
            Self::Reject => matches!(task.status, TaskStatus::Review | TaskStatus::Completed),
            Self::Add | Self::Message => true,
        }
    }

    /// The arguments of the command. `section` is where a new task goes, `text` is what was typed.
    pub(super) fn args(self, task: Option<&TaskLine>, section: Option<&str>, text: &str) -> Vec<String> {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        if self == Self::Add {
            let section = section.map(|name| format!("--section={name}"));
            let mut args = owned(&["tasks", "add"]);
            args.extend(section);
            args.extend(owned(&["--", text]));
            return args;
        }
        let Some(task) = task else { return Vec::new() };
        let key = task.key.as_str();
        let message = format!("--message={text}");
        match self {
            Self::Claim => owned(&["tasks", "claim", key]),
            Self::Done => owned(&["tasks", "done", key]),
            Self::Release => owned(&["tasks", "release", key]),
            // The lease that is shown, so that a newer one is not ended.
            Self::Evict => match &task.lease {
                Some(lease) => owned(&["locks", "release", lease.id.as_str(), "--force"]),
                None => Vec::new(),
            },
            Self::Retry => owned(&["tasks", "retry", key]),
            Self::Skip => owned(&["tasks", "skip", key]),
            Self::Approve => owned(&["tasks", "approve", key]),
            Self::Reject => owned(&["tasks", "reject", key, &message]),
            Self::Message => owned(&["msg", "send", "--task", key, &message]),
            Self::Add => Vec::new(),
        }
    }
}
