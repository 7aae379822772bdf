//! All projects of this machine, including those that were not opened.

use maud::{Markup, html};
use tenure_core::board::Board;
use tenure_core::task::TaskStatus;

use super::parts::{table, thousands};
use super::{Around, Frame, ProjectEntry, ProjectSummary};

pub(crate) fn projects(around: &Around, entries: Vec<ProjectEntry<'_>>) -> Markup {
    let frame = Frame { around, title: "Projects", project: None, here: "projects", task: None };
    frame.page(html! {
        h1 { "Projects of this machine" }
        @if entries.is_empty() { p.empty { "No project is registered. " code { "tenure init" } " creates one." } }
        @else {
            (table("Projects", &["Project", "State", "Tasks", "Held", "Waiting", "Runners", "Waits for you", "Folder"], html! {
                @for entry in &entries { tr { (row(entry)) } }
            }))
        }
    })
}

fn row((project, summary): &ProjectEntry<'_>) -> Markup {
    let folder = project.path.rsplit('/').next().unwrap_or_default();
    let name = project.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(folder);
    let problem = match summary {
        ProjectSummary::Open(_) => None,
        ProjectSummary::Closed => project.closed.as_deref(),
        ProjectSummary::Unreachable(why) => Some(why.as_str()),
    };
    html! {
        @match summary {
            ProjectSummary::Open(board) => {
                td { a href={ "/p/" (project.slug) "/" } { (name) } }
                td { @if board.moving || board.held.total > 0 { "moving" } @else { span.warn { "nothing moves" } } }
                (counts(board))
            }
            _ => {
                td { (name) }
                td.what colspan="6" {
                    span.warn { (problem.unwrap_or("it is closed")) }
                    @if let Some(command) = &project.hint { " " code { (command) } }
                }
            }
        }
        td.path title=(project.path) { (project.path) }
    }
}

fn counts(board: &Board) -> Markup {
    let head = &board.project;
    let shown = head.tasks.iter().filter(|(status, count)| *count > 0 && *status != TaskStatus::Skipped);
    html! {
        td.what {
            @for (at, (status, count)) in shown.enumerate() {
                @if at > 0 { ", " }
                (thousands(*count)) " " (status.label().to_lowercase())
            }
        }
        td.number { (board.held.total) }
        td.number { (board.queue.total) }
        td.number { (board.runners.len()) }
        td.number class=[(board.attention.total > 0).then_some("warn")] { (board.attention.total) }
    }
}
