//! Sessions: every step writes a checkpoint, which is refused once another holder has the session.

use tenure_core::ErrorCode;
use tenure_core::holder::Caller;
use tenure_core::kernel::Terms;
use tenure_core::lease::Lease;
use tenure_core::rules::{self, Step};
use tenure_core::session::{Session, SessionOptions, SessionState};
use tenure_core::task::TaskStatus;

use crate::fixture::{Fixture, TTL};

fn options() -> SessionOptions {
    SessionOptions {
        preset: "mine".to_owned(),
        agent: vec!["./agent.sh".to_owned()],
        workdir: "/somewhere".to_owned(),
        section: Some("S".to_owned()),
        once: true,
        ttl_ms: Some(60_000),
        ..SessionOptions::default()
    }
}

fn open(f: &Fixture, caller: &Caller) -> Option<(Session, Lease)> {
    f.write(|tx| rules::open_session(tx, &f.context(), caller, "abcd-1", &options(), &Terms::new(TTL)))
        .unwrap()
        .ok()
}

fn stored(f: &Fixture) -> Session {
    f.read(|view| view.session("abcd-1")).unwrap()
}

fn step(f: &Fixture, lease: &Lease, step: Step<'_>) -> bool {
    f.write(|tx| rules::checkpoint(tx, &f.context(), lease, step)).unwrap()
}

pub(super) fn a_session_is_read_as_its_checkpoints_were_written(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let runner = f.worker("run", 7);
    let (begun, lease) = open(&f, &runner).unwrap();
    assert_eq!(stored(&f), begun);
    assert_eq!((&begun.options, begun.fence, begun.runner.as_str()), (&options(), lease.fence, "run"));
    let grant = f.claim(&runner, "A").unwrap();
    assert!(step(&f, &lease, Step::Taken { task: &grant.task, fence: grant.lease.fence }));
    let attempt = f.begin_attempt(&grant.lease, &runner);
    assert!(step(&f, &lease, Step::Begun(&attempt)));
    assert!(step(&f, &lease, Step::Named("conversation-1")));
    let current = stored(&f).current.unwrap();
    assert_eq!(
        (current.key.as_str(), current.fence, &current.attempt),
        ("A", grant.lease.fence, &Some(attempt.id))
    );
    assert_eq!(current.agent_session.as_deref(), Some("conversation-1"));
    let done = f.done(&runner, "A").unwrap().task;
    assert!(step(&f, &lease, Step::Released { task: &done, fence: grant.lease.fence }));
    assert_eq!(stored(&f).current, None);
    let list = f.read(|view| view.done_tasks("abcd-1"));
    assert_eq!((list.len(), list[0].key.as_str(), list[0].status), (1, "A", TaskStatus::Completed));
    f.write(|tx| rules::close_session(tx, &f.context(), &lease, SessionState::Completed, None)).unwrap();
    assert_eq!(stored(&f).state, SessionState::Completed);
    assert_eq!(f.read(|view| view.open_lease(&lease.resource)), None);
    assert_eq!(f.read(|view| view.find_sessions("abcd", 5)).len(), 1);
    assert!(f.read(|view| view.find_sessions("abce", 5)).is_empty());
    assert_eq!(f.read(|view| view.sessions(0)), (Vec::new(), 1));
}

pub(super) fn an_interrupted_task_stays_current(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let runner = f.worker("run", 7);
    let (_, lease) = open(&f, &runner).unwrap();
    let grant = f.claim(&runner, "A").unwrap();
    step(&f, &lease, Step::Taken { task: &grant.task, fence: grant.lease.fence });
    step(&f, &lease, Step::Named("conversation-1"));
    let back = f.release(&runner, "A").unwrap().task;
    assert!(step(&f, &lease, Step::Released { task: &back, fence: grant.lease.fence }));
    f.write(|tx| rules::close_session(tx, &f.context(), &lease, SessionState::Open, None)).unwrap();
    assert!(f.read(|view| view.done_tasks("abcd-1")).is_empty());
    let other = f.worker("other", 8);
    let (resumed, lease) = open(&f, &other).unwrap();
    assert_eq!((resumed.runner.as_str(), resumed.started_at), ("other", stored(&f).started_at));
    assert_eq!(resumed.current.unwrap().agent_session.as_deref(), Some("conversation-1"));
    // After another claim the conversation is still known, until the agent reports a new one.
    let grant = f.claim(&other, "A").unwrap();
    step(&f, &lease, Step::Taken { task: &grant.task, fence: grant.lease.fence });
    let current = stored(&f).current.unwrap();
    assert_eq!(
        (current.fence, current.agent_session.as_deref()),
        (grant.lease.fence, Some("conversation-1"))
    );
}

pub(super) fn a_checkpoint_under_a_stale_fence_is_refused(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    f.add_task("A");
    let (ann, bob) = (f.worker("ann", 7), f.worker("bob", 8));
    let (_, late) = open(&f, &ann).unwrap();
    assert!(open(&f, &bob).is_none(), "one holder at a time");
    f.clock.advance(TTL);
    let task = f.task("A");
    assert!(step(&f, &late, Step::Named("late")), "late, but not taken over");
    let (_, lease) = open(&f, &bob).unwrap();
    assert!(lease.fence > late.fence);
    let before = stored(&f);
    assert!(!step(&f, &late, Step::Taken { task: &task, fence: late.fence }));
    f.write(|tx| rules::close_session(tx, &f.context(), &late, SessionState::Failed, Some("no"))).unwrap();
    assert_eq!(stored(&f), before);
    assert_eq!(stored(&f).fence, lease.fence);
}

pub(super) fn a_refused_session_names_its_holder_and_since_when(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    open(&f, &f.worker("ann", 7)).unwrap();
    let refused = f
        .write(|tx| {
            let bob = f.worker("bob", 8);
            rules::open_session(tx, &f.context(), &bob, "abcd-1", &options(), &Terms::new(TTL))
        })
        .unwrap()
        .unwrap_err();
    let error = tenure_core::Error::Locked(refused);
    assert_eq!(error.code(), ErrorCode::ResumeLocked);
    let message = error.to_string();
    assert!(
        message.starts_with("Resume already in progress for job abcd-1\nLock held by: PID 7 on "),
        "{message}"
    );
    assert!(message.contains(" UTC)\nPlease wait"), "{message}");
}
