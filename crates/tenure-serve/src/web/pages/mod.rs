//! The pages as HTML. Each is a pure function of what it shows.
//!
//! Guaranteed: all text goes through maud's escaping; there is no inline script, no inline style and no URL of another server.

use std::collections::{BTreeMap, HashMap};

use maud::{DOCTYPE, Markup, html};
use tenure_core::board::{Board, GroupBy, GroupId, ProjectHead, Query};
use tenure_core::id::SectionId;
use tenure_core::task::TaskStatus;

use super::handler::{ProjectHandler, ProjectRow};
use crate::request_handler::Refusal;

mod board;
mod lists;
mod parts;
mod projects;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use projects::projects;

/// At most this many tasks in a column, and rows of a list.
const ROWS: u64 = 200;
/// Rows of the lists beside the columns of the board.
const SIDE_ROWS: u64 = 50;
const EVENTS: u64 = 200;

/// What every page of a session has in common.
#[derive(Debug, Clone)]
pub(crate) struct Around {
    /// The project's name in URLs.
    pub(crate) project: Option<String>,
    /// The session's value for forms.
    pub(crate) csrf: String,
    /// No change is offered.
    pub(crate) read_only: bool,
}

impl Around {
    /// The session's value for forms that change a project; `None` if the server is read-only.
    fn may_change(&self) -> Option<&str> {
        (!self.read_only).then_some(&self.csrf)
    }
}

/// A list of a project that has its own page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Runners,
    Queue,
    Accounts,
    Jobs,
    Events,
}

/// A page of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum View {
    Board(Box<Query>),
    Task(String),
    List(List),
}

/// A project in the list of all projects.
#[derive(Debug)]
pub(crate) enum ProjectSummary {
    Open(Box<Board>),
    /// It was not opened; the row says why.
    Closed,
    /// It could not be read, for this reason.
    Unreachable(String),
}

pub(crate) type ProjectEntry<'a> = (&'a ProjectRow, ProjectSummary);

impl View {
    /// `by` is `section` or `status`; `q` is searched for; `done` shows finished tasks; `from.GROUP` is the first row of a column.
    pub(crate) fn board(params: &HashMap<String, String>) -> Self {
        let by_section = params.get("by").is_some_and(|by| by == "section");
        let search = params.get("q").map(|text| text.trim()).filter(|text| !text.is_empty());
        let offsets: BTreeMap<GroupId, u64> = params
            .iter()
            .filter_map(|(name, value)| Some((group_of(name.strip_prefix("from.")?)?, value.parse().ok()?)))
            .collect();
        Self::Board(Box::new(Query {
            group_by: if by_section { GroupBy::Section } else { GroupBy::Status },
            search: search.map(str::to_owned),
            finished: params.contains_key("done"),
            rows: ROWS,
            offsets,
            list_rows: SIDE_ROWS,
            ..Query::default()
        }))
    }

    pub(crate) fn list(name: &str) -> Option<Self> {
        List::ALL.into_iter().find(|list| list.as_str() == name).map(Self::List)
    }
}

impl List {
    const ALL: [Self; 5] = [Self::Runners, Self::Queue, Self::Accounts, Self::Jobs, Self::Events];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Runners => "runners",
            Self::Queue => "queue",
            Self::Accounts => "accounts",
            Self::Jobs => "jobs",
            Self::Events => "events",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Runners => "Runners",
            Self::Queue => "Queue",
            Self::Accounts => "Accounts",
            Self::Jobs => "Jobs",
            Self::Events => "Events",
        }
    }
}

/// The name of a group in URLs.
fn group_name(group: &GroupId) -> String {
    match group {
        GroupId::NoSection => "none".to_owned(),
        GroupId::Section(id) => format!("section-{id}"),
        GroupId::Status(status) => status.as_str().to_owned(),
    }
}

fn group_of(name: &str) -> Option<GroupId> {
    match name.strip_prefix("section-") {
        Some(id) => Some(GroupId::Section(SectionId::new(id))),
        None if name == "none" => Some(GroupId::NoSection),
        None => TaskStatus::parse(name).map(GroupId::Status),
    }
}

/// Reads what a page shows, and renders it.
pub(crate) fn render(
    handler: &mut dyn ProjectHandler,
    around: &Around,
    view: &View,
) -> Result<String, Refusal> {
    let page = match view {
        View::Board(query) => board::page(around, query, &handler.board(query)?),
        View::Task(task) => task::page(around, &handler.task(task)?),
        View::List(list) => {
            let board = handler.board(&list_query())?;
            let events = if *list == List::Events { handler.events(EVENTS)? } else { Vec::new() };
            lists::page(around, *list, &board, &events)
        }
    };
    Ok(page.into_string())
}

/// No tasks, and long lists of everything else.
fn list_query() -> Query {
    Query { group_by: GroupBy::Status, list_rows: ROWS, ..summary_query() }
}

/// The head of a project and its lists, without tasks.
pub(crate) fn summary_query() -> Query {
    let closed = TaskStatus::ALL.into_iter().map(GroupId::Status).collect();
    Query { group_by: GroupBy::Status, closed, list_rows: 5, ..Query::default() }
}

/// The name of a project as pages show it.
fn project_name(head: &ProjectHead) -> &str {
    let folder = || head.path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(&head.path);
    head.name.as_deref().filter(|name| !name.is_empty()).unwrap_or_else(folder)
}

/// The frame of every page. `here` is the name of its entry in the navigation, `task` the task that it is about.
struct Frame<'a> {
    around: &'a Around,
    title: &'a str,
    project: Option<&'a str>,
    here: &'a str,
    task: Option<&'a str>,
}

impl Frame<'_> {
    fn page(&self, main: Markup) -> Markup {
        let project = self.around.project.as_deref();
        html! {
            (DOCTYPE)
            html lang="en" {
                (head(self.title))
                body data-project=[project] data-task=[self.task] data-csrf=[self.around.may_change()] {
                    a.skip href="#main" { "Skip to the content" }
                    header.bar {
                        a.brand href="/" { img src="/icon.svg" alt="" width="20" height="20"; "tenure" }
                        @if let Some(name) = self.project { span.project title=(name) { (name) } }
                        nav aria-label="Pages" { ul { (self.links()) } }
                        span #live.live role="status" { "not live" }
                        button #keys.keys type="button" hidden aria-haspopup="dialog" aria-label="Keyboard shortcuts" { "?" }
                        form #out method="post" action="/logout" {
                            input type="hidden" name="csrf" value=(self.around.csrf);
                            button { "Sign out" }
                        }
                    }
                    p #said.said role="status" aria-live="polite" {}
                    main #main tabindex="-1" { (main) }
                    dialog #help aria-labelledby="help-title" {
                        h2 #help-title { "Keyboard shortcuts" }
                        dl #shortcuts {}
                        form method="dialog" { button { "Close" } }
                    }
                }
            }
        }
    }

    fn links(&self) -> Markup {
        let mut links = Vec::new();
        if let Some(project) = &self.around.project {
            links.push((format!("/p/{project}/"), "board", "Board"));
            for list in List::ALL {
                links.push((format!("/p/{project}/{}", list.as_str()), list.as_str(), list.title()));
            }
        }
        links.push(("/projects".to_owned(), "projects", "Projects"));
        html! {
            @for (number, (to, name, title)) in (1..).zip(links) {
                li {
                    a href=(to) aria-current=[(name == self.here).then_some("page")]
                        aria-keyshortcuts=(number) data-does={ "Go to " (title) } { (title) }
                }
            }
        }
    }
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " · tenure" }
            link rel="icon" href="/icon.svg" type="image/svg+xml";
            link rel="stylesheet" href="/style.css";
            script src="/board.js" defer {}
        }
    }
}

/// The page on which a browser opens a session.
pub(crate) fn login(problem: Option<&str>) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head("Sign in"))
            body.alone data-page="login" {
                main #main {
                    h1 { "tenure" }
                    @if let Some(problem) = problem { p.problem role="alert" { (problem) } }
                    p { "The terminal in which " code { "tenure web" } " runs shows a link with a code. Press Enter there for a new one." }
                    form method="post" action="/login" {
                        label for="code" { "Code" }
                        input #code name="code" autocomplete="off" required autofocus;
                        button.primary { "Sign in" }
                    }
                }
            }
        }
    }
}

/// The answer to a valid code: a page that redirects by itself.
pub(crate) fn welcome() -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="refresh" content="0;url=/";
                title { "Signed in · tenure" }
                link rel="stylesheet" href="/style.css";
            }
            body.alone {
                main #main { h1 { "tenure" } p { "You are signed in. " a href="/" { "Go on" } } }
            }
        }
    }
}

/// A project or a change that was refused.
pub(crate) fn refused(around: &Around, refusal: &Refusal) -> Markup {
    let frame = Frame { around, title: "Refused", project: None, here: "", task: None };
    frame.page(html! {
        h1 { "This did not work" }
        p.problem role="alert" { (refusal.message) }
        @for line in &refusal.context { p { (line) } }
        @if let Some(project) = &around.project {
            p { a href={ "/p/" (project) "/" } { "Back to the board" } }
        }
    })
}
