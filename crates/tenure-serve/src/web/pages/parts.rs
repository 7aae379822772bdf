//! Small parts that several pages share.

use maud::{Markup, html};
use tenure_core::Timestamp;
use tenure_core::board::{EventLine, LeaseLine, TaskLine};
use tenure_core::duration::format_rounded;
use tenure_core::ending::Usage;
use tenure_core::hints::Hint;
use tenure_core::holder::{Holder, HolderKind};
use tenure_core::lease::LeaseState;
use tenure_core::short_id::ShortIds;
use tenure_core::task::TaskStatus;
use tenure_core::why::Reason;

use super::Around;

/// The state of a task as one word, with a CSS class for its colour.
pub(super) fn pill(task: &TaskLine) -> Markup {
    let lapsed = task.lease.as_ref().is_some_and(|lease| lease.state != LeaseState::Live);
    let (class, label) = match task.status {
        TaskStatus::Pending if !task.blocked_by.is_empty() => ("blocked", "Blocked"),
        TaskStatus::Pending if task.ready => ("ready", "Ready"),
        TaskStatus::InProgress if lapsed => ("lapsed", "Lapsed"),
        status => (status.as_str(), status.label()),
    };
    html! { span class={ "pill " (class) } { (label) } }
}

/// How long ago, or how long from now; the script keeps it up to date.
pub(super) fn ago(now: Timestamp, at: Timestamp) -> Markup {
    let text = if at > now {
        format!("in {}", format_rounded(at.since(now)))
    } else {
        format!("{} ago", format_rounded(now.since(at)))
    };
    html! { time datetime=(at.to_seconds()) title=(at.to_seconds()) data-ago { (text) } }
}

pub(super) fn at(at: Timestamp) -> Markup {
    html! { time datetime=(at.to_seconds()) data-at { (at.to_seconds()) } }
}

/// `bob`, or `runner 5f0c1d2e`.
pub(super) fn holder(holder: &Holder) -> String {
    let id = ShortIds::of([]).show(&holder.id);
    match holder.kind {
        HolderKind::Runner => format!("runner {id}"),
        HolderKind::Agent | HolderKind::Person => id.to_owned(),
    }
}

/// The holder of a lease, since when, and until when.
pub(super) fn lease(now: Timestamp, lease: &LeaseLine) -> Markup {
    html! {
        span.holder title=(lease.holder) { (holder(&lease.holder)) }
        @if lease.state == LeaseState::Live {
            " " span.dim { "for " (format_rounded(now.since(lease.acquired_at))) ", ends " (ago(now, lease.expires_at)) }
        } @else {
            " " span.warn { @if lease.state == LeaseState::HolderDead { "holder dead" } @else { "expired " (ago(now, lease.expires_at)) } }
        }
    }
}

pub(super) fn usage(used: &Usage) -> Markup {
    html! {
        span.number { (thousands(used.tokens())) " tokens" }
        @if let Some(micro) = used.micro_usd { ", " span.number { (dollars(micro)) } }
    }
}

pub(super) fn dollars(micro: u64) -> String {
    format!("${}.{:02}", micro / 1_000_000, micro % 1_000_000 / 10_000)
}

/// `12 345 678`, with narrow spaces.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

pub(super) fn hint(hint: &Hint) -> Markup {
    let mut letters = hint.why.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    html! { span.hint { (first) (letters.as_str()) ": " code { (hint.command) } } }
}

pub(super) fn reasons<'r>(all: impl IntoIterator<Item = &'r Reason>) -> Markup {
    html! {
        ul.reasons {
            @for reason in all {
                li class=[(!reason.is_progress()).then_some("warn")] {
                    (reason.sentence)
                    @if let Some(first) = &reason.first { " (first: " (first) ")" }
                    @if let Some(found) = &reason.hint { " " (hint(found)) }
                }
            }
        }
    }
}

pub(super) fn task_link(around: &Around, key: &str, text: &str) -> Markup {
    let project = around.project.as_deref().unwrap_or_default();
    // Keys contain only letters, digits, dots, dashes and underscores.
    html! { a.task href={ "/p/" (project) "/t/" (key) } { (text) } }
}

/// One event: what happened, its subject and its actor. `ids` shortens the ids of actors.
pub(super) fn event(
    around: &Around,
    now: Timestamp,
    event: &EventLine,
    ids: ShortIds,
    with_task: bool,
) -> Markup {
    html! {
        td.when { (ago(now, event.at)) }
        td { code { (event.kind.as_str()) } }
        @if with_task {
            td.key {
                @if event.task.is_some() { (task_link(around, &event.subject, &event.subject)) } @else { (event.subject) }
            }
        }
        td.what {
            @if let (Some(from), Some(to)) = (event.from, event.to) { (from.label()) " → " (to.label()) " " }
            @if let Some(fence) = event.fence { span.dim { "fence " (fence) } " " }
            @if let Some(what) = &event.what { (what) " " }
            @if let Some(remark) = &event.remark { span.remark.clamp title=(remark) { (remark) } }
        }
        td.holder { (ids.show(&event.actor)) }
    }
}

/// The last event in words: the change of the status, or `lease acquired`.
pub(super) fn event_words(event: &EventLine) -> String {
    match (event.from, event.to) {
        (Some(from), Some(to)) => format!("{} → {}", from.label(), to.label()),
        _ => event.kind.as_str().replace(['.', '_'], " "),
    }
}

/// Hidden fields with the session's CSRF value and with what the page showed.
pub(super) fn hidden(csrf: &str, back: &str, task: Option<&TaskLine>) -> Markup {
    html! {
        input type="hidden" name="csrf" value=(csrf);
        input type="hidden" name="back" value=(back);
        @if let Some(task) = task {
            input type="hidden" name="task" value=(task.id);
            input type="hidden" name="updatedAt" value=(task.updated_at.as_millis());
            input type="hidden" name="fence" value=[Some(task.lease.as_ref().map(|lease| lease.fence.to_string()).unwrap_or_default())];
        }
    }
}

/// A table with a caption for screen readers. It scrolls separately on narrow screens.
pub(super) fn table(caption: &str, columns: &[&str], rows: Markup) -> Markup {
    html! {
        div.scroll role="group" aria-label=(caption) tabindex="0" {
            table {
                caption.unseen { (caption) }
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody { (rows) }
            }
        }
    }
}
