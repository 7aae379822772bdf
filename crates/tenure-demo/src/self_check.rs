//! `tenure self-check`: whether the installed program works on this machine.
//!
//! A few real commands in a temporary project observe what tenure depends on: file locks, a database, processes that can
//! be identified and killed, and sockets that wake a waiter. It takes about a second; `tenure demo` shows more.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tenure_core::store::Store;

use crate::temp_project::TempProject;
use crate::{Check, Error, Interrupts, Program, Result};

/// The limit for every condition that is waited for.
const TIMEOUT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);
/// The number of processes that claim one task at the same time.
const RIVALS: usize = 4;

const CLAIMED: i32 = 0;
const LOCKED: i32 = 6;
const NO_LONGER_HELD: i32 = 8;

pub fn run(program: &Program, interrupts: &dyn Interrupts) -> Result<Vec<Check>> {
    let check = SelfCheck { project: TempProject::new(program, "self-check")?, interrupts };
    let mut checks = vec![Check::new("a project can be created", check.create()?)];
    // Without a project the rest would only repeat the same error.
    if checks[0].holds() {
        checks.push(Check::new(
            format!("{RIVALS} processes claim one task, and one of them gets it"),
            check.race()?,
        ));
        checks.push(Check::new("a waiter gets the task when it is released", check.hand_off()?));
        checks.push(Check::new("a holder that lost its task cannot finish it", check.late_write()?));
        checks.push(Check::new("a task whose process was killed is free at once", check.death()?));
    }
    Ok(checks)
}

struct SelfCheck<'a> {
    project: TempProject,
    interrupts: &'a dyn Interrupts,
}

/// What was observed instead of the expected result, if it differs.
type Fault = Option<String>;

impl SelfCheck<'_> {
    fn create(&self) -> Result<Fault> {
        for args in
            [&["init"][..], &["tasks", "add", "One", "--id", "ONE"], &["tasks", "add", "Two", "--id", "TWO"]]
        {
            let output = self
                .project
                .command(args)
                .arg("--json")
                .stdout(Stdio::piped())
                .output()
                .map_err(Error::Spawn)?;
            if !output.status.success() {
                let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
                let message = answer["error"]["message"].as_str().unwrap_or("it printed no error");
                return Ok(Some(format!("tenure {}: {message}", args.join(" "))));
            }
        }
        Ok(None)
    }

    fn race(&self) -> Result<Fault> {
        let names: Vec<String> = (0..RIVALS).map(|n| format!("rival{n}")).collect();
        let mut rivals = Vec::new();
        for name in &names {
            rivals
                .push(Reaped::spawn(&mut self.project.command(&["tasks", "claim", "ONE", "--agent", name]))?);
        }
        let mut exits = Vec::new();
        for rival in &mut rivals {
            exits.push(self.exit_of(rival)?);
        }
        let claimed = exits.iter().filter(|exit| **exit == Some(CLAIMED)).count();
        let refused = exits.iter().filter(|exit| **exit == Some(LOCKED)).count();
        let expected = (claimed, refused) == (1, RIVALS - 1);
        Ok((!expected).then(|| format!("{claimed} got it and {refused} were refused")))
    }

    fn hand_off(&self) -> Result<Fault> {
        // The winner of the race is not known by name.
        self.exit(&["locks", "release", "ONE", "--force"])?;
        self.exit(&["tasks", "claim", "ONE", "--agent", "ann"])?;
        let mut waiter = Reaped::spawn(
            &mut self.project.command(&["tasks", "claim", "ONE", "--agent", "bob", "--wait", "20s"]),
        )?;
        let store: Box<dyn Store> = Box::new(self.project.store()?);
        let queued = self.until(|| Ok(store.read(|view| view.count_tickets())? > 0))?;
        if !queued {
            return Ok(Some("the waiter did not queue".to_owned()));
        }
        self.exit(&["tasks", "release", "ONE", "--agent", "ann"])?;
        Ok(unexpected(self.exit_of(&mut waiter)?, CLAIMED))
    }

    /// Follows the hand-off, so the task is held by bob.
    fn late_write(&self) -> Result<Fault> {
        self.exit(&["locks", "release", "ONE", "--force"])?;
        self.exit(&["tasks", "claim", "ONE", "--agent", "ann"])?;
        Ok(unexpected(self.exit(&["tasks", "done", "ONE", "--agent", "bob"])?, NO_LONGER_HELD))
    }

    fn death(&self) -> Result<Fault> {
        let marker = self.project.root().join("working");
        let script = "touch working; exec sleep 60";
        let mut holder = Reaped::spawn(
            &mut self.project.command(&["tasks", "run", "TWO", "--agent", "ann", "--", "sh", "-c", script]),
        )?;
        let mut exited = None;
        self.until(|| {
            exited = holder.0.try_wait().map_err(Error::Spawn)?;
            Ok(exited.is_some() || marker.exists())
        })?;
        if exited.is_some() || !marker.exists() {
            return Ok(Some("its command did not start".to_owned()));
        }
        holder.kill();
        Ok(unexpected(self.exit(&["tasks", "claim", "TWO", "--agent", "bob"])?, CLAIMED))
    }

    /// Runs a command and returns its exit code.
    fn exit(&self, args: &[&str]) -> Result<Option<i32>> {
        let mut child = Reaped::spawn(&mut self.project.command(args))?;
        self.exit_of(&mut child)
    }

    /// The exit code of a command, or `None` if it does not end in time or was killed.
    fn exit_of(&self, child: &mut Reaped) -> Result<Option<i32>> {
        let mut code = None;
        self.until(|| {
            let status = child.0.try_wait().map_err(Error::Spawn)?;
            code = status.and_then(|status| status.code());
            Ok(status.is_some())
        })?;
        Ok(code)
    }

    /// Waits for a condition. Returns whether it was met in time.
    fn until(&self, mut is_met: impl FnMut() -> Result<bool>) -> Result<bool> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if is_met()? {
                return Ok(true);
            }
            self.interrupts.check()?;
            if Instant::now() >= deadline {
                return Ok(false);
            }
            self.interrupts.wait(POLL);
        }
    }
}

fn unexpected(exit: Option<i32>, expected: i32) -> Fault {
    match exit {
        Some(code) if code == expected => None,
        Some(code) => Some(format!("exit {code} instead of {expected}")),
        None => Some(format!("it did not end within {} s", TIMEOUT.as_secs())),
    }
}

/// A child that is killed on drop, so that an early return leaves no process.
struct Reaped(Child);

impl Reaped {
    fn spawn(command: &mut Command) -> Result<Self> {
        Ok(Self(command.spawn().map_err(Error::Spawn)?))
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        self.kill();
    }
}
