//! `tenure tasks claim`.

use tenure_core::error::TaskName;
use tenure_core::holder::{Caller, Incarnation, ProcessIdentity};

use super::claim_args::ClaimArgs;
use super::grant;
use crate::answer::Answer;
use crate::app::App;
use crate::clearing;
use crate::commands::keep_lease;
use crate::hooks;
use crate::identity::{Identity, Who};
use crate::report::{Outcome, Report};
use crate::waiting::{self, Claim, NamedTask, Want};

/// Claim a task: it is yours until the lease runs out
///
/// Never waits without --wait. Without an identity (no --agent, no TENURE_AGENT, no terminal) a new agent joins.
///
/// Example: tenure tasks claim F001 --agent A1234ABCD --ttl 30m
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    claim: ClaimArgs,
    /// Renew it while this process lives, and let it go when it dies
    #[arg(long, value_name = "PID")]
    while_pid: Option<u32>,
    #[command(flatten)]
    who: Who,
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    let open = app.open()?;
    let mut identity = app.identity(&args.who)?;
    let joined = join_if_nobody(app, &mut identity);
    let process = args.while_pid.map(living).transpose()?;
    let (terms, patience) = (args.claim.terms(&open), args.claim.patience(app, &open));
    let caller = |task: Option<&TaskName>| Caller { process: process.clone(), ..identity.claimant(task) };
    let want = Want::Task(NamedTask::new(&args.claim.task));
    let grant = waiting::acquire(app, &open, &Claim::new(&want, &caller), terms, patience)?;
    if let Some(process) = &process
        && !app.global.dry_run
    {
        grant::refuse_another_life(&open, &grant, process)?;
        keep_lease::start(app, &open, &grant).inspect_err(|_| {
            clearing::give_back(&open, &grant, "its keeper could not be started");
        })?;
    }
    let news = hooks::ears(app, &open).granted(app.env.clock.now(), &grant);
    hooks::tell(app, &open, &news);
    Ok(grant::answer(app, &grant, joined))
}

fn living(pid: u32) -> Outcome<Incarnation> {
    let process = ProcessIdentity::of(pid)
        .ok_or_else(|| Report::usage(format!("--while-pid: there is no process {pid}")))?;
    Ok(Incarnation { process, hostname: tenure_lock::hostname() })
}

/// Makes a caller without a name a new agent, so that two callers never share a default name. The agent is registered with
/// its first grant. A fence is not a name: one that matches no open lease identifies nobody.
pub(super) fn join_if_nobody(app: &App<'_>, identity: &mut Identity) -> bool {
    if identity.is_named() {
        return false;
    }
    identity.become_agent(app.env.ids.agent());
    true
}
