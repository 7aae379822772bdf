//! `tenure tasks tree`.

use std::collections::{HashMap, HashSet};

use serde_json::json;
use tenure_core::task::{SectionRef, Task};
use tenure_core::wire;

use super::filter_args::FilterArgs;
use super::{list, view};
use crate::answer::Answer;
use crate::app::App;
use crate::identity::IdentityArgs;
use crate::report::CommandResult;
use crate::table::cut_to;
use crate::text::{Style, Text};

/// Show tasks as a tree: sections, their tasks, and below each task what it depends on (default: all but completed)
///
/// A task is shown once with what is below it; `(*)` marks a repetition.
///
/// Example: tenure tasks tree --section Backend
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: FilterArgs,
}

/// Deeper dependencies are shown further down, so that a line stays readable.
const DEEPEST: usize = 8;

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    // The default is the same as that of `tasks list`, which leaves completed tasks out.
    let wanted = list::wanted(&args.filter.status)?;
    let open = app.open()?;
    let identity = app.identity(&IdentityArgs::default())?;
    let tasks = open.read(|view| args.filter.all(&open, view, &identity, &wanted))?;
    if app.printer.json {
        let total = u64::try_from(tasks.len()).ok();
        let tasks = tasks.iter().map(|task| view::object(app, task)).collect();
        return Ok(Answer::new(json!(wire::TasksAnswer { tasks, total }), Text::new()));
    }
    let mut text = Text::new();
    if tasks.is_empty() {
        text.line("No tasks match.");
    }
    let mut from = 0;
    while let Some(first) = tasks.get(from) {
        let section = section_id(first);
        let count = tasks[from..].iter().take_while(|task| section_id(task) == section).count();
        if from > 0 {
            text.blank();
        }
        text.styled(Style::Bold, heading(first.section.as_ref()));
        Branch::new(app, &tasks, &tasks[from..from + count]).draw(&mut text);
        from += count;
    }
    Ok(Answer::new(serde_json::Value::Null, text))
}

fn heading(section: Option<&SectionRef>) -> String {
    match section {
        Some(SectionRef { name, serial: true, .. }) => format!("{name} (serial)"),
        Some(section) => section.name.clone(),
        None => "No section".to_owned(),
    }
}

fn section_id(task: &Task) -> Option<&str> {
    task.section.as_ref().map(|section| section.id.as_str())
}

/// The tree of one section.
struct Branch<'t, 'a, 'e> {
    app: &'t App<'e>,
    by_key: HashMap<&'a str, &'a Task>,
    own: &'a [Task],
    shown: HashSet<&'a str>,
}

impl<'t, 'a, 'e> Branch<'t, 'a, 'e> {
    fn new(app: &'t App<'e>, all: &'a [Task], own: &'a [Task]) -> Self {
        Self {
            app,
            by_key: all.iter().map(|task| (task.key.as_str(), task)).collect(),
            own,
            shown: HashSet::new(),
        }
    }

    /// First the tasks that no other task of the section depends on, with what they depend on; then those that were too deep.
    fn draw(&mut self, text: &mut Text) {
        let needed: HashSet<&str> =
            self.own.iter().flat_map(|task| &task.depends_on).map(String::as_str).collect();
        let tops: Vec<&'a Task> =
            self.own.iter().filter(|task| !needed.contains(task.key.as_str())).collect();
        let mut lines = Vec::new();
        for task in tops.into_iter().chain(self.own) {
            if !self.shown.contains(task.key.as_str()) {
                self.task(task, 0, &mut lines);
            }
        }
        for (at, (depth, task, mark)) in lines.iter().enumerate() {
            self.line(text, &stem(&lines, at, *depth), task, mark);
        }
    }

    /// Adds a task and what it depends on. The recursion is at most [`DEEPEST`] deep.
    fn task(&mut self, task: &'a Task, depth: usize, lines: &mut Vec<(usize, &'a Task, &'static str)>) {
        let is_own = self.own.first().is_some_and(|own| section_id(own) == section_id(task));
        let below: Vec<&'a Task> =
            task.depends_on.iter().filter_map(|key| self.by_key.get(key.as_str()).copied()).collect();
        if !is_own {
            lines.push((depth, task, "elsewhere"));
        } else if self.shown.contains(task.key.as_str()) {
            lines.push((depth, task, if below.is_empty() { "" } else { "(*)" }));
        } else if depth >= DEEPEST && !below.is_empty() {
            lines.push((depth, task, "(below)"));
        } else {
            self.shown.insert(&task.key);
            lines.push((depth, task, ""));
            for on in below {
                self.task(on, depth + 1, lines);
            }
        }
    }

    fn line(&self, text: &mut Text, stem: &str, task: &Task, mark: &str) {
        let (style, status) = view::status_cell(self.app, task);
        let mark = match (mark, &task.section) {
            ("elsewhere", Some(section)) => format!(" (in {})", section.name),
            ("elsewhere" | "", _) => String::new(),
            (mark, _) => format!(" {mark}"),
        };
        let used = stem.chars().count() + task.key.len() + 2 + status.len() + 2;
        let room = self.app.printer.render_options().width.map(|width| width.saturating_sub(used).max(10));
        let title = format!("{}{mark}", task.title);
        let title = room.map_or(title.clone(), |room| cut_to(&tenure_core::text::escape_line(&title), room));
        text.styled(Style::Dim, stem)
            .and(Style::Bold, task.key.clone())
            .and(style, format!("  {status}"))
            .and(Style::Plain, format!("  {title}"));
    }
}

/// The lines to the left of the entry at `at`: for each level, whether more entries of that level follow.
fn stem(lines: &[(usize, &Task, &'static str)], at: usize, depth: usize) -> String {
    let follows = |level: usize| {
        let rest = lines.iter().skip(at + 1).map(|(depth, ..)| *depth);
        rest.take_while(|depth| *depth >= level).any(|depth| depth == level)
    };
    let mut stem: String = (0..depth).map(|level| if follows(level) { "│  " } else { "   " }).collect();
    stem.push_str(if follows(depth) { "├─ " } else { "└─ " });
    stem
}
