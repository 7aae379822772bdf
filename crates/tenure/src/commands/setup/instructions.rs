//! `tenure setup NAME`: instructions in the file that the client reads, and Claude Code's hooks.

use std::path::Path;

use serde_json::json;
use tenure_core::ErrorCode;
use tenure_core::hints;

use super::file::{Plan, text_of, unreadable};
use super::{Args, Client, block, claude_settings, program};
use crate::answer::Answer;
use crate::app::App;
use crate::commands::prime;
use crate::report::{CommandResult, Report};
use crate::text::{Style, Text};

const BLOCK_BY_HAND: &str = "repair or remove the markers, and try again";
const HOOKS_BY_HAND: &str = "make it valid JSON, and try again";

/// The file that the client reads. VS Code reads AGENTS.md.
pub(super) fn file_of(client: Client) -> Option<&'static str> {
    match client {
        Client::Claude => Some("CLAUDE.md"),
        Client::Gemini => Some("GEMINI.md"),
        Client::Codex | Client::Opencode | Client::Copilot | Client::AgentsMd => Some("AGENTS.md"),
        Client::Vscode => None,
    }
}

pub(super) fn run(app: &App<'_>, args: &Args, file: &str) -> CommandResult<Answer> {
    if args.check {
        return check(app, args.client, file);
    }
    let root = app.find()?.paths.root;
    let body = prime::for_any_time();
    // All changes are decided before the first is written.
    let mut plans = vec![(
        "instructions",
        Plan::of(app, root.join(file), BLOCK_BY_HAND, |text| {
            if args.remove { block::take_out(text) } else { block::put(text, &body) }
        })?,
    )];
    if args.client == Client::Claude {
        let plan = Plan::of(app, root.join(claude_settings::FILE), HOOKS_BY_HAND, |text| {
            if args.remove {
                claude_settings::take_out(text, &program(app))
            } else {
                claude_settings::put(text, &program(app))
            }
        })?;
        plans.push(("hooks", plan));
    }
    let mut text = Text::new();
    let mut parts = Vec::new();
    for (part, plan) in &plans {
        plan.carry_out(app, &root)?;
        let shown = plan.path.display();
        match (plan.changes(), args.remove) {
            (true, false) => text
                .styled(Style::Good, app.past("Wrote", "Would write"))
                .and(Style::Plain, format!(" the {part} in {shown}")),
            (true, true) => {
                text.line(format!("{} the {part} from {shown}", app.past("Removed", "Would remove")))
            }
            (false, false) => text.line(format!("The {part} in {shown} are already up to date")),
            (false, true) => text.line(format!("There are no {part} in {shown}; nothing changed")),
        };
        parts.push(json!({"part": part, "path": plan.path, "changed": plan.changes()}));
    }
    if app.global.dry_run && !args.remove {
        for (part, _) in plans.iter().filter(|(_, plan)| plan.changes()) {
            let shown =
                if *part == "hooks" { claude_settings::shown(&program(app)) } else { block::block(&body) };
            text.blank().block(2, &shown);
        }
    }
    let name = args.client.name();
    let changed = plans.iter().any(|(_, plan)| plan.changes());
    let data = json!({"client": name, "changed": changed, "removed": args.remove, "parts": parts});
    let answer = Answer::new(data, text);
    Ok(if args.remove { answer } else { answer.hint(hints::check_client(name)) })
}

fn check(app: &App<'_>, client: Client, file: &str) -> CommandResult<Answer> {
    let root = app.find()?.paths.root;
    let path = root.join(file);
    let there = text_of(&path)?.unwrap_or_default();
    let state =
        block::state(&there, &prime::for_any_time()).map_err(|why| unreadable(&path, &why, BLOCK_BY_HAND))?;
    let mut parts = vec![("instructions", path, state.as_str(), describe(state).to_owned())];
    if client == Client::Claude {
        let path = root.join(claude_settings::FILE);
        let (state, description) = hooks(app, &path)?;
        parts.push(("hooks", path, state, description));
    }
    let data: Vec<_> = parts
        .iter()
        .map(|(part, path, state, _)| json!({"part": part, "path": path, "state": state}))
        .collect();
    let lines = parts
        .iter()
        .map(|(part, path, _, description)| format!("the {part} in {} {description}", path.display()));
    let lines: Vec<String> = lines.collect();
    let name = client.name();
    if parts.iter().any(|(_, _, state, _)| *state != "current") {
        let mut report = Report::new(ErrorCode::CheckFailed, format!("{name} is not set up correctly"));
        report.context.extend(lines.iter().map(|line| format!("  {line}")));
        *report.details = json!({"client": name, "parts": data});
        let helps = parts.iter().any(|(_, _, state, _)| !["current", "disabled"].contains(state));
        return Err(if helps { report.hint(hints::set_up(name)) } else { report });
    }
    let mut text = Text::new();
    text.styled(Style::Good, format!("{name} is set up"));
    for line in lines {
        text.line(format!("  {line}"));
    }
    Ok(Answer::new(json!({"client": name, "parts": data}), text))
}

fn describe(state: block::BlockState) -> &'static str {
    match state {
        block::BlockState::Absent => "are missing",
        block::BlockState::Current => "are up to date",
        block::BlockState::Outdated => "were written by another version of tenure",
        block::BlockState::Edited => "were edited by hand; setup overwrites them",
    }
}

fn hooks(app: &App<'_>, path: &Path) -> CommandResult<(&'static str, String)> {
    let bad = |why: String| unreadable(path, &why, HOOKS_BY_HAND);
    let Some(text) = text_of(path)? else { return Ok(("absent", "are missing".to_owned())) };
    let missing = claude_settings::missing(&text, &program(app)).map_err(bad)?;
    Ok(if claude_settings::are_off(&text).map_err(bad)? {
        ("disabled", "are disabled by disableAllHooks".to_owned())
    } else if missing.is_empty() {
        ("current", "are up to date".to_owned())
    } else if missing == claude_settings::events() {
        ("absent", "are missing".to_owned())
    } else {
        ("outdated", format!("are incomplete: {} missing", missing.join(" and ")))
    })
}
