//! When to renew a lease, and when to give up the work under it. Pure: every moment is an argument.
//!
//! Guaranteed: a lease counts from before the request that renewed it was sent, so it never ends earlier than assumed
//! here; work is given up before the lease can end; before that moment, an unanswered request does not prove that the
//! lease is lost. All moments are on the boot clock, so a suspend counts: the first check after it finds the next
//! beat overdue.

use std::time::Duration;

use tenure_lock::BootTime;

/// The pause after a request that was not answered.
const RETRY: Duration = Duration::from_secs(1);
/// The time kept for ending the work before the lease ends; a third of the lease if that is less.
const MARGIN: Duration = Duration::from_secs(5);
/// The least time that a request may wait for the store.
const LEAST_PATIENCE: Duration = Duration::from_millis(500);
/// The least time between two beats that the doorbell asked for.
const RING_PAUSE: Duration = Duration::from_secs(1);

/// How often a lease is renewed: every min(`interval`, ttl/3) (L7).
pub fn renew_every(interval: Duration, ttl: Duration) -> Duration {
    interval.min(ttl / 3)
}

/// How patient one request is with a store that does not answer. The last request starts before the work is given up, and
/// connecting (as long as this) and writing (half as long again) fit into the margin. Leases of a few seconds get a useful
/// minimum instead.
pub fn request_patience(ttl: Duration) -> Duration {
    (margin(ttl) * 2 / 5).max(LEAST_PATIENCE)
}

fn margin(ttl: Duration) -> Duration {
    (ttl / 3).min(MARGIN)
}

/// What is to be done at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeartbeatStep {
    /// Nothing, until then.
    Wait(BootTime),
    Beat,
    /// The store has not answered, and the lease may end soon: stop the work.
    GiveUp,
}

/// The schedule of one lease, or of several that are renewed together.
#[derive(Debug, Clone)]
pub struct Schedule {
    every: Duration,
    ttl: Duration,
    /// When the last request that was granted was sent.
    counted_from: BootTime,
    next_beat: BootTime,
    /// The last request was not answered.
    unanswered: bool,
    /// The last beat that the doorbell asked for. May be in the future.
    rung: Option<BootTime>,
}

impl Schedule {
    /// For a lease whose grant was asked for at `asked`.
    pub fn new(interval: Duration, ttl: Duration, asked: BootTime) -> Self {
        let every = renew_every(interval, ttl);
        Self { every, ttl, counted_from: asked, next_beat: asked + every, unanswered: false, rung: None }
    }

    pub fn next(&self, now: BootTime) -> HeartbeatStep {
        if now >= self.next_beat {
            return HeartbeatStep::Beat;
        }
        if !self.unanswered {
            return HeartbeatStep::Wait(self.next_beat);
        }
        let give_up = self.give_up_at();
        if now >= give_up { HeartbeatStep::GiveUp } else { HeartbeatStep::Wait(self.next_beat.min(give_up)) }
    }

    /// The last moment at which there is still time to end the work before the lease ends.
    fn give_up_at(&self) -> BootTime {
        self.counted_from + self.ttl.saturating_sub(margin(self.ttl))
    }

    /// The request sent at `asked` was granted, however late the answer came.
    pub fn renewed(&mut self, asked: BootTime) {
        self.counted_from = asked;
        self.next_beat = asked + self.every;
        self.unanswered = false;
    }

    /// A request was not answered; this was noticed at `now`.
    pub fn unanswered(&mut self, now: BootTime) {
        self.next_beat = now + self.every.min(RETRY);
        self.unanswered = true;
    }

    /// When the request was sent that last granted or renewed the lease.
    pub fn counted_from(&self) -> BootTime {
        self.counted_from
    }

    /// Counts from `asked` if that is earlier, because one of the leases was last requested or renewed then.
    pub fn count_from(&mut self, asked: BootTime) {
        self.counted_from = self.counted_from.min(asked);
    }

    /// Makes a beat due at once, or soon after the last one that a ring asked for. It does not postpone giving up.
    pub fn ring(&mut self, now: BootTime) {
        if self.unanswered && now >= self.give_up_at() {
            return;
        }
        let at = match self.rung {
            Some(rung) if rung > now => rung,
            Some(rung) => now.max(rung + RING_PAUSE),
            None => now,
        };
        self.rung = Some(at);
        self.next_beat = self.next_beat.min(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_mins(1);

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// This many seconds after the grant.
    fn at(seconds: u64) -> BootTime {
        BootTime::after_boot(secs(1000 + seconds))
    }

    fn schedule() -> Schedule {
        Schedule::new(secs(15), TTL, at(0))
    }

    #[test]
    fn a_lease_is_renewed_every_interval_or_third_of_its_ttl() {
        assert_eq!(schedule().next(at(0)), HeartbeatStep::Wait(at(15)));
        assert_eq!(schedule().next(at(15)), HeartbeatStep::Beat);
        assert_eq!(Schedule::new(secs(30), TTL, at(0)).next(at(0)), HeartbeatStep::Wait(at(20)));
    }

    #[test]
    fn a_lease_counts_from_before_the_request_that_renewed_it() {
        let mut schedule = schedule();
        schedule.renewed(at(15));
        assert_eq!(schedule.next(at(18)), HeartbeatStep::Wait(at(30)), "however long the answer took");
        schedule.unanswered(at(69));
        assert_eq!(
            schedule.next(at(69)),
            HeartbeatStep::Wait(at(70)),
            "a minute from second 15, less the margin"
        );
    }

    #[test]
    fn an_unanswered_request_is_repeated_until_the_margin_is_reached() {
        let mut schedule = schedule();
        for second in 15..54 {
            assert_eq!(schedule.next(at(second)), HeartbeatStep::Beat);
            schedule.unanswered(at(second));
            assert_eq!(schedule.next(at(second)), HeartbeatStep::Wait(at(second + 1)));
        }
        schedule.unanswered(at(54) + Duration::from_millis(500));
        assert_eq!(schedule.next(at(54) + Duration::from_millis(500)), HeartbeatStep::Wait(at(55)));
        assert_eq!(schedule.next(at(55)), HeartbeatStep::GiveUp, "five seconds before it ends");
    }

    #[test]
    fn a_request_that_is_unanswered_past_the_margin_ends_the_work_at_once() {
        let mut schedule = schedule();
        assert_eq!(schedule.next(at(54)), HeartbeatStep::Beat);
        schedule.unanswered(at(57));
        assert_eq!(schedule.next(at(57)), HeartbeatStep::GiveUp);
    }

    #[test]
    fn an_answer_after_many_failures_starts_the_lease_anew() {
        let mut schedule = schedule();
        schedule.unanswered(at(53));
        schedule.renewed(at(54));
        assert_eq!(schedule.next(at(56)), HeartbeatStep::Wait(at(69)));
        schedule.unanswered(at(69));
        assert_eq!(schedule.next(at(69)), HeartbeatStep::Wait(at(70)));
    }

    #[test]
    fn a_short_lease_keeps_a_third_of_itself_as_the_margin() {
        let mut schedule = Schedule::new(secs(30), secs(3), at(0));
        schedule.unanswered(at(1));
        assert_eq!(schedule.next(at(1)), HeartbeatStep::Wait(at(2)));
        schedule.unanswered(at(2));
        assert_eq!(schedule.next(at(2)), HeartbeatStep::GiveUp);
    }

    #[test]
    fn a_request_that_starts_just_before_giving_up_ends_before_the_lease() {
        for ttl in [4, 6, 15, 60, 3600].map(secs) {
            assert!(request_patience(ttl) * 5 / 2 <= margin(ttl), "{ttl:?}");
        }
    }

    #[test]
    fn after_a_suspend_a_beat_is_due_at_once_and_an_answer_saves_the_work() {
        let mut schedule = schedule();
        let resumed = at(2 * 3600);
        assert_eq!(schedule.next(resumed), HeartbeatStep::Beat);
        schedule.renewed(resumed);
        assert_eq!(schedule.next(resumed), HeartbeatStep::Wait(resumed + secs(15)));
    }

    #[test]
    fn after_a_suspend_past_the_end_of_the_lease_a_store_that_does_not_answer_ends_the_work() {
        let mut schedule = schedule();
        let resumed = at(2 * 3600);
        assert_eq!(schedule.next(resumed), HeartbeatStep::Beat);
        schedule.unanswered(resumed + secs(2));
        assert_eq!(schedule.next(resumed + secs(2)), HeartbeatStep::GiveUp);
    }

    #[test]
    fn a_suspend_in_the_middle_of_an_outage_is_followed_by_one_more_request() {
        let mut schedule = schedule();
        schedule.unanswered(at(20));
        assert_eq!(schedule.next(at(2 * 3600)), HeartbeatStep::Beat);
    }

    #[test]
    fn an_answer_that_took_longer_than_the_lease_is_followed_by_another_request_at_once() {
        let mut schedule = schedule();
        // Asked in second 15, answered after a suspend in the middle of the request.
        schedule.renewed(at(15));
        assert_eq!(schedule.next(at(3600)), HeartbeatStep::Beat);
        schedule.unanswered(at(3602));
        assert_eq!(schedule.next(at(3602)), HeartbeatStep::GiveUp, "that answer proves nothing any more");
    }

    #[test]
    fn the_lease_that_was_granted_first_decides_when_to_give_up() {
        let mut schedule = schedule();
        schedule.renewed(at(15));
        schedule.count_from(at(10));
        schedule.count_from(at(12));
        schedule.unanswered(at(65));
        assert_eq!(schedule.next(at(65)), HeartbeatStep::GiveUp);
    }

    #[test]
    fn a_ring_makes_a_beat_due_at_once_but_no_more_than_one_a_second() {
        let half = Duration::from_millis(500);
        let mut schedule = schedule();
        schedule.ring(at(5));
        assert_eq!(schedule.next(at(5)), HeartbeatStep::Beat);
        schedule.renewed(at(5));
        for _ in 0..3 {
            schedule.ring(at(5) + half);
            assert_eq!(schedule.next(at(5) + half), HeartbeatStep::Wait(at(6)));
        }
        assert_eq!(schedule.next(at(6)), HeartbeatStep::Beat);
        schedule.renewed(at(6));
        schedule.ring(at(6) + half);
        assert_eq!(schedule.next(at(6) + half), HeartbeatStep::Wait(at(7)));
        schedule.renewed(at(7));
        schedule.ring(at(9));
        assert_eq!(schedule.next(at(9)), HeartbeatStep::Beat);
    }

    #[test]
    fn a_ring_does_not_postpone_the_moment_of_giving_up() {
        let mut schedule = schedule();
        schedule.unanswered(at(56));
        assert_eq!(schedule.next(at(56)), HeartbeatStep::GiveUp);
        schedule.ring(at(56));
        assert_eq!(schedule.next(at(56)), HeartbeatStep::GiveUp);
    }
}
