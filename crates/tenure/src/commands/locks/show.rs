//! `tenure locks show`.

use serde_json::json;
use tenure_core::kernel;
use tenure_core::lease::LeaseState;
use tenure_core::rules::find_lock;
use tenure_core::store::LeaseFilter;
use tenure_core::wire;

use crate::answer::Answer;
use crate::app::App;
use crate::commands::lease_view;
use crate::report::CommandResult;
use crate::table::{Table, cut, keep};
use crate::text::Text;
use tenure_core::short_id::ShortIds;

/// Show the holder of a task or section, or that it is free
///
/// Example: tenure locks show section:Backend --history
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A task, `section:NAME`, or a lease id
    #[arg(value_name = "REF")]
    reference: String,
    /// Also show earlier locks
    #[arg(long)]
    history: bool,
}

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let ctx = open.context();
    let (found, name, queue, past, now) = open.read(|view| {
        let found = find_lock(view, &args.reference)?;
        let name = lease_view::resource_name(view, &found.resource)?;
        let viewer = ctx.viewer(view, None)?;
        let queue = kernel::count_before(view, &viewer, &found.resource, None)?;
        let past = if args.history {
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
    let time = app.local_time();
    let mut text = Text::new();
    match &found.lease {
        None => {
            text.line(format!("{name} is free."));
        }
        Some(lease) => {
            let is = if lease.state(now, judge) == LeaseState::Live { "is" } else { "was" };
            text.line(format!("{name} {is} held by {}", lease_view::holder(lease)));
            text.line(format!("  Lease: {}   Fence: {}", lease.id, lease.fence));
            text.line(format!("  Since: {}", time.seconds(lease.acquired_at)));
            text.line(format!("  Last heartbeat: {}", time.seconds(lease.heartbeat_at)));
            text.line(format!(
                "  Expires: {} ({})",
                time.seconds(lease.expires_at),
                lease_view::remaining(lease, now, judge)
            ));
        }
    }
    if queue > 0 {
        text.line(format!("  Waiting in queue: {queue}"));
    }
    if args.history {
        let mut table = Table::new([keep("FENCE"), cut("HOLDER"), keep("SINCE"), keep("UNTIL"), keep("END")]);
        let ids = ShortIds::of(past.iter().map(|lease| lease.holder.id.as_str()));
        for lease in &past {
            table.row([
                lease.fence.to_string(),
                lease_view::short_holder(lease, ids),
                time.seconds(lease.acquired_at),
                lease.ended.map_or_else(|| "-".to_owned(), |(at, _)| time.seconds(at)),
                lease.ended.map_or_else(|| "open".to_owned(), |(_, why)| why.as_str().to_owned()),
            ]);
        }
        text.blank().table(&table, app.printer.render_options());
    }
    let mut data = json!({
        "resource": found.resource.to_string(),
        "name": name,
        "lock": found.lease.as_ref().map(|lease| wire::lease(lease, now, judge)),
        "queue": queue,
    });
    if let (true, Some(fields)) = (args.history, data.as_object_mut()) {
        fields.insert(
            "history".into(),
            past.iter().map(|lease| json!(wire::lease(lease, now, judge))).collect(),
        );
    }
    Ok(Answer::new(data, text))
}
