//! Reading the rows of a board in one transaction, and turning them into it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::attention::{self, Attention};
use super::groups::{GroupBy, GroupId, GroupRows, read_groups};
use super::model::{
    Board, EventLine, Held, JobLine, LeaseLine, Page, Parked, ProjectHead, RunningAttempt, TaskLine, Waiting,
    used,
};
use super::runners::{RunnerLine, running_runners};
use crate::clock::Timestamp;
use crate::ending::Usage;
use crate::error::Result;
use crate::event::Event;
use crate::event_text::Names;
use crate::holder::Judge;
use crate::id::{AttemptId, TaskId};
use crate::job::{Job, JobState};
use crate::lease::{Attempt, Lease, Resource, Ticket};
use crate::parking::Parking;
use crate::row_names::RowNames;
use crate::rules;
use crate::store::{EventFilter, Message, MessageFilter, TaskFilter, View, Viewer};
use crate::task::{Task, TaskStatus};
use crate::why::{Asking, Reason, about_project};

const DAY: Duration = Duration::from_hours(24);
/// At most this many messages to the viewer are shown.
const MESSAGES: u64 = 20;

/// Which part of a project a board shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub group_by: GroupBy,
    /// Part of the title, the description or the key of the tasks in groups.
    pub search: Option<String>,
    /// Whether groups contain completed and skipped tasks.
    pub finished: bool,
    /// At most this many tasks of a group are read.
    pub rows: u64,
    /// The first row of a group's page, if that is not 0.
    pub offsets: BTreeMap<GroupId, u64>,
    /// Groups whose tasks are not read.
    pub closed: BTreeSet<GroupId>,
    /// At most this many rows of each other list are read.
    pub list_rows: u64,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            group_by: GroupBy::Section,
            search: None,
            finished: false,
            rows: 200,
            offsets: BTreeMap::new(),
            closed: BTreeSet::new(),
            list_rows: 50,
        }
    }
}

/// What a board shows that is not in the store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    pub name: Option<String>,
    pub path: String,
    /// Why no agent is started, if no person has trusted the project.
    pub untrusted: Option<String>,
    /// The exclusive lock, in words.
    pub exclusive: Option<String>,
    /// What running attempts have used so far.
    pub used_so_far: BTreeMap<AttemptId, Usage>,
}

/// The rows of a board.
#[derive(Debug, Clone)]
pub struct Rows {
    now: Timestamp,
    counts: Vec<(TaskStatus, u64)>,
    agents: usize,
    used_today: Option<Usage>,
    ended: Page<EndedTask>,
    messages: Page<Message>,
    held: Page<HeldTask>,
    queue: Page<(Ticket, String)>,
    reasons: Vec<Reason>,
    parked: Vec<Parking>,
    runners: Vec<RunnerLine>,
    jobs: Page<JobLine>,
    groups: Vec<GroupRows>,
}

/// A task in review or failed, its last attempt that has ended, and its last event.
#[derive(Debug, Clone)]
pub(super) struct EndedTask {
    pub(super) task: Task,
    pub(super) attempt: Option<Attempt>,
    pub(super) last_event: Option<Event>,
}

#[derive(Debug, Clone)]
struct HeldTask {
    task: Task,
    lease: Lease,
    waiting: usize,
    /// The newest first.
    attempts: Vec<Attempt>,
    last_event: Option<Event>,
}

/// Reads everything that a board shows, except [`recent_events`].
pub fn read(view: &dyn View, asking: &Asking<'_>, query: &Query) -> Result<Rows> {
    let (ctx, now) = (asking.ctx, view.now());
    let viewer = ctx.viewer(view, asking.me)?;
    let counts = view.count_tasks()?;
    let limit = usize::try_from(query.list_rows).unwrap_or(usize::MAX);
    let mut tickets = view.all_tickets()?;
    tickets.retain(|ticket| ticket.is_fresh(now) && !viewer.is_dead(&ticket.process));
    let used = view.usage_since(now.before(DAY))?;
    Ok(Rows {
        now,
        agents: view.agents()?.iter().filter(|agent| agent.left_at.is_none()).count(),
        used_today: used.into_iter().map(|attempt| attempt.usage).reduce(Usage::plus),
        ended: read_ended(view, &viewer, query, &counts)?,
        messages: read_messages(view, asking)?,
        held: read_held(view, &viewer, query, &tickets)?,
        queue: read_queue(view, &tickets, limit)?,
        reasons: about_project(view, asking)?,
        parked: view.parked()?,
        runners: running_runners(view, ctx.judge)?,
        jobs: read_jobs(view, asking, query)?,
        groups: read_groups(view, &viewer, query, &counts)?,
        counts,
    })
}

/// The last `limit` events, newest first. They are read again after every change, so this waits for no writer.
pub fn recent_events(view: &dyn View, limit: u64) -> Result<Vec<EventLine>> {
    let filter = EventFilter { last: true, may_lack_events: true, limit, ..EventFilter::default() };
    let events = view.events(&filter)?;
    let mut names = Names::default();
    names.learn(view, &events)?;
    Ok(events.iter().rev().map(|event| EventLine::of(event, &names)).collect())
}

fn read_ended(
    view: &dyn View,
    viewer: &Viewer,
    query: &Query,
    counts: &[(TaskStatus, u64)],
) -> Result<Page<EndedTask>> {
    let (mut tasks, mut total) = (Vec::new(), 0);
    for status in [TaskStatus::Review, TaskStatus::Failed] {
        let count = counts.iter().find(|(of, _)| *of == status).map_or(0, |(_, count)| *count);
        if count == 0 {
            continue;
        }
        total += count;
        let filter =
            TaskFilter { statuses: Some(vec![status]), limit: query.list_rows, ..TaskFilter::default() };
        tasks.extend(view.page_of_tasks(&filter, viewer)?);
    }
    let ids = ids(&tasks);
    let mut attempts = attempts_by_task(view, &ids)?;
    let mut events = if ids.is_empty() { Vec::new() } else { view.last_events(&ids)? };
    let ended = |task: Task| {
        let of_task = attempts.remove(task.id.as_str()).unwrap_or_default();
        let last = events.iter().position(|event| event.task.as_ref() == Some(&task.id));
        EndedTask {
            attempt: of_task.into_iter().find(|attempt| attempt.run.is_some()),
            last_event: last.map(|at| events.swap_remove(at)),
            task,
        }
    };
    Ok(Page::first(tasks.into_iter().map(ended).collect(), total))
}

fn ids(tasks: &[Task]) -> Vec<TaskId> {
    tasks.iter().map(|task| task.id.clone()).collect()
}

/// The attempts at each of these tasks by the task's id, newest first.
fn attempts_by_task(view: &dyn View, tasks: &[TaskId]) -> Result<BTreeMap<String, Vec<Attempt>>> {
    let mut by_task = BTreeMap::<_, Vec<_>>::new();
    if !tasks.is_empty() {
        for attempt in view.attempts_at(tasks)? {
            by_task.entry(attempt.resource.id.clone()).or_default().push(attempt);
        }
    }
    Ok(by_task)
}

/// The unacknowledged messages to the viewer.
fn read_messages(view: &dyn View, asking: &Asking<'_>) -> Result<Page<Message>> {
    let Some(me) = asking.me else { return Ok(Page::whole(Vec::new())) };
    let to = Some(me.id.clone());
    let filter = MessageFilter { to, limit: MESSAGES, ..MessageFilter::default() };
    let (messages, total) = view.messages(&filter)?;
    Ok(Page::first(messages, total))
}

fn read_held(view: &dyn View, viewer: &Viewer, query: &Query, tickets: &[Ticket]) -> Result<Page<HeldTask>> {
    let filter = TaskFilter {
        statuses: Some(vec![TaskStatus::InProgress]),
        limit: query.list_rows,
        ..TaskFilter::default()
    };
    let (tasks, mut total) = view.list_tasks(&filter, viewer)?;
    let ids = ids(&tasks);
    let mut attempts = attempts_by_task(view, &ids)?;
    let mut events = if ids.is_empty() { Vec::new() } else { view.last_events(&ids)? };
    let mut rows = Vec::new();
    for task in tasks {
        let Some(lease) = task.lease.clone() else {
            // In progress without a lease: left behind by a crash, and claimable again.
            total -= 1;
            continue;
        };
        let resource = Resource::task(&task.id);
        let last = events.iter().position(|event| event.task.as_ref() == Some(&task.id));
        rows.push(HeldTask {
            lease,
            waiting: tickets.iter().filter(|ticket| ticket.resource == resource).count(),
            attempts: attempts.remove(task.id.as_str()).unwrap_or_default(),
            last_event: last.map(|at| events.swap_remove(at)),
            task,
        });
    }
    Ok(Page::first(rows, total))
}

/// The tickets with their wishes in words.
fn read_queue(view: &dyn View, tickets: &[Ticket], limit: usize) -> Result<Page<(Ticket, String)>> {
    let shown = tickets.iter().take(limit);
    let mut names = RowNames::default();
    names.learn_resources(view, shown.clone().map(|ticket| &ticket.resource))?;
    let rows = shown.map(|ticket| (ticket.clone(), names.wish(&ticket.resource))).collect();
    Ok(Page::first(rows, u64::try_from(tickets.len()).unwrap_or(u64::MAX)))
}

fn read_jobs(view: &dyn View, asking: &Asking<'_>, query: &Query) -> Result<Page<JobLine>> {
    let (jobs, total) = view.jobs(query.list_rows)?;
    let is_any_open = jobs.iter().any(|job| job.state == JobState::Open);
    let at_work = if is_any_open { rules::jobs_at_work(view, asking.ctx)? } else { BTreeSet::new() };
    let line = |job: Job| {
        let (status, created_at) = (job.status(at_work.contains(&job.id)), job.created_at);
        JobLine { id: job.id, name: job.name, status, counts: job.counts, created_at }
    };
    Ok(Page::first(jobs.into_iter().map(line).collect(), total))
}

impl Rows {
    /// The attempts at each task that is held.
    pub fn held_attempts(&self) -> impl Iterator<Item = &[Attempt]> {
        self.held.rows.iter().map(|held| held.attempts.as_slice())
    }

    /// The board. `judge` decides which leases have lapsed.
    pub fn board(self, judge: &dyn Judge, around: &Surroundings) -> Board {
        let now = self.now;
        let attention = attention_of(&self, judge, around);
        let names = Names::default();
        let held = self.held.map(|held| Held {
            lease: LeaseLine::of(&held.lease, now, judge),
            waiting: held.waiting,
            attempt: RunningAttempt::among(&held.attempts),
            used: used(&held.attempts, &around.used_so_far),
            last_event: held.last_event.map(|event| EventLine {
                subject: held.task.key.clone(),
                title: Some(held.task.title.clone()),
                ..EventLine::of(&event, &names)
            }),
            task: TaskLine::of(&held.task, now, judge),
        });
        let queue = self.queue.map(|(ticket, wish)| Waiting {
            ticket: ticket.number,
            pid: ticket.process.process.pid,
            host: ticket.process.hostname,
            holder: ticket.holder,
            wish,
            review: ticket.review,
            since: ticket.created_at,
        });
        let count = |status| self.counts.iter().find(|(of, _)| *of == status).map_or(0, |(_, count)| *count);
        let project = ProjectHead {
            name: around.name.clone(),
            path: around.path.clone(),
            tasks: TaskStatus::ALL.into_iter().map(|status| (status, count(status))).collect(),
            total: self.counts.iter().map(|(_, count)| count).sum(),
            agents: self.agents,
            used_today: self.used_today,
            exclusive: around.exclusive.clone(),
        };
        Board {
            now,
            project,
            attention,
            held,
            queue,
            moving: self.reasons.iter().all(Reason::is_progress),
            reasons: self.reasons,
            parked: self.parked.into_iter().map(|parking| Parked::of(parking, now)).collect(),
            runners: self.runners,
            jobs: self.jobs,
            groups: self.groups.into_iter().map(|rows| rows.group(now, judge)).collect(),
        }
    }
}

/// What waits for a person, sorted by urgency. The total counts tasks and messages that were not read.
fn attention_of(rows: &Rows, judge: &dyn Judge, around: &Surroundings) -> Page<Attention> {
    let unread = rows.ended.more() + rows.messages.more();
    let mut all: Vec<Attention> = attention::of_surroundings(around).into_iter().collect();
    all.extend(rows.parked.iter().filter_map(|parking| attention::of_parking(parking, rows.now)));
    all.extend(rows.messages.rows.iter().map(attention::of_message));
    all.extend(rows.ended.rows.iter().map(|ended| attention::of_task(ended.clone(), rows.now, judge)));
    all.extend(rows.jobs.rows.iter().filter_map(attention::of_job));
    all.sort_by_key(|attention| attention.kind);
    let mut page = Page::whole(all);
    page.total += unread;
    page
}
