//! The project's store: its file, its invariants, and what the dead have left in it.

use tenure_core::duration::format_rounded;
use tenure_core::kernel::{self, Violation};
use tenure_core::lease::{Attempt, LeaseState};
use tenure_core::store::View;
use tenure_core::{Error, Timestamp};
use tenure_runner::processes::{self, Bond};
use tenure_runner::{Scope, exclusion};

use super::Examination;
use super::finding::{FIX, Finding};
use crate::app::{App, Open};
use crate::commands::{lease_view, runner_view};
use crate::identity::IdentityArgs;
use crate::project::{Project, ProjectPaths};
use crate::report::Outcome;
use crate::shell_quote::quote;

pub(super) fn examine(app: &mut App<'_>, project: &Project, found: &mut Examination) {
    let paths = &project.paths;
    let open = match app.open_at(project.clone()) {
        Ok(open) => open,
        Err(report) => {
            let command = match report.code {
                tenure_core::ErrorCode::Config => "tenure config validate".to_owned(),
                tenure_core::ErrorCode::PermissionDenied => {
                    format!("ls -ld {}", quote(&paths.folder().to_string_lossy()))
                }
                _ => set_aside(paths),
            };
            found.findings.push(Finding::problem("store", report.message, command));
            return;
        }
    };
    let looked = (|| -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        for defect in open.store.check(false)? {
            let finding = if defect.mendable {
                Finding::problem("store", defect.what, FIX).fixable()
            } else {
                Finding::problem("store", defect.what, set_aside(paths))
            };
            findings.push(finding);
        }
        let ctx = open.context();
        findings.extend(open.read(|view| {
            let violations = kernel::check_invariants(view, &ctx)?;
            violations.into_iter().map(|violation| tell(view, app, violation)).collect::<Result<Vec<_>, _>>()
        })?);
        findings.extend(open.read(|view| parked(view))?);
        Ok(findings)
    })();
    match looked {
        Ok(findings) if findings.is_empty() => {
            let said = "the file, leases, statuses, runners and attempts are sound".to_owned();
            found.checks.push(("store", said));
        }
        Ok(findings) => found.findings.extend(findings),
        Err(error) => found.findings.push(Finding::problem("store", error.to_string(), set_aside(paths))),
    }
    for lock in exclusion::peek(&paths.root) {
        let sentence = if lock.skip {
            format!("runners stand aside: {lock}")
        } else {
            let who = lock.holder.clone().unwrap_or_default();
            format!("an exclusive lock of a dead process is left ({who}); the next check removes it")
        };
        found.findings.push(Finding::warning("exclusive lock", sentence, "tenure exclusive status"));
    }
}

fn set_aside(paths: &ProjectPaths) -> String {
    let database = paths.database();
    let database = database.to_string_lossy();
    format!(
        "mv {} {} && tenure init -C {}",
        quote(&database),
        quote(&format!("{database}.damaged")),
        quote(&paths.root.to_string_lossy())
    )
}

fn tell(view: &dyn View, app: &App<'_>, violation: Violation) -> Result<Finding, Error> {
    Ok(match violation {
        Violation::Shared(leases) => {
            let name = leases
                .first()
                .map(|l| lease_view::resource_name(view, &l.resource))
                .transpose()?
                .unwrap_or_default();
            let who: Vec<_> = leases.iter().map(|lease| format!("{} ({})", lease.holder, lease.id)).collect();
            let command =
                leases.first().map_or_else(String::new, |l| format!("tenure locks release {}", l.id));
            Finding::problem(
                "leases",
                format!("{name} is held by {} at once: {}", who.len(), who.join(", ")),
                command,
            )
        }
        Violation::MissingEvent { task, told } => {
            let told =
                told.map_or_else(|| "nothing of it".to_owned(), |status| format!("that it is {status}"));
            let sentence = format!("{} is {}, and the feed knows {told}", task.key, task.status);
            Finding::problem("tasks", sentence, FIX).fixable()
        }
        Violation::Unheld(task) => {
            Finding::problem("tasks", format!("{} is in progress and nobody holds it", task.key), FIX)
                .fixable()
        }
        Violation::DanglingLease(lease) => {
            let sentence = format!("lease {} is on {}, which does not exist", lease.id, lease.resource);
            Finding::problem("leases", sentence, FIX).fixable()
        }
        Violation::Lapsed(lease, state) => {
            let name = lease_view::resource_name(view, &lease.resource)?;
            let why = if state == LeaseState::HolderDead {
                "whose process is dead".to_owned()
            } else {
                format!("whose lease ran out {} ago", ago(view.now(), lease.expires_at))
            };
            let sentence = format!("{name} was held by {}, {why}", lease_view::holder(&lease));
            Finding::problem("leases", sentence, "tenure locks cleanup").fixable()
        }
        Violation::DeadRunner(runner) => {
            let short: String = runner.id.chars().take(8).collect();
            let sentence = format!("runner {short} (pid {}) died without a word", runner.process.process.pid);
            Finding::problem("runners", sentence, "tenure runners wakeup").fixable()
        }
        Violation::Abandoned(attempt) => abandoned(app, &attempt),
        Violation::DeadTickets(count) => {
            let sentence = format!("{count} places in line belong to dead processes");
            Finding::warning("leases", sentence, FIX).fixable()
        }
    })
}

fn abandoned(app: &App<'_>, attempt: &Attempt) -> Finding {
    let here = app.env.judge.is_this_boot(&attempt.owner);
    let left = match processes::find(Bond { mark: attempt.id.as_str(), group: None }) {
        Ok(left) if here => left,
        _ => Vec::new(),
    };
    let rest = if left.is_empty() {
        "no process of it is left".to_owned()
    } else {
        let names: Vec<_> = left.iter().map(ToString::to_string).collect();
        format!("these processes of it still run: {}", names.join(", "))
    };
    let sentence = format!("nobody supervises attempt {}; {rest}", attempt.id);
    Finding::problem("processes", sentence, FIX).fixable()
}

fn ago(now: Timestamp, then: Timestamp) -> String {
    format_rounded(now.since(then))
}

fn parked(view: &dyn View) -> Result<Vec<Finding>, Error> {
    let tell = |health| {
        let line = runner_view::parked_line(&health, view.now());
        Finding::warning("agents", format!("the preset {line}"), "tenure runners start")
    };
    Ok(view.parked_presets()?.into_iter().map(tell).collect())
}

/// One reconcile, what it does not look for, and the processes of what is over.
pub(super) fn fix(app: &mut App<'_>, project: &Project) -> Outcome<()> {
    let Ok(open) = app.open_at(project.clone()) else { return Ok(()) };
    let actor = app.identity(&IdentityArgs::default())?.holder.id;
    if let Err(error) = mend(&open, &actor) {
        // The rest is found again, and told.
        app.printer.warn(&format!("not everything could be put right: {error}"));
        return Ok(());
    }
    crate::clearing::after(app, &open, Scope::Abandoned, &actor)
}

fn mend(open: &Open<'_>, actor: &str) -> Result<(), Error> {
    open.store.check(true)?;
    let ctx = open.context();
    open.write(|tx| kernel::reconcile(tx, &ctx, actor))?;
    open.write(|tx| kernel::repair(tx, &ctx, actor))
}
