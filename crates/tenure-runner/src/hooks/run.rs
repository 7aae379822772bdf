//! Choosing the hooks of an event and running them, with another try where that may help.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_core::config::{Hook, HookAction};
use tenure_core::text::escape_line;

use super::deliver::{Errand, hand_over};
use super::fill::Filler;
use super::happening::Happening;
use super::outcome::{Failure, HookResult, Outcome};
use super::script::{self, Script};
use super::wait::{Over, wait};
use super::webhook::{Call, Template};
use super::{Helper, Setting, environment};
use crate::program;
use crate::template::{Piece, pieces};

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Characters of what a script or a server said.
const QUOTED: usize = 300;

/// Tells every hook that listens what happened. `async` ones are handed to a process that outlives this one, the others
/// run here, one after the other.
pub fn fire(
    hooks: &[Hook],
    happenings: &[Happening],
    setting: &Setting<'_>,
    helper: &Helper,
) -> Vec<Outcome> {
    let listening = happenings.iter().flat_map(|happening| {
        hooks.iter().filter(|hook| hook.event == happening.event).map(move |hook| (hook, happening))
    });
    let (later, now): (Vec<_>, Vec<_>) = listening.partition(|(hook, _)| hook.run_async);
    let mut outcomes = Vec::new();
    if !later.is_empty() {
        // First, so that a slow one here does not hold them up.
        let handed = hand_over(helper, setting, &Errand::new(setting, &later));
        for (hook, happening) in later {
            let result = match &handed {
                Ok(()) => HookResult::HandedOver,
                Err(error) => HookResult::Failed(Failure::NotHandedOver(error.to_string())),
            };
            let outcome = outcome(hook, happening, result);
            if outcome.failure().is_some() {
                setting.log.write(setting.clock.now(), &outcome);
            }
            outcomes.push(outcome);
        }
    }
    outcomes.extend(now.into_iter().map(|(hook, happening)| run(hook, happening, setting)));
    outcomes
}

/// Runs one hook here and now, whether it is `async` or not, and writes down how it went.
pub fn run(hook: &Hook, happening: &Happening, setting: &Setting<'_>) -> Outcome {
    let begin = Instant::now();
    let mut outcome = outcome(hook, happening, HookResult::Succeeded);
    let payload = happening.payload(setting.project);
    let mut fill = Filler::new(&payload, setting.vars);
    if is_stopped(setting) {
        outcome.result = HookResult::Failed(Failure::Stopped);
        return outcome;
    }
    match Prepared::new(hook, &payload, setting, &mut fill) {
        Err(failure) => outcome.result = HookResult::Failed(failure),
        Ok(prepared) => {
            let mut pause = FIRST_PAUSE;
            loop {
                outcome.tries += 1;
                let (result, said) = prepared.once(setting);
                outcome.said = quote(&fill.redact(&said), &hook.action).filter(|_| result.is_err());
                let Err(failure) = result else {
                    outcome.result = HookResult::Succeeded;
                    break;
                };
                let again = failure.may_pass() && outcome.tries <= hook.retry;
                outcome.result = HookResult::Failed(failure);
                if !again || wait(None, setting.stop, Instant::now() + pause) == Over::Stopped {
                    break;
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
    outcome.took = begin.elapsed();
    setting.log.write(setting.clock.now(), &outcome);
    outcome
}

fn is_stopped(setting: &Setting<'_>) -> bool {
    setting.stop.is_some_and(|stop| wait(None, Some(stop), Instant::now()) == Over::Stopped)
}

/// What [`run`] would do, with `${VARIABLES}` as they are written.
pub fn preview(hook: &Hook, happening: &Happening, setting: &Setting<'_>) -> Result<Value, Failure> {
    let written = variables_as_written(&hook.action);
    let payload = happening.payload(setting.project);
    let mut fill = Filler::new(&payload, &written);
    Ok(match &hook.action {
        HookAction::Script { command, args } => {
            let (command, args) = script_words(command, args, &mut fill)?;
            json!({"hook": hook.name, "event": hook.event.as_str(), "type": "script", "command": command, "args": args})
        }
        HookAction::Webhook { url, method, .. } => {
            let url = fill.url("url", url)?;
            json!({"hook": hook.name, "event": hook.event.as_str(), "type": "webhook", "method": method, "url": url})
        }
        _ => return Err(unknown()),
    })
}

fn outcome(hook: &Hook, happening: &Happening, result: HookResult) -> Outcome {
    Outcome {
        hook: hook.name.clone(),
        event: happening.event,
        task: happening.task_key().map(str::to_owned),
        result,
        said: None,
        tries: 0,
        took: Duration::ZERO,
    }
}

/// A hook with everything filled in: the tries differ in nothing.
enum Prepared {
    Script {
        program: std::path::PathBuf,
        args: Vec<String>,
        vars: BTreeMap<OsString, OsString>,
        payload: String,
        timeout: Duration,
    },
    Webhook(Box<Call>),
}

impl Prepared {
    fn new(
        hook: &Hook,
        payload: &Value,
        setting: &Setting<'_>,
        fill: &mut Filler<'_>,
    ) -> Result<Self, Failure> {
        let text = payload.to_string();
        match &hook.action {
            HookAction::Script { command, args } => {
                let (command, args) = script_words(command, args, fill)?;
                let path = setting.vars.get(&OsString::from("PATH"));
                let program = program::find(&command, setting.root, path.map(OsString::as_os_str));
                let program = program.map_err(|error| match fill.redact(&error.to_string()) {
                    shown if shown == error.to_string() => Failure::Program(error),
                    shown => Failure::NotStarted(shown),
                })?;
                let mut vars = environment(setting.vars);
                vars.insert("TENURE_PROJECT".into(), setting.root.into());
                vars.insert("TENURE_HOOK".into(), hook.name.clone().into());
                vars.insert("TENURE_EVENT".into(), payload["event"].as_str().unwrap_or_default().into());
                Ok(Self::Script { program, args, vars, payload: text, timeout: hook.timeout })
            }
            HookAction::Webhook { url, method, headers, body } => {
                let template = Template { url, method, headers, body: body.as_deref() };
                Ok(Self::Webhook(Box::new(Call::prepare(hook, &template, &text, fill)?)))
            }
            _ => Err(unknown()),
        }
    }

    fn once(&self, setting: &Setting<'_>) -> (Result<(), Failure>, String) {
        match self {
            Self::Webhook(call) => call.send(setting.stop),
            Self::Script { program, args, vars, payload, timeout } => {
                let script = Script { program, args, root: setting.root, vars, payload, timeout: *timeout };
                let ended = script::run(&script, setting.stop);
                (ended.result, ended.output)
            }
        }
    }
}

fn unknown() -> Failure {
    Failure::Request("this tenure does not know the type of this hook".into())
}

fn script_words(
    command: &str,
    args: &[String],
    fill: &mut Filler<'_>,
) -> Result<(String, Vec<String>), Failure> {
    let command = fill.program("command", command)?;
    let args = args.iter().enumerate().map(|(index, arg)| fill.argument(&format!("args[{index}]"), arg));
    Ok((command, args.collect::<Result<_, _>>()?))
}

/// The line that matters: a script's last, a server's first.
fn quote(said: &str, action: &HookAction) -> Option<String> {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = match action {
        HookAction::Script { .. } => lines.next_back(),
        _ => lines.next(),
    }?;
    let shown = escape_line(line);
    let mut quoted: String = shown.chars().take(QUOTED).collect();
    if quoted.len() < shown.len() {
        quoted.push('…');
    }
    Some(quoted)
}

fn variables_as_written(action: &HookAction) -> BTreeMap<OsString, OsString> {
    let templates: Vec<&str> = match action {
        HookAction::Script { command, args } => {
            std::iter::once(command.as_str()).chain(args.iter().map(String::as_str)).collect()
        }
        HookAction::Webhook { url, .. } => vec![url],
        _ => Vec::new(),
    };
    let found = templates.into_iter().flat_map(pieces).filter_map(|piece| match piece {
        Piece::Variable(name) => Some((OsString::from(name), OsString::from(format!("${{{name}}}")))),
        Piece::Text(_) | Piece::Placeholder(_) => None,
    });
    found.collect()
}
