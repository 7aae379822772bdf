//! `approve`, `reject`, `skip` and `retry`: changes of status that need no lease.

use serde_json::json;
use tenure_core::Result;
use tenure_core::rules::{Change, Changed, change_status};
use tenure_core::store::View;
use tenure_runner::hooks::{Ears, Happening};

use super::view;
use crate::answer::Answer;
use crate::app::{App, read_text};
use crate::hooks;
use crate::identity::Who;
use crate::report::Outcome;
use crate::text::{Style, Text};

/// Approve a task that is in review
///
/// Example: tenure tasks approve F001
#[derive(Debug, clap::Args)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    remark: OptionalRemark,
}

/// Send a task back with a remark
///
/// Example: tenure tasks reject F001 -m 'The tests are missing'
#[derive(Debug, clap::Args)]
pub(crate) struct RejectArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    remark: Remark,
}

/// Leave a task out; what depends on it goes on
///
/// Example: tenure tasks skip F001 -m 'No longer needed'
#[derive(Debug, clap::Args)]
pub(crate) struct SkipArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    remark: OptionalRemark,
}

/// Open a failed or skipped task again
///
/// Example: tenure tasks retry F001
#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    remark: OptionalRemark,
}

#[derive(Debug, clap::Args)]
struct Common {
    /// The task
    task: String,
    /// Also if somebody else holds it: that lease ends
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    who: Who,
}

/// The word for every remark.
#[derive(Debug, clap::Args)]
pub(super) struct Remark {
    /// Why; `-` reads standard input
    #[arg(short, long, value_name = "TEXT", visible_aliases = ["text", "notes", "reason"], allow_hyphen_values = true)]
    pub(super) message: String,
}

/// A remark that may be left out.
#[derive(Debug, clap::Args)]
pub(super) struct OptionalRemark {
    /// A remark; `-` reads standard input
    #[arg(short, long, value_name = "TEXT", visible_aliases = ["text", "notes", "reason"], allow_hyphen_values = true)]
    pub(super) message: Option<String>,
}

pub(crate) fn approve(app: &mut App<'_>, args: ApproveArgs) -> Outcome<Answer> {
    change(app, &args.common, Change::Approve, args.remark.message, "Approved", "Would approve")
}

pub(crate) fn reject(app: &mut App<'_>, args: RejectArgs) -> Outcome<Answer> {
    change(app, &args.common, Change::Reject, Some(args.remark.message), "Rejected", "Would reject")
}

pub(crate) fn skip(app: &mut App<'_>, args: SkipArgs) -> Outcome<Answer> {
    change(app, &args.common, Change::Skip, args.remark.message, "Skipped", "Would skip")
}

pub(crate) fn retry(app: &mut App<'_>, args: RetryArgs) -> Outcome<Answer> {
    change(app, &args.common, Change::Retry, args.remark.message, "Reopened", "Would reopen")
}

fn change(
    app: &mut App<'_>,
    common: &Common,
    change: Change,
    message: Option<String>,
    done: &str,
    would: &str,
) -> Outcome<Answer> {
    let open = app.open()?;
    let message = message.as_deref().map(read_text).transpose()?;
    let identity = app.identity(&common.who)?;
    let name = open.resolve(&common.task)?;
    let caller = identity.actor(Some(&name.id));
    let ctx = open.context();
    let ears = hooks::ears(app, &open);
    let (changed, news) = open.write(|tx| {
        let changed = change_status(tx, &ctx, &caller, &name.id, change, message.as_deref(), common.force)?;
        let news = news(&ears, tx, &changed)?;
        Ok((changed, news))
    })?;
    hooks::tell(app, &open, &news);
    Ok(answer(app, &changed, app.past(done, would)))
}

/// What hooks are told of it.
pub(super) fn news(ears: &Ears<'_>, view: &dyn View, changed: &Changed) -> Result<Vec<Happening>> {
    let mut news = ears.changed(view, changed.from, &changed.task)?;
    if let Some(lease) = &changed.evicted {
        news.extend(ears.lost(view.now(), &changed.task, lease));
    }
    Ok(news)
}

pub(super) fn answer(app: &App<'_>, changed: &Changed, word: &str) -> Answer {
    let task = &changed.task;
    let mut text = Text::new();
    text.line(format!("{word} "))
        .and(Style::Bold, task.key.clone())
        .and(Style::Plain, format!(": {} → {}", changed.from, task.status));
    if let Some(lease) = &changed.evicted {
        text.styled(
            Style::Warn,
            format!("  this {} the lease of {}", app.past("ended", "would end"), lease.holder),
        );
    }
    let now = app.env.clock.now();
    let evicted =
        changed.evicted.as_ref().map(|lease| tenure_core::wire::lease(lease, now, app.env.judge.as_ref()));
    let mut data = json!({"task": view::object(app, task), "from": changed.from.as_str()});
    if let (Some(lease), Some(fields)) = (evicted, data.as_object_mut()) {
        fields.insert("endedLease".into(), lease);
    }
    Answer::new(data, text)
}
