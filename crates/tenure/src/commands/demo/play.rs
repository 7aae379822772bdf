//! The play, scene by scene. What each scene promises is checked, and its numbers are kept.

use std::time::Duration;

use tenure_core::Timestamp;
use tenure_core::event::{Event, EventKind};
use tenure_core::id::Fence;
use tenure_core::store::{LeaseFilter, Store};
use tenure_core::task::TaskStatus;
use tenure_lock::{Liveness, ProcessIdentity};

use super::checks::Check;
use super::pretend::description;
use super::stage::{LONG, Stage};
use crate::report::Outcome;
use crate::text::Style;

pub(super) struct Seen {
    pub(super) feed: Vec<Event>,
    pub(super) checks: Vec<Check>,
    pub(super) hand_off_ms: Option<u128>,
    pub(super) takeover_ms: Option<u128>,
}

/// How long nothing must begin while somebody has the project to itself.
const QUIET: Duration = Duration::from_millis(1200);

pub(super) fn all(stage: &mut Stage<'_, '_>) -> Outcome<Seen> {
    let mut checks = Vec::new();
    prepare(stage)?;
    let hand_off_ms = in_line(stage, &mut checks)?;

    stage.scene("Two runners with pretend agents; a serial section is worked on by one of them at a time");
    let stay = ["runners", "start", "--foreground", "--idle-timeout", "1m"];
    stage.start(&stay)?;
    stage.start(&stay)?;
    stage.follow(LONG, |feed| attempts(feed, "B2") > 0 && attempts(feed, "F2") > 0)?;

    killed_agent(stage, &mut checks)?;
    let takeover_ms = killed_runner(stage, &mut checks)?;
    stage.follow(LONG, |feed| completed(feed, "F3") && completed(feed, "B3"))?;
    exclusive(stage, &mut checks)?;

    stage.scene("The end");
    stage.typed(&["runners", "stop", "--all"])?;
    stage.typed(&["locks", "cleanup"])?;
    stage.follow(Duration::ZERO, |_| true)?;
    let store: Box<dyn Store> = Box::new(stage.store()?);
    let left = store.read(|view| view.leases(&LeaseFilter::default()))?.len();
    checks.push(Check::new("nothing is held any more", (left > 0).then(|| format!("{left} still open"))));
    Ok(Seen { feed: std::mem::take(&mut stage.feed), checks, hand_off_ms, takeover_ms })
}

fn prepare(stage: &mut Stage<'_, '_>) -> Outcome<()> {
    stage.scene("A project with two sections");
    stage.typed(&["init", "--name", "demo"])?;
    let binary = serde_json::Value::from(stage.scratch.binary().to_string_lossy());
    let config = format!(
        "runners: {{preset: pretend, maxConcurrent: 2, heartbeatInterval: 500ms, staleTimeout: 5s, killGrace: 1s}}\n\
         locking: {{pollInterval: 500ms, taskTimeout: 10s, sectionTimeout: 10s}}\n\
         presets: {{pretend: {{command: [{binary}, demo, --pretend]}}}}\n"
    );
    stage.scratch.configure(&config)?;
    for section in ["Backend", "Frontend"] {
        let added = stage.typed(&["sections", "add", section])?;
        stage.call(&added.answer["data"]["section"]["id"], format!("section {section}"));
    }
    for (key, section, title, first) in [
        ("B1", "Backend", "Design the API", None),
        ("B2", "Backend", "Write the API", Some("1m")),
        ("B3", "Backend", "Test the API", None),
        ("F1", "Frontend", "Draw the page", None),
        ("F2", "Frontend", "Write the page", Some("1m")),
        ("F3", "Frontend", "Test the page", None),
    ] {
        let about = description("200ms", first);
        stage.quietly(&["tasks", "add", title, "--id", key, "--section", section, "-d", &about])?;
    }
    Ok(())
}

/// One holds, one waits, one lets go.
fn in_line(stage: &mut Stage<'_, '_>, checks: &mut Vec<Check>) -> Outcome<Option<u128>> {
    stage.scene("Two agents want one task: the second is refused, stands in line, and is woken");
    stage.quietly(&["tasks", "add", "Choose a name", "--id", "N1"])?;
    stage.typed(&["task", "claim", "N1", "--agent", "ann"])?;
    let refused = stage.typed(&["task", "claim", "N1", "--agent", "bob"])?;
    let told = refused.answer["error"]["details"]["lockedBy"] == "ann";
    checks.push(Check::new(
        "who is refused is told who holds it",
        (refused.code != 6 || !told).then(|| format!("exit {}: {}", refused.code, refused.answer["error"])),
    ));
    stage.start(&["task", "claim", "N1", "--agent", "bob", "--wait"])?;
    stage.waiters(1)?;
    stage.typed(&["task", "release", "N1", "--agent", "ann"])?;
    let bobs = |e: &Event| e.kind == EventKind::LeaseAcquired && e.actor == "bob";
    stage.follow(LONG, |feed| feed.iter().any(bobs))?;
    let anns = |e: &Event| e.kind == EventKind::LeaseEnded && e.detail["holder"] == "agent ann";
    let when = |which: &dyn Fn(&Event) -> bool| stage.feed.iter().find(|e| which(e)).map(|e| e.at);
    let took = when(&bobs).zip(when(&anns)).map(|(got, gone)| got.since(gone).as_millis());
    checks.push(Check::new(
        match took {
            Some(ms) => format!("who stands in line has it {ms} ms after it was let go"),
            None => "who stands in line gets it".to_owned(),
        },
        took.is_none().then(|| "nobody took it".to_owned()),
    ));
    stage.typed(&["task", "done", "N1", "--agent", "bob"])?;
    Ok(took)
}

/// The agent of B2 dies in the middle; its runner tries again.
fn killed_agent(stage: &mut Stage<'_, '_>, checks: &mut Vec<Check>) -> Outcome<()> {
    stage.scene("The agent of B2 is killed in the middle of its work");
    if let Some((_, pid)) = stage.attempt("B2")? {
        stage.kill(pid, "the agent");
    }
    stage.follow(LONG, |feed| completed(feed, "B2"))?;
    let tries = attempts(&stage.feed, "B2");
    checks.push(Check::new(
        "a killed agent's task is tried again, by the same runner",
        (tries != 2 || !completed(&stage.feed, "B2")).then(|| format!("{tries} attempts were made")),
    ));
    Ok(())
}

/// The runner of F2 dies and leaves its agent behind; the other one takes over.
fn killed_runner(stage: &mut Stage<'_, '_>, checks: &mut Vec<Check>) -> Outcome<Option<u128>> {
    stage.scene("The runner of F2 is killed, and leaves its agent behind");
    let Some((old, pid)) = stage.attempt("F2")? else {
        checks.push(Check::new("F2 is under way", Some("no attempt was made".to_owned())));
        return Ok(None);
    };
    // The other one is through with its section, and stands in line for this one.
    stage.follow(LONG, |feed| completed(feed, "B3"))?;
    stage.waiters(1)?;
    let orphan = ProcessIdentity::of(pid);
    let killed_at = stage.now();
    stage.kill(old.owner.process.pid, "the runner");
    stage.follow(LONG, |feed| after(feed, "F2", old.fence, EventKind::AttemptStarted).is_some())?;
    let left = orphan.is_some_and(|process| process.liveness() == Liveness::Alive);
    checks.push(Check::new(
        "what a dead runner left behind is ended before anybody begins again",
        left.then(|| format!("process {pid} still runs")),
    ));
    let took = after(&stage.feed, "F2", old.fence, EventKind::LeaseAcquired)
        .map(|at| at.since(killed_at).as_millis());
    checks.push(Check::new(
        match took {
            Some(ms) => format!("a dead runner's task is taken over, {ms} ms after the kill"),
            None => "a dead runner's task is taken over".to_owned(),
        },
        took.is_none().then(|| "nobody took it".to_owned()),
    ));

    stage.scene("Its fence is worth nothing now");
    let late = stage.typed(&["task", "done", "F2", "--fence", &old.fence.to_string()])?;
    checks.push(Check::new(
        "a late write under the old fence bounces",
        (late.code != 8).then(|| format!("exit {}", late.code)),
    ));
    Ok(took)
}

/// Somebody has the project to itself; the runner waits and goes on.
fn exclusive(stage: &mut Stage<'_, '_>, checks: &mut Vec<Check>) -> Outcome<()> {
    stage.scene("A release wants the project to itself: the runner steps aside");
    let me = std::process::id().to_string();
    stage.typed(&["exclusive", "acquire", "--holder", "release", "--pid", &me])?;
    let about = description("100ms", None);
    stage.typed(&["tasks", "add", "Say thanks", "--id", "R1", "-d", &about])?;
    stage.note(Style::Dim, "nothing happens…");
    let early = stage.follow(QUIET, |feed| attempts(feed, "R1") > 0)?;
    let released = stage.typed(&["exclusive", "release"])?;
    stage.follow(LONG, |feed| completed(feed, "R1"))?;
    let fault = if early {
        Some("R1 began while the project was locked".to_owned())
    } else if released.code != 0 {
        Some(format!("the release exited with {}", released.code))
    } else {
        (!completed(&stage.feed, "R1")).then(|| "R1 never began".to_owned())
    };
    checks.push(Check::new("nothing begins under an exclusive lock, and work goes on after it", fault));
    Ok(())
}

// ---- questions to the feed ----

/// The events of one task, from its creation on.
fn of<'f>(feed: &'f [Event], key: &str) -> impl Iterator<Item = &'f Event> {
    let created = feed.iter().find(|e| e.kind == EventKind::TaskCreated && e.detail["key"] == key);
    let id = created.and_then(|e| e.task.as_ref());
    feed.iter().filter(move |e| id.is_some() && e.task.as_ref() == id)
}

fn attempts(feed: &[Event], key: &str) -> usize {
    of(feed, key).filter(|e| e.kind == EventKind::AttemptStarted).count()
}

fn completed(feed: &[Event], key: &str) -> bool {
    of(feed, key).any(|e| e.to == Some(TaskStatus::Completed))
}

/// When such a thing first happened to the task under a later grant.
fn after(feed: &[Event], key: &str, fence: Fence, kind: EventKind) -> Option<Timestamp> {
    of(feed, key).find(|e| e.kind == kind && e.fence > Some(fence)).map(|e| e.at)
}
