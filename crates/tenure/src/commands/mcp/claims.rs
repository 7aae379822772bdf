//! Claims over MCP: one try at a time, with a ticket that is kept from one try to the next.

use std::time::Duration;

use rustix::fd::OwnedFd;
use tenure_core::duration::format_rounded;
use tenure_core::error::{Locked, ReservedWork, TaskName};
use tenure_core::holder::{Caller, Incarnation};
use tenure_core::kernel::{self, Grant, Terms};
use tenure_core::reference;
use tenure_serve::{Claim, Session, Step};

use super::handler::{McpHandler, holds, reply};
use crate::answer::Answer;
use crate::commands::lease_view;
use crate::commands::tasks::{grant, grant_details};
use crate::identity::{Identity, IdentityArgs};
use crate::report::{CommandResult, Report};
use crate::store::Doorbell;
use crate::supervised;
use crate::text::Text;
use crate::waiting::{self, ClaimRequest, NamedTask, TryResult};
use crate::{hooks, reap};

/// A claim that waits in the queue.
#[derive(Debug)]
pub(super) struct QueuedClaim {
    want: ClaimRequest,
    terms: Terms,
    doorbell: Option<Doorbell>,
    before: Option<Incarnation>,
    locked: Option<Box<Locked>>,
}

impl McpHandler<'_, '_> {
    pub(super) fn try_claim(
        &mut self,
        session: &Session,
        claim: &Claim,
        claim_number: u64,
    ) -> CommandResult<Step> {
        supervised::check(self.app.env, "tasks claim")?;
        let identity = self.app.identity(&IdentityArgs::agent(session.agent()))?;
        if claim.wait.is_zero() {
            let (want, terms) = self.want(claim)?;
            let caller = |task: Option<&TaskName>| self.caller(&identity, task);
            let grant = waiting::try_once(self.open, &waiting::Claim::new(&want, &caller), &terms)?;
            return self.granted(session, grant);
        }
        let mut queued = match self.queued.remove(&claim_number) {
            Some(queued) => queued,
            None => {
                let (want, terms) = self.want(claim)?;
                let doorbell = self.open.store.doorbell(self.app.env);
                QueuedClaim { want, terms, doorbell, before: None, locked: None }
            }
        };
        if let Some(bell) = &queued.doorbell {
            bell.silence();
        }
        let caller = |task: Option<&TaskName>| self.caller(&identity, task);
        let me = Incarnation::current();
        let QueuedClaim { want, terms, doorbell, before, .. } = &mut queued;
        let asked = waiting::Claim::new(want, &caller);
        let tried = waiting::try_and_queue(self.open, &asked, terms, &me, doorbell.as_ref(), before);
        match tried {
            Ok(TryResult::Granted(grant)) => self.granted(session, *grant),
            Ok(TryResult::Impossible(error)) | Err(error) => {
                waiting::leave(self.open, &queued.terms)?;
                Err(error.into())
            }
            Ok(TryResult::Wait { locked, reserved, ticket, until, watch }) => {
                queued.terms.ticket = Some(ticket);
                let why = in_the_way(locked.as_deref(), reserved.as_ref());
                queued.locked = locked;
                let env = self.app.env;
                let bell = queued.doorbell.as_ref().and_then(|bell| bell.fd().try_clone_to_owned().ok());
                let holders = watch.iter().filter_map(|who| waiting::watch_exit(who, env.judge.as_ref()));
                let wake: Vec<OwnedFd> = bell.into_iter().chain(holders).collect();
                let expiry = until.map(|at| at.since(env.clock.now()) + Duration::from_millis(1));
                let nap = self.open.config.locking.poll_interval.min(expiry.unwrap_or(Duration::MAX));
                self.queued.insert(claim_number, queued);
                Ok(Step::Wait { wake, nap, why })
            }
        }
    }

    /// Removes the ticket of a claim that has waited for `waited`, and returns the error for its caller.
    pub(super) fn dequeue(&mut self, claim_number: u64, waited: Duration) -> Report {
        let Some(queued) = self.queued.remove(&claim_number) else {
            return tenure_core::Error::NothingReady { reserved: None, in_use: Vec::new() }.into();
        };
        match waiting::leave(self.open, &queued.terms) {
            Ok(()) => waiting::timed_out(&queued.want, waited, queued.locked).into(),
            Err(report) => report,
        }
    }

    fn want(&self, claim: &Claim) -> CommandResult<(ClaimRequest, Terms)> {
        let want = match (&claim.task, &claim.section) {
            (Some(task), _) => ClaimRequest::Task(NamedTask::new(task)),
            (None, Some(section)) => {
                ClaimRequest::Next(Some(self.open.read(|view| reference::section(view, section))?.id))
            }
            (None, None) => ClaimRequest::Next(None),
        };
        let mut terms = Terms::new(claim.ttl.unwrap_or(self.open.config.locking.lease_ttl));
        terms.doorbell.clone_from(&self.doorbell);
        Ok((want, terms))
    }

    fn caller(&self, identity: &Identity, task: Option<&TaskName>) -> Caller {
        let mut caller = identity.claimant(task);
        // A caller with another holder's credential works under that holder's supervisor, not under this server.
        if !caller.presents_a_lease() {
            caller.process.clone_from(&self.process);
        }
        caller
    }

    fn granted(&mut self, session: &Session, grant: Grant) -> CommandResult<Step> {
        let grant = reap::before(self.app, self.open, grant)?;
        let hook_contexts = hooks::filter(self.app, self.open).granted(self.app.env.clock.now(), &grant);
        hooks::deliver(self.app, self.open, &hook_contexts);
        let answer = Answer::new(grant::data(self.app, &grant, grant.key.as_ref()), describe(&grant));
        let name = kernel::name_of(&grant.task);
        let effect = holds(name, grant.lease, session, grant.reacquired);
        Ok(Step::Granted(reply(answer, effect)))
    }
}

/// The text of a grant, for a model that reads only the text: everything it needs to start the work.
fn describe(grant: &Grant) -> Text {
    let (task, lease) = (&grant.task, &grant.lease);
    let mut text = Text::new();
    if grant.reacquired {
        text.line(format!("{} is already yours since {}", task.key, lease.acquired_at.to_seconds()));
    } else {
        text.line(format!("Claimed {}: it is yours until you finish or release it", task.key));
    }
    text.line(format!("Title: {}", task.title));
    text.line(format!("Fence: {} (finish_task needs it)", lease.fence));
    text.line(format!("Lease: {}, {}, renewed while you are connected", lease.id, format_rounded(lease.ttl)));
    if let Some((old, _)) = &grant.taken_over {
        text.line(format!(
            "Taken over from {}; look for what it may have left half done",
            lease_view::holder_name(old)
        ));
    }
    if let Some(section) = &task.section {
        text.line(format!("Section: {}", section.name));
    }
    if let Some(source) = &task.source_file {
        text.line(format!("Source: {source}"));
    }
    if !task.description.is_empty() {
        text.blank().block(0, &task.description);
    }
    grant_details::notes(&mut text, &task.key, &grant.notes);
    text
}

fn in_the_way(locked: Option<&Locked>, reserved: Option<&ReservedWork>) -> String {
    match (locked, reserved) {
        (Some(locked), _) => {
            let who = match (&locked.lease, &locked.first) {
                (Some(lease), _) => format!("held by {}", lease_view::holder_name(lease)),
                (None, Some(first)) => format!("reserved for an earlier waiter ({first})"),
                (None, None) => "reserved for an earlier waiter".to_owned(),
            };
            format!("waiting: {} is {who}", locked.name)
        }
        (None, Some(work)) => format!("waiting: {work} (first: {})", work.first),
        (None, None) => "waiting: nothing is ready".to_owned(),
    }
}
