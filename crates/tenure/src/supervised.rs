//! Applies the permissions of agents under a runner ([`tenure_core::supervised`]) to this process.

use serde_json::json;
use tenure_core::ErrorCode;
use tenure_core::error::TaskName;
use tenure_core::supervised::{Permission, Role, VARIABLE, permission};

use crate::cli::Global;
use crate::env::Env;
use crate::report::{CommandResult, Report};
use crate::sys;

/// The caller's role, if it is an agent under a runner.
pub(crate) fn role(env: &Env) -> Option<Role> {
    env.var(VARIABLE).map(Role::parse)
}

/// Refuses a verb that the caller may not use. `verb` is a name of [`tenure_core::supervised::VERBS`].
pub(crate) fn check(env: &Env, verb: &str) -> CommandResult<()> {
    match role(env) {
        Some(role) if permission(verb, role) == Permission::Refused => {
            let message = format!("an agent under a runner may not use `{verb}`");
            Err(refused(role, message, json!({"verb": verb, "role": role.as_str()})))
        }
        _ => Ok(()),
    }
}

/// Refuses global flags with which an agent could leave its project: another user configuration has other hooks.
pub(crate) fn check_flags(env: &Env, global: &Global) -> CommandResult<()> {
    let Some(role) = role(env) else { return Ok(()) };
    if global.config.is_some() {
        let message = "an agent under a runner may not use --config".to_owned();
        return Err(refused(role, message, json!({"flag": "--config", "role": role.as_str()})));
    }
    if let Some(named) = &global.project {
        let of_agent = env.var("TENURE_PROJECT").and_then(|path| sys::real_path(&env.cwd.join(path)).ok());
        let named = sys::real_path(&env.cwd.join(named)).ok();
        if named.is_none() || named != of_agent {
            let message = "an agent under a runner may use only its own project".to_owned();
            return Err(refused(role, message, json!({"flag": "--project", "role": role.as_str()})));
        }
    }
    Ok(())
}

/// Refuses a change of a task by an agent that was not started for it. `own`: the id in `TENURE_TASK_ID`.
pub(crate) fn check_own_task(role: Option<Role>, own: Option<&str>, task: &TaskName) -> CommandResult<()> {
    match role {
        Some(role) if own != Some(task.id.as_str()) => {
            let details = json!({"task": task.key, "role": role.as_str()});
            let message = format!("{} is not the task of this agent, which is under a runner", task.key);
            Err(refused(role, message, details))
        }
        _ => Ok(()),
    }
}

fn refused(role: Role, message: String, details: serde_json::Value) -> Report {
    let mut report = Report::new(ErrorCode::PermissionDenied, message);
    let on_own_task = match role {
        Role::Work => "done, fail, release, renew and check",
        Role::Review => "approve, reject, done, fail, release, renew and check",
    };
    report.context.push(format!("It may read, use {on_own_task} on its own task, and add tasks,"));
    report.context.push("dependencies and messages.".to_owned());
    report.details = Box::new(details);
    report
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tenure_core::supervised::{ALIASES, VERBS};

    use crate::commands::Command;
    use crate::fast_parser::Definition;
    use crate::verbs::Commands;

    /// The names that the dispatch checks: a command, or a command and its verb. Hidden ones are included.
    fn names() -> BTreeSet<String> {
        let with_verbs = |command: &Definition| match command.verbs {
            [] => vec![command.name.to_owned()],
            // `trust` also works without a verb.
            [verb] if command.name == "trust" => vec!["trust".to_owned(), format!("trust {}", verb.name)],
            verbs => verbs.iter().map(|verb| format!("{} {}", command.name, verb.name)).collect(),
        };
        Command::DEFINITIONS.iter().flat_map(with_verbs).collect()
    }

    #[test]
    fn every_verb_has_a_decision_and_every_decision_a_verb() {
        let decided: BTreeSet<String> =
            VERBS.iter().map(|(verb, ..)| verb.split(" --").next().unwrap().to_owned()).collect();
        assert_eq!(decided, names());
    }

    #[test]
    fn the_aliases_are_those_of_the_parser() {
        let mut aliases = BTreeSet::new();
        for command in Command::DEFINITIONS {
            aliases.extend(command.alias.map(|alias| (command.name.to_owned(), alias.to_owned())));
            for verb in command.verbs {
                let full = |name: &str| format!("{} {name}", command.name);
                aliases.extend(verb.alias.map(|alias| (full(verb.name), full(alias))));
            }
        }
        let listed = ALIASES.iter().map(|(name, alias)| ((*name).to_owned(), (*alias).to_owned()));
        assert_eq!(listed.collect::<BTreeSet<_>>(), aliases);
    }
}
