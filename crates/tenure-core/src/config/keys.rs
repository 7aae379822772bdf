//! The table of known keys, on which parsing, resolving, displaying and editing are based. No other code lists keys.

use crate::duration;

/// The type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// How long a lease may last: 1s to 30d.
    Ttl,
    /// A duration that is not zero.
    Duration,
    /// A duration; zero means "never" or "none".
    DurationOrZero,
    /// A whole number of at least 1.
    Count,
    /// A number of bytes, at least 1.
    Size,
    Flag,
    Text,
    /// `edit`, `work` or `full`.
    Permissions,
    Uuid,
    List,
    /// A program and its arguments; at least the program.
    Command,
    /// Environment variables.
    Map,
    Hooks,
}

impl Kind {
    /// Completes the sentence "it must be …".
    pub fn expected(self) -> &'static str {
        match self {
            Self::Ttl => "a duration from 1s to 30d, such as 15m or 1h30m",
            Self::Duration => "a duration longer than 0s, such as 30s, 5m, 1h, 7d or 1h30m",
            Self::DurationOrZero => "a duration such as 0s, 30s, 5m, 1h, 7d or 1h30m",
            Self::Count => "a whole number of at least 1",
            Self::Size => "a size such as 500KB, 20MB or 1GB",
            Self::Flag => "true or false",
            Self::Text => "text",
            Self::Permissions => "edit, work or full",
            Self::Uuid => "a UUID",
            Self::List => "a list of texts such as [a, b]",
            Self::Command => "a list with a program and its arguments, such as [./agent.sh, --careful]",
            Self::Map => "variables such as {MODEL: large}",
            Self::Hooks => {
                "a list of hooks such as [{name: notify, event: task.completed, type: script, command: ./x.sh}]"
            }
        }
    }

    pub(super) fn read_duration(self, text: &str) -> Result<std::time::Duration, duration::DurationError> {
        match self {
            Self::Ttl => duration::parse_ttl(text),
            Self::DurationOrZero => duration::parse(text),
            _ => duration::parse_positive(text),
        }
    }
}

/// Whether the value in a project's file counts. Every key has to specify this, because the file may come from a cloned
/// repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// It always counts: the key runs nothing, reaches nothing and removes nothing.
    Harmless,
    /// It counts if a person has trusted the file: the key decides what is run or reached, or what is kept.
    NeedsTrust,
    /// It never counts: the key is about the user's machine.
    UserOnly,
}

use Authority::{Harmless, NeedsTrust, UserOnly};

/// A known key. A `*` in its name represents a name chosen by the user.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    pub name: &'static str,
    /// Whether a project's file may set it.
    pub authority: Authority,
    pub kind: Kind,
    /// In the notation of a file; `None` means "not set".
    pub default: Option<&'static str>,
    pub about: &'static str,
}

const fn key(
    name: &'static str,
    authority: Authority,
    kind: Kind,
    default: &'static str,
    about: &'static str,
) -> Key {
    Key { name, authority, kind, default: Some(default), about }
}

const fn unset(name: &'static str, authority: Authority, kind: Kind, about: &'static str) -> Key {
    Key { name, authority, kind, default: None, about }
}

pub const KEYS: &[Key] = &[
    unset("project.id", Harmless, Kind::Uuid, "The project's identity, written by `init`"),
    unset("project.name", Harmless, Kind::Text, "The project's name, for people"),
    unset(
        "store.url",
        NeedsTrust,
        Kind::Text,
        "Where the store is; `sqlite:` or no value is SQLite in `.tenure/`",
    ),
    key(
        "store.retention",
        NeedsTrust,
        Kind::DurationOrZero,
        "30d",
        "How long events, closed leases, attempts, messages, and ended sessions and jobs are kept; 0 keeps all",
    ),
    key(
        "store.maxListeners",
        Harmless,
        Kind::Count,
        "10",
        "How many waiting processes of one machine keep a connection to PostgreSQL; further ones poll",
    ),
    key(
        "locking.taskTimeout",
        Harmless,
        Kind::Ttl,
        "60m",
        "How long a task stays locked for a runner or `tasks update`",
    ),
    key("locking.sectionTimeout", Harmless, Kind::Ttl, "120m", "How long a section stays locked"),
    key("locking.leaseTtl", Harmless, Kind::Ttl, "15m", "How long `claim`, `next` and `run` hold a task"),
    key("locking.waitTimeout", Harmless, Kind::DurationOrZero, "30m", "How long to wait for a lock"),
    key(
        "locking.pollInterval",
        Harmless,
        Kind::Duration,
        "5s",
        "How often a waiter polls in case a wake-up is missed",
    ),
    key(
        "tasks.maxAttempts",
        Harmless,
        Kind::Count,
        "3",
        "How many attempts may fail before the task is failed",
    ),
    key("tasks.maxRejections", Harmless, Kind::Count, "5", "Rejections before a task is failed"),
    key("review.enabled", NeedsTrust, Kind::Flag, "false", "Whether finished tasks go to review"),
    unset("review.preset", NeedsTrust, Kind::Text, "The agent preset that reviews"),
    key("runners.preset", NeedsTrust, Kind::Text, "claude", "The agent preset that works"),
    unset(
        "runners.requireReport",
        NeedsTrust,
        Kind::Flag,
        "Whether an agent has to report that its task is done; if not set, built-in agents do",
    ),
    key(
        "runners.permissions",
        NeedsTrust,
        Kind::Permissions,
        "work",
        "What a built-in agent may do: `edit` files, `work` (also run commands and commit), or `full`",
    ),
    key(
        "runners.allow",
        NeedsTrust,
        Kind::List,
        "[]",
        "Commands that claude may run where it has no sandbox, such as [npm test, git commit]",
    ),
    unset("runners.promptTemplate", NeedsTrust, Kind::Text, "The agent's prompt; built in if not set"),
    key("runners.heartbeatInterval", Harmless, Kind::Duration, "30s", "How often a runner renews its leases"),
    key("runners.staleTimeout", Harmless, Kind::Duration, "5m", "When a silent runner counts as stale"),
    key(
        "runners.subprocessHangTimeout",
        Harmless,
        Kind::Duration,
        "15m",
        "When an agent without output counts as hung",
    ),
    key("runners.agentTimeout", Harmless, Kind::Duration, "2h", "How long one attempt may take"),
    key("runners.killGrace", Harmless, Kind::DurationOrZero, "5s", "Time between SIGTERM and SIGKILL"),
    key("runners.maxConcurrent", NeedsTrust, Kind::Count, "1", "Runners per project"),
    key(
        "runners.idleTimeout",
        Harmless,
        Kind::DurationOrZero,
        "0s",
        "How long a runner with nothing to do stays",
    ),
    key("runners.logRetention", Harmless, Kind::Duration, "7d", "How long logs are kept"),
    key(
        "runners.logTotal",
        Harmless,
        Kind::Size,
        "1GB",
        "The size of all logs together; the oldest are removed first",
    ),
    key("runners.wakeup.enabled", UserOnly, Kind::Flag, "true", "Whether wake-up starts runners"),
    key("runners.wakeup.checkInterval", UserOnly, Kind::Duration, "1m", "How often wake-up looks for work"),
    key(
        "runners.wakeup.projectPaths",
        UserOnly,
        Kind::List,
        "[]",
        "Folders that wake-up searches for unregistered projects",
    ),
    key(
        "mcp.releaseOnDisconnect",
        Harmless,
        Kind::Flag,
        "true",
        "Whether an MCP client's leases are released when it disconnects; if not, they expire",
    ),
    unset("presets.*.command", NeedsTrust, Kind::Command, "The agent's program and arguments, never a shell"),
    unset("presets.*.env", NeedsTrust, Kind::Map, "Variables added to the agent's environment"),
    unset(
        "presets.*.account",
        NeedsTrust,
        Kind::Text,
        "The account that reaches limits; the agent's name if not set",
    ),
    key("hooks", NeedsTrust, Kind::Hooks, "[]", "What to run or call when something happens"),
];

/// Fields of one entry of `hooks`.
pub(super) const HOOK_FIELDS: &[&str] = &[
    "name", "event", "type", "command", "args", "url", "method", "headers", "body", "timeout", "async",
    "retry",
];

/// The meaning of a dotted name.
#[derive(Debug, Clone, Copy)]
pub(super) enum KnownName {
    Key(&'static Key),
    Group,
}

pub(super) fn find(path: &str) -> Option<KnownName> {
    let mut known = None;
    for key in KEYS {
        let mut rest = key.name.split('.');
        if path.split('.').all(|segment| rest.next().is_some_and(|wanted| matches(wanted, segment))) {
            if rest.next().is_none() {
                return Some(KnownName::Key(key));
            }
            known = Some(KnownName::Group);
        }
    }
    known
}

fn matches(wanted: &str, segment: &str) -> bool {
    if wanted == "*" { is_name(segment) } else { wanted == segment }
}

/// Whether a preset may have this name. A dot would make dotted names ambiguous.
pub(super) fn is_name(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The constructors of a key require its authority; this test repeats the important ones.
    #[test]
    fn keys_that_run_or_reach_something_need_trust_and_wake_up_belongs_to_the_user() {
        let needs_trust = [
            "store.url",
            "store.retention",
            "review.",
            "presets.",
            "hooks",
            "runners.preset",
            "runners.promptTemplate",
            "runners.permissions",
            "runners.allow",
            "runners.requireReport",
            "runners.maxConcurrent",
        ];
        for key in KEYS {
            let expected = match key.name {
                name if name.starts_with("runners.wakeup.") => UserOnly,
                name if needs_trust.iter().any(|start| name.starts_with(start)) => NeedsTrust,
                _ => Harmless,
            };
            assert_eq!(key.authority, expected, "{}", key.name);
        }
    }

    #[test]
    fn dotted_names_lead_to_keys_and_groups() {
        assert!(matches!(find("locking.leaseTtl"), Some(KnownName::Key(key)) if key.kind == Kind::Ttl));
        assert!(
            matches!(find("presets.mine.command"), Some(KnownName::Key(key)) if key.kind == Kind::Command)
        );
        assert!(matches!(find("hooks"), Some(KnownName::Key(_))));
        for group in ["locking", "runners.wakeup", "presets", "presets.mine"] {
            assert!(matches!(find(group), Some(KnownName::Group)), "{group}");
        }
        for unknown in
            ["", ".", "locking.", "locking.leaseTtl.x", "presets..command", "presets.*.command", "Locking"]
        {
            assert!(find(unknown).is_none(), "{unknown}");
        }
    }
}
