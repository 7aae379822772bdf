//! The commands' answers, for calls over MCP: the same functions, the same objects.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::error::TaskName;
use tenure_core::holder::{Caller, Holder, Incarnation};
use tenure_core::id::TaskId;
use tenure_core::kernel::Finish;
use tenure_core::lease::Lease;
use tenure_core::rules::{self, join_client, leave_agent, send_message};
use tenure_core::store::{Message, MessageFilter, TaskFilter};
use tenure_core::task::Task;
use tenure_core::{Error, kernel, reference, wire};
use tenure_serve::{Call, Claim, Desk, Effect, FinishTask, ListTasks, Outcome as Word, Page, ReadInbox};
use tenure_serve::{Refusal, Reply, SendMessage, Session, Step};

use super::claims::Place;
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::commands::tasks::{add, finish, list, renew, show, view};
use crate::commands::{msg, status, why};
use crate::identity::IdentityArgs;
use crate::report::{CommandResult, Report};
use crate::store::Doorbell;
use crate::text::{RenderOptions, Text};

/// As programs read it.
pub(super) const PLAIN: RenderOptions = RenderOptions { color: false, width: None };

const FEW: u64 = 50;
const MOST: u64 = 200;
const MOST_MESSAGES: u64 = 50;
const LONGEST_IN_LIST: usize = 500;

#[derive(Debug)]
pub(super) struct Counter<'a, 'o> {
    pub(super) app: &'o mut App<'a>,
    pub(super) open: &'o Open<'a>,
    /// The name that the client's environment has for it.
    named: Option<String>,
    /// Recorded in leases, so that our death frees them. Where they are to outlive the connection, only time ends them.
    pub(super) process: Option<Incarnation>,
    /// Where the keeper is told of a lease that was forced away.
    pub(super) doorbell: Option<String>,
    pub(super) places: HashMap<u64, Place>,
}

impl<'a, 'o> Counter<'a, 'o> {
    pub(super) fn new(
        app: &'o mut App<'a>,
        open: &'o Open<'a>,
        named: Option<String>,
        doorbell: Option<&Doorbell>,
    ) -> Self {
        let process = open.config.mcp.release_on_disconnect.then(Incarnation::current);
        let doorbell = doorbell.map(Doorbell::address);
        Self { app, open, named, process, doorbell, places: HashMap::new() }
    }

    /// The caller as the commands know it, with the fence that it showed or was given last.
    fn who(session: &Session, task: Option<&TaskName>, fence: Option<i64>) -> IdentityArgs {
        let known = || task.and_then(|task| session.fence_of(&task.id)).map(tenure_core::id::Fence::number);
        IdentityArgs { agent: session.agent().map(str::to_owned), fence: fence.or_else(known) }
    }

    fn list(&self, session: &Session, args: &ListTasks) -> CommandResult<Answer> {
        let identity = self.app.identity(&Self::who(session, None, None))?;
        let statuses = list::statuses(&args.status)?;
        let (tasks, total) = self.open.read(|view| {
            let viewer = self.open.viewer(view, &identity)?;
            let section = args.section.as_deref().map(|name| reference::section(view, name)).transpose()?;
            let filter = TaskFilter {
                statuses: statuses.clone(),
                section: section.map(|section| section.id),
                search: args.search.clone(),
                label: args.label.clone(),
                ready: args.ready,
                held_by: args.mine.then(|| identity.holder.clone()),
                limit: args.limit.unwrap_or(FEW).clamp(1, MOST),
                offset: args.offset,
            };
            view.list_tasks(&filter, &viewer)
        })?;
        let mut text = Text::new();
        if tasks.is_empty() {
            text.line("No tasks match.");
        } else {
            text.table(&view::table(self.app, &tasks), PLAIN);
        }
        let shown = u64::try_from(tasks.len()).unwrap_or(u64::MAX);
        if args.offset.saturating_add(shown) < total && shown > 0 {
            text.line(format!("{shown} of {total}; go on with offset {}", args.offset + shown));
        }
        let rows: Vec<_> = tasks.into_iter().map(|task| brief(self.app, task)).collect();
        Ok(Answer::new(json!({"tasks": rows, "total": total}), text))
    }

    fn finish(&mut self, session: &Session, args: &FinishTask) -> CommandResult<Reply> {
        let message = args.message.as_deref().unwrap_or_default();
        let (word, said) = match args.outcome {
            Word::Done => (Finish::Done, "done"),
            Word::Review => (Finish::Review, "done"),
            Word::Fail if message.is_empty() => {
                return Err(Report::usage("say in `message` why it failed"));
            }
            Word::Fail => (Finish::Fail(message), "failed"),
        };
        if args.outcome != Word::Fail && args.message.is_some() {
            return Err(Report::usage("`message` goes with `fail`; leave word with send_message instead"));
        }
        self.say(session, &args.task, Some(args.fence), word, said)
    }

    fn say(
        &mut self,
        session: &Session,
        task: &str,
        fence: Option<i64>,
        word: Finish<'_>,
        said: &str,
    ) -> CommandResult<Reply> {
        if let Finish::Fail(text) | Finish::Release(Some(text)) = word {
            tenure_core::text::check_message(text).map_err(Error::from)?;
        }
        let name = self.open.resolve(task)?;
        let who = Self::who(session, Some(&name), fence);
        let finished = finish::finish(self.app, self.open, &name, &who, word, "finish")?;
        let effect = Effect::Ended(finished.lease.fence);
        Ok(reply(finish::answer(self.app, &finished, word, said), effect))
    }

    fn send(&self, session: &Session, args: &SendMessage) -> CommandResult<Answer> {
        let task = args.task.as_deref().map(|task| self.open.resolve(task)).transpose()?;
        let from = self.app.identity(&Self::who(session, None, None))?.holder.id;
        let ctx = self.open.context();
        let sent = self
            .open
            .write(|tx| send_message(tx, &ctx, task.as_ref(), &from, args.to.as_deref(), &args.message))?;
        let mut text = Text::new();
        text.line(format!("Left message #{}", sent.id));
        Ok(Answer::new(json!({"message": wire::message(&sent)}), text))
    }

    /// Those for the caller, and those on what it holds; at least once, until they are acknowledged.
    fn inbox(&self, session: &Session, args: &ReadInbox) -> CommandResult<Answer> {
        let me = self.app.identity(&Self::who(session, None, None))?.holder.id;
        let task = args.task.as_deref().map(|task| self.open.resolve(task)).transpose()?;
        let acknowledged = msg::ack::acknowledge_all(self.open, &args.acknowledge, &me)?;
        let mut messages: Vec<Message> = self.open.read(|view| {
            let all = MessageFilter { limit: MOST_MESSAGES, ..MessageFilter::default() };
            if let Some(task) = &task {
                return Ok(view.messages(&MessageFilter { task: Some(TaskId::new(&task.id)), ..all })?.0);
            }
            let mut found = view.messages(&MessageFilter { to: Some(me.clone()), ..all.clone() })?.0;
            for held in session.granted() {
                found.extend(view.messages(&MessageFilter { task: Some(held), ..all.clone() })?.0);
            }
            Ok(found)
        })?;
        messages.retain(|message| message.to.as_ref().is_none_or(|to| *to == me));
        messages.sort_by_key(|message| message.id);
        messages.dedup_by_key(|message| message.id);
        let mut text = Text::new();
        for message in &messages {
            let place = message.task.as_ref().map(|t| format!(" on {}", t.key)).unwrap_or_default();
            text.line(format!("#{} from {}{place}:", message.id, message.from));
            text.block(4, &message.text);
        }
        if messages.is_empty() {
            text.line("No messages.");
        }
        let rows: Vec<_> = messages.iter().map(wire::message).collect();
        let data = json!({"messages": rows, "total": rows.len(), "acknowledged": acknowledged});
        Ok(Answer::new(data, text))
    }

    fn answer_call(&mut self, session: &Session, call: &Call) -> CommandResult<Reply> {
        let anybody = Self::who(session, None, None);
        let answer = match call {
            Call::GetStatus(_) => {
                let mut answer = status::show(self.app, self.open, &anybody)?;
                set(&mut answer.data, "you", json!(session.agent()));
                if let Some(you) = session.agent() {
                    answer.text.line(format!("You are {you}"));
                }
                answer
            }
            Call::ListTasks(args) => self.list(session, args)?,
            Call::GetTask(args) => show::show(self.app, self.open, &anybody, &args.task, args.history)?,
            Call::AddTask(args) => {
                let args = args.clone();
                let request = rules::AddTask {
                    title: args.title,
                    key: args.key,
                    description: args.description,
                    section: args.section,
                    source_file: args.source_file,
                    priority: args.priority,
                    depends_on: args.depends_on,
                    labels: args.labels,
                    after: args.after,
                };
                add::add(self.app, self.open, &anybody, &request)?
            }
            Call::RenewLease(args) => {
                let ttl = tenure_serve::ttl(args.ttl.as_deref()).map_err(Report::usage)?;
                let name = self.open.resolve(&args.task)?;
                let who = Self::who(session, Some(&name), args.fence);
                let lease = renew::renew(self.app, self.open, &name, &who, ttl)?;
                let answer = renew::answer(self.app, &name, &lease);
                return Ok(reply(answer, holds(name, lease, session, true)));
            }
            Call::ReleaseTask(args) => {
                let word = Finish::Release(args.message.as_deref());
                return self.say(session, &args.task, args.fence, word, "released");
            }
            Call::FinishTask(args) => return self.finish(session, args),
            Call::SendMessage(args) => self.send(session, args)?,
            Call::ReadInbox(args) => self.inbox(session, args)?,
            Call::Explain(args) => {
                let mut answer = why::explain(self.app, self.open, &anybody, args.task.as_deref())?;
                let hints: Vec<_> = answer
                    .hints
                    .iter()
                    .map(|hint| json!({"why": hint.why, "command": hint.command}))
                    .collect();
                set(&mut answer.data, "hints", json!(hints));
                answer
            }
        };
        Ok(reply(answer, Effect::Nothing))
    }

    fn end_session(&mut self, session: &Session, held: &[Lease]) -> CommandResult<()> {
        let Some(agent) = session.agent() else { return Ok(()) };
        if !self.open.config.mcp.release_on_disconnect {
            return Ok(());
        }
        let ctx = self.open.context();
        if self.named.is_none() {
            // The agent was this connection's alone, so it goes with everything it has.
            self.open.write(|tx| leave_agent(tx, &ctx, agent))?;
            return Ok(());
        }
        for lease in held {
            match self.open.write(|tx| kernel::release(tx, &ctx, agent, lease)) {
                Ok(_) | Err(Error::LockNotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Desk for Counter<'_, '_> {
    fn join(&mut self, client: &str) -> Result<String, Refusal> {
        if let Some(id) = &self.named {
            return Ok(id.clone());
        }
        let ctx = self.open.context();
        let agent = self.open.write(|tx| join_client(tx, &ctx, client)).map_err(Report::from);
        agent.map(|agent| agent.id).map_err(refusal)
    }

    fn answer(&mut self, session: &Session, call: &Call) -> Result<Reply, Refusal> {
        self.answer_call(session, call).map_err(refusal)
    }

    fn claim(&mut self, session: &Session, claim: &Claim, place: u64) -> Result<Step, Refusal> {
        self.try_claim(session, claim, place).map_err(refusal)
    }

    fn give_up(&mut self, place: u64, waited: Duration) -> Refusal {
        refusal(self.dequeue(place, waited))
    }

    fn give_back(&mut self, lease: &Lease, task: &TaskName) {
        let caller = Caller::new(lease.holder.clone()).with_fence(Some(lease.fence));
        let ctx = self.open.context();
        let word = Finish::Release(Some("the call was cancelled"));
        // As well as it goes: nobody renews it any more.
        let _ = self.open.write(|tx| kernel::finish(tx, &ctx, &caller, task, word, false));
    }

    fn read(&mut self, session: &Session, page: &Page) -> Result<String, Refusal> {
        self.page(&Self::who(session, None, None), page).map_err(refusal)
    }

    fn end(&mut self, session: &Session, held: Vec<Lease>) {
        if let Err(report) = self.end_session(session, &held) {
            self.app.printer.warn(&format!("what the client held is left to expire: {}", report.message));
        }
    }
}

/// What the caller holds is renewed by us; what it holds by another's credential is renewed by that one.
pub(super) fn holds(task: TaskName, lease: Lease, session: &Session, reacquired: bool) -> Effect {
    let its_own = session.agent().is_some_and(|id| lease.held_by(&Holder::agent(id)));
    if its_own { Effect::Holds { task, lease: Box::new(lease), reacquired } } else { Effect::Nothing }
}

/// A task in a list, for readers with little room.
pub(super) fn brief(app: &App<'_>, mut task: Task) -> Value {
    if let Some((end, _)) = task.description.char_indices().nth(LONGEST_IN_LIST) {
        task.description.truncate(end);
        task.description.push('…');
    }
    view::object(app, &task)
}

pub(super) fn reply(answer: Answer, effect: Effect) -> Reply {
    Reply { text: answer.text.render(PLAIN), data: answer.data, effect }
}

fn refusal(report: Report) -> Refusal {
    Refusal { code: report.code, message: report.message, details: report.details, context: report.context }
}

fn set(data: &mut Value, key: &str, value: Value) {
    if let Some(fields) = data.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}
