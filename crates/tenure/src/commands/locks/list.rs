//! `tenure locks list`.

use serde_json::json;
use tenure_core::duration::format_rounded;
use tenure_core::lease::{LeaseState, ResourceKind};
use tenure_core::store::LeaseFilter;
use tenure_core::wire;

use crate::answer::Answer;
use crate::app::App;
use crate::commands::lease_view;
use crate::report::CommandResult;
use crate::table::{Table, cut, cut_to, keep};
use crate::text::{Style, Text};
use tenure_core::short_id::ShortIds;

/// List open locks; expired ones are marked until they are cleaned up
///
/// Example: tenure locks list --type task
#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// task, section or all
    #[arg(long = "type", value_name = "TYPE", value_enum, default_value_t)]
    kind: Kind,
}

/// How much of a section's name is shown at a terminal. Keys of tasks are shown in full.
const LONGEST_SECTION: usize = 20;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    Task,
    Section,
    #[default]
    All,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let kinds = match args.kind {
        Kind::Task => vec![ResourceKind::Task],
        Kind::Section => vec![ResourceKind::Section],
        Kind::All => ResourceKind::ALL.to_vec(),
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
        text.line("No locks.");
    } else {
        let mut table = Table::new([
            keep("LOCK"),
            cut("HOLDER"),
            keep("FENCE"),
            keep("SINCE"),
            keep("EXPIRES"),
            keep("LEASE"),
        ]);
        let ids = ShortIds::of(leases.iter().map(|lease| lease.holder.id.as_str()));
        let is_narrow = app.printer.render_options().width.is_some();
        for (lease, name) in leases.iter().zip(&names) {
            let is_long = is_narrow && lease.resource.kind == ResourceKind::Section;
            let shown = if is_long { cut_to(name, LONGEST_SECTION) } else { name.clone() };
            let style = if lease.state(now, judge) == LeaseState::Live { Style::Plain } else { Style::Warn };
            table.styled_row(vec![
                (Style::Bold, shown),
                (Style::Plain, lease_view::short_holder(lease, ids)),
                (Style::Plain, lease.fence.to_string()),
                (Style::Plain, format!("{} ago", format_rounded(now.since(lease.acquired_at)))),
                (style, lease_view::remaining(lease, now, judge)),
                (Style::Plain, lease.id.to_string()),
            ]);
        }
        text.table(&table, app.printer.render_options());
    }
    let rows: Vec<_> = leases
        .iter()
        .zip(&names)
        .map(|(lease, name)| wire::NamedLeaseJson { lease: wire::lease(lease, now, judge), name })
        .collect();
    Ok(Answer::new(json!({"locks": rows, "total": rows.len()}), text))
}
