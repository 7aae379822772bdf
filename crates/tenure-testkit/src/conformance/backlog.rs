//! Keeping a backlog: imports that are repeated, and tasks that are reopened.

use tenure_core::ErrorCode;
use tenure_core::import::{self, Import};
use tenure_core::rules::{self, Change, UpdateOutcome};
use tenure_core::task::TaskStatus;

use crate::fixture::{Fixture, refused};

fn plan(text: &str) -> Import {
    import::parse(None, "plan.md", text).unwrap()
}

pub(super) fn an_update_applies_what_differs_once(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let ann = f.bare("ann");
    let first = plan("## S\n- [ ] A1: a\n- [ ] A2: b (depends on A1)\n- [ ] A3: c\n- [ ] d\n");
    f.write(|tx| rules::import(tx, &f.context(), &ann, &first)).unwrap();
    f.claim(&ann, "A1").unwrap();
    let again = f.write(|tx| rules::import(tx, &f.context(), &ann, &first));
    assert_eq!(refused(again), ErrorCode::InvalidArguments);

    let second = plan(
        "## Other\n- [x] A1: new title\n## S\n- [ ] A2: b (depends on A4)\n- [ ] d\n- [ ] A4: e (depends on A1)\n",
    );
    let update =
        |import: &Import| f.write(|tx| rules::update_import(tx, &f.context(), &ann, import)).unwrap();
    let updated = update(&second);
    let outcomes: Vec<_> = updated.tasks.iter().map(|task| (task.key.as_str(), task.kept.len())).collect();
    assert_eq!(outcomes, [("A1", 2), ("A2", 0), ("T1", 0), ("A4", 0)]);
    assert_eq!(updated.absent.iter().map(|task| task.key.as_str()).collect::<Vec<_>>(), ["A3"]);
    let (held, waits) = (f.task("A1"), f.task("A2"));
    assert_eq!((held.title.as_str(), held.status), ("new title", TaskStatus::InProgress));
    assert_eq!(held.section.map(|section| section.name).as_deref(), Some("S"), "a held task does not move");
    assert_eq!((waits.depends_on, waits.blocked_by), (vec!["A4".to_owned()], vec!["A4".to_owned()]));
    assert_eq!(f.task("A4").depends_on, ["A1"]);

    let events = f.events().len();
    let unchanged = update(&second);
    assert!(unchanged.tasks.iter().all(|task| task.outcome == UpdateOutcome::Unchanged), "{unchanged:?}");
    assert_eq!(f.events().len(), events);

    let cycle = plan("## S\n- [ ] A1: new title (depends on A2)\n- [ ] A9: not kept\n");
    let cycle = f.write(|tx| rules::update_import(tx, &f.context(), &ann, &cycle));
    assert_eq!(refused(cycle), ErrorCode::DependencyCycle);
    assert_eq!(f.events().len(), events, "nothing of a refused update is kept");
}

pub(super) fn a_finished_or_failed_task_is_reopened(fresh: &dyn Fn() -> Fixture) {
    let f = fresh();
    let ann = f.bare("ann");
    let reopen = |key: &str| {
        f.write(|tx| rules::change_status(tx, &f.context(), &ann, key, Change::Reopen, None, false))
    };
    for (key, status) in
        [("DONE", TaskStatus::Completed), ("SKIPPED", TaskStatus::Skipped), ("FAILED", TaskStatus::Failed)]
    {
        f.add_task(key);
        f.override_status(&ann, key, status, false).unwrap();
        let events = f.events().len();
        assert_eq!(reopen(key).unwrap().from, status);
        assert_eq!((f.status(key), f.events().len()), (TaskStatus::Pending, events + 1), "{key}: one event");
    }
    f.add_task("AFTER");
    f.depend("AFTER", "DONE");
    f.override_status(&ann, "DONE", TaskStatus::Completed, false).unwrap();
    reopen("DONE").unwrap();
    assert_eq!(f.task("AFTER").blocked_by, ["DONE"], "what depends on it is blocked again");
    f.claim(&f.bare("bob"), "DONE").unwrap();
    assert_eq!(refused(reopen("DONE")), ErrorCode::TaskLocked);
    f.add_task("OPEN");
    assert_eq!(refused(reopen("OPEN")), ErrorCode::InvalidTransition);
}
