//! What an agent that a runner has started may do with tenure itself.
//!
//! A runner sets [`VARIABLE`] in the environment of its agents. The command line and the MCP server apply this table to every
//! call. It limits agents whose shell is limited to `tenure`; an agent with an unrestricted shell can unset the variable.

use std::fmt;

/// The variable that only runners set. Its value is a [`Role`].
pub const VARIABLE: &str = "TENURE_SUPERVISED";

/// What the agent was started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Work,
    Review,
}

impl Role {
    pub const ALL: [Self; 2] = [Self::Work, Self::Review];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Review => "review",
        }
    }

    /// The role that a value of [`VARIABLE`] stands for. An unknown value is the role with the fewest permissions.
    pub fn parse(value: &str) -> Self {
        Self::ALL.into_iter().find(|role| role.as_str() == value).unwrap_or(Self::Work)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    Allowed,
    /// Only on the task that the agent was started for.
    OwnTask,
    Refused,
}

use Permission::{Allowed, OwnTask, Refused};

/// Every verb, with what an agent at work and a reviewer may do with it. A flag that changes what a verb does has its own
/// line.
pub const VERBS: &[(&str, Permission, Permission)] = &[
    // Reading.
    ("status", Allowed, Allowed),
    ("whoami", Allowed, Allowed),
    ("why", Allowed, Allowed),
    ("tasks list", Allowed, Allowed),
    ("tasks tree", Allowed, Allowed),
    ("tasks export", Allowed, Allowed),
    ("tasks show", Allowed, Allowed),
    ("tasks audit", Allowed, Allowed),
    ("tasks logs", Allowed, Allowed),
    ("tasks next", Allowed, Allowed),
    ("sections list", Allowed, Allowed),
    ("sections show", Allowed, Allowed),
    ("locks list", Allowed, Allowed),
    ("locks show", Allowed, Allowed),
    ("agents list", Allowed, Allowed),
    ("msg list", Allowed, Allowed),
    ("msg wait", Allowed, Allowed),
    ("events", Allowed, Allowed),
    ("usage", Allowed, Allowed),
    ("runners list", Allowed, Allowed),
    ("runners logs", Allowed, Allowed),
    ("jobs list", Allowed, Allowed),
    ("jobs show", Allowed, Allowed),
    ("sessions list", Allowed, Allowed),
    ("sessions show", Allowed, Allowed),
    ("projects list", Allowed, Allowed),
    ("exclusive status", Allowed, Allowed),
    ("hooks list", Allowed, Allowed),
    ("config show", Allowed, Allowed),
    ("config get", Allowed, Allowed),
    ("config path", Allowed, Allowed),
    ("config validate", Allowed, Allowed),
    ("prime", Allowed, Allowed),
    ("doctor", Allowed, Allowed),
    ("completions", Allowed, Allowed),
    ("man", Allowed, Allowed),
    ("help", Allowed, Allowed),
    ("version", Allowed, Allowed),
    // Writing.
    ("tasks done", OwnTask, OwnTask),
    ("tasks fail", OwnTask, OwnTask),
    ("tasks release", OwnTask, OwnTask),
    ("tasks renew", OwnTask, OwnTask),
    ("tasks check", OwnTask, OwnTask),
    ("tasks approve", Refused, OwnTask),
    ("tasks reject", Refused, OwnTask),
    ("tasks add", Allowed, Allowed),
    ("tasks depend", Allowed, Allowed),
    ("msg send", Allowed, Allowed),
    ("msg ack", Allowed, Allowed),
    // The server applies this table to each call.
    ("mcp", Allowed, Allowed),
    // How a runner starts the agent. It needs a variable that the agent does not get.
    ("start-attempt", Allowed, Allowed),
    // Called by the hooks of an agent's session. It does nothing within an attempt, and must not fail there.
    ("claude-hook", Allowed, Allowed),
    // The agents of the demo, which only print.
    ("demo --pretend", Allowed, Allowed),
    // Everything else.
    ("init", Refused, Refused),
    ("demo", Refused, Refused),
    ("self-check", Refused, Refused),
    ("bench", Refused, Refused),
    ("web", Refused, Refused),
    ("setup", Refused, Refused),
    ("resume", Refused, Refused),
    ("doctor --fix", Refused, Refused),
    // Its keys are verbs that an agent may not use, and it needs a person at a terminal.
    ("board", Refused, Refused),
    ("mcp --http", Refused, Refused),
    ("tasks import", Refused, Refused),
    ("tasks update", Refused, Refused),
    ("tasks next --claim", Refused, Refused),
    ("tasks claim", Refused, Refused),
    ("tasks run", Refused, Refused),
    ("tasks skip", Refused, Refused),
    ("tasks retry", Refused, Refused),
    ("tasks reopen", Refused, Refused),
    ("tasks delete", Refused, Refused),
    ("sections add", Refused, Refused),
    ("sections update", Refused, Refused),
    ("sections depend", Refused, Refused),
    ("sections delete", Refused, Refused),
    ("locks release", Refused, Refused),
    ("locks cleanup", Refused, Refused),
    ("agents join", Refused, Refused),
    ("agents leave", Refused, Refused),
    ("runners start", Refused, Refused),
    ("runners stop", Refused, Refused),
    ("runners wakeup", Refused, Refused),
    ("runners cron", Refused, Refused),
    ("jobs start", Refused, Refused),
    ("jobs work", Refused, Refused),
    ("jobs cancel", Refused, Refused),
    ("jobs retry", Refused, Refused),
    ("projects add", Refused, Refused),
    ("projects remove", Refused, Refused),
    ("projects enable", Refused, Refused),
    ("projects disable", Refused, Refused),
    ("exclusive acquire", Refused, Refused),
    ("exclusive release", Refused, Refused),
    ("exclusive run", Refused, Refused),
    ("hooks test", Refused, Refused),
    ("hooks run", Refused, Refused),
    ("hooks deliver", Refused, Refused),
    ("config set", Refused, Refused),
    ("config unset", Refused, Refused),
    ("config edit", Refused, Refused),
    ("trust", Refused, Refused),
    ("trust list", Refused, Refused),
    ("untrust", Refused, Refused),
    ("store adopt", Refused, Refused),
    ("store copy", Refused, Refused),
    ("store backup", Refused, Refused),
    ("store restore", Refused, Refused),
    ("start-exclusive", Refused, Refused),
    ("keep-lease", Refused, Refused),
];

/// Other names of commands, as agents may write them.
pub const ALIASES: &[(&str, &str)] = &[
    ("tasks", "task"),
    ("sections", "section"),
    ("locks", "lock"),
    ("agents", "agent"),
    ("msg", "messages"),
    ("runners", "runner"),
    ("jobs", "job"),
    ("sessions", "session"),
    ("tasks approve", "tasks verify"),
];

/// What an agent with this role may do with a verb. A verb without a line is refused.
pub fn permission(verb: &str, role: Role) -> Permission {
    match (VERBS.iter().find(|(name, ..)| *name == verb), role) {
        (Some((_, work, _)), Role::Work) => *work,
        (Some((_, _, review)), Role::Review) => *review,
        (None, _) => Refused,
    }
}

/// Every spelling of every verb that an agent may call, in either role: what an agent's own permissions have to allow.
/// Verbs that start a server or that only tenure calls are left out.
pub fn callable_verbs() -> Vec<String> {
    let mut spellings = Vec::new();
    for (verb, work, review) in VERBS {
        if matches!(*verb, "mcp" | "start-attempt" | "claude-hook" | "demo --pretend")
            || (*work, *review) == (Refused, Refused)
        {
            continue;
        }
        let names = ALIASES.iter().filter(|(name, _)| name == verb).map(|(_, alias)| *alias);
        for name in std::iter::once(*verb).chain(names) {
            spellings.push(name.to_owned());
            let (group, rest) = name.split_once(' ').unwrap_or((name, ""));
            let aliases = ALIASES.iter().filter(|(name, _)| !rest.is_empty() && *name == group);
            spellings.extend(aliases.map(|(_, alias)| format!("{alias} {rest}")));
        }
    }
    spellings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reviewer_may_also_approve_and_reject_and_nothing_else_differs() {
        let differ = |(verb, work, review): &(&'static str, _, _)| (work != review).then_some(*verb);
        assert_eq!(VERBS.iter().filter_map(differ).collect::<Vec<_>>(), ["tasks approve", "tasks reject"]);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert_eq!(permission("tasks explode", Role::Review), Refused);
        assert_eq!(Role::parse("admin"), Role::Work);
        assert_eq!(Role::parse("review"), Role::Review);
    }

    #[test]
    fn each_verb_has_one_line() {
        for (index, (verb, ..)) in VERBS.iter().enumerate() {
            assert!(VERBS[..index].iter().all(|(other, ..)| other != verb), "{verb}");
        }
    }

    #[test]
    fn callable_verbs_have_all_their_spellings() {
        let verbs = callable_verbs();
        for spelling in ["tasks done", "task done", "tasks verify", "task verify", "messages send", "status"]
        {
            assert!(verbs.iter().any(|verb| verb == spelling), "{spelling}");
        }
        for refused in ["mcp", "tasks run", "task claim", "start-attempt", "config set", "tasks next --claim"]
        {
            assert!(verbs.iter().all(|verb| verb != refused), "{refused}");
        }
    }
}
