//! The scenes of the demo. Each checks its result.

use std::time::Duration;

use tenure_core::Timestamp;
use tenure_core::event::{Event, EventKind};
use tenure_core::id::Fence;
use tenure_core::store::LeaseFilter;
use tenure_core::task::TaskStatus;
use tenure_lock::{Liveness, ProcessIdentity};

use super::driver::{Driver, TIMEOUT};
use super::narration::Tone;
use super::pretend_agent::description;
use crate::{Check, Result};

/// The measurements of the scenes.
pub(super) struct Seen {
    pub(super) feed: Vec<Event>,
    pub(super) checks: Vec<Check>,
    pub(super) hand_off_ms: Option<u128>,
    pub(super) takeover_ms: Option<u128>,
}

/// How long the demo watches that no attempt begins under the exclusive lock.
const QUIET: Duration = Duration::from_millis(1200);

pub(super) fn run_all(driver: &mut Driver<'_>) -> Result<Seen> {
    let mut checks = Vec::new();
    prepare(driver)?;
    let hand_off_ms = hand_off(driver, &mut checks)?;

    driver.show_scene("Two runners with pretend agents; a serial section has one of them at a time");
    let runner = ["runners", "start", "--foreground", "--idle-timeout", "1m"];
    driver.start(&runner)?;
    driver.start(&runner)?;
    driver.follow(TIMEOUT, |feed| attempts(feed, "B2") > 0 && attempts(feed, "F2") > 0)?;

    kill_agent(driver, &mut checks)?;
    let takeover_ms = kill_runner(driver, &mut checks)?;
    driver.follow(TIMEOUT, |feed| is_completed(feed, "F3") && is_completed(feed, "B3"))?;
    lock_project(driver, &mut checks)?;

    driver.show_scene("The end");
    driver.run(&["runners", "stop", "--all"])?;
    driver.run(&["locks", "cleanup"])?;
    driver.follow(Duration::ZERO, |_| true)?;
    let left = driver.store()?.read(|view| view.leases(&LeaseFilter::default()))?.len();
    checks.push(Check::new("no lease is left open", (left > 0).then(|| format!("{left} still open"))));
    Ok(Seen { feed: std::mem::take(&mut driver.feed), checks, hand_off_ms, takeover_ms })
}

fn prepare(driver: &mut Driver<'_>) -> Result<()> {
    driver.show_scene("A project with two sections");
    driver.run(&["init", "--name", "demo"])?;
    let binary = serde_json::Value::from(driver.project.binary().to_string_lossy());
    let config = format!(
        "runners: {{preset: pretend, maxConcurrent: 2, heartbeatInterval: 500ms, staleTimeout: 5s, killGrace: 1s}}\n\
         locking: {{pollInterval: 500ms, taskTimeout: 10s, sectionTimeout: 10s}}\n\
         presets: {{pretend: {{command: [{binary}, demo, --pretend]}}}}\n"
    );
    driver.project.configure(&config)?;
    for section in ["Backend", "Frontend"] {
        let added = driver.run(&["sections", "add", section])?;
        let id = added.answer["data"]["section"]["id"].as_str().unwrap_or_default();
        driver.narrator.set_name(id, format!("section {section}"));
    }
    for (key, section, title, first_attempt) in [
        ("B1", "Backend", "Design the API", None),
        ("B2", "Backend", "Write the API", Some("1m")),
        ("B3", "Backend", "Test the API", None),
        ("F1", "Frontend", "Draw the page", None),
        ("F2", "Frontend", "Write the page", Some("1m")),
        ("F3", "Frontend", "Test the page", None),
    ] {
        let about = description("200ms", first_attempt);
        driver.run_hidden(&["tasks", "add", title, "--id", key, "--section", section, "-d", &about])?;
    }
    Ok(())
}

/// One agent holds a task, a second one waits for it, the first one releases it.
fn hand_off(driver: &mut Driver<'_>, checks: &mut Vec<Check>) -> Result<Option<u128>> {
    driver.show_scene("Two agents claim one task: the second is refused, queues, and is woken");
    driver.run_hidden(&["tasks", "add", "Choose a name", "--id", "N1"])?;
    driver.run(&["task", "claim", "N1", "--agent", "ann"])?;
    let refused = driver.run(&["task", "claim", "N1", "--agent", "bob"])?;
    let names_holder = refused.answer["error"]["details"]["lockedBy"] == "ann";
    checks.push(Check::new(
        "a refusal names the holder",
        (refused.exit != 6 || !names_holder)
            .then(|| format!("exit {}: {}", refused.exit, refused.answer["error"])),
    ));
    driver.start(&["task", "claim", "N1", "--agent", "bob", "--wait"])?;
    driver.wait_for_waiter()?;
    driver.run(&["task", "release", "N1", "--agent", "ann"])?;
    let is_grant = |e: &Event| e.kind == EventKind::LeaseAcquired && e.actor == "bob";
    driver.follow(TIMEOUT, |feed| feed.iter().any(is_grant))?;
    let is_release = |e: &Event| e.kind == EventKind::LeaseEnded && e.detail["holder"] == "agent ann";
    let granted = driver.feed.iter().find(|e| is_grant(e));
    let released = driver.feed.iter().find(|e| is_release(e));
    let took = granted.zip(released).map(|(granted, released)| granted.at.since(released.at).as_millis());
    checks.push(Check::new(
        match took {
            Some(ms) => format!("the waiter has the task {ms} ms after its release"),
            None => "the waiter gets the task".to_owned(),
        },
        took.is_none().then(|| "it was not granted".to_owned()),
    ));
    driver.run(&["task", "done", "N1", "--agent", "bob"])?;
    Ok(took)
}

/// The agent of B2 is killed; its runner tries again.
fn kill_agent(driver: &mut Driver<'_>, checks: &mut Vec<Check>) -> Result<()> {
    driver.show_scene("The agent of B2 is killed in the middle of its work");
    if let Some((_, pid)) = driver.running_attempt("B2")? {
        driver.kill(pid, "the agent");
    }
    driver.follow(TIMEOUT, |feed| is_completed(feed, "B2"))?;
    let tries = attempts(&driver.feed, "B2");
    checks.push(Check::new(
        "a killed agent's task is retried by the same runner",
        (tries != 2 || !is_completed(&driver.feed, "B2")).then(|| format!("{tries} attempts were made")),
    ));
    Ok(())
}

/// The runner of F2 is killed and leaves its agent running; the other runner takes over.
fn kill_runner(driver: &mut Driver<'_>, checks: &mut Vec<Check>) -> Result<Option<u128>> {
    driver.show_scene("The runner of F2 is killed and leaves its agent running");
    let Some((old, pid)) = driver.running_attempt("F2")? else {
        checks.push(Check::new("F2 is under way", Some("no attempt was made".to_owned())));
        return Ok(None);
    };
    // The other runner finishes its section first, and is then queued for this one.
    driver.follow(TIMEOUT, |feed| is_completed(feed, "B3"))?;
    driver.wait_for_waiter()?;
    let orphan = ProcessIdentity::of(pid);
    let killed_at = driver.now();
    driver.kill(old.owner.process.pid, "the runner");
    driver.follow(TIMEOUT, |feed| first_after(feed, "F2", old.fence, EventKind::AttemptStarted).is_some())?;
    let still_runs = orphan.is_some_and(|process| process.liveness() == Liveness::Alive);
    checks.push(Check::new(
        "the processes of a dead runner are ended before another attempt begins",
        still_runs.then(|| format!("process {pid} still runs")),
    ));
    let took = first_after(&driver.feed, "F2", old.fence, EventKind::LeaseAcquired)
        .map(|at| at.since(killed_at).as_millis());
    checks.push(Check::new(
        match took {
            Some(ms) => format!("a dead runner's task is taken over {ms} ms after the kill"),
            None => "a dead runner's task is taken over".to_owned(),
        },
        took.is_none().then(|| "it was not granted".to_owned()),
    ));

    driver.show_scene("The dead runner's fence is no longer valid");
    let of_old = |e: &&Event| e.kind == EventKind::LeaseAcquired && e.fence == Some(old.fence);
    let runner = driver.feed.iter().find(of_old).map(|e| e.actor.clone()).unwrap_or_default();
    let late = driver.run(&["task", "done", "F2", "--agent", &runner, "--fence", &old.fence.to_string()])?;
    checks.push(Check::new(
        "a late write under the old fence is refused",
        (late.exit != 8).then(|| format!("exit {}", late.exit)),
    ));
    Ok(took)
}

/// Another process takes the exclusive lock; the runner waits, and continues after it.
fn lock_project(driver: &mut Driver<'_>, checks: &mut Vec<Check>) -> Result<()> {
    driver.show_scene("A release script locks the project: the runner pauses");
    let pid = std::process::id().to_string();
    driver.run(&["exclusive", "acquire", "--holder", "release", "--pid", &pid])?;
    let about = description("100ms", None);
    driver.run(&["tasks", "add", "Say thanks", "--id", "R1", "-d", &about])?;
    driver.show_note(Tone::Faint, "nothing happens…");
    let early = driver.follow(QUIET, |feed| attempts(feed, "R1") > 0)?;
    let released = driver.run(&["exclusive", "release"])?;
    driver.follow(TIMEOUT, |feed| is_completed(feed, "R1"))?;
    let fault = if early {
        Some("R1 began while the project was locked".to_owned())
    } else if released.exit != 0 {
        Some(format!("the release script exited with {}", released.exit))
    } else {
        (!is_completed(&driver.feed, "R1")).then(|| "R1 never began".to_owned())
    };
    checks.push(Check::new("nothing starts under an exclusive lock, and work continues after it", fault));
    Ok(())
}

/// The events of the task with this key.
fn events_of<'f>(feed: &'f [Event], key: &str) -> impl Iterator<Item = &'f Event> {
    let created = feed.iter().find(|e| e.kind == EventKind::TaskCreated && e.detail["key"] == key);
    let id = created.and_then(|e| e.task.as_ref());
    feed.iter().filter(move |e| id.is_some() && e.task.as_ref() == id)
}

fn attempts(feed: &[Event], key: &str) -> usize {
    events_of(feed, key).filter(|e| e.kind == EventKind::AttemptStarted).count()
}

fn is_completed(feed: &[Event], key: &str) -> bool {
    events_of(feed, key).any(|e| e.to == Some(TaskStatus::Completed))
}

/// The time of the task's first event of this kind under a later fence.
fn first_after(feed: &[Event], key: &str, fence: Fence, kind: EventKind) -> Option<Timestamp> {
    events_of(feed, key).find(|e| e.kind == kind && e.fence > Some(fence)).map(|e| e.at)
}
