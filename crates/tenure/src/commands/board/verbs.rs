//! The verbs of the board: their keys, when they apply, and the command that each one runs.
//!
//! A verb is an ordinary command of this program, so the board has no special rights or rules.

use tenure_core::board::TaskLine;
use tenure_core::holder::Holder;
use tenure_core::lease::LeaseState;
use tenure_core::shell_quote::quote;
use tenure_core::task::TaskStatus;

use super::state::{Row, Target};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Claim,
    Done,
    Release,
    Evict,
    Edit,
    Describe,
    Retry,
    Skip,
    Approve,
    Reject,
    Add,
    Message,
    Start,
    Stop,
}

/// What has to be typed before a verb runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    Nothing,
    /// A yes to this question.
    Yes(&'static str),
    /// A text.
    Text(&'static str),
    /// A text that may be empty.
    OptionalText(&'static str),
    /// A longer text, in an editor.
    Editor,
}

impl Verb {
    pub(super) const ALL: [Self; 14] = [
        Self::Claim,
        Self::Done,
        Self::Release,
        Self::Evict,
        Self::Retry,
        Self::Skip,
        Self::Approve,
        Self::Reject,
        Self::Edit,
        Self::Describe,
        Self::Add,
        Self::Message,
        Self::Start,
        Self::Stop,
    ];

    pub(super) const fn key(self) -> char {
        match self {
            Self::Claim => 'c',
            Self::Done => 'd',
            Self::Release => 'r',
            Self::Evict => 'v',
            Self::Edit => 'e',
            Self::Describe => 'E',
            Self::Retry => 't',
            Self::Skip => 's',
            Self::Approve => 'a',
            Self::Reject => 'x',
            Self::Add => 'n',
            Self::Message => 'm',
            Self::Start => 'S',
            Self::Stop => 'X',
        }
    }

    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Done => "done",
            Self::Release => "release",
            Self::Evict => "evict",
            Self::Edit => "edit",
            Self::Describe => "describe",
            Self::Retry => "retry",
            Self::Skip => "skip",
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::Add => "new",
            Self::Message => "msg",
            Self::Start => "start runner",
            Self::Stop => "stop runner",
        }
    }

    /// What the verb does, for the help. For a pair of related verbs, the first one explains both.
    pub(super) const fn meaning(self) -> Option<&'static str> {
        Some(match self {
            Self::Claim => "claim the task for yourself",
            Self::Done => "mark your task done",
            Self::Release => "give your task back",
            Self::Evict => "end the lease of another holder",
            Self::Edit => "change the title (E: description)",
            Self::Retry => "retry a failed or skipped task",
            Self::Skip => "skip the task",
            Self::Approve => "approve a task in review",
            Self::Reject => "reject it with a remark",
            Self::Add => "add a task to this section",
            Self::Message => "leave a message on the task",
            Self::Start => "start a runner (X: stop it)",
            Self::Describe | Self::Stop => return None,
        })
    }

    pub(super) const fn asks(self) -> Asks {
        match self {
            Self::Claim | Self::Done | Self::Release | Self::Retry | Self::Approve => Asks::Nothing,
            Self::Evict => Asks::Yes("End the lease of another holder of"),
            Self::Skip => Asks::Yes("Skip"),
            Self::Reject => Asks::Text("Remark for rejecting"),
            Self::Add => Asks::Text("Title of the new task"),
            Self::Message => Asks::Text("Message on"),
            Self::Edit => Asks::Text("Title of"),
            Self::Describe => Asks::Editor,
            Self::Start => Asks::OptionalText("Preset of the runner (Enter: as configured)"),
            Self::Stop => Asks::Yes("Stop runner"),
        }
    }

    pub(super) fn of_key(key: char) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.key() == key)
    }

    /// Whether the verb can succeed on the selected row, as far as the board knows.
    pub(super) fn applies(self, row: Option<Row<'_>>, me: &Holder) -> bool {
        match self {
            Self::Add | Self::Start => return true,
            // A runner on another machine can be stopped only there.
            Self::Stop => return row.and_then(Row::runner).is_some_and(|runner| runner.alive == Some(true)),
            _ => {}
        }
        let Some(task) = row.and_then(Row::task) else { return false };
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
            Self::Edit | Self::Describe | Self::Message => true,
            Self::Add | Self::Start | Self::Stop => false,
        }
    }

    /// The arguments of the command; none if the target is not what the verb is for. `text` is what was typed.
    pub(super) fn args(self, target: &Target, text: &str) -> Vec<String> {
        match (self, &target.task, &target.runner) {
            (Self::Add, ..) => {
                let section = target.section.as_ref().map(|name| format!("--section={name}"));
                let mut args = owned(&["tasks", "add"]);
                args.extend(section);
                args.extend(owned(&["--", text]));
                args
            }
            (Self::Start, ..) => {
                let mut args = owned(&["runners", "start"]);
                args.extend((!text.is_empty()).then(|| format!("--preset={text}")));
                args
            }
            (Self::Stop, _, Some(runner)) => owned(&["runners", "stop", runner]),
            (_, Some(task), _) => self.task_args(task, text),
            _ => Vec::new(),
        }
    }

    fn task_args(self, task: &TaskLine, text: &str) -> Vec<String> {
        let key = task.key.as_str();
        let message = format!("--message={text}");
        let lease = task.lease.as_ref();
        // Describes the task as it is on the screen. If it has changed, the command is refused.
        let if_as_shown = |mut args: Vec<String>| {
            args.push(format!("{IF}updated-at={}", task.updated_at));
            args.extend(lease.map(|lease| format!("{IF}fence={}", lease.fence)));
            args
        };
        let under_lease = |mut args: Vec<String>| {
            args.extend(lease.map(|lease| format!("--fence={}", lease.fence)));
            args
        };
        match self {
            Self::Claim => if_as_shown(owned(&["tasks", "claim", key])),
            Self::Done => under_lease(owned(&["tasks", "done", key])),
            Self::Release => under_lease(owned(&["tasks", "release", key])),
            // Names the lease that is shown, so that a newer one is not ended.
            Self::Evict => match lease {
                Some(lease) => owned(&["locks", "release", lease.id.as_str(), "--force"]),
                None => Vec::new(),
            },
            Self::Edit => if_as_shown(owned(&["tasks", "update", key, &format!("--title={text}")])),
            // The description is read from standard input.
            Self::Describe => if_as_shown(owned(&["tasks", "update", key, "--description=-"])),
            Self::Retry => if_as_shown(owned(&["tasks", "retry", key])),
            Self::Skip => if_as_shown(owned(&["tasks", "skip", key])),
            Self::Approve => if_as_shown(owned(&["tasks", "approve", key])),
            Self::Reject => if_as_shown(owned(&["tasks", "reject", key, &message])),
            Self::Message => owned(&["msg", "send", "--task", key, &message]),
            Self::Add | Self::Start | Self::Stop => Vec::new(),
        }
    }
}

/// The prefix of the options that compare the task with what was on the screen.
const IF: &str = "--if-";

/// The command as a person would type it.
pub(super) fn typed(args: &[String]) -> String {
    let words = args.iter().filter(|word| !word.starts_with(IF)).map(|word| quote(word));
    format!("tenure {}", words.collect::<Vec<_>>().join(" "))
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
