//! The project's store: its file, its invariants, and the rows that dead processes left in it.

use std::time::Duration;

use tenure_core::config::Config;
use tenure_core::duration::format_rounded;
use tenure_core::hints::{self, Hint};
use tenure_core::kernel::{self, Violation};
use tenure_core::lease::{Attempt, Lease, LeaseState, Resource, ResourceKind};
use tenure_core::parking::Parking;
use tenure_core::store::{EventFilter, View};
use tenure_core::{Error, ErrorCode, Timestamp};
use tenure_runner::processes::{self, ProcessFilter};
use tenure_runner::{Scope, exclusion, retention};

use super::Examination;
use super::finding::Finding;
use crate::app::{App, Open};
use crate::commands::lease_view;
use crate::identity::IdentityArgs;
use crate::project::{Project, ProjectPaths, StoreLocation};
use crate::report::{CommandResult, Report};
use crate::shell_quote::quote;
use tenure_core::short_id::ShortIds;

pub(super) fn examine(app: &mut App<'_>, project: &Project, found: &mut Examination) {
    let paths = &project.paths;
    let open = match app.open_at(project.clone()) {
        Ok(open) => open,
        Err(report) => {
            found.findings.push(unusable(report, project));
            return;
        }
    };
    let examined = (|| -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        for defect in open.store.check(false)? {
            let finding = if defect.mendable {
                Finding::fixable_problem("store", defect.what)
            } else {
                Finding::problem("store", defect.what, mending(project))
            };
            findings.push(finding);
        }
        let ctx = open.context();
        findings.extend(open.read(|view| {
            let violations = kernel::check_invariants(view, &ctx)?;
            let dead = dead_runners(&violations);
            violations
                .into_iter()
                .filter(|violation| !is_part_of(violation, &dead))
                .map(|violation| finding(view, app, violation))
                .collect::<Result<Vec<_>, _>>()
        })?);
        findings.extend(open.read(|view| parked(view))?);
        findings.extend(open.read(|view| future(view))?);
        Ok(findings)
    })();
    match examined {
        Ok(findings) if findings.is_empty() => {
            let consistent = "leases, statuses, runners and attempts are consistent";
            let result = if open.source.is_on_server() {
                format!("{consistent} at {}", open.source.shown())
            } else {
                format!("the file, {consistent}")
            };
            found.checks.push(("store", result));
        }
        Ok(findings) => found.findings.extend(findings),
        Err(error) => found.findings.push(unusable(error.into(), project)),
    }
    for lock in exclusion::peek(&paths.root) {
        let sentence = if lock.skip {
            format!("runners are paused: {lock}")
        } else {
            let who = lock.holder.clone().unwrap_or_default();
            format!("a dead process ({who}) left its exclusive lock; the next runner removes it")
        };
        found.findings.push(Finding::warning("exclusive lock", sentence, hints::show_exclusive()));
    }
}

/// How far a recorded time may be in the future.
const CLOCK_TOLERANCE: Duration = Duration::from_mins(1);

/// A recorded time in the future shows that a wall clock is or was wrong: this machine's, or that of the process that
/// wrote the time.
fn future(view: &dyn View) -> Result<Option<Finding>, Error> {
    let last = EventFilter { last: true, limit: 1, ..EventFilter::default() };
    let Some(event) = view.events(&last)?.pop() else { return Ok(None) };
    let ahead = event.at.since(view.now());
    if ahead < CLOCK_TOLERANCE {
        return Ok(None);
    }
    let sentence = format!(
        "the last event is dated {} in the future, so a clock is or was wrong; leases are not affected",
        format_rounded(ahead)
    );
    Ok(Some(Finding::warning("clock", sentence, hints::show_last_events())))
}

/// The store cannot be used, and what to do about it.
fn unusable(report: Report, project: &Project) -> Finding {
    // There may be no backup, so the hint suggests setting a damaged file aside.
    let hint = report
        .hints
        .into_iter()
        .find(|hint| *hint != hints::restore_backup() && *hint != hints::begin_anew());
    let hint = match (report.code, hint) {
        (_, Some(hint)) => hint,
        (ErrorCode::Config, None) => hints::validate_config(),
        (ErrorCode::PermissionDenied, None) => {
            hints::list_folder(quote(&project.paths.folder().to_string_lossy()))
        }
        (_, None) => mending(project),
    };
    Finding::problem("store", report.message, hint)
}

fn mending(project: &Project) -> Hint {
    let on_server = |config: &Config| matches!(project.paths.store(config), StoreLocation::Server(_));
    if project.config.as_ref().is_ok_and(on_server) {
        return hints::show_store_url();
    }
    set_aside(&project.paths)
}

fn set_aside(paths: &ProjectPaths) -> Hint {
    let database = paths.database();
    let database = database.to_string_lossy();
    let damaged = format!("{database}.damaged");
    hints::set_aside(quote(&database), quote(&damaged), quote(&paths.root.to_string_lossy()))
}

fn dead_runners(violations: &[Violation]) -> Vec<String> {
    let id = |violation: &Violation| match violation {
        Violation::DeadRunner(runner) => Some(runner.id.clone()),
        _ => None,
    };
    violations.iter().filter_map(id).collect()
}

/// Whether this is the slot or the session of a dead runner, which is a finding of its own.
fn is_part_of(violation: &Violation, dead: &[String]) -> bool {
    let Violation::Lapsed(lease, LeaseState::HolderDead) = violation else { return false };
    matches!(lease.resource.kind, ResourceKind::Runner | ResourceKind::Session)
        && dead.contains(&lease.holder.id)
}

fn finding(view: &dyn View, app: &App<'_>, violation: Violation) -> Result<Finding, Error> {
    Ok(match violation {
        Violation::Shared(leases) => {
            let name =
                leases.first().map(|l| resource_name(view, &l.resource)).transpose()?.unwrap_or_default();
            let ids = ShortIds::of(leases.iter().map(|lease| lease.holder.id.as_str()));
            let named = |lease: &Lease| format!("{} ({})", lease_view::short_holder(lease, ids), lease.id);
            let who: Vec<_> = leases.iter().map(named).collect();
            let hint = leases.first().map_or_else(hints::list_locks, |lease| hints::show_lease(&lease.id));
            let sentence = format!("{name} has {} holders at the same time: {}", who.len(), who.join(", "));
            Finding::problem("leases", sentence, hint)
        }
        Violation::MissingEvent { task, recorded } => {
            let recorded = recorded
                .map_or_else(|| "has no event for it".to_owned(), |status| format!("last recorded {status}"));
            let sentence = format!("{} is {}, but the event feed {recorded}", task.key, task.status);
            Finding::fixable_problem("tasks", sentence)
        }
        Violation::Unheld(task) => {
            Finding::fixable_problem("tasks", format!("{} is in progress without a holder", task.key))
        }
        Violation::DanglingLease(lease) => {
            let name = resource_id(&lease.resource);
            let sentence = format!("lease {} is for {name}, which does not exist", lease.id);
            Finding::fixable_problem("leases", sentence)
        }
        Violation::Lapsed(lease, state) => {
            let name = resource_name(view, &lease.resource)?;
            let why = if state == LeaseState::HolderDead {
                "whose process is dead".to_owned()
            } else {
                format!("whose lease expired {} ago", ago(view.now(), lease.expires_at))
            };
            let sentence = format!("{name} was held by {}, {why}", lease_view::holder(&lease));
            Finding::problem("leases", sentence, hints::clean_up()).fixable()
        }
        Violation::DeadRunner(runner) => {
            let (id, pid) = (short(&runner.id), runner.process.process.pid);
            let sentence = format!("runner {id} (pid {pid}) is dead but still registered");
            Finding::problem("runners", sentence, hints::wake_up()).fixable()
        }
        Violation::Abandoned(attempt) => abandoned(app, &attempt),
        Violation::NotWorkedOn(lease) => {
            let name = resource_name(view, &lease.resource)?;
            let sentence = format!("{} holds {name} but does not work on it", lease_view::holder(&lease));
            Finding::fixable_problem("leases", sentence)
        }
        Violation::DeadTickets(count) => {
            let sentence = if count == 1 {
                "1 queue ticket belongs to a dead process".to_owned()
            } else {
                format!("{count} queue tickets belong to dead processes")
            };
            Finding::fixable_warning("leases", sentence)
        }
    })
}

/// The key of a task, the name of a section, or the kind and the id.
fn resource_name(view: &dyn View, resource: &Resource) -> Result<String, Error> {
    let name = lease_view::resource_name(view, resource)?;
    Ok(if name == resource.to_string() { resource_id(resource) } else { name })
}

/// `runner:f47ac10b`.
fn resource_id(resource: &Resource) -> String {
    format!("{}:{}", resource.kind.as_str(), short(&resource.id))
}

/// The beginning of an id that is shown alone.
fn short(id: &str) -> &str {
    ShortIds::of([]).show(id)
}

fn abandoned(app: &App<'_>, attempt: &Attempt) -> Finding {
    let here = app.env.judge.is_this_boot(&attempt.owner);
    let left = match processes::find(ProcessFilter::of(attempt)) {
        Ok(left) if here => left,
        _ => Vec::new(),
    };
    let rest = if left.is_empty() {
        "none of its processes is left".to_owned()
    } else {
        let names: Vec<_> = left.iter().map(ToString::to_string).collect();
        format!("its processes are still running: {}", names.join(", "))
    };
    let sentence = format!("attempt {} has no supervisor; {rest}", short(attempt.id.as_str()));
    Finding::fixable_problem("processes", sentence)
}

fn ago(now: Timestamp, then: Timestamp) -> String {
    format_rounded(now.since(then))
}

fn parked(view: &dyn View) -> Result<Vec<Finding>, Error> {
    let finding = |parking: Parking| {
        let line = parking.sentence(view.now());
        Finding::warning("agents", line, hints::probe_parked())
    };
    Ok(view.parked()?.into_iter().map(finding).collect())
}

/// Reconciles the store, repairs the remaining violations, and reaps the processes of ended attempts.
pub(super) fn fix(app: &mut App<'_>, project: &Project) -> CommandResult<()> {
    let Ok(open) = app.open_at(project.clone()) else { return Ok(()) };
    let actor = app.identity(&IdentityArgs::default())?.holder.id;
    if let Err(error) = repair(&open, &actor) {
        // What is left is reported by the second examination.
        app.printer.warn(&format!("not everything could be fixed: {error}"));
        return Ok(());
    }
    crate::reap::after(app, &open, Scope::Abandoned, &actor)
}

fn repair(open: &Open<'_>, actor: &str) -> Result<(), Error> {
    open.store.check(true)?;
    let ctx = open.context();
    open.write(|tx| kernel::reconcile(tx, &ctx, actor))?;
    // Violations are found in a read transaction and repaired one by one, so that other writers do not wait
    // for the whole check.
    for violation in open.read(|view| kernel::check_invariants(view, &ctx))? {
        open.write(|tx| kernel::repair(tx, &ctx, &violation, actor))?;
    }
    if let Some(kept) = open.config.retention {
        retention::prune(open.store.as_ref(), kept, Duration::MAX)?;
    }
    Ok(())
}
