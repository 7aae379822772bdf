//! Waiting for a task: asleep on the executor, one try after the other at the desk.
//!
//! Whatever wakes a waiter is only a hint; it tries again. A call that is cancelled, or whose client is gone, leaves the line;
//! what it was granted in the same moment goes back, because nobody would hear of it.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{pending, select_all};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use tenure_core::ErrorCode;
use tenure_lock::BootTime;
use tokio::io::unix::AsyncFd;

use crate::call::Claim;
use crate::desk::{Desk, Effect, Queue, Refusal, Reply, Step};
use crate::handler::{Handler, client_of, join, settle};
use crate::signals::watchable;

/// How often somebody who waits is told so.
const PROGRESS: Duration = Duration::from_secs(5);

/// A place in line that is given up with whoever stood there.
#[derive(Debug)]
struct Place {
    number: u64,
    queue: Queue,
    taken: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.taken {
            let number = self.number;
            self.queue.post(move |desk| {
                desk.give_up(number, Duration::ZERO);
            });
        }
    }
}

impl Handler {
    /// None if the server is closing.
    pub(crate) async fn claim(
        &self,
        claim: Claim,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<Reply, Refusal>> {
        let Some(_waiting) = self.session.begin_wait() else {
            return Some(Err(Refusal::new(ErrorCode::General, "too many of your calls are waiting already")));
        };
        let begun = Instant::now();
        let deadline = begun + claim.wait;
        let mut place =
            Place { number: self.shared.number(), queue: self.shared.queue.clone(), taken: false };
        let client = client_of(context);
        loop {
            let step = match self.try_once(&claim, &client, place.number).await? {
                Ok(step) => step,
                Err(refusal) => return Some(Err(refusal)),
            };
            let (wake, nap, why) = match step {
                Step::Granted(reply) => {
                    place.taken = false;
                    if context.ct.is_cancelled() {
                        self.give_back(&reply).await;
                    }
                    return Some(Ok(reply));
                }
                Step::Wait { wake, nap, why } => (wake, nap, why),
            };
            place.taken = true;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return self.give_up(place, claim.wait).await;
            }
            let over = Instant::now() + nap.min(left);
            let bells = Bells::new(wake);
            loop {
                tell(context, begun, claim.wait, &why).await;
                let left = over.saturating_duration_since(Instant::now());
                let woken = tokio::select! {
                    () = bells.ring() => true,
                    () = tokio::time::sleep(left.min(PROGRESS)) => false,
                    () = context.ct.cancelled() => return self.give_up(place, begun.elapsed()).await,
                    () = self.shared.shutdown.cancelled() => return self.give_up(place, begun.elapsed()).await,
                };
                if woken || Instant::now() >= over {
                    break;
                }
            }
        }
    }

    async fn try_once(&self, claim: &Claim, client: &str, place: u64) -> Option<Result<Step, Refusal>> {
        let (leases, session) = (Arc::clone(&self.shared.leases), Arc::clone(&self.session));
        let (claim, client) = (claim.clone(), client.to_owned());
        let job = move |desk: &mut dyn Desk| {
            join(desk, &session, &client, false)?;
            let asked = BootTime::now();
            let step = desk.claim(&session, &claim, place)?;
            if let Step::Granted(reply) = &step {
                settle(&leases, &session, &reply.effect, asked);
            }
            Ok(step)
        };
        self.shared.queue.ask(job).await
    }

    async fn give_up(&self, mut place: Place, waited: Duration) -> Option<Result<Reply, Refusal>> {
        place.taken = false;
        let number = place.number;
        self.shared.queue.ask(move |desk| Err(desk.give_up(number, waited))).await
    }

    /// The call was cancelled in the moment of its success.
    async fn give_back(&self, reply: &Reply) {
        let Effect::Holds { task, lease, reacquired: false } = reply.effect.clone() else { return };
        let (leases, session) = (Arc::clone(&self.shared.leases), Arc::clone(&self.session));
        let job = move |desk: &mut dyn Desk| {
            settle(&leases, &session, &Effect::Ended(lease.fence), BootTime::now());
            desk.give_back(&lease, &task);
        };
        self.shared.queue.ask(job).await;
    }
}

/// Descriptors of which any one may wake.
struct Bells(Vec<AsyncFd<OwnedFd>>);

impl Bells {
    fn new(fds: Vec<OwnedFd>) -> Self {
        // What cannot be watched is left to the nap.
        Self(fds.into_iter().filter_map(watchable).collect())
    }

    async fn ring(&self) {
        if self.0.is_empty() {
            return pending().await;
        }
        let ready = self.0.iter().map(|fd| Box::pin(async { fd.readable().await.map(drop) }));
        let _ = select_all(ready).await;
    }
}

async fn tell(context: &RequestContext<RoleServer>, begun: Instant, wait: Duration, why: &str) {
    let Some(token): Option<ProgressToken> = context.meta.get_progress_token() else { return };
    let progress = ProgressNotificationParam::new(token, begun.elapsed().as_secs_f64())
        .with_total(wait.as_secs_f64())
        .with_message(why);
    let _ = context.peer.notify_progress(progress).await;
}
