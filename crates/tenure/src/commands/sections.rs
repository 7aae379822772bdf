//! `tenure sections`.

use serde_json::{Value, json};
use tenure_core::rules::{
    AddSection, EditSection, add_section, delete_section, depend_section, edit_section, undepend_section,
};
use tenure_core::section::{Section, SectionMode};
use tenure_core::store::TaskFilter;
use tenure_core::{reference, wire};

use super::{lease_view, tasks};
use crate::answer::Answer;
use crate::app::App;
use crate::identity::Who;
use crate::report::{Outcome, Report};
use crate::text::{Style, Table, Text};

/// Sections: groups of tasks, worked through by one holder at a time or by many
///
/// Example: tenure sections add Backend
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Add a section
    ///
    /// Example: tenure sections add Docs --parallel
    Add {
        /// Its name
        name: String,
        /// Many may work in it at a time
        #[arg(long)]
        parallel: bool,
        /// Lower comes first (default 100)
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        priority: Option<i64>,
        #[command(flatten)]
        who: Who,
    },
    /// List sections in working order
    ///
    /// Example: tenure sections list
    List,
    /// Show a section and its tasks
    ///
    /// Example: tenure sections show Backend
    Show {
        /// The section
        name: String,
    },
    /// Change a section
    ///
    /// Example: tenure sections update Docs --serial --priority 10
    Update {
        /// The section
        name: String,
        /// A new name
        #[arg(long, value_name = "NAME")]
        rename: Option<String>,
        /// Many may work in it at a time
        #[arg(long, conflicts_with = "serial")]
        parallel: bool,
        /// One holder at a time
        #[arg(long)]
        serial: bool,
        /// Lower comes first
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        priority: Option<i64>,
        /// Place it directly behind this section
        #[arg(long, value_name = "NAME")]
        after: Option<String>,
        #[command(flatten)]
        who: Who,
    },
    /// Make a section wait for another, or no longer
    ///
    /// Example: tenure sections depend Frontend --on Backend
    Depend {
        /// The section that waits
        name: String,
        /// A section that must be finished first (repeat for more)
        #[arg(long, value_name = "NAME")]
        on: Vec<String>,
        /// A section that it no longer waits for (repeat for more)
        #[arg(long, value_name = "NAME")]
        not_on: Vec<String>,
        #[command(flatten)]
        who: Who,
    },
    /// Delete an empty section
    ///
    /// Example: tenure sections delete Docs
    Delete {
        /// The section
        name: String,
        #[command(flatten)]
        who: Who,
    },
}

impl Args {
    pub(crate) fn subcommand(&self) -> &'static str {
        match self.verb {
            None | Some(Verb::List) => "list",
            Some(Verb::Add { .. }) => "add",
            Some(Verb::Show { .. }) => "show",
            Some(Verb::Update { .. }) => "update",
            Some(Verb::Depend { .. }) => "depend",
            Some(Verb::Delete { .. }) => "delete",
        }
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    let open = app.open()?;
    let ctx = open.context();
    match args.verb.unwrap_or(Verb::List) {
        Verb::List => Ok(list(app, &open.read(|view| view.sections())?)),
        Verb::Show { name } => {
            let identity = app.identity(&Who::default())?;
            let (section, (tasks, total)) = open.read(|view| {
                let section = reference::section(view, &name)?;
                let viewer = open.viewer(view, &identity)?;
                let filter =
                    TaskFilter { section: Some(section.id.clone()), limit: 100, ..TaskFilter::default() };
                let page = view.list_tasks(&filter, &viewer)?;
                Ok((section, page))
            })?;
            let mut text = describe(app, &section);
            if !tasks.is_empty() {
                text.blank().table(&tasks::view::table(app, &tasks), app.printer.look());
            }
            let mut data = data(app, &section);
            data["tasks"] = tasks.iter().map(|task| tasks::view::object(app, task)).collect();
            data["total"] = json!(total);
            Ok(Answer::new(data, text))
        }
        Verb::Add { name, parallel, priority, who } => {
            let caller = app.identity(&who)?.actor(None);
            let mode = if parallel { SectionMode::Parallel } else { SectionMode::Serial };
            let request = AddSection { name, mode, priority };
            let section = open.write(|tx| add_section(tx, &ctx, &caller, &request))?;
            Ok(done(app, &section, app.past("Added", "Would add")))
        }
        Verb::Update { name, rename, parallel, serial, priority, after, who } => {
            let mode = match (parallel, serial) {
                (true, _) => Some(SectionMode::Parallel),
                (_, true) => Some(SectionMode::Serial),
                _ => None,
            };
            let request = EditSection { name: rename, mode, priority, after };
            if request.name.is_none() && mode.is_none() && priority.is_none() && request.after.is_none() {
                return Err(Report::usage("nothing to change: say what, for example --parallel"));
            }
            let caller = app.identity(&who)?.actor(None);
            let section = open.write(|tx| edit_section(tx, &ctx, &caller, &name, &request))?;
            Ok(done(app, &section, app.past("Updated", "Would update")))
        }
        Verb::Depend { name, on, not_on, who } => {
            if on.is_empty() && not_on.is_empty() {
                return Err(Report::usage("say --on or --not-on, and which section"));
            }
            let caller = app.identity(&who)?.actor(None);
            let section = open.write(|tx| {
                let mut section = reference::section(tx, &name)?;
                for other in &not_on {
                    section = undepend_section(tx, &ctx, &caller, &name, other)?;
                }
                for other in &on {
                    section = depend_section(tx, &caller, &name, other)?;
                }
                Ok(section)
            })?;
            let mut text = Text::new();
            let depends = app.past("depends", "would depend");
            let on = if section.depends_on.is_empty() {
                "nothing".to_owned()
            } else {
                section.depends_on.join(", ")
            };
            text.line(format!("Section {} {depends} on {on}", section.name));
            Ok(Answer::new(data(app, &section), text))
        }
        Verb::Delete { name, who } => {
            let caller = app.identity(&who)?.actor(None);
            let section = open.write(|tx| delete_section(tx, &ctx, &caller, &name))?;
            Ok(done(app, &section, app.past("Deleted", "Would delete")))
        }
    }
}

fn data(app: &App<'_>, section: &Section) -> Value {
    json!({"section": wire::section(section, app.env.clock.now(), app.env.judge.as_ref())})
}

fn done(app: &App<'_>, section: &Section, word: &str) -> Answer {
    let mut text = Text::new();
    text.line(format!("{word} section {}", section.name));
    Answer::new(data(app, section), text)
}

fn list(app: &App<'_>, sections: &[Section]) -> Answer {
    let now = app.env.clock.now();
    let judge = app.env.judge.as_ref();
    let mut text = Text::new();
    if sections.is_empty() {
        text.line("No sections.");
    } else {
        let mut table = Table::new(&["SECTION", "MODE", "PRIORITY", "OPEN", "TASKS", "HOLDER"]);
        for section in sections {
            table.row([
                section.name.clone(),
                section.mode.as_str().to_owned(),
                section.priority.to_string(),
                section.open_tasks.to_string(),
                section.tasks.to_string(),
                section.lease.as_ref().map_or_else(|| "-".to_owned(), |l| l.holder.id.clone()),
            ]);
        }
        text.table(&table, app.printer.look());
    }
    let rows: Vec<_> = sections.iter().map(|s| wire::section(s, now, judge)).collect();
    Answer::new(json!({"sections": rows, "total": rows.len()}), text)
}

fn describe(app: &App<'_>, section: &Section) -> Text {
    let mut text = Text::new();
    text.styled(Style::Bold, section.name.clone());
    text.line(format!("Mode: {}   Priority: {}", section.mode.as_str(), section.priority));
    text.line(format!("Tasks: {} ({} open)", section.tasks, section.open_tasks));
    if !section.depends_on.is_empty() {
        text.line(format!("Depends on: {}", section.depends_on.join(", ")));
    }
    if !section.blocked_by.is_empty() {
        text.line(format!("Waits for: {}", section.blocked_by.join(", ")));
    }
    if let Some(lease) = &section.lease {
        let rest = lease_view::remaining(lease, app.env.clock.now(), app.env.judge.as_ref());
        text.line(format!("Held by: {}  {rest}", lease_view::holder(lease)));
    }
    text
}
