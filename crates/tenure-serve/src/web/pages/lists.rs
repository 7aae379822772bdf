//! The pages with one list of a project: runners, queue, accounts, jobs, events.

use maud::{Markup, html};
use tenure_core::board::{Board, EventLine, Page};
use tenure_core::short_id::ShortIds;

use super::parts::{ago, event, hidden, holder, table, task_link, thousands};
use super::{Around, Frame, List, project_name};

pub(super) fn page(around: &Around, list: List, board: &Board, events: &[EventLine]) -> Markup {
    let name = project_name(&board.project);
    let title = format!("{} of {name}", list.title());
    let frame = Frame { around, title: &title, project: Some(name), here: list.as_str(), task: None };
    frame.page(html! {
        h1 { (list.title()) }
        @match list {
            List::Runners => (runners(around, board)),
            List::Queue => (queue(board)),
            List::Accounts => (accounts(board)),
            List::Jobs => (jobs(board)),
            List::Events => (feed(around, board, events)),
        }
    })
}

fn more<T>(page: &Page<T>) -> Markup {
    html! { @if page.more() > 0 { p.dim { (thousands(page.more())) " more" } } }
}

fn runners(around: &Around, board: &Board) -> Markup {
    let project = around.project.as_deref().unwrap_or_default();
    let back = format!("/p/{project}/runners");
    html! {
        @if board.runners.is_empty() {
            p.empty { "No runner is running. A runner claims ready tasks one after another and starts an agent on each." }
        } @else {
            (table("Runners", &["Runner", "Status", "Task", "Preset", "Section", "Process", "Started", "Heartbeat", ""], html! {
                @for line in &board.runners {
                    @let runner = &line.runner;
                    tr id={ "runner-" (runner.id) } {
                        td { code { (runner.id.chars().take(8).collect::<String>()) } }
                        td { (runner.status.as_str()) }
                        td.key { @if let Some(task) = &line.task { (task_link(around, task, task)) } @else { "-" } }
                        td { (runner.preset) }
                        td { (line.section.as_deref().unwrap_or("-")) }
                        td { (runner.process.process.pid) " on " (runner.process.hostname) }
                        td { (ago(board.now, runner.started_at)) }
                        td { (ago(board.now, runner.heartbeat_at)) }
                        td {
                            // A runner on another machine can be stopped only there.
                            @if let (Some(csrf), Some(true)) = (around.may_change(), line.alive) {
                                form method="post" action={ "/p/" (project) "/do/stop-runner" } {
                                    (hidden(csrf, &back, None))
                                    input type="hidden" name="runner" value=(runner.id);
                                    button.danger id={ "stop-" (runner.id) } aria-label={ "Stop runner " (runner.id.chars().take(8).collect::<String>()) } { "Stop" }
                                }
                            }
                        }
                    }
                }
            }))
        }
        @if let Some(csrf) = around.may_change() {
            details.new #start {
                summary.button aria-keyshortcuts="n" data-does="Start a runner" { "Start a runner" }
                form method="post" action={ "/p/" (project) "/do/start-runner" } data-once {
                    (hidden(csrf, &back, None))
                    p.dim { "It runs in the background until no work is left. The project must be trusted, which only a person at a terminal can do." }
                    div.row {
                        label { "Preset" input name="preset" placeholder="as configured"; }
                        label { "Section" input name="section" placeholder="all"; }
                    }
                    button.primary { "Start" }
                }
            }
        }
    }
}

fn queue(board: &Board) -> Markup {
    html! {
        @if board.queue.rows.is_empty() { p.empty { "No process waits." } }
        @else {
            (table("Waiters in the order of arrival", &["Ticket", "Waiter", "Waits for", "Since", "Process"], html! {
                @for waiter in &board.queue.rows {
                    tr id={ "ticket-" (waiter.ticket) } {
                        td.number { (waiter.ticket) }
                        td.holder { (holder(&waiter.holder)) }
                        td { (waiter.wish) @if waiter.review { span.dim { ", also in review" } } }
                        td { (ago(board.now, waiter.since)) }
                        td { (waiter.pid) " on " (waiter.host) }
                    }
                }
            }))
            (more(&board.queue))
        }
        @if !board.reasons.is_empty() {
            section aria-labelledby="why" { h2 #why { "Where the project stands" } (super::parts::reasons(&board.reasons)) }
        }
    }
}

fn accounts(board: &Board) -> Markup {
    html! {
        @if board.parked.is_empty() { p.empty { "Nothing is parked: every account, host and preset can be used." } }
        @else {
            (table("Parked", &["What", "Why", "Tried again"], html! {
                @for parked in &board.parked {
                    tr {
                        td { (parked.subject.label()) }
                        td.what { (parked.sentence) }
                        td { @match parked.until { Some(until) => (ago(board.now, until)), None => span.warn { "a person has to act" } } }
                    }
                }
            }))
        }
    }
}

fn jobs(board: &Board) -> Markup {
    html! {
        @if board.jobs.rows.is_empty() { p.empty { "There are no jobs." } }
        @else {
            (table("Jobs, newest first", &["Job", "Name", "Status", "Done", "Failed", "Left", "Created"], html! {
                @for job in &board.jobs.rows {
                    tr id={ "job-" (job.id) } {
                        td { code { (job.id.chars().take(8).collect::<String>()) } }
                        td { (job.name) }
                        td { (job.status.as_str()) }
                        td.number { (job.counts.succeeded) "/" (job.counts.total) }
                        td.number class=[(job.counts.failed > 0).then_some("warn")] { (job.counts.failed) }
                        td.number { (job.counts.pending + job.counts.running) }
                        td { (ago(board.now, job.created_at)) }
                    }
                }
            }))
            (more(&board.jobs))
        }
    }
}

fn feed(around: &Around, board: &Board, events: &[EventLine]) -> Markup {
    let ids = ShortIds::of(events.iter().map(|line| line.actor.as_str()));
    html! {
        @if events.is_empty() { p.empty { "Nothing has happened yet." } }
        @else {
            (table("Events, newest first", &["When", "Event", "What", "Change", "By"], html! {
                @for line in events { tr id={ "event-" (line.seq) } { (event(around, board.now, line, ids, true)) } }
            }))
        }
    }
}
