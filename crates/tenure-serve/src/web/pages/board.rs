//! The board: what waits for a person, who holds what, and the tasks in columns.

use maud::{Markup, html};
use tenure_core::Timestamp;
use tenure_core::board::{Attention, Board, Group, GroupBy, GroupId, Held, Query, TaskLine};
use tenure_core::lease::LeaseState;
use tenure_core::task::TaskStatus;

use super::parts::{
    ago, event_words, hidden, hint, holder, lease, pill, reasons, task_link, thousands, usage,
};
use super::{Around, Frame, ROWS, group_name, project_name};

pub(super) fn page(around: &Around, query: &Query, board: &Board) -> Markup {
    let name = project_name(&board.project);
    let frame = Frame { around, title: name, project: Some(name), here: "board", task: None };
    frame.page(html! {
        h1.unseen { "Board of " (name) }
        (summary(board))
        @if !board.attention.rows.is_empty() { (attention(around, board)) }
        @if !board.held.rows.is_empty() { (held(around, board)) }
        (controls(around, query))
        (columns(around, query, board))
    })
}

fn summary(board: &Board) -> Markup {
    let head = &board.project;
    html! {
        section.summary #summary aria-label="Summary" {
            dl.counts {
                @for (status, count) in &head.tasks {
                    @if *count > 0 || matches!(status, TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::Completed) {
                        div class={ "count " (status.as_str()) } { dt { (status.label()) } dd { (thousands(*count)) } }
                    }
                }
                @if board.queue.total > 0 { div.count { dt { "Waiting" } dd { (thousands(board.queue.total)) } } }
                div.count { dt { "Runners" } dd { (board.runners.len()) } }
                @if let Some(used) = &head.used_today { div.count.wide { dt { "Used in 24 h" } dd { (usage(used)) } } }
            }
            @if let Some(lock) = &head.exclusive { p.warn { (lock) } }
            (in_the_way(board))
        }
    }
}

/// Why nothing moves. While some work continues, only the reasons that block the rest.
fn in_the_way(board: &Board) -> Markup {
    let is_at_work = board.held.total > 0;
    let shown: Vec<_> = board.reasons.iter().filter(|reason| !is_at_work || !reason.is_progress()).collect();
    html! {
        @if !board.moving && !shown.is_empty() {
            div.stuck {
                h2 { @if is_at_work { "In the way" } @else { "Why nothing moves" } }
                (reasons(shown))
            }
        }
    }
}

fn attention(around: &Around, board: &Board) -> Markup {
    html! {
        section #attention aria-labelledby="attention-title" {
            h2 #attention-title { "Waits for you " span.tally { (board.attention.total) } }
            ul.attention {
                @for row in &board.attention.rows { (attention_row(around, board.now, row)) }
            }
            @if board.attention.more() > 0 { p.dim { (thousands(board.attention.more())) " more" } }
        }
    }
}

fn attention_row(around: &Around, now: Timestamp, row: &Attention) -> Markup {
    html! {
        li {
            span class={ "kind " (row.kind.label().replace(' ', "-")) } { (row.kind.label()) }
            span.text {
                @if let Some(task) = &row.task {
                    (task_link(around, &task.key, &task.key)) " " span.title { (task.title) } " · "
                }
                span.dim { (row.sentence) }
                @if row.task.is_none() && !row.hints.is_empty() {
                    @if !row.sentence.ends_with('.') { "." }
                    @for found in &row.hints { " " (hint(found)) }
                }
            }
            @if let Some(since) = row.since { span.when { (ago(now, since)) } }
        }
    }
}

fn held(around: &Around, board: &Board) -> Markup {
    html! {
        section #held aria-labelledby="held-title" {
            h2 #held-title { "Held " span.tally { (board.held.total) } }
            ul.held { @for row in &board.held.rows { (held_row(around, board.now, row)) } }
            @if board.held.more() > 0 { p.dim { (thousands(board.held.more())) " more" } }
        }
    }
}

fn held_row(around: &Around, now: Timestamp, held: &Held) -> Markup {
    html! {
        li id={ "held-" (held.task.key) } {
            span.key { (task_link(around, &held.task.key, &held.task.key)) }
            span.title { (held.task.title) }
            span.by { (lease(now, &held.lease)) }
            span.fence title="Rises with every claim; a write with an older one is refused" { "fence " (held.lease.fence) }
            ul.more {
                @if let Some(attempt) = &held.attempt {
                    li { @if let Some(agent) = &attempt.agent { (agent) " " } "on " (attempt.host) }
                }
                @if held.waiting > 0 { li.warn { (held.waiting) " waiting" } }
                @if let Some(used) = &held.used { li { (usage(used)) } }
                @if let Some(event) = &held.last_event { li { (event_words(event)) " " (ago(now, event.at)) } }
            }
        }
    }
}

/// Which tasks are shown, and the form for a new one.
fn controls(around: &Around, query: &Query) -> Markup {
    let project = around.project.as_deref().unwrap_or_default();
    let home = format!("/p/{project}/");
    let by_section = query.group_by == GroupBy::Section;
    html! {
        section.controls #controls aria-label="Tasks" {
            form.filter method="get" action=(home) role="search" {
                label.unseen for="q" { "Search in tasks" }
                input #q type="search" name="q" placeholder="Search" value=[query.search.as_deref()]
                    aria-keyshortcuts="/" data-does="Search";
                label.unseen for="by" { "Columns" }
                select #by name="by" aria-keyshortcuts="b" data-does="Choose the columns" {
                    option value="status" selected[!by_section] { "By status" }
                    option value="section" selected[by_section] { "By section" }
                }
                label.check { input type="checkbox" name="done" value="1" checked[query.finished]; "Finished" }
                button { "Show" }
            }
            @if let Some(csrf) = around.may_change() {
                details.new #new {
                    summary.button aria-keyshortcuts="n" data-does="Add a task" { "New task" }
                    form method="post" action={ (home) "do/add" } data-once {
                        (hidden(csrf, &home, None))
                        label { "Title" input name="title" required maxlength="500"; }
                        label { "Description" textarea name="description" rows="4" {} }
                        div.row {
                            label { "Section" input name="section"; }
                            label { "Key" input name="key" maxlength="64" placeholder="the next number"; }
                        }
                        button.primary { "Add task" }
                    }
                }
            }
        }
    }
}

fn columns(around: &Around, query: &Query, board: &Board) -> Markup {
    // Finished tasks have their own columns only if the query asks for them.
    let is_shown = |group: &&Group| match group.id {
        GroupId::Status(status) => query.finished || !status.is_finished(),
        GroupId::Section(_) | GroupId::NoSection => {
            group.tasks.as_ref().is_some_and(|tasks| !tasks.rows.is_empty()) || group.open > 0
        }
    };
    let shown: Vec<_> = board.groups.iter().filter(is_shown).collect();
    html! {
        div.columns #columns {
            @if board.project.total == 0 {
                p.empty { "There are no tasks yet." }
            } @else if shown.is_empty() {
                p.empty { @if query.search.is_some() { "No task matches." } @else { "All tasks are finished." } }
            }
            @for group in shown { (column(around, query, board.now, group)) }
        }
    }
}

fn column(around: &Around, query: &Query, now: Timestamp, group: &Group) -> Markup {
    let name = group_name(&group.id);
    let label = if let GroupId::Status(status) = group.id { status.label() } else { &group.name };
    html! {
        section.column id={ "column-" (name) } aria-labelledby={ "title-" (name) } {
            h2 id={ "title-" (name) } {
                span { (label) } " "
                span.tally {
                    (thousands(group.tasks.as_ref().map_or(group.total, |tasks| tasks.total)))
                    @if group.tasks.as_ref().is_some_and(|tasks| tasks.is_uncounted) { "+" }
                }
            }
            @if let Some(of) = &group.holder { p.dim { "Serial; " span.holder { (holder(of)) } " works in it" } }
            @if !group.blocked_by.is_empty() { p.dim { "Waits for " (group.blocked_by.join(", ")) } }
            @match &group.tasks {
                None => p.dim { "Not shown" },
                Some(tasks) => {
                    @if tasks.rows.is_empty() { p.empty { "None" } }
                    ol.cards { @for task in &tasks.rows { (card(around, query, now, task)) } }
                    @if tasks.offset > 0 || tasks.more() > 0 {
                        nav.paging aria-label={ "Pages of " (label) } {
                            @if tasks.offset > 0 {
                                a href=(page_link(around, query, &name, tasks.offset.saturating_sub(ROWS))) { "Earlier" }
                            }
                            span.dim { (thousands(tasks.offset + 1)) "–" (thousands(tasks.offset + tasks.rows.len() as u64)) }
                            @if tasks.more() > 0 {
                                a href=(page_link(around, query, &name, tasks.offset + ROWS)) { "Later" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The board with another page of one column.
fn page_link(around: &Around, query: &Query, group: &str, offset: u64) -> String {
    let mut fields = form_urlencoded::Serializer::new(String::new());
    let by = if query.group_by == GroupBy::Section { "section" } else { "status" };
    fields.append_pair("by", by);
    if let Some(search) = &query.search {
        fields.append_pair("q", search);
    }
    if query.finished {
        fields.append_pair("done", "1");
    }
    for (other, from) in &query.offsets {
        if group_name(other) != group {
            fields.append_pair(&format!("from.{}", group_name(other)), &from.to_string());
        }
    }
    if offset > 0 {
        fields.append_pair(&format!("from.{group}"), &offset.to_string());
    }
    format!("/p/{}/?{}", around.project.as_deref().unwrap_or_default(), fields.finish())
}

fn card(around: &Around, query: &Query, now: Timestamp, task: &TaskLine) -> Markup {
    let by_status = query.group_by == GroupBy::Status;
    let is_plain = by_status
        && task.blocked_by.is_empty()
        && task.lease.as_ref().is_none_or(|l| l.state == LeaseState::Live);
    html! {
        li.card id={ "task-" (task.key) } {
            div.line {
                span.key { (task.key) }
                @if !is_plain { (pill(task)) }
                @if by_status { @if let Some(section) = &task.section { span.section { (section) } } }
            }
            (task_link(around, &task.key, &task.title))
            @if let Some(held) = &task.lease { div.meta { (lease(now, held)) } }
            @if !task.blocked_by.is_empty() { div.meta { "waits for " (task.blocked_by.join(", ")) } }
            @if !task.labels.is_empty() || task.attempts > 1 {
                div.meta {
                    @for label in &task.labels { span.label { (label) } " " }
                    @if task.attempts > 1 { span.dim { (task.attempts) " attempts" } }
                }
            }
        }
    }
}
