//! `tenure locks`: who holds what.

use serde_json::{Value, json};
use tenure_core::duration::format_rounded;
use tenure_core::kernel;
use tenure_core::lease::{Lease, LeaseState, ResourceKind};
use tenure_core::rules::{find_lock, release_lock};
use tenure_core::store::LeaseFilter;
use tenure_core::wire;
use tenure_runner::Scope;

use super::lease_view;
use crate::answer::Answer;
use crate::app::App;
use crate::clearing;
use crate::hooks;
use crate::identity::Who;
use crate::report::Outcome;
use crate::text::{Style, Table, Text};

/// Locks: see who holds what, release, clean up
///
/// REF is a task, `section:NAME`, or a lease id.
///
/// Example: tenure locks list
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List open locks, expired ones marked until they are cleaned up
    ///
    /// Example: tenure locks list --type task
    List {
        /// task, section or all
        #[arg(long = "type", value_name = "TYPE", default_value = "all", value_parser = ["task", "section", "all"])]
        kind: String,
    },
    /// Show who holds something, or that it is free
    ///
    /// Example: tenure locks show section:Backend --history
    Show {
        /// A task, `section:NAME`, or a lease id
        #[arg(value_name = "REF")]
        reference: String,
        /// Also every earlier lock of it
        #[arg(long)]
        history: bool,
    },
    /// Release your own lock, or one that has expired or whose holder is dead
    ///
    /// Example: tenure locks release F001
    Release {
        /// A task, `section:NAME`, or a lease id
        #[arg(value_name = "REF")]
        reference: String,
        /// Also if its holder is alive and somebody else
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        who: Who,
    },
    /// Close every expired or dead lock and put its task back
    ///
    /// Example: tenure locks cleanup --dry-run
    Cleanup {
        #[command(flatten)]
        who: Who,
    },
}

impl Args {
    pub(crate) fn subcommand(&self) -> &'static str {
        match self.verb {
            None | Some(Verb::List { .. }) => "list",
            Some(Verb::Show { .. }) => "show",
            Some(Verb::Release { .. }) => "release",
            Some(Verb::Cleanup { .. }) => "cleanup",
        }
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    match args.verb.unwrap_or_else(|| Verb::List { kind: "all".to_owned() }) {
        Verb::List { kind } => list(app, &kind),
        Verb::Show { reference, history } => show(app, &reference, history),
        Verb::Release { reference, force, who } => release(app, &reference, force, &who),
        Verb::Cleanup { who } => cleanup(app, &who),
    }
}

fn list(app: &mut App<'_>, kind: &str) -> Outcome<Answer> {
    let open = app.open()?;
    let kinds = match kind {
        "task" => vec![ResourceKind::Task],
        "section" => vec![ResourceKind::Section],
        _ => ResourceKind::ALL.to_vec(),
    };
    let filter = LeaseFilter { kinds: Some(kinds), ..LeaseFilter::default() };
    let (leases, names, now) = open.read(|view| {
        let leases = view.leases(&filter)?;
        let names = leases
            .iter()
            .map(|l| lease_view::resource_name(view, &l.resource))
            .collect::<tenure_core::Result<Vec<_>>>()?;
        Ok((leases, names, view.now()))
    })?;
    let judge = app.env.judge.as_ref();
    let mut text = Text::new();
    if leases.is_empty() {
        text.line("Nothing is held.");
    } else {
        let mut table = Table::new(&["LOCK", "HOLDER", "FENCE", "SINCE", "EXPIRES", "LEASE"]);
        for (lease, name) in leases.iter().zip(&names) {
            let style = if lease.state(now, judge) == LeaseState::Live { Style::Plain } else { Style::Warn };
            table.styled_row(vec![
                (Style::Bold, name.clone()),
                (Style::Plain, lease_view::holder(lease)),
                (Style::Plain, lease.fence.to_string()),
                (Style::Plain, format!("{} ago", format_rounded(now.since(lease.acquired_at)))),
                (style, lease_view::remaining(lease, now, judge)),
                (Style::Plain, lease.id.to_string()),
            ]);
        }
        text.table(&table, app.printer.look());
    }
    let rows: Vec<Value> = leases
        .iter()
        .zip(&names)
        .map(|(lease, name)| {
            let mut row = wire::lease(lease, now, judge);
            if let Some(fields) = row.as_object_mut() {
                fields.insert("name".into(), json!(name));
            }
            row
        })
        .collect();
    Ok(Answer::new(json!({"locks": rows, "total": rows.len()}), text))
}

fn show(app: &mut App<'_>, reference: &str, history: bool) -> Outcome<Answer> {
    let open = app.open()?;
    let ctx = open.context();
    let (found, name, queue, past, now) = open.read(|view| {
        let found = find_lock(view, reference)?;
        let name = lease_view::resource_name(view, &found.resource)?;
        let viewer = ctx.viewer(view, None)?;
        let queue = kernel::count_before(view, &viewer, &found.resource, None)?;
        let past = if history {
            view.leases(&LeaseFilter {
                resource: Some(found.resource.clone()),
                include_ended: true,
                newest_first: true,
                limit: Some(100),
                ..LeaseFilter::default()
            })?
        } else {
            Vec::new()
        };
        Ok((found, name, queue, past, view.now()))
    })?;
    let judge = app.env.judge.as_ref();
    let mut text = Text::new();
    match &found.lease {
        None => {
            text.line(format!("{name} is free."));
        }
        Some(lease) => {
            let is = if lease.state(now, judge) == LeaseState::Live { "is" } else { "was" };
            text.line(format!("{name} {is} held by {}", lease_view::holder(lease)));
            text.line(format!("  Lease: {}   Fence: {}", lease.id, lease.fence));
            text.line(format!("  Since: {}", lease.acquired_at.to_seconds()));
            text.line(format!("  Last heartbeat: {}", lease.heartbeat_at.to_seconds()));
            text.line(format!(
                "  Expires: {} ({})",
                lease.expires_at.to_seconds(),
                lease_view::remaining(lease, now, judge)
            ));
        }
    }
    if queue > 0 {
        text.line(format!("  Waiting in line: {queue}"));
    }
    if history {
        let mut table = Table::new(&["FENCE", "HOLDER", "SINCE", "UNTIL", "END"]);
        for lease in &past {
            table.row([
                lease.fence.to_string(),
                lease_view::holder(lease),
                lease.acquired_at.to_seconds(),
                lease.ended.map_or_else(|| "-".to_owned(), |(at, _)| at.to_seconds()),
                lease.ended.map_or_else(|| "open".to_owned(), |(_, why)| why.as_str().to_owned()),
            ]);
        }
        text.blank().table(&table, app.printer.look());
    }
    let object = |lease: &Lease| wire::lease(lease, now, judge);
    let mut data = json!({
        "resource": found.resource.to_string(),
        "name": name,
        "lock": found.lease.as_ref().map(object),
        "queue": queue,
    });
    if let (true, Some(fields)) = (history, data.as_object_mut()) {
        fields.insert("history".into(), past.iter().map(object).collect());
    }
    Ok(Answer::new(data, text))
}

fn release(app: &mut App<'_>, reference: &str, force: bool, who: &Who) -> Outcome<Answer> {
    let open = app.open()?;
    let identity = app.identity(who)?;
    let ctx = open.context();
    let ears = hooks::ears(app, &open);
    let (released, name, others, news) = open.write(|tx| {
        let found = find_lock(tx, reference)?;
        let task = found.resource.task_id();
        let caller = identity.actor(task.as_ref().map(tenure_core::id::TaskId::as_str));
        let released = release_lock(tx, &ctx, &caller, reference, force)?;
        let others = released.ended.iter().filter(|lease| lease.id != released.lease.id);
        let others = others
            .map(|lease| lease_view::resource_name(tx, &lease.resource))
            .collect::<tenure_core::Result<Vec<_>>>()?;
        let name = lease_view::resource_name(tx, &found.resource)?;
        let mut news = Vec::new();
        for lease in released.ended.iter().filter(|_| released.forced) {
            news.extend(ears.abandoned(tx, lease)?);
        }
        Ok((released, name, others, news))
    })?;
    for lease in &released.ended {
        clearing::after(app, &open, Scope::Of(&lease.resource), &identity.holder.id)?;
    }
    hooks::tell(app, &open, &news);
    let now = app.env.clock.now();
    let judge = app.env.judge.as_ref();
    let mut text = Text::new();
    let word = app.past("Released", "Would release");
    text.line(format!("{word} {name}, held by {}", lease_view::holder(&released.lease)));
    for other in others {
        text.styled(Style::Warn, format!("  and with it {other}"));
    }
    let data = json!({
        "lock": wire::lease(&released.lease, now, judge),
        "forced": released.forced,
        "ended": released.ended.iter().map(|l| wire::lease(l, now, judge)).collect::<Vec<_>>(),
    });
    Ok(Answer::new(data, text))
}

fn cleanup(app: &mut App<'_>, who: &Who) -> Outcome<Answer> {
    let open = app.open()?;
    let actor = app.identity(who)?.holder.id;
    let ctx = open.context();
    let ears = hooks::ears(app, &open);
    let (buried, names, news) = open.write(|tx| {
        let buried = kernel::close_all_lapsed(tx, &ctx, &actor)?;
        let mut news = Vec::new();
        for (lease, _) in &buried {
            news.extend(ears.abandoned(tx, lease)?);
        }
        let names = buried
            .iter()
            .map(|(l, _)| lease_view::resource_name(tx, &l.resource))
            .collect::<tenure_core::Result<Vec<_>>>()?;
        Ok((buried, names, news))
    })?;
    clearing::after(app, &open, Scope::Abandoned, &actor)?;
    hooks::tell(app, &open, &news);
    let now = app.env.clock.now();
    let judge = app.env.judge.as_ref();
    let mut text = Text::new();
    if buried.is_empty() {
        text.line("Nothing to clean up.");
    }
    for ((lease, state), name) in buried.iter().zip(&names) {
        let why = if *state == LeaseState::HolderDead { "its holder is dead" } else { "expired" };
        text.line(format!("{} {name} ({why}), held by {}", app.past("Closed", "Would close"), lease.holder));
    }
    let rows: Vec<_> = buried.iter().map(|(lease, _)| wire::lease(lease, now, judge)).collect();
    Ok(Answer::new(json!({"locks": rows, "total": rows.len()}), text))
}
