//! `tenure msg`: left for the next holder of a task, or for an agent.

use std::time::{Duration, Instant};

use serde_json::json;
use tenure_core::error::TaskName;
use tenure_core::id::TaskId;
use tenure_core::rules::{acknowledge, send_message};
use tenure_core::store::{Message, MessageFilter};
use tenure_core::{Error, wire};

use crate::answer::Answer;
use crate::app::{App, Open, parse_duration, read_text};
use crate::identity::{Identity, Who};
use crate::listening::Listener;
use crate::report::{Outcome, Report};
use crate::text::{Style, Text};

/// Messages: send, list, acknowledge, wait
///
/// Example: tenure msg send --task F001 -m 'Blocked on API credentials'
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Leave a message on a task, or for an agent
    ///
    /// Example: tenure msg send --task F001 -m 'Blocked on API credentials'
    Send {
        /// The task
        #[arg(long, value_name = "T")]
        task: Option<String>,
        /// Who sends it (default: you)
        #[arg(long, value_name = "A")]
        from: Option<String>,
        /// The agent it is for
        #[arg(long, value_name = "A")]
        to: Option<String>,
        /// The text; `-` reads standard input
        #[arg(short, long, value_name = "TEXT", visible_aliases = ["text", "notes", "reason"], allow_hyphen_values = true)]
        message: String,
        #[command(flatten)]
        who: Who,
    },
    /// List messages that nobody has acknowledged
    ///
    /// Example: tenure msg list --task F001
    List(Box<Filter>),
    /// Say that a message has reached you
    ///
    /// Example: tenure msg ack 3 --agent A1234ABCD
    Ack {
        /// The message's number
        #[arg(required = true)]
        id: Vec<i64>,
        #[command(flatten)]
        who: Who,
    },
    /// Wait until there is a message
    ///
    /// Example: tenure msg wait --mine --agent A1234ABCD --for 10m
    Wait {
        #[command(flatten)]
        filter: Box<Filter>,
        /// At most this long (default: locking.waitTimeout)
        #[arg(long = "for", value_name = "DUR", value_parser = parse_duration)]
        at_most: Option<Duration>,
    },
}

#[derive(Debug, clap::Args)]
struct Filter {
    /// Only this task's
    #[arg(long, value_name = "T")]
    task: Option<String>,
    /// Only those for this agent
    #[arg(long, value_name = "A")]
    to: Option<String>,
    /// Only those for you
    #[arg(long)]
    mine: bool,
    /// Also acknowledged ones
    #[arg(long)]
    all: bool,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u64,
    #[command(flatten)]
    who: Who,
}

impl Args {
    pub(crate) fn subcommand(&self) -> &'static str {
        match self.verb {
            None | Some(Verb::List(_)) => "list",
            Some(Verb::Send { .. }) => "send",
            Some(Verb::Ack { .. }) => "ack",
            Some(Verb::Wait { .. }) => "wait",
        }
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    let open = app.open()?;
    match args.verb {
        None => {
            let filter = MessageFilter { limit: 100, ..MessageFilter::default() };
            let (messages, total) = open.read(|view| view.messages(&filter))?;
            Ok(listing(&messages, total))
        }
        Some(Verb::List(filter)) => {
            let filter = read_filter(app, &open, &filter)?;
            let (messages, total) = open.read(|view| view.messages(&filter))?;
            Ok(listing(&messages, total))
        }
        Some(Verb::Send { task, from, to, message, who }) => {
            let identity = app.identity(&who)?;
            send(app, &open, &identity, task.as_deref(), from, to.as_deref(), &message)
        }
        Some(Verb::Ack { id, who }) => ack(app, &open, &id, &app.identity(&who)?),
        Some(Verb::Wait { filter, at_most }) => wait(app, &open, &filter, at_most),
    }
}

fn send(
    app: &App<'_>,
    open: &Open<'_>,
    identity: &Identity,
    task: Option<&str>,
    from: Option<String>,
    to: Option<&str>,
    message: &str,
) -> Outcome<Answer> {
    let body = read_text(message)?;
    let task: Option<TaskName> = task.map(|t| open.resolve(t)).transpose()?;
    let from = from.unwrap_or_else(|| identity.holder.id.clone());
    tenure_core::text::check_agent_id(&from).map_err(Error::from)?;
    let ctx = open.context();
    let sent = open.write(|tx| send_message(tx, &ctx, task.as_ref(), &from, to, &body))?;
    let mut text = Text::new();
    let target = match (&sent.task, &sent.to) {
        (Some(task), Some(to)) => format!("on {} for {to}", task.key),
        (Some(task), None) => format!("on {}", task.key),
        (None, to) => format!("for {}", to.as_deref().unwrap_or_default()),
    };
    if app.global.dry_run {
        text.line(format!("Would leave a message {target}"));
    } else {
        text.line(format!("Left message #{} {target}", sent.id));
    }
    Ok(Answer::new(json!({"message": wire::message(&sent)}), text))
}

fn ack(app: &App<'_>, open: &Open<'_>, ids: &[i64], identity: &Identity) -> Outcome<Answer> {
    let by = &identity.holder.id;
    let acknowledged = acknowledge_all(open, ids, by)?;
    let mut text = Text::new();
    for id in ids {
        let word = if acknowledged.contains(id) {
            app.past("Acknowledged", "Would acknowledge")
        } else {
            "Nothing to acknowledge for"
        };
        text.line(format!("{word} #{id}"));
    }
    Ok(Answer::new(json!({"acknowledged": acknowledged, "total": acknowledged.len()}), text))
}

/// Those that nobody had acknowledged before.
pub(crate) fn acknowledge_all(open: &Open<'_>, ids: &[i64], by: &str) -> tenure_core::Result<Vec<i64>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    open.write(|tx| {
        let mut done = Vec::new();
        for id in ids {
            if acknowledge(tx, *id, by)? {
                done.push(*id);
            }
        }
        Ok(done)
    })
}

fn read_filter(app: &App<'_>, open: &Open<'_>, filter: &Filter) -> Outcome<MessageFilter> {
    let identity = app.identity(&filter.who)?;
    if filter.mine && !identity.is_named() {
        return Err(Report::usage("--mine needs to know who you are: give --agent ID, or set TENURE_AGENT")
            .hint("become somebody", "tenure agents join"));
    }
    let task = filter.task.as_deref().map(|t| open.resolve(t)).transpose()?;
    Ok(MessageFilter {
        task: task.map(|t| TaskId::new(t.id)),
        to: filter.to.clone().or_else(|| filter.mine.then(|| identity.holder.id.clone())),
        include_acknowledged: filter.all,
        limit: filter.limit,
    })
}

fn listing(messages: &[Message], total: u64) -> Answer {
    let mut text = Text::new();
    if messages.is_empty() {
        text.line("No messages.");
    }
    for message in messages {
        let place = message.task.as_ref().map(|t| format!(" on {}", t.key)).unwrap_or_default();
        let to = message.to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
        text.styled(Style::Bold, format!("#{}", message.id))
            .and(Style::Dim, format!("  {}  from {}{to}{place}", message.sent_at.to_seconds(), message.from));
        if let Some(by) = &message.acknowledged_by {
            text.and(Style::Dim, format!("  (acknowledged by {by})"));
        }
        text.block(4, &message.text);
    }
    let rows: Vec<_> = messages.iter().map(wire::message).collect();
    Answer::new(json!({"messages": rows, "total": total}), text)
}

/// Looks, and looks again whenever the doorbell rings.
fn wait(app: &mut App<'_>, open: &Open<'_>, filter: &Filter, at_most: Option<Duration>) -> Outcome<Answer> {
    let wanted = read_filter(app, open, filter)?;
    let patience = at_most.unwrap_or(open.config.locking.wait_timeout);
    let patience = app.global.timeout.map_or(patience, |limit| patience.min(limit));
    let patience = if app.never_waits() { Duration::ZERO } else { patience };
    let begun = Instant::now();
    let mut listener = Listener::new(app, open, &filter.who)?;
    loop {
        let (messages, total) = open.read(|view| view.messages(&wanted))?;
        if total > 0 {
            listener.leave(open)?;
            return Ok(listing(&messages, total));
        }
        let left = patience.saturating_sub(begun.elapsed());
        if left.is_zero() {
            listener.leave(open)?;
            let waited = patience;
            return Err(Error::WaitTimeout { what: "a message".to_owned(), waited, locked: None }.into());
        }
        listener.wait(app, open, left)?;
    }
}
