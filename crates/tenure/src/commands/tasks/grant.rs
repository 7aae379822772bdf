//! The answer to a claim: the lease, its expiry, details of the task, and reminders.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::duration::{format_rounded, format_short};
use tenure_core::hints;
use tenure_core::holder::Incarnation;
use tenure_core::id::LeaseKey;
use tenure_core::kernel::{self, Grant};
use tenure_core::{Error, wire};

use super::{grant_details, view};
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::commands::lease_view;
use crate::report::CommandResult;
use crate::shell_quote::quote;
use crate::text::{Style, Text};

/// `asked_ttl` is the ttl that the caller requested. A lease that the caller already held keeps its own ttl.
pub(super) fn answer(app: &App<'_>, grant: &Grant, joined: bool, asked_ttl: Option<Duration>) -> Answer {
    let now = app.env.clock.now();
    let key = &grant.task.key;
    let id = &grant.lease.holder.id;
    let agent = quote(id);
    let mut text = Text::new();
    if grant.reacquired {
        text.line(format!("You already hold {key}, since {}", grant.lease.acquired_at.to_seconds()));
    } else {
        text.styled(Style::Good, app.past("Claimed", "Would claim"))
            .and(Style::Plain, format!(" task {key}"));
    }
    text.line(format!("  {}", grant.task.title));
    // Only one of JSON and text is shown, so the other is not built.
    let data = if app.printer.json { data(app, grant, grant.key.as_ref()) } else { Value::Null };
    if app.global.dry_run {
        return Answer::new(data, text).key(key);
    }
    text.line(format!("  Lease: {}   Fence: {}", grant.lease.id, grant.lease.fence));
    text.line(format!("  Expires in: {}", format_rounded(grant.lease.expires_at.since(now))));
    if let Some(asked) = asked_ttl.filter(|asked| grant.reacquired && *asked != grant.lease.ttl) {
        let (ttl, asked) = (format_short(grant.lease.ttl), format_short(asked));
        let renew = format!("tenure task renew {key} --agent {agent} --ttl {asked}");
        text.line(format!("  The lease keeps its {ttl}; {renew} extends it"));
    }
    if joined && !grant.reacquired {
        text.line(format!("  Agent: {id} (new; pass it with --agent or TENURE_AGENT)"));
    }
    if let Some((old, _)) = &grant.taken_over {
        text.styled(Style::Dim, format!("  taken over from {}", lease_view::holder_name(old)));
    }
    grant_details::append(&mut text, grant);
    text.blank();
    text.line("Remember to:");
    text.line(format!("  - Renew with tenure task renew {key} --agent {agent} before expiry"));
    text.line(format!("  - Mark done with tenure task done {key} --agent {agent} when complete"));
    let mut answer = Answer::new(data, text).key(key);
    // The text has the same commands under "Remember to".
    if app.printer.json {
        answer = answer
            .hint(hints::renew(key, &agent))
            .hint(hints::finish(key, &agent))
            .hint(hints::give_up(key, &agent));
    }
    answer
}

/// Refuses a second process under the same lease (L6): a fence proves the lease, but does not replace its process.
pub(super) fn refuse_other_process(
    open: &Open<'_>,
    grant: &Grant,
    process: &Incarnation,
) -> CommandResult<()> {
    if grant.lease.process.as_ref().is_some_and(|theirs| theirs.process == process.process) {
        return Ok(());
    }
    let (task, lease) = (&grant.task, grant.lease.clone());
    let locked = open.read(|view| {
        let name = Some(kernel::name_of(task));
        kernel::locked(view, lease.resource.clone(), &task.title, name, Some(lease.clone()), &[])
    })?;
    Err(Error::Locked(Box::new(locked)).into())
}

/// The key is for the answer to the holder of a new grant; `None` elsewhere.
pub(crate) fn data(app: &App<'_>, grant: &Grant, key: Option<&LeaseKey>) -> Value {
    let now = app.env.clock.now();
    let judge = app.env.judge.as_ref();
    json!(wire::GrantAnswer {
        task: view::object(app, &grant.task),
        lease: wire::GrantedLeaseJson {
            lease: wire::lease(&grant.lease, now, judge),
            lease_key: key.map(LeaseKey::reveal),
            reacquired: grant.reacquired,
        },
        taken_over: grant.taken_over.as_ref().map(|(old, _)| wire::lease(old, now, judge)),
        messages: grant.notes.messages.iter().map(wire::message).collect(),
        more_messages: grant.notes.more_messages,
        last_remark: grant.notes.last_remark.as_ref().map(wire::remark),
    })
}
