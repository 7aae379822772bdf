//! Selects the hooks of an event and runs them, with retries where the failure may be temporary.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_core::config::{Hook, HookAction};
use tenure_core::text::escape_line;

use super::context::HookContext;
use super::deliver::{Delivery, hand_over};
use super::fill::Filler;
use super::outcome::{Failure, HookResult, Outcome};
use super::script::{self, Script};
use super::wait::{WaitEnd, wait};
use super::webhook::{Template, WebhookRequest};
use super::{Helper, HookEnvironment, process_variables};
use crate::program;
use crate::template::{Piece, pieces};

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How many characters of a script's or server's output an outcome quotes.
const QUOTED: usize = 300;

/// Runs every hook that listens to one of the events. `async` hooks are handed to a process that outlives this one; the
/// others run here, one after the other.
pub fn fire(
    hooks: &[Hook],
    contexts: &[HookContext],
    environment: &HookEnvironment<'_>,
    helper: &Helper,
) -> Vec<Outcome> {
    let listening = contexts.iter().flat_map(|context| {
        hooks.iter().filter(|hook| hook.event == context.event).map(move |hook| (hook, context))
    });
    let (later, now): (Vec<_>, Vec<_>) = listening.partition(|(hook, _)| hook.run_async);
    let mut outcomes = Vec::new();
    if !later.is_empty() {
        // Handed over first, so that they do not wait for slow hooks in this process.
        let handed = hand_over(helper, environment, &Delivery::new(environment, &later));
        for (hook, context) in later {
            let result = match &handed {
                Ok(()) => HookResult::HandedOver,
                Err(error) => HookResult::Failed(Failure::NotHandedOver(error.to_string())),
            };
            let outcome = outcome(hook, context, result);
            if outcome.failure().is_some() {
                environment.log.write(environment.clock.now(), &outcome);
            }
            outcomes.push(outcome);
        }
    }
    outcomes.extend(now.into_iter().map(|(hook, context)| run(hook, context, environment)));
    outcomes
}

/// Runs one hook in this process, even if it is `async`, and logs its outcome.
pub fn run(hook: &Hook, context: &HookContext, environment: &HookEnvironment<'_>) -> Outcome {
    let begin = Instant::now();
    let mut outcome = outcome(hook, context, HookResult::Succeeded);
    let payload = context.payload(environment.project);
    let mut fill = Filler::new(&payload, environment.vars);
    if is_stopped(environment) {
        outcome.result = HookResult::Failed(Failure::Stopped);
        return outcome;
    }
    match Prepared::new(hook, &payload, environment, &mut fill) {
        Err(failure) => outcome.result = HookResult::Failed(failure),
        Ok(prepared) => {
            let mut pause = FIRST_PAUSE;
            loop {
                outcome.tries += 1;
                let (result, said) = prepared.once(environment);
                outcome.said = quote(&fill.redact(&said), &hook.action);
                let Err(failure) = result else {
                    outcome.result = HookResult::Succeeded;
                    break;
                };
                let again = failure.may_pass() && outcome.tries <= hook.retry;
                outcome.result = HookResult::Failed(failure);
                if !again || wait(None, environment.stop, Instant::now() + pause) == WaitEnd::Stopped {
                    break;
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
    outcome.took = begin.elapsed();
    environment.log.write(environment.clock.now(), &outcome);
    outcome
}

fn is_stopped(environment: &HookEnvironment<'_>) -> bool {
    environment.stop.is_some_and(|stop| wait(None, Some(stop), Instant::now()) == WaitEnd::Stopped)
}

/// What [`run`] would do, with `${VARIABLES}` left as written.
pub fn preview(
    hook: &Hook,
    context: &HookContext,
    environment: &HookEnvironment<'_>,
) -> Result<Value, Failure> {
    let written = variables_as_written(&hook.action);
    let payload = context.payload(environment.project);
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

fn outcome(hook: &Hook, context: &HookContext, result: HookResult) -> Outcome {
    Outcome {
        hook: hook.name.clone(),
        event: context.event,
        task: context.task_key().map(str::to_owned),
        result,
        said: None,
        tries: 0,
        took: Duration::ZERO,
    }
}

/// A hook with its templates filled in, so that all tries are the same.
enum Prepared {
    Script {
        program: std::path::PathBuf,
        args: Vec<String>,
        vars: BTreeMap<OsString, OsString>,
        payload: String,
        timeout: Duration,
    },
    Webhook(Box<WebhookRequest>),
}

impl Prepared {
    fn new(
        hook: &Hook,
        payload: &Value,
        environment: &HookEnvironment<'_>,
        fill: &mut Filler<'_>,
    ) -> Result<Self, Failure> {
        let text = payload.to_string();
        match &hook.action {
            HookAction::Script { command, args } => {
                let (command, args) = script_words(command, args, fill)?;
                let path = environment.vars.get(&OsString::from("PATH"));
                let program = program::find(&command, environment.root, path.map(OsString::as_os_str));
                let program = program.map_err(|error| match fill.redact(&error.to_string()) {
                    shown if shown == error.to_string() => Failure::Program(error),
                    shown => Failure::NotStarted(shown),
                })?;
                let mut vars = process_variables(environment.vars);
                vars.insert("TENURE_PROJECT".into(), environment.root.into());
                vars.insert("TENURE_HOOK".into(), hook.name.clone().into());
                vars.insert("TENURE_EVENT".into(), payload["event"].as_str().unwrap_or_default().into());
                Ok(Self::Script { program, args, vars, payload: text, timeout: hook.timeout })
            }
            HookAction::Webhook { url, method, headers, body } => {
                let template = Template { url, method, headers, body: body.as_deref() };
                Ok(Self::Webhook(Box::new(WebhookRequest::prepare(hook, &template, &text, fill)?)))
            }
            _ => Err(unknown()),
        }
    }

    fn once(&self, environment: &HookEnvironment<'_>) -> (Result<(), Failure>, String) {
        match self {
            Self::Webhook(call) => call.send(environment.stop),
            Self::Script { program, args, vars, payload, timeout } => {
                let script =
                    Script { program, args, root: environment.root, vars, payload, timeout: *timeout };
                let ended = script::run(&script, environment.stop);
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

/// The line to quote: a script's last, a server's first.
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
