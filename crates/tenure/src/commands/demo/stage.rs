//! Where the demo plays: a temporary folder, processes of this program in it, and the feed, told as it grows.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tenure_core::Timestamp;
use tenure_core::event::{Event, EventKind};
use tenure_core::id::TaskId;
use tenure_core::lease::{Attempt, Resource};
use tenure_core::store::{EventFilter, Store};
use tenure_core::task::TaskStatus;
use tenure_sqlite::SqliteStore;

use super::pretend;
use crate::app::App;
use crate::interrupt::Interrupts;
use crate::report::{Outcome, Report};
use crate::scratch::{Scratch, cannot_run};
use crate::text::{Style, Text};

/// What has not happened by then will not.
pub(super) const LONG: Duration = Duration::from_secs(20);
const GLANCE: Duration = Duration::from_millis(30);

pub(super) struct Stage<'s, 'a> {
    app: &'s mut App<'a>,
    pub(super) scratch: Scratch,
    interrupts: Interrupts,
    begun: Instant,
    children: Vec<Child>,
    pub(super) feed: Vec<Event>,
    /// What the ids in the feed are called.
    names: BTreeMap<String, String>,
    runners: usize,
}

/// How a command ended.
pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) answer: Value,
}

impl<'s, 'a> Stage<'s, 'a> {
    pub(super) fn build(app: &'s mut App<'a>, keep: bool) -> Outcome<Self> {
        let scratch = Scratch::new(app.env, "demo")?.kept(keep);
        Ok(Self {
            app,
            scratch,
            interrupts: Interrupts::listen()?,
            begun: Instant::now(),
            children: Vec::new(),
            feed: Vec::new(),
            names: BTreeMap::new(),
            runners: 0,
        })
    }

    pub(super) fn store(&self) -> Outcome<SqliteStore> {
        self.scratch.store(self.app.store_options())
    }

    pub(super) fn now(&self) -> Timestamp {
        self.app.env.clock.now()
    }

    // ---- what is said ----

    pub(super) fn scene(&mut self, title: &str) {
        let mut text = Text::new();
        text.blank().styled(Style::Bold, title);
        self.show(&text);
    }

    pub(super) fn note(&mut self, style: Style, line: &str) {
        let mut text = Text::new();
        text.styled(Style::Dim, format!("{:>5.1}s  ", self.begun.elapsed().as_secs_f64())).and(style, line);
        self.show(&text);
    }

    fn show(&mut self, text: &Text) {
        self.clear_progress();
        if !self.app.printer.quiet {
            self.app.printer.show(text);
        }
    }

    fn is_alive(&self) -> bool {
        self.app.printer.err_is_terminal() && !self.app.printer.json && !self.app.env.flag("CI")
    }

    fn progress(&mut self) {
        if !self.is_alive() {
            return;
        }
        let all = self.feed.iter().filter(|e| e.kind == EventKind::TaskCreated).count();
        let done = self.feed.iter().filter(|e| e.to == Some(TaskStatus::Completed)).count();
        let bar: String = (0..all).map(|n| if n < done { '#' } else { '.' }).collect();
        let seconds = self.begun.elapsed().as_secs_f64();
        self.app.printer.draw(&format!("\r\x1b[K{seconds:>5.1}s  [{bar}] {done} of {all} tasks"));
    }

    fn clear_progress(&mut self) {
        if self.is_alive() {
            self.app.printer.draw("\r\x1b[K");
        }
    }

    // ---- what is done ----

    /// Starts a command that stays, and shows it.
    pub(super) fn start(&mut self, words: &[&str]) -> Outcome<u32> {
        self.show_typed(words, " &");
        let child = self.scratch.command(words).spawn().map_err(cannot_run)?;
        let pid = child.id();
        self.children.push(child);
        Ok(pid)
    }

    /// Runs a command, and shows it with the gist of its answer.
    pub(super) fn typed(&mut self, words: &[&str]) -> Outcome<Ran> {
        self.show_typed(words, "");
        let ran = self.quietly(words)?;
        if let Value::String(message) = &ran.answer["error"]["message"] {
            let mut text = Text::new();
            text.styled(Style::Dim, format!("exit {}: {message}", ran.code));
            self.show(&text);
        }
        Ok(ran)
    }

    pub(super) fn quietly(&mut self, words: &[&str]) -> Outcome<Ran> {
        let mut command = self.scratch.command(words);
        let mut child = command.arg("--json").stdout(Stdio::piped()).spawn().map_err(cannot_run)?;
        let mut printed = String::new();
        if let Some(mut out) = child.stdout.take() {
            let _ = out.read_to_string(&mut printed);
        }
        let code = child.wait().map_err(cannot_run)?.code().unwrap_or(-1);
        Ok(Ran { code, answer: serde_json::from_str(&printed).unwrap_or(Value::Null) })
    }

    fn show_typed(&mut self, words: &[&str], end: &str) {
        // A flag is no word to be quoted.
        let quote = |word: &&str| {
            if word.starts_with('-') { (*word).to_owned() } else { crate::shell::quote(word) }
        };
        let line: Vec<String> = words.iter().map(quote).collect();
        let mut text = Text::new();
        text.line(format!("$ tenure {}{end}", line.join(" ")));
        self.show(&text);
    }

    pub(super) fn kill(&mut self, pid: u32, what: &str) {
        self.note(Style::Warn, &format!("kill -9 {pid}, {what}"));
        signal(pid, Signal::KILL);
        // A child of ours stays a zombie until it is asked for.
        if let Some(child) = self.children.iter_mut().find(|child| child.id() == pid) {
            let _ = child.wait();
        }
    }

    // ---- what is seen ----

    /// Tells the feed as it grows, until `enough` or for so long. Says whether it was enough.
    pub(super) fn follow(&mut self, limit: Duration, enough: impl Fn(&[Event]) -> bool) -> Outcome<bool> {
        let store: Box<dyn Store> = Box::new(self.store()?);
        let deadline = Instant::now() + limit;
        loop {
            let since = self.feed.last().map_or(0, |event| event.seq);
            let filter = EventFilter { since, task: None, last: false, limit: 1000 };
            for event in store.read(|view| view.events(&filter))? {
                self.tell(&event);
                self.feed.push(event);
            }
            if enough(&self.feed) {
                return Ok(true);
            }
            if let Some(code) = self.interrupts.caught() {
                return Err(Report::interrupted(code));
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            self.progress();
            self.interrupts.wait(GLANCE);
        }
    }

    /// Waits until somebody stands in line, and has had the moment that it takes to fall asleep.
    pub(super) fn waiters(&mut self, count: u64) -> Outcome<()> {
        let store: Box<dyn Store> = Box::new(self.store()?);
        let deadline = Instant::now() + LONG;
        while store.read(|view| view.count_tickets())? < count && Instant::now() < deadline {
            self.interrupts.wait(GLANCE);
        }
        self.interrupts.wait(Duration::from_millis(100));
        Ok(())
    }

    pub(super) fn call(&mut self, id: &Value, name: String) {
        self.names.insert(id.as_str().unwrap_or_default().to_owned(), name);
    }

    /// The newest attempt of a task, once its agent is at work.
    pub(super) fn attempt(&mut self, key: &str) -> Outcome<Option<(Attempt, u32)>> {
        let store: Box<dyn Store> = Box::new(self.store()?);
        let Some(id) = self.names.iter().find(|(_, name)| *name == key).map(|(id, _)| TaskId::new(id)) else {
            return Ok(None);
        };
        let tried = self.scratch.root().join(pretend::mark(id.as_str().as_ref()));
        let deadline = Instant::now() + LONG;
        while Instant::now() < deadline {
            let newest = store.read(|view| view.attempts(&Resource::task(&id)))?.into_iter().next();
            if let Some((attempt, pid)) = newest.and_then(|attempt| attempt.pid.map(|pid| (attempt, pid)))
                && tried.exists()
            {
                return Ok(Some((attempt, pid)));
            }
            self.interrupts.wait(GLANCE);
        }
        Ok(None)
    }

    fn name<'n>(&'n self, id: &'n str) -> &'n str {
        self.names.get(id).map_or(id, String::as_str)
    }

    fn tell(&mut self, event: &Event) {
        let detail = |name: &str| event.detail[name].as_str().unwrap_or_default().to_owned();
        match event.kind {
            EventKind::RunnerStarted => {
                self.runners += 1;
                let name = format!("runner {}", self.runners);
                self.note(Style::Plain, &format!("{name} is up"));
                self.names.insert(event.actor.clone(), name);
            }
            EventKind::TaskCreated => {
                let id = event.task.as_ref().map(ToString::to_string).unwrap_or_default();
                self.names.insert(id, detail("key"));
            }
            EventKind::LeaseAcquired => {
                let resource = detail("resource");
                let told = |kind: &str| ["task", "section"].contains(&kind);
                let Some((kind, id)) = resource.split_once(':').filter(|(kind, _)| told(kind)) else {
                    return;
                };
                let (who, what) = (self.name(&event.actor).to_owned(), self.name(id).to_owned());
                let fence = event.fence.map(|fence| fence.to_string()).unwrap_or_default();
                let from = event.detail["takenOverFrom"]["holder"].as_str().map(|old| {
                    let id = old.rsplit(' ').next().unwrap_or(old);
                    format!(", taken over from {}", self.name(id))
                });
                let verb = if kind == "section" { "holds" } else { "takes" };
                let line = format!("{who} {verb} {what} (fence {fence}){}", from.unwrap_or_default());
                self.note(Style::Plain, &line);
            }
            EventKind::TaskStatus => {
                let Some(key) = event.task.as_ref().map(|id| self.name(id.as_str()).to_owned()) else {
                    return;
                };
                match event.to {
                    Some(TaskStatus::Completed) => self.note(Style::Good, &format!("{key} is completed")),
                    Some(TaskStatus::Pending) => self.note(Style::Plain, &format!("{key} is pending again")),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    // ---- the end ----

    /// Ends what still runs.
    pub(super) fn close(&mut self) {
        self.clear_progress();
        for child in &self.children {
            signal(child.id(), Signal::TERM);
        }
        let deadline = Instant::now() + Duration::from_secs(5);
        for mut child in self.children.drain(..) {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(GLANCE);
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Stage<'_, '_> {
    fn drop(&mut self) {
        self.close();
    }
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}
