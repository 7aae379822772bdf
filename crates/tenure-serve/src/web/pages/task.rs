//! The page of one task: its text, why it is in its state, its history, and the available verbs.

use maud::{Markup, html};
use tenure_core::board::TaskLine;
use tenure_core::duration::format_rounded;
use tenure_core::lease::{Attempt, AttemptState, LeaseState};
use tenure_core::short_id::ShortIds;
use tenure_core::task::{MAX_PRIORITY, TaskStatus};
use tenure_core::text::MAX_TITLE_CHARS;

use super::parts::{ago, at, event, hidden, lease, pill, reasons, table, usage};
use super::{Around, Frame};
use crate::web::handler::{AttemptLog, TaskPage};

pub(super) fn page(around: &Around, page: &TaskPage) -> Markup {
    let (line, task) = (&page.detail.line, &page.detail.task);
    let title = format!("{} {}", line.key, line.title);
    let frame =
        Frame { around, title: &title, project: Some(&page.project), here: "", task: Some(&line.key) };
    frame.page(html! {
        article.task {
            header.head {
                p.line { span.key { (line.key) } (pill(line)) @if let Some(section) = &line.section { span.section { (section) } } }
                h1 { (line.title) }
                @if let Some(held) = &line.lease { p.by { (lease(page.now, held)) " " span.fence { "fence " (held.fence) } } }
            }
            @if let Some(csrf) = around.may_change() { (verbs(around, csrf, page)) }
            div.two {
                div {
                    section aria-labelledby="why" {
                        h2 #why { "Where it stands" }
                        (reasons(&page.detail.reasons))
                        @if let Some((by, remark)) = page.detail.remark() {
                            div.prose.remark { (remark) " " span.dim { "(" (ShortIds::of([]).show(by)) ")" } }
                        }
                    }
                    @if !task.description.is_empty() {
                        section aria-labelledby="description" { h2 #description { "Description" } div.prose { (task.description) } }
                    }
                    (log(&page.log))
                    (attempts(page))
                }
                div {
                    (facts(page))
                    (messages(page))
                    (history(around, page))
                }
            }
        }
    })
}

/// The verbs that make sense for the state that the page shows. The kernel makes the final decision.
fn verbs(around: &Around, csrf: &str, page: &TaskPage) -> Markup {
    let line = &page.detail.line;
    let to = |verb: &str| format!("/p/{}/do/{verb}", around.project.as_deref().unwrap_or_default());
    let back = format!("/p/{}/t/{}", around.project.as_deref().unwrap_or_default(), line.key);
    let is_held = line.lease.as_ref().is_some_and(|lease| lease.state == LeaseState::Live);
    // A lapsed lease can be taken over.
    let is_open = matches!(line.status, TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::Review);
    let all = [
        ("approve", "Approve", "a", line.status == TaskStatus::Review),
        ("reject", "Reject", "x", matches!(line.status, TaskStatus::Review | TaskStatus::Completed)),
        ("claim", "Claim", "c", is_open && !is_held),
        ("release", "Release", "r", page.is_mine),
        ("retry", "Retry", "t", matches!(line.status, TaskStatus::Failed | TaskStatus::Skipped)),
        ("skip", "Skip", "s", !line.status.is_finished() && !is_held),
    ];
    let offered: Vec<_> = all.into_iter().filter(|(.., offer)| *offer).collect();
    let rejects = offered.iter().any(|(verb, ..)| *verb == "reject");
    let placeholder = if rejects { "Remark (needed to reject)" } else { "Remark" };
    html! {
        section.verbs #verbs aria-label="What you can do" {
            @if !offered.is_empty() {
                form #act method="post" action=(to(offered[0].0)) {
                    (hidden(csrf, &back, Some(line)))
                    label.unseen for="remark" { "Remark" }
                    input #remark name="remark" placeholder=(placeholder) autocomplete="off" aria-keyshortcuts="m" data-does="Write a remark";
                    div.buttons {
                        @for (at, (verb, label, key, _)) in offered.iter().enumerate() {
                            button id={ "do-" (verb) } class=[(at == 0).then_some("primary")] formaction=(to(verb))
                                aria-keyshortcuts=(key) data-does=(label) { (label) }
                        }
                    }
                }
            }
            @if line.lease.is_some() && !page.is_mine { (evict(csrf, &to("evict"), &back, line)) }
            (edit(csrf, &to("edit"), &back, page))
        }
    }
}

fn evict(csrf: &str, to: &str, back: &str, line: &TaskLine) -> Markup {
    html! {
        details.evict #evict {
            summary.button aria-keyshortcuts="v" data-does="Evict the holder" { "Evict…" }
            form method="post" action=(to) {
                (hidden(csrf, back, Some(line)))
                p { "The holder loses the task, and what it writes later is refused. An agent of a runner is ended." }
                button.danger #do-evict { "Evict the holder" }
            }
        }
    }
}

fn edit(csrf: &str, to: &str, back: &str, page: &TaskPage) -> Markup {
    let task = &page.detail.task;
    html! {
        details.edit #edit {
            summary.button aria-keyshortcuts="e" data-does="Edit the task" { "Edit…" }
            form method="post" action=(to) {
                (hidden(csrf, back, Some(&page.detail.line)))
                label { "Title" input name="title" required maxlength=(MAX_TITLE_CHARS) value=(task.title); }
                // A line end directly after the tag is not part of the text.
                label { "Description" textarea name="description" rows="8" { "\n" (task.description) } }
                div.row {
                    label { "Section" input name="section" value=[task.section.as_ref().map(|section| section.name.as_str())]; }
                    label {
                        "Priority (lower comes first)"
                        input name="priority" type="number" required min=(-MAX_PRIORITY) max=(MAX_PRIORITY) value=(task.priority);
                    }
                }
                button.primary #do-edit { "Save" }
            }
        }
    }
}

fn facts(page: &TaskPage) -> Markup {
    let (task, line) = (&page.detail.task, &page.detail.line);
    html! {
        section aria-labelledby="facts" {
            h2 #facts { "Details" }
            dl.facts {
                dt { "Priority" } dd { (line.priority) }
                @if !task.depends_on.is_empty() { dt { "Depends on" } dd { (task.depends_on.join(", ")) } }
                @if !line.blocked_by.is_empty() { dt { "Blocked by" } dd.warn { (line.blocked_by.join(", ")) } }
                @if let Some(source) = &task.source_file { dt { "Source" } dd { (source) } }
                @if !line.labels.is_empty() { dt { "Labels" } dd { @for label in &line.labels { span.label { (label) } " " } } }
                @if let Some((pid, host)) = line.lease.as_ref().and_then(|lease| lease.process.as_ref()) { dt { "Process" } dd { (pid) " on " (host) } }
                @if let Some(held) = &line.lease { dt { "Last heartbeat" } dd { (ago(page.now, held.heartbeat_at)) } }
                @if task.attempts > 0 { dt { "Failed attempts" } dd { (task.attempts) } }
                @if task.rejections > 0 { dt { "Rejections" } dd { (task.rejections) } }
                @if let Some(used) = &page.detail.used { dt { "Used" } dd { (usage(used)) } }
                dt { "Created" } dd { (ago(page.now, task.created_at)) }
                dt { "Updated" } dd { (ago(page.now, task.updated_at)) }
                dt { "Id" } dd { code { (task.id) } }
            }
        }
    }
}

fn log(log: &AttemptLog) -> Markup {
    let (note, entries, is_live) = match log {
        AttemptLog::None => return html! {},
        AttemptLog::Unreadable(why) => (Some(html! { (why) }), &[][..], false),
        AttemptLog::Lines { entries, is_cut, is_live } => {
            let note =
                html! { "Earlier lines are not shown; " code { "tenure tasks logs" } " prints them all." };
            (is_cut.then_some(note), &entries[..], *is_live)
        }
    };
    html! {
        section aria-labelledby="log-title" {
            h2 #log-title { "Log " @if is_live { span.pill.in_progress { "live" } } }
            @if let Some(note) = note { p.dim { (note) } }
            @if !entries.is_empty() {
                div.log #log role="log" aria-label="Output of the agent" aria-live="off" tabindex="0" {
                    @for entry in entries {
                        div class={ "entry " (entry.kind.replace('_', "-")) } {
                            @if let Some(when) = entry.at { (at(when)) }
                            span.text { (entry.text) }
                        }
                    }
                }
            }
        }
    }
}

fn attempts(page: &TaskPage) -> Markup {
    let attempts = &page.detail.attempts;
    if attempts.is_empty() {
        return html! {};
    }
    let row = |(number, attempt): (usize, &Attempt)| {
        let ending = match (&attempt.run, attempt.state) {
            (Some(run), _) => run.ending.as_str().replace('_', " "),
            (None, state) => state.as_str().to_owned(),
        };
        let is_bad = attempt.state == AttemptState::Ended && attempt.exit_code != Some(0);
        html! {
            tr {
                td.number { (number) }
                td { (attempt.agent.as_deref().unwrap_or("-")) }
                td { (ago(page.now, attempt.started_at)) }
                td { (format_rounded(attempt.ended_at.unwrap_or(page.now).since(attempt.started_at))) }
                td class=[is_bad.then_some("warn")] { (ending) }
                td { @if let Some(used) = attempt.run.as_ref().and_then(|run| run.usage.as_ref()) { (usage(used)) } }
                td.what { span.clamp title=[attempt.reason.as_deref()] { (attempt.reason.as_deref().unwrap_or_default()) } }
                td { (attempt.owner.hostname) }
            }
        }
    };
    let numbered = attempts.iter().enumerate().map(|(at, attempt)| (attempts.len() - at, attempt));
    html! {
        section aria-labelledby="attempts" {
            h2 #attempts { "Attempts " span.tally { (attempts.len()) } }
            (table("Attempts", &["No.", "Agent", "Started", "Took", "Ending", "Used", "Reason", "Machine"], html! { @for one in numbered { (row(one)) } }))
            @if let Some(said) = attempts.iter().find_map(|attempt| attempt.run.as_ref()?.final_message.as_deref()) {
                h3 { "Final message of the agent" }
                div.prose { (said) }
            }
        }
    }
}

fn messages(page: &TaskPage) -> Markup {
    let messages = &page.detail.messages;
    html! {
        @if !messages.is_empty() {
            section aria-labelledby="messages" {
                h2 #messages { "Messages " span.tally { (messages.len()) } }
                ul.messages {
                    @for message in messages {
                        li id={ "message-" (message.id) } {
                            p.line {
                                span.holder { (message.from) }
                                @if let Some(to) = &message.to { span.dim { "to " (to) } }
                                span.when { (ago(page.now, message.sent_at)) }
                                @if message.acknowledged_at.is_some() { span.dim { "read" } }
                            }
                            div.prose { (message.text) }
                        }
                    }
                }
            }
        }
    }
}

fn history(around: &Around, page: &TaskPage) -> Markup {
    let ids = ShortIds::of(page.detail.history.iter().map(|line| line.actor.as_str()));
    let rows = html! {
        @for line in &page.detail.history { tr id={ "event-" (line.seq) } { (event(around, page.now, line, ids, false)) } }
    };
    html! {
        section aria-labelledby="history" {
            h2 #history { "History" }
            (table("History", &["When", "Event", "Change", "By"], rows))
        }
    }
}
