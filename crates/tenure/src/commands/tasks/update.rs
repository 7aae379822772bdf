//! `tenure tasks update`.

use tenure_core::error::TaskName;
use tenure_core::kernel::Terms;
use tenure_core::rules::{Change, EditTask, Seen, change_status, check_seen, edit_task};
use tenure_core::task::{Task, TaskStatus};

use super::remark::OptionalRemark;
use super::seen_args::SeenArgs;
use super::{claim, grant, grant_details, status_change, view};
use crate::answer::Answer;
use crate::app::{App, Open, read_text};
use crate::hooks;
use crate::identity::{Identity, IdentityArgs};
use crate::report::{CommandResult, Report};
use crate::text::{Style, Text};
use crate::waiting::{self, Claim, ClaimRequest, NamedTask, Then};

/// Change a task
///
/// `--status in_progress` claims the task and waits for it, unless --no-wait is given. Any other status is refused while
/// another holder has the task.
///
/// Example: tenure tasks update F001 --status in_progress
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The task
    task: String,
    /// pending, in_progress, review, completed, failed or skipped
    #[arg(long, value_name = "S", value_parser = parse_status)]
    status: Option<TaskStatus>,
    /// A new title
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// A new description; `-` reads standard input
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    description: Option<String>,
    /// Move it to this section; empty removes it from its section
    #[arg(long, value_name = "S")]
    section: Option<String>,
    /// The specification; empty removes it
    #[arg(long, value_name = "FILE#ANCHOR")]
    source: Option<String>,
    /// Priority; lower comes first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// Add a label (repeat for more)
    #[arg(long, value_name = "L")]
    label: Vec<String>,
    /// Remove a label (repeat for more)
    #[arg(long, value_name = "L")]
    remove_label: Vec<String>,
    /// Move it directly after this task
    #[arg(long, value_name = "T")]
    after: Option<String>,
    /// Do it even if another holder has the task; ends that holder's lease
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    remark: OptionalRemark,
    #[command(flatten)]
    seen: SeenArgs,
    #[command(flatten)]
    identity: IdentityArgs,
}

fn parse_status(text: &str) -> Result<TaskStatus, String> {
    TaskStatus::parse(text).ok_or_else(|| {
        "the statuses are pending, in_progress, review, completed, failed and skipped".to_owned()
    })
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let empty_is_none = |text: &String| (!text.is_empty()).then(|| text.clone());
    let edit = EditTask {
        title: args.title.clone(),
        description: args.description.as_deref().map(read_text).transpose()?,
        section: args.section.as_ref().map(empty_is_none),
        source_file: args.source.as_ref().map(empty_is_none),
        priority: args.priority,
        add_labels: args.label.clone(),
        remove_labels: args.remove_label.clone(),
        after: args.after.clone(),
    };
    if edit.is_empty() && args.status.is_none() {
        return Err(Report::usage("nothing to change: give an option, for example --title or --status"));
    }
    if args.remark.message.is_some() && args.status.is_none() {
        return Err(Report::usage("-m needs --status"));
    }
    let open = app.open()?;
    let mut identity = app.identity(&args.identity)?;
    let ctx = open.context();
    let seen = args.seen.seen();
    if args.status == Some(TaskStatus::InProgress) {
        if args.force {
            return Err(Report::usage("--force cannot be used with --status in_progress"));
        }
        let joined = claim::join_if_anonymous(app, &mut identity);
        let caller = |task: Option<&TaskName>| identity.claimant(task);
        let terms = Terms::new(open.config.locking.task_timeout);
        let request = ClaimRequest::Task(NamedTask::new(&args.task));
        let patience = app.default_patience(&open);
        // Edited in the transaction of the grant, so that a refused edit does not leave the task claimed.
        let then: &Then<'_> = &|tx, caller, grant| {
            if !edit.is_empty() {
                grant.task = edit_task(tx, &ctx, caller, grant.task.id.as_str(), &edit)?;
            }
            Ok(())
        };
        let claim = Claim { then: Some(then), seen: seen.as_ref(), ..Claim::new(&request, &caller) };
        let taken = waiting::acquire(app, &open, &claim, terms, patience)?;
        let hook_contexts = hooks::filter(app, &open).granted(app.env.clock.now(), &taken);
        hooks::deliver(app, &open, &hook_contexts);
        let mut answer = grant::answer(app, &taken, joined, None);
        let mut text = Text::new();
        if app.global.dry_run {
            text.line(format!("Task {:?} status would be updated to in_progress.", taken.task.title));
            answer.text = text;
            return Ok(answer);
        }
        text.line(format!("Task {:?} status updated to in_progress.", taken.task.title));
        text.styled(Style::Dim, format!("  Lease: {}   Fence: {}", taken.lease.id, taken.lease.fence));
        if joined && !taken.reacquired {
            text.line(format!(
                "  Agent: {} (new; pass it with --agent or TENURE_AGENT)",
                taken.lease.holder.id
            ));
        }
        grant_details::append(&mut text, &taken);
        answer.text = text;
        return Ok(answer);
    }
    let name = open.resolve(&args.task)?;
    let Some(to) = args.status else {
        let task = edit_one(app, &open, &identity, &name, &edit, seen.as_ref())?;
        let mut text = Text::new();
        text.line(format!("{} ", app.past("Updated", "Would update"))).and(Style::Bold, task.key.clone());
        return Ok(Answer::new(view::data(app, &task), text));
    };
    let message = args.remark.message.as_deref().map(read_text).transpose()?;
    let caller = identity.actor(Some(&name.id));
    let hook_filter = hooks::filter(app, &open);
    let (changed, hook_contexts) = open.write(|tx| {
        seen.as_ref().map_or(Ok(()), |seen| check_seen(tx, &name, seen))?;
        if !edit.is_empty() {
            edit_task(tx, &ctx, &caller, &name.id, &edit)?;
        }
        let message = message.as_deref();
        let changed = change_status(tx, &ctx, &caller, &name.id, Change::To(to), message, args.force)?;
        let hook_contexts = if changed.from != changed.task.status {
            status_change::hook_contexts(&hook_filter, tx, &changed)?
        } else if edit.is_empty() {
            Vec::new()
        } else {
            hook_filter.edited(tx.now(), &changed.task)
        };
        Ok((changed, hook_contexts))
    })?;
    hooks::deliver(app, &open, &hook_contexts);
    Ok(status_change::answer(app, &changed, app.past("Updated", "Would update")))
}

/// Edits one task and delivers the hooks. With `seen`, the edit is refused if the task no longer has that
/// state.
pub(crate) fn edit_one(
    app: &mut App<'_>,
    open: &Open<'_>,
    identity: &Identity,
    name: &TaskName,
    edit: &EditTask,
    seen: Option<&Seen>,
) -> CommandResult<Task> {
    let caller = identity.actor(Some(&name.id));
    let ctx = open.context();
    Ok(hooks::write_and_deliver(app, open, |tx, hook_filter| {
        seen.map_or(Ok(()), |seen| check_seen(tx, name, seen))?;
        let task = edit_task(tx, &ctx, &caller, &name.id, edit)?;
        let hook_contexts = hook_filter.edited(tx.now(), &task);
        Ok((task, hook_contexts))
    })?)
}
