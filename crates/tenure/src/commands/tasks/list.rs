//! `tenure tasks list`.

use serde_json::{Value, json};
use tenure_core::hints;
use tenure_core::store::{ComputedState, SortBy, TaskFilter, TaskOrder, View, Viewer};
use tenure_core::task::{Task, TaskStatus};
use tenure_core::{reference, wire};
use tenure_sqlite::Directory;

use super::view;
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::identity::{Identity, IdentityArgs};
use crate::report::{CommandResult, Report};
use crate::shell_quote;
use crate::text::{Style, Text};

/// List tasks in working order (default: all but completed)
///
/// Example: tenure tasks list --status active --section Backend
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// pending, in_progress, review, completed, failed, skipped; blocked, ready, lapsed; active (in_progress and review); all
    #[arg(short, long, value_name = "STATUS")]
    status: Vec<String>,
    /// Only tasks of this section
    #[arg(long, value_name = "S")]
    section: Option<String>,
    /// Only tasks with this text in the key, title or description
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only tasks with this label
    #[arg(long, value_name = "L")]
    label: Option<String>,
    /// Only tasks that can be claimed now
    #[arg(long)]
    ready: bool,
    /// Only tasks that you hold
    #[arg(long)]
    mine: bool,
    /// List the tasks of every registered project
    #[arg(long)]
    global: bool,
    /// Sort by key, title, status, priority, created, updated, or order (the working order); -key and so on for descending
    #[arg(long, value_name = "FIELD", value_parser = parse_sort, allow_hyphen_values = true)]
    sort: Option<Sort>,
    /// Reverse the order
    #[arg(long)]
    reverse: bool,
    /// Maximum number of tasks
    #[arg(long, value_name = "N", default_value_t)]
    limit: PageSize,
    /// Number of tasks to skip first
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u64,
    /// With --search or --label: also count all tasks that match, which reads every task
    #[arg(long)]
    total: bool,
    /// Act as this agent (or set TENURE_AGENT)
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
}

/// The value of `--sort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sort(TaskOrder);

fn parse_sort(text: &str) -> Result<Sort, String> {
    let name = text.strip_prefix('-').unwrap_or(text);
    let by = SortBy::ALL.into_iter().find(|by| by.as_str() == name).ok_or_else(|| {
        let names = SortBy::ALL.map(SortBy::as_str).join(", ");
        format!("the fields are {names}; a minus before one reverses the order")
    })?;
    Ok(Sort(TaskOrder { by, descending: name.len() < text.len() }))
}

impl Args {
    fn order(&self) -> TaskOrder {
        let order = self.sort.map(|Sort(order)| order).unwrap_or_default();
        TaskOrder { descending: order.descending != self.reverse, ..order }
    }
}

/// The size of a page; 100 by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PageSize(u64);

impl Default for PageSize {
    fn default() -> Self {
        Self(100)
    }
}

impl std::fmt::Display for PageSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for PageSize {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let wanted = wanted(&args.status)?;
    let identity = app.identity(&IdentityArgs::agent(args.agent.as_deref()))?;
    if args.mine && !identity.is_named() {
        return Err(Report::usage("--mine needs your identity: give --agent ID, or set TENURE_AGENT")
            .hint(hints::join()));
    }
    if args.global {
        return global(app, &args, &identity, &wanted);
    }
    let open = app.open()?;
    let Page { tasks, total, has_more } = page(&open, &args, &identity, &wanted)?;
    // Only one of JSON and text is shown, so the other is not built.
    if app.printer.json {
        let tasks = tasks.iter().map(|task| view::object(app, task)).collect();
        return Ok(Answer::new(json!(wire::TasksAnswer { tasks, total }), Text::new()));
    }
    let mut text = Text::new();
    if tasks.is_empty() {
        text.line(match total {
            Some(0) if args == Args::default() => "No open tasks.",
            Some(0) => "No tasks match.",
            None if args.offset == 0 && !has_more => "No tasks match.",
            _ => "No tasks on this page.",
        });
    } else {
        text.table(&view::table(app, &tasks), app.printer.render_options());
    }
    let shown = u64::try_from(tasks.len()).unwrap_or(u64::MAX);
    if shown > 0 && has_more {
        let of_total = total.map_or_else(|| " shown".to_owned(), |total| format!(" of {total}"));
        text.styled(Style::Dim, format!("{shown}{of_total}; more with --offset {}", args.offset + shown));
    }
    Ok(Answer::new(Value::Null, text))
}

/// One page of a list.
pub(crate) struct Page {
    pub(crate) tasks: Vec<Task>,
    /// How many tasks match on all pages, if that is known.
    pub(crate) total: Option<u64>,
    /// Whether tasks follow this page.
    pub(crate) has_more: bool,
}

/// Reads a page. The tasks that match a text or a label can only be counted by reading all tasks, so they are counted only if
/// `counts_all`.
pub(crate) fn read_page(
    view: &dyn View,
    filter: &TaskFilter,
    viewer: &Viewer,
    counts_all: bool,
) -> tenure_core::Result<Page> {
    if counts_all || (filter.search.is_none() && filter.label.is_none()) {
        let (tasks, total) = view.list_tasks(filter, viewer)?;
        let seen = filter.offset.saturating_add(u64::try_from(tasks.len()).unwrap_or(u64::MAX));
        return Ok(Page { tasks, total: Some(total), has_more: seen < total });
    }
    let one_more = TaskFilter { limit: filter.limit.saturating_add(1), ..filter.clone() };
    let mut tasks = view.page_of_tasks(&one_more, viewer)?;
    let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let has_more = tasks.len() > limit;
    tasks.truncate(limit);
    Ok(Page { tasks, total: None, has_more })
}

fn page(open: &Open<'_>, args: &Args, identity: &Identity, wanted: &Wanted) -> tenure_core::Result<Page> {
    open.read(|view| {
        let viewer = open.viewer(view, identity)?;
        let section = match &args.section {
            Some(name) => Some(reference::section(view, name)?.id),
            None => None,
        };
        let filter = TaskFilter {
            statuses: wanted.statuses.clone(),
            states: wanted.states.clone(),
            section,
            search: args.search.clone(),
            label: args.label.clone(),
            ready: args.ready,
            held_by: args.mine.then(|| identity.holder.clone()),
            order: args.order(),
            limit: args.limit.0,
            offset: args.offset,
        };
        read_page(view, &filter, &viewer, args.total)
    })
}

/// A project that cannot be read is reported and skipped.
fn global(app: &mut App<'_>, args: &Args, identity: &Identity, wanted: &Wanted) -> CommandResult<Answer> {
    let home = app.home()?;
    let projects = match Directory::open_existing(&home, app.env.clock.clone())? {
        Some(directory) => directory.projects()?,
        None => Vec::new(),
    };
    let mut text = Text::new();
    let mut rows = Vec::new();
    let mut total = Some(0);
    for project in projects {
        let Some(located) = app.project_at(&project.path) else {
            let remove =
                format!("tenure projects remove {}", shell_quote::last_arg(&project.path.to_string_lossy()));
            let path = project.path.display();
            app.printer.warn(&format!("{path} no longer exists; unregister it with `{remove}`"));
            continue;
        };
        let found = app.open_at(located).and_then(|open| Ok(page(&open, args, identity, wanted)?));
        let Page { tasks, total: count, .. } = match found {
            Ok(found) => found,
            Err(report) => {
                app.printer.warn(&format!("{}: {}", project.path.display(), report.message));
                continue;
            }
        };
        total = total.zip(count).map(|(total, count)| total + count);
        if tasks.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.blank();
        }
        text.styled(Style::Bold, project.path.to_string_lossy().into_owned());
        text.table(&view::table(app, &tasks), app.printer.render_options());
        for task in &tasks {
            let mut row = json!(view::object(app, task));
            if let Some(fields) = row.as_object_mut() {
                fields.insert("projectPath".into(), json!(project.path));
            }
            rows.push(row);
        }
    }
    if rows.is_empty() {
        text.line("No tasks match.");
    }
    Ok(Answer::new(json!({"tasks": rows, "total": total}), text))
}

/// The statuses and computed states that `--status` names.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// None: all tasks.
    pub(crate) statuses: Option<Vec<TaskStatus>>,
    pub(crate) states: Vec<ComputedState>,
}

impl Wanted {
    pub(crate) const ALL: Self = Self { statuses: None, states: Vec::new() };
}

/// Without words: everything but completed tasks.
pub(crate) fn wanted(words: &[String]) -> CommandResult<Wanted> {
    if words.is_empty() {
        let open = TaskStatus::ALL.into_iter().filter(|s| *s != TaskStatus::Completed).collect();
        return Ok(Wanted { statuses: Some(open), states: Vec::new() });
    }
    let (mut statuses, mut states) = (Vec::new(), Vec::new());
    for word in words.iter().flat_map(|w| w.split(',')) {
        match word.trim() {
            "all" => return Ok(Wanted::ALL),
            "active" => statuses.extend([TaskStatus::InProgress, TaskStatus::Review]),
            "blocked" => states.push(ComputedState::Blocked),
            "ready" => states.push(ComputedState::Ready),
            "lapsed" => states.push(ComputedState::Lapsed),
            other => match TaskStatus::parse(other) {
                Some(status) => statuses.push(status),
                None => {
                    return Err(Report::usage(format!(
                        "there is no status {other:?}; the statuses are pending, in_progress, review, completed, failed, \
                         skipped, blocked, ready, lapsed, active and all"
                    )));
                }
            },
        }
    }
    Ok(Wanted { statuses: Some(statuses), states })
}
