//! Executes MCP requests with the same functions and the same JSON as the commands.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::json;
use tenure_core::error::TaskName;
use tenure_core::holder::{Caller, Holder, Incarnation};
use tenure_core::id::TaskId;
use tenure_core::kernel::Finish;
use tenure_core::lease::Lease;
use tenure_core::rules::{join_client, leave_agent};
use tenure_core::store::{Message, MessageFilter, TaskFilter, TaskOrder};
use tenure_core::task::Task;
use tenure_core::{Error, kernel, reference, wire};
use tenure_serve::{
    Call, Claim, Effect, ExplainAnswer, FinishOutcome, FinishTask, HintJson, InboxAnswer, ListTasks, Page,
    ReadInbox, Refusal, Reply, RequestHandler, Session, StatusAnswer, Step,
};

use super::claims::QueuedClaim;
use crate::answer::Answer;
use crate::app::{App, Open};
use crate::commands::tasks::{add, finish, list, renew, show, view};
use crate::commands::{msg, status, why};
use crate::identity::IdentityArgs;
use crate::report::{CommandResult, Report};
use crate::supervised;
use crate::text::{RenderOptions, Text};

/// Text without colours or a fixed width.
pub(super) const PLAIN: RenderOptions = RenderOptions { color: false, width: None };

const DEFAULT_LIMIT: u64 = 50;
const MOST_TASKS: u64 = 200;
const MOST_MESSAGES: u64 = 50;
/// How many characters of a description a list shows.
const LONGEST_IN_LIST: usize = 500;

#[derive(Debug)]
pub(super) struct McpHandler<'a, 'o> {
    pub(super) app: &'o mut App<'a>,
    pub(super) open: &'o Open<'a>,
    /// The agent id from the client's environment, if it sets one.
    named: Option<String>,
    /// Recorded in leases, so that they lapse when this process dies. `None` if leases are to outlive the connection.
    pub(super) process: Option<Incarnation>,
    /// The doorbell that is rung when a client's lease is evicted.
    pub(super) doorbell: Option<String>,
    /// Claims that wait, by the number that the server gave them.
    pub(super) queued: HashMap<u64, QueuedClaim>,
}

impl<'a, 'o> McpHandler<'a, 'o> {
    pub(super) fn new(
        app: &'o mut App<'a>,
        open: &'o Open<'a>,
        named: Option<String>,
        doorbell: Option<String>,
    ) -> Self {
        let process = open.config.mcp.release_on_disconnect.then(Incarnation::current);
        Self { app, open, named, process, doorbell, queued: HashMap::new() }
    }

    /// The caller, with the fence that it presents or that this session was granted last for the task.
    fn who(session: &Session, task: Option<&TaskName>, fence: Option<i64>) -> IdentityArgs {
        let known = || task.and_then(|task| session.fence_of(&task.id)).map(tenure_core::id::Fence::number);
        IdentityArgs { fence: fence.or_else(known), ..IdentityArgs::agent(session.agent()) }
    }

    fn list(&self, session: &Session, args: &ListTasks) -> CommandResult<Answer> {
        let identity = self.app.identity(&Self::who(session, None, None))?;
        let wanted = list::wanted(&args.status)?;
        let page = self.open.read(|view| {
            let viewer = self.open.viewer(view, &identity)?;
            let section = args.section.as_deref().map(|name| reference::section(view, name)).transpose()?;
            let filter = TaskFilter {
                statuses: wanted.statuses.clone(),
                states: wanted.states.clone(),
                section: section.map(|section| section.id),
                search: args.search.clone(),
                label: args.label.clone(),
                ready: args.ready,
                held_by: args.mine.then(|| identity.holder.clone()),
                order: TaskOrder::default(),
                limit: args.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MOST_TASKS),
                offset: args.offset,
            };
            list::read_page(view, &filter, &viewer, args.total)
        })?;
        let list::Page { tasks, total, has_more } = page;
        let mut text = Text::new();
        if tasks.is_empty() {
            text.line("No tasks match.");
        } else {
            text.table(&view::table(self.app, &tasks), PLAIN);
        }
        let shown = u64::try_from(tasks.len()).unwrap_or(u64::MAX);
        if has_more && shown > 0 {
            let of_total = total.map_or_else(|| " shown".to_owned(), |total| format!(" of {total}"));
            text.line(format!("{shown}{of_total}; go on with offset {}", args.offset + shown));
        }
        let tasks: Vec<_> = tasks.into_iter().map(shortened).collect();
        let tasks = tasks.iter().map(|task| view::object(self.app, task)).collect();
        Ok(Answer::new(json!(wire::TasksAnswer { tasks, total }), text))
    }

    fn finish(&mut self, session: &Session, args: &FinishTask) -> CommandResult<Reply> {
        let message = args.message.as_deref().unwrap_or_default();
        let (outcome, done) = match args.outcome {
            FinishOutcome::Done => (Finish::Done, "done"),
            FinishOutcome::Review => (Finish::Review, "done"),
            FinishOutcome::Fail if message.is_empty() => {
                return Err(Report::usage("say in `message` why it failed"));
            }
            FinishOutcome::Fail => (Finish::Fail(message), "failed"),
        };
        if args.outcome != FinishOutcome::Fail && args.message.is_some() {
            return Err(Report::usage("`message` goes with `fail`; use send_message for anything else"));
        }
        // The runner has put the fence into the environment of its agent.
        if args.fence.is_none() && self.app.env.var(tenure_core::supervised::VARIABLE).is_none() {
            return Err(Report::usage(
                "give the `fence` of your claim, which is `lease.fence` in its answer",
            ));
        }
        self.end_lease(session, &args.task, args.fence, outcome, done)
    }

    /// `done` describes the task afterwards, for the text.
    fn end_lease(
        &mut self,
        session: &Session,
        task: &str,
        fence: Option<i64>,
        outcome: Finish<'_>,
        done: &str,
    ) -> CommandResult<Reply> {
        if let Finish::Fail(text) | Finish::Release(Some(text)) = outcome {
            tenure_core::text::check_message(text).map_err(Error::from)?;
        }
        let name = self.open.resolve(task)?;
        let who = Self::who(session, Some(&name), fence);
        let finished = finish::finish(self.app, self.open, &name, &who, outcome, "finish")?;
        let effect = Effect::Ended(finished.lease.fence);
        Ok(reply(finish::answer(self.app, &finished, outcome, done), effect))
    }

    /// Messages for the caller and on the tasks that it holds. Each is shown until it is acknowledged.
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
        let messages: Vec<_> = messages.iter().map(wire::message).collect();
        let inbox = InboxAnswer { total: messages.len(), messages, acknowledged };
        Ok(Answer::new(json!(inbox), text))
    }

    fn answer_call(&mut self, session: &Session, call: &Call) -> CommandResult<Reply> {
        supervised::check(self.app.env, call.verb())?;
        let anybody = Self::who(session, None, None);
        let answer = match call {
            Call::GetStatus(_) => {
                let mut answer = status::show(self.app, self.open, &anybody)?;
                let you = session.agent();
                answer.data = json!(StatusAnswer { status: answer.data, you: you.map(str::to_owned) });
                if let Some(you) = you {
                    answer.text.line(format!("You are {you}"));
                }
                answer
            }
            Call::ListTasks(args) => self.list(session, args)?,
            Call::GetTask(args) => show::show(self.app, self.open, &anybody, &args.task, args.history)?,
            Call::AddTask(args) => add::add(self.app, self.open, &anybody, args)?,
            Call::RenewLease(args) => {
                let ttl = tenure_serve::ttl(args.ttl.as_deref()).map_err(Report::usage)?;
                let name = self.open.resolve(&args.task)?;
                let who = Self::who(session, Some(&name), args.fence);
                let lease = renew::renew(self.app, self.open, &name, &who, ttl)?;
                let answer = renew::answer(self.app, &name, &lease);
                return Ok(reply(answer, holds(name, lease, session, true)));
            }
            Call::ReleaseTask(args) => {
                let outcome = Finish::Release(args.message.as_deref());
                return self.end_lease(session, &args.task, args.fence, outcome, "released");
            }
            Call::FinishTask(args) => return self.finish(session, args),
            Call::SendMessage(args) => {
                let from = self.app.identity(&anybody)?.holder.id;
                let (task, to) = (args.task.as_deref(), args.to.as_deref());
                msg::send::send(self.app, self.open, &from, task, to, &args.message)?
            }
            Call::ReadInbox(args) => self.inbox(session, args)?,
            Call::Explain(args) => {
                let mut answer = why::explain(self.app, self.open, &anybody, args.task.as_deref())?;
                let hints = answer.hints.iter();
                let hints =
                    hints.map(|hint| HintJson { why: hint.why.clone(), command: hint.command.clone() });
                answer.data = json!(ExplainAnswer { explanation: answer.data, hints: hints.collect() });
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
            // The agent was registered for this connection, so it leaves, which releases its leases.
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

impl RequestHandler for McpHandler<'_, '_> {
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

    fn claim(&mut self, session: &Session, claim: &Claim, number: u64) -> Result<Step, Refusal> {
        self.try_claim(session, claim, number).map_err(refusal)
    }

    fn cancel_claim(&mut self, number: u64, waited: Duration) -> Refusal {
        refusal(self.dequeue(number, waited))
    }

    fn release_grant(&mut self, lease: &Lease, task: &TaskName) {
        let caller = Caller::holding(lease);
        let ctx = self.open.context();
        let outcome = Finish::Release(Some("the call was cancelled"));
        // If this fails, the lease expires, because it is no longer renewed.
        let _ = self.open.write(|tx| kernel::finish(tx, &ctx, &caller, task, outcome, false));
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

/// The server renews a lease of the session's own agent. A lease that the caller holds through another holder's key is
/// renewed by that holder's supervisor.
pub(super) fn holds(task: TaskName, lease: Lease, session: &Session, reacquired: bool) -> Effect {
    let is_own = session.agent().is_some_and(|id| lease.held_by(&Holder::agent(id)));
    if is_own { Effect::Holds { task, lease: Box::new(lease), reacquired } } else { Effect::Nothing }
}

/// A task as lists show it, with a shortened description.
pub(super) fn shortened(mut task: Task) -> Task {
    if let Some((end, _)) = task.description.char_indices().nth(LONGEST_IN_LIST) {
        task.description.truncate(end);
        task.description.push('…');
    }
    task
}

pub(super) fn reply(answer: Answer, effect: Effect) -> Reply {
    Reply { text: answer.text.render(PLAIN), data: answer.data, effect }
}

pub(super) fn refusal(report: Report) -> Refusal {
    Refusal { code: report.code, message: report.message, details: report.details, context: report.context }
}
