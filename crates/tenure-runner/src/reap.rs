//! Reaps attempts whose lease is over: kills their processes, outside any transaction, and then closes the row. What an agent
//! had used when its supervisor died is read from its log.
//!
//! Any process may do it, and doing it twice is harmless. An attempt on another host or in another pid namespace is left to
//! processes that can see it. If the lease of an attempt has only expired, and its resource was not granted again, the
//! attempt is left to its supervisor while that is alive, because it may revive the lease.

use std::path::Path;

use tenure_core::holder::{Incarnation, Liveness};
use tenure_core::id::AttemptId;
use tenure_core::kernel::{self, Grant, Outcome};
use tenure_core::lease::{Attempt, AttemptState, EndReason, Resource};
use tenure_core::store::{Durability, Store, View};
use tenure_core::{Context, Error, Result};
use tenure_lock::Host;

use crate::exec_gate::remove_traces;
use crate::processes::{self, Descendants, EndMode, ProcessFilter, Survivor};
use crate::run_log::RunLog;

/// Which attempts to reap.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'a> {
    /// Those of a resource that was just granted or released.
    Of(&'a Resource),
    /// All attempts whose supervisor is proven dead. A live supervisor reaps its own attempt.
    Abandoned,
}

#[derive(Debug, Clone, Default)]
pub struct Reaped {
    pub ended: Vec<Attempt>,
    /// Processes that SIGKILL did not end. Their attempts are still `ending`.
    pub survivors: Vec<Survivor>,
    /// Attempts to which the calling process belongs. Their other processes were ended; the attempts remain `ending`
    /// until the caller has ended too.
    pub around_us: Vec<AttemptId>,
}

impl Reaped {
    /// An error that names the survivors, if there are any.
    pub fn or_survivors(self) -> Result<Self> {
        if self.survivors.is_empty() {
            return Ok(self);
        }
        let names: Vec<_> = self.survivors.iter().map(ToString::to_string).collect();
        Err(Error::General(format!(
            "an earlier attempt has left processes that do not die: {}",
            names.join(", ")
        )))
    }
}

/// Where an attempt's processes would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whereabouts {
    Here,
    /// They were started in an earlier boot of this machine, so they are gone.
    Nowhere,
    Elsewhere,
}

pub fn reap_attempts(store: &dyn Store, ctx: &Context<'_>, scope: Scope<'_>, actor: &str) -> Result<Reaped> {
    end_all(store, ctx, store.read(|view| due(view, ctx, scope))?, actor)
}

/// Ends the processes that earlier attempts at a newly granted task left behind. Without leftovers, the store is
/// not read.
pub fn reap_earlier_attempts(store: &dyn Store, ctx: &Context<'_>, grant: &Grant) -> Result<Reaped> {
    if grant.leftovers.is_empty() {
        return Ok(Reaped::default());
    }
    let here = Host::here();
    let mut due = Vec::new();
    for attempt in &grant.leftovers {
        let dead = ctx.judge.liveness(&attempt.owner) == Liveness::Dead;
        let place = whereabouts(&attempt.owner, &here, dead);
        // No earlier lease can be revived after this grant.
        if (dead || attempt.fence != grant.lease.fence) && place != Whereabouts::Elsewhere {
            due.push((attempt.clone(), place));
        }
    }
    end_all(store, ctx, due, &grant.lease.holder.id)
}

fn end_all(
    store: &dyn Store,
    ctx: &Context<'_>,
    due: Vec<(Attempt, Whereabouts)>,
    actor: &str,
) -> Result<Reaped> {
    let mut cleared = Reaped::default();
    for (attempt, place) in due {
        if place == Whereabouts::Here {
            let left = processes::end(ProcessFilter::of(&attempt), EndMode::Kill).map_err(|e| {
                Error::General(format!("the processes of an earlier attempt cannot be looked for: {e}"))
            })?;
            if !left.survivors.is_empty() {
                cleared.survivors.extend(left.survivors);
                continue;
            }
            if left.includes_caller {
                cleared.around_us.push(attempt.id);
                continue;
            }
            Descendants::forget(attempt.id.as_str());
            if let Some(leader) = &attempt.leader {
                remove_traces(attempt.id.as_str(), leader);
            }
        }
        // A live supervisor records the run itself.
        let is_abandoned = ctx.judge.liveness(&attempt.owner) == Liveness::Dead && attempt.run.is_none();
        let log = if is_abandoned { read_log(&attempt) } else { None };
        store.write(Durability::Power, |tx| {
            let run = match &log {
                Some(log) => log.run(&attempt, &tx.attempts(&attempt.resource)?),
                None => None,
            };
            let outcome = Outcome { reason: "its lease was over".to_owned(), run, ..Outcome::default() };
            kernel::end_attempt(tx, ctx, &attempt, &outcome, actor)
        })?;
        // Its lease is over, so an outcome that was kept for it has been applied or no longer counts.
        ctx.outcomes.forget(attempt.fence);
        cleared.ended.push(attempt);
    }
    Ok(cleared)
}

/// The log of the attempt, as far as its supervisor has written it.
fn read_log(attempt: &Attempt) -> Option<RunLog> {
    let mut log = RunLog::open(attempt, Path::new(attempt.log_path.as_deref()?))?;
    // The supervisor is dead, so the log does not grow.
    log.read(usize::MAX);
    Some(log)
}

/// Whether an earlier attempt keeps a new one from starting on this host. Attempts in `around_us` contain this very process
/// and are ignored.
pub(crate) fn is_in_the_way(
    view: &dyn View,
    ctx: &Context<'_>,
    resource: &Resource,
    around_us: &[AttemptId],
) -> Result<bool> {
    Ok(due(view, ctx, Scope::Of(resource))?.iter().any(|(attempt, _)| !around_us.contains(&attempt.id)))
}

fn due(view: &dyn View, ctx: &Context<'_>, scope: Scope<'_>) -> Result<Vec<(Attempt, Whereabouts)>> {
    let attempts = match scope {
        Scope::Of(resource) => view.attempts(resource)?,
        Scope::Abandoned => view.open_attempts()?,
    };
    let mut ending = attempts.into_iter().filter(|a| a.state == AttemptState::Ending).peekable();
    if ending.peek().is_none() {
        return Ok(Vec::new());
    }
    let here = Host::here();
    let mut due = Vec::new();
    for attempt in ending {
        let dead = ctx.judge.liveness(&attempt.owner) == Liveness::Dead;
        let place = whereabouts(&attempt.owner, &here, dead);
        let wanted = match scope {
            Scope::Of(_) => dead || is_beyond_revival(view, &attempt)?,
            Scope::Abandoned => dead,
        };
        if wanted && place != Whereabouts::Elsewhere {
            due.push((attempt, place));
        }
    }
    Ok(due)
}

fn whereabouts(owner: &Incarnation, here: &Host, dead: bool) -> Whereabouts {
    let owner = &owner.process;
    let same_boot =
        owner.host_id == here.host_id && owner.boot_id == here.boot_id && !here.boot_id.is_empty();
    match same_boot {
        true if owner.pid_ns == here.pid_ns && owner.pid_ns != 0 => Whereabouts::Here,
        // The process belongs to an earlier boot and is proven dead, so the machine has been restarted since.
        false if dead => Whereabouts::Nowhere,
        _ => Whereabouts::Elsewhere,
    }
}

/// False if the lease ended only by expiry and its resource was not granted since: then its holder may revive
/// it (L7).
fn is_beyond_revival(view: &dyn View, attempt: &Attempt) -> Result<bool> {
    let latest = view.latest_lease(&attempt.resource)?;
    Ok(latest.is_none_or(|lease| {
        lease.fence != attempt.fence || !matches!(lease.ended, Some((_, EndReason::Expired)) | None)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Host {
        Host { host_id: "machine".into(), boot_id: "boot".into(), pid_ns: 7, hostname: "dev".into() }
    }

    fn owner() -> Incarnation {
        let mut owner = Incarnation::current();
        owner.process.host_id = "machine".into();
        owner.process.boot_id = "boot".into();
        owner.process.pid_ns = 7;
        owner
    }

    #[test]
    fn processes_are_looked_for_only_where_they_can_be_seen() {
        assert_eq!(whereabouts(&owner(), &here(), true), Whereabouts::Here);
        assert_eq!(whereabouts(&owner(), &here(), false), Whereabouts::Here);
        let mut contained = owner();
        contained.process.pid_ns = 8;
        assert_eq!(whereabouts(&contained, &here(), false), Whereabouts::Elsewhere);
        let mut remote = owner();
        remote.process.host_id = "other".into();
        assert_eq!(whereabouts(&remote, &here(), false), Whereabouts::Elsewhere);
    }

    #[test]
    fn an_earlier_boot_has_left_no_processes() {
        let mut earlier = owner();
        earlier.process.boot_id = "boot before".into();
        assert_eq!(whereabouts(&earlier, &here(), true), Whereabouts::Nowhere);
        // On a store that machines share, another boot under the same id proves nothing.
        assert_eq!(whereabouts(&earlier, &here(), false), Whereabouts::Elsewhere);
    }
}
