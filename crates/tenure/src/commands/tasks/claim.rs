//! `tenure tasks claim`.

use tenure_core::ErrorCode;
use tenure_core::error::TaskName;
use tenure_core::hints;
use tenure_core::holder::{Caller, Incarnation, ProcessIdentity};

use super::claim_args::ClaimArgs;
use super::grant;
use super::seen_args::SeenArgs;
use crate::answer::Answer;
use crate::app::App;
use crate::commands::keep_lease;
use crate::hooks;
use crate::identity::{Identity, IdentityArgs};
use crate::reap;
use crate::report::{CommandResult, Report};
use crate::shell_quote::quote;
use crate::unsupported;
use crate::waiting::{self, Claim, ClaimRequest, NamedTask};

/// Claim a task: you hold it until the lease expires
///
/// Waits only with --wait. Without an identity (no --agent, no TENURE_AGENT, no terminal) a new agent is registered.
///
/// Example: tenure tasks claim F001 --agent A1234ABCD --ttl 30m
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    claim: ClaimArgs,
    /// Renew the lease while this process is alive, and release it afterwards
    #[arg(long, value_name = "PID")]
    while_pid: Option<u32>,
    #[command(flatten)]
    seen: SeenArgs,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let mut identity = app.identity(&args.identity)?;
    let joined = join_if_anonymous(app, &mut identity);
    if args.while_pid.is_some() {
        unsupported::check_flag("--while-pid")?;
    }
    let process = args.while_pid.map(living).transpose()?;
    let (terms, patience) = (args.claim.terms(&open), args.claim.patience(app, &open));
    let caller = |task: Option<&TaskName>| {
        let caller = identity.claimant(task);
        Caller { process: process.clone().or(caller.process), ..caller }
    };
    let request = ClaimRequest::Task(NamedTask::new(&args.claim.task));
    let seen = args.seen.seen();
    let claim = Claim { seen: seen.as_ref(), ..Claim::new(&request, &caller) };
    let grant = waiting::acquire(app, &open, &claim, terms, patience)
        .map_err(|report| if patience.is_none() { suggest_waiting(report, &args) } else { report })?;
    if let Some(process) = &process
        && !app.global.dry_run
    {
        grant::refuse_other_process(&open, &grant, process)?;
        keep_lease::start(app, &open, &grant).inspect_err(|_| {
            reap::release_grant(&open, &grant, "its keeper could not be started");
        })?;
    }
    let hook_contexts = hooks::filter(app, &open).granted(app.env.clock.now(), &grant);
    hooks::deliver(app, &open, &hook_contexts);
    Ok(grant::answer(app, &grant, joined, args.claim.ttl))
}

/// A refused claim can be repeated with `--wait`.
fn suggest_waiting(report: Report, args: &Args) -> Report {
    if !matches!(report.code, ErrorCode::TaskLocked | ErrorCode::SectionLocked) {
        return report;
    }
    let agent =
        args.identity.agent.as_deref().map(|id| format!(" --agent {}", quote(id))).unwrap_or_default();
    let task = crate::shell_quote::last_arg(&args.claim.task);
    report.hint(hints::repeat_claim(agent, task))
}

fn living(pid: u32) -> CommandResult<Incarnation> {
    let process = ProcessIdentity::of(pid)
        .ok_or_else(|| Report::usage(format!("--while-pid: there is no process {pid}")))?;
    Ok(Incarnation { process, hostname: tenure_lock::hostname() })
}

/// Makes an anonymous caller a new agent, so that two callers never share a default name. The agent is registered with
/// its first grant. A fence is not a name: one that matches no open lease identifies no caller.
pub(super) fn join_if_anonymous(app: &App<'_>, identity: &mut Identity) -> bool {
    if identity.is_named() {
        return false;
    }
    identity.become_agent(app.env.ids.agent());
    true
}
