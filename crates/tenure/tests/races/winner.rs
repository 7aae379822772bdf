//! Of any number of concurrent claims exactly one succeeds; the others are refused and change nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::process::Signal;
use tenure_core::holder::{Caller, Holder, Incarnation, ThisMachine};
use tenure_core::id::{RandomIds, TaskId};
use tenure_core::kernel::{self, Terms, Verdict};
use tenure_core::store::Durability;
use tenure_core::{Context, Policy, reference};
use tenure_lock::ProcessIdentity;

use tenure_testkit::cli::{Answer, Running};

use crate::harness::{Project, contest, rounds};

const TAKERS: usize = 16;

/// Runs sixteen claims of `task` at the same time. One wins, fifteen are refused as locked, and the store names the winner.
fn one_winner(project: &Project, task: &str) {
    let names: Vec<String> = (0..TAKERS).map(|n| format!("taker{n}")).collect();
    let claims =
        names.iter().map(|name| project.command(&["tasks", "claim", task, "--agent", name])).collect();
    let answers = contest(project, claims);
    let winners = winners(&answers);
    assert_eq!(winners.len(), 1, "{task}: {answers:?}");
    let lock = &project.ok(&["locks", "show", task])["lock"];
    assert_eq!(lock["holder"]["id"], names[winners[0]].as_str(), "{task}: {lock}");
}

/// The indices of the successful answers. Fails unless every other one is "locked".
fn winners(answers: &[Answer]) -> Vec<usize> {
    for answer in answers {
        assert!(matches!(answer.code, Some(0 | 6)), "{answer:?}");
    }
    (0..answers.len()).filter(|&n| answers[n].code == Some(0)).collect()
}

fn grants(project: &Project) -> BTreeMap<String, usize> {
    let mut grants = BTreeMap::new();
    for event in project.feed() {
        if event["kind"] == "lease.acquired" {
            *grants.entry(event["taskId"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    grants
}

#[test]
fn sixteen_claims_of_one_task_have_one_winner() {
    let rounds = rounds(200, 60);
    let project = Project::new();
    for task in project.add("F", rounds) {
        one_winner(&project, &task);
    }
    let grants = grants(&project);
    assert_eq!(grants.len(), rounds);
    assert!(grants.values().all(|n| *n == 1), "{grants:?}");
}

#[test]
fn sixteen_claims_of_an_expired_lease_have_one_winner() {
    let rounds = rounds(200, 25);
    let project = Project::new();
    let tasks = project.add("F", rounds);
    for task in &tasks {
        project.ok(&["tasks", "claim", task, "--agent", "first", "--ttl", "1s"]);
    }
    for task in &tasks {
        project.wait_until_expired(task);
        one_winner(&project, task);
    }
    assert!(grants(&project).values().all(|n| *n == 2));
}

#[test]
fn sixteen_claims_of_a_dead_holders_lease_have_one_winner() {
    let rounds = rounds(200, 25);
    let project = Project::new();
    let tasks = project.add("F", rounds);
    hold_by_dead_process(&project, &tasks);
    for task in &tasks {
        one_winner(&project, task);
    }
    assert!(grants(&project).values().all(|n| *n == 2));
    let reasons: Vec<_> = project
        .feed()
        .into_iter()
        .filter(|e| e["kind"] == "lease.ended")
        .map(|e| e["detail"]["reason"].clone())
        .collect();
    assert_eq!(reasons.len(), rounds);
    assert!(reasons.iter().all(|reason| reason == "holder_died"), "{reasons:?}");
}

#[test]
fn every_task_of_a_pool_is_claimed_exactly_once() {
    let size = rounds(1000, 120);
    let project = Project::new();
    project.add("F", size);
    empty_the_pool(&project, size);
    assert!(grants(&project).values().all(|n| *n == 1));
}

#[test]
fn tasks_that_agents_left_in_progress_are_offered_again_once_each() {
    let size = rounds(200, 48);
    let project = Project::new();
    let tasks = project.add("F", size);
    for task in &tasks {
        project.ok(&["tasks", "claim", task, "--agent", "gone", "--ttl", "1s"]);
    }
    for task in &tasks {
        project.wait_until_expired(task);
    }
    assert_eq!(project.ok(&["tasks", "next"])["task"]["status"], "in_progress");
    empty_the_pool(&project, size);
    assert!(grants(&project).values().all(|n| *n == 2));
}

#[test]
fn sixteen_anonymous_callers_have_one_winner() {
    let rounds = rounds(200, 25);
    let project = Project::new();
    for task in project.add("F", rounds) {
        let claims = (0..TAKERS).map(|_| project.anonymous(&["tasks", "claim", &task])).collect();
        let answers = contest(&project, claims);
        assert_eq!(winners(&answers).len(), 1, "{task}: {answers:?}");
    }
    let agents = project.ok(&["agents", "list"]);
    assert_eq!(agents["total"], rounds, "the refused ones leave no agent behind: {agents}");
}

/// Sixteen workers claim the next task until there is none; together they get `size` different tasks.
fn empty_the_pool(project: &Project, size: usize) {
    let taken: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..TAKERS)
            .map(|n| {
                scope.spawn(move || {
                    let name = format!("worker{n}");
                    let mut taken = Vec::new();
                    for _ in 0..=size {
                        let answer = project.run(&["tasks", "next", "--claim", "--agent", &name, "--json"]);
                        match answer.code {
                            Some(0) => {
                                taken.push(answer.json()["data"]["task"]["key"].as_str().unwrap().to_owned());
                            }
                            Some(10) => return taken,
                            _ => panic!("{answer:?}"),
                        }
                    }
                    panic!("{name} was given more tasks than there are");
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let mut distinct = taken.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!((taken.len(), distinct.len()), (size, size));
}

/// Leases of a process that was alive when it took them and is dead now.
fn hold_by_dead_process(project: &Project, tasks: &[String]) {
    let mut sleeper = std::process::Command::new("sleep");
    sleeper.arg("1000").stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let holder = Running::start(sleeper);
    let process = ProcessIdentity::of(holder.pid()).unwrap();
    let caller = Caller::new(Holder::agent("deceased"))
        .with_process(Incarnation { process, hostname: tenure_lock::hostname() });
    let world = Context::new(
        &ThisMachine,
        &RandomIds,
        Policy { ticket_life: Duration::from_secs(15), max_attempts: 1000, max_rejections: 5, review: false },
    );
    let store = project.store();
    for task in tasks {
        let verdict = store.write(Durability::Power, |tx| {
            let id = TaskId::new(reference::task(tx, task)?.id);
            kernel::acquire_task(tx, &world, &caller, &id, &Terms::new(Duration::from_hours(1)))
        });
        assert!(matches!(verdict, Ok(Verdict::Granted(_))), "{verdict:?}");
    }
    holder.signal(Signal::KILL);
    holder.end();
}
