//! Runs the demo's commands in its project, and follows the event feed.

use std::io::Read;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tenure_core::Timestamp;
use tenure_core::event::{Event, EventKind};
use tenure_core::lease::{Attempt, Resource};
use tenure_core::store::{EventFilter, Store};
use tenure_core::task::TaskStatus;

use super::narration::{Narrator, Tone};
use super::{Line, Progress, Screen, pretend_agent};
use crate::sys;
use crate::temp_project::TempProject;
use crate::{Error, Interrupts, Program, Result};

/// The limit for every condition that the demo waits for.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(30);
/// How long a child may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

pub(super) struct Driver<'a> {
    pub(super) project: TempProject,
    program: &'a Program,
    interrupts: &'a dyn Interrupts,
    screen: &'a mut dyn Screen,
    begun: Instant,
    children: Vec<Child>,
    pub(super) feed: Vec<Event>,
    pub(super) narrator: Narrator,
}

/// How a command ended.
pub(super) struct Finished {
    pub(super) exit: i32,
    pub(super) answer: Value,
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        program: &'a Program,
        interrupts: &'a dyn Interrupts,
        screen: &'a mut dyn Screen,
        keep: bool,
    ) -> Result<Self> {
        Ok(Self {
            project: TempProject::new(program, "demo")?.keep(keep),
            program,
            interrupts,
            screen,
            begun: Instant::now(),
            children: Vec::new(),
            feed: Vec::new(),
            narrator: Narrator::default(),
        })
    }

    pub(super) fn store(&self) -> Result<Box<dyn Store>> {
        Ok(Box::new(self.project.store()?))
    }

    pub(super) fn now(&self) -> Timestamp {
        self.program.store_options.clock.now()
    }

    pub(super) fn show_scene(&mut self, title: &str) {
        self.screen.show(Line::Scene(title));
    }

    pub(super) fn show_note(&mut self, tone: Tone, text: &str) {
        self.screen.show(Line::Note { elapsed: self.begun.elapsed(), tone, text });
    }

    fn show_progress(&mut self) {
        let tasks = self.feed.iter().filter(|e| e.kind == EventKind::TaskCreated).count();
        let completed = self.feed.iter().filter(|e| e.to == Some(TaskStatus::Completed)).count();
        self.screen.show_progress(Progress { elapsed: self.begun.elapsed(), completed, tasks });
    }

    /// Shows a command and starts it in the background.
    pub(super) fn start(&mut self, args: &[&str]) -> Result<()> {
        self.screen.show(Line::Command { args, background: true });
        self.children.push(self.project.command(args).spawn().map_err(Error::Spawn)?);
        Ok(())
    }

    /// Shows a command and its error, if it has one.
    pub(super) fn run(&mut self, args: &[&str]) -> Result<Finished> {
        self.screen.show(Line::Command { args, background: false });
        let finished = self.run_hidden(args)?;
        if let Value::String(message) = &finished.answer["error"]["message"] {
            self.screen.show(Line::Failure { exit: finished.exit, message });
        }
        Ok(finished)
    }

    /// Runs a command without showing it.
    pub(super) fn run_hidden(&mut self, args: &[&str]) -> Result<Finished> {
        let mut command = self.project.command(args);
        let mut child = command.arg("--json").stdout(Stdio::piped()).spawn().map_err(Error::Spawn)?;
        let mut output = String::new();
        if let Some(mut pipe) = child.stdout.take() {
            let _ = pipe.read_to_string(&mut output);
        }
        let exit = child.wait().map_err(Error::Spawn)?.code().unwrap_or(-1);
        Ok(Finished { exit, answer: serde_json::from_str(&output).unwrap_or(Value::Null) })
    }

    pub(super) fn kill(&mut self, pid: u32, what: &str) {
        self.show_note(Tone::Warning, &format!("kill -9 {pid}, {what}"));
        sys::kill(pid);
        // A child stays a zombie until its parent waits for it.
        if let Some(child) = self.children.iter_mut().find(|child| child.id() == pid) {
            let _ = child.wait();
        }
    }

    /// Shows the feed as it grows until `is_enough`, or until `limit` has passed. Returns whether it was enough.
    pub(super) fn follow(&mut self, limit: Duration, is_enough: impl Fn(&[Event]) -> bool) -> Result<bool> {
        let store = self.store()?;
        let deadline = Instant::now() + limit;
        loop {
            let since = self.feed.last().map_or(0, |event| event.seq);
            let filter = EventFilter { since, limit: 1000, ..EventFilter::default() };
            for event in store.read(|view| view.events(&filter))? {
                if let Some((tone, text)) = self.narrator.describe(&event) {
                    self.show_note(tone, &text);
                }
                self.feed.push(event);
            }
            if is_enough(&self.feed) {
                return Ok(true);
            }
            self.interrupts.check()?;
            if Instant::now() >= deadline {
                return Ok(false);
            }
            self.show_progress();
            self.interrupts.wait(POLL);
        }
    }

    /// Waits until a waiter is queued, and a little longer: the ticket is written before the waiter sleeps.
    pub(super) fn wait_for_waiter(&mut self) -> Result<()> {
        let store = self.store()?;
        let deadline = Instant::now() + TIMEOUT;
        while store.read(|view| view.count_tickets())? == 0 && Instant::now() < deadline {
            self.interrupts.wait(POLL);
        }
        self.interrupts.wait(Duration::from_millis(100));
        Ok(())
    }

    /// The newest attempt of a task and the process id of its agent, once the agent is working.
    pub(super) fn running_attempt(&mut self, key: &str) -> Result<Option<(Attempt, u32)>> {
        let store = self.store()?;
        let Some(id) = self.narrator.task_id(key) else { return Ok(None) };
        let marker = self.project.root().join(pretend_agent::marker(id.as_str().as_ref()));
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            let newest = store.read(|view| view.attempts(&Resource::task(&id)))?.into_iter().next();
            if let Some((attempt, pid)) =
                newest.and_then(|attempt| attempt.leader.clone().map(|leader| (attempt, leader.pid)))
                && marker.exists()
            {
                return Ok(Some((attempt, pid)));
            }
            self.interrupts.wait(POLL);
        }
        Ok(None)
    }
}

impl Drop for Driver<'_> {
    /// Ends the background commands: SIGTERM, then SIGKILL.
    fn drop(&mut self) {
        for child in &self.children {
            sys::terminate(child.id());
        }
        let deadline = Instant::now() + GRACE;
        for child in &mut self.children {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(POLL);
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
