//! What the user of the board has chosen: the pane, the rows, the tab, and what is being typed.
//!
//! A selection follows its row when the board changes, because rows are identified by their content and not by
//! their position.

use tenure_core::board::{
    Attention, Board, Group, GroupId, Held, Query, RunnerLine, TaskDetail, TaskLine, Waiting,
};
use tenure_core::holder::Holder;
use tenure_core::id::TaskId;
use tenure_core::lease::{AttemptState, LeaseState};

use super::verbs::Verb;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    Attention,
    Held,
    Tasks,
    Queue,
}

impl Pane {
    pub(super) const ALL: [Self; 4] = [Self::Attention, Self::Held, Self::Tasks, Self::Queue];

    pub(super) const fn index(self) -> usize {
        match self {
            Self::Attention => 0,
            Self::Held => 1,
            Self::Tasks => 2,
            Self::Queue => 3,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Info,
    Output,
    History,
    Project,
}

impl Tab {
    pub(super) const ALL: [Self; 4] = [Self::Info, Self::Output, Self::History, Self::Project];

    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Output => "output",
            Self::History => "history",
            Self::Project => "project",
        }
    }

    pub(super) const fn key(self) -> char {
        match self {
            Self::Info => 'i',
            Self::Output => 'o',
            Self::History => 'h',
            Self::Project => 'p',
        }
    }
}

/// The target of a verb, fixed when the verb is begun, even if the board changes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Target {
    pub(super) task: Option<TaskLine>,
    pub(super) section: Option<String>,
    /// The id of a runner.
    pub(super) runner: Option<String>,
}

/// Determines what a key does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Mode {
    Browse,
    Help,
    /// Typing the filter.
    Filter,
    /// Typing the text of a verb.
    Text {
        verb: Verb,
        target: Box<Target>,
        text: String,
    },
    /// Answering the question of a verb.
    Confirm {
        verb: Verb,
        target: Box<Target>,
    },
}

/// The message line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) text: String,
    pub(super) is_good: bool,
}

impl Notice {
    pub(super) fn good(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_good: true }
    }

    pub(super) fn bad(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_good: false }
    }
}

/// Identifies a row, so that it is found again after the board has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RowId {
    Task(TaskId),
    Group(GroupId),
    Sentence(String),
    Ticket(i64),
    Runner(String),
}

/// A row of a list.
#[derive(Debug, Clone, Copy)]
pub(super) enum Row<'a> {
    Attention(&'a Attention),
    Held(&'a Held),
    Waiting(&'a Waiting),
    Runner(&'a RunnerLine),
    Group(&'a Group),
    /// A task and its group.
    Task(&'a TaskLine, &'a Group),
    /// The rest of a group that is not shown.
    More(u64, &'a Group),
}

impl<'a> Row<'a> {
    fn id(self) -> RowId {
        match self {
            Self::Attention(attention) => match &attention.task {
                Some(task) => RowId::Task(task.id.clone()),
                None => RowId::Sentence(attention.sentence.clone()),
            },
            Self::Held(held) => RowId::Task(held.task.id.clone()),
            Self::Waiting(waiting) => RowId::Ticket(waiting.ticket),
            Self::Runner(line) => RowId::Runner(line.runner.id.clone()),
            Self::Group(group) => RowId::Group(group.id.clone()),
            Self::Task(task, _) => RowId::Task(task.id.clone()),
            Self::More(_, group) => RowId::Sentence(format!("{:?}", group.id)),
        }
    }

    pub(super) fn task(self) -> Option<&'a TaskLine> {
        match self {
            Self::Attention(attention) => attention.task.as_ref(),
            Self::Held(held) => Some(&held.task),
            Self::Task(task, _) => Some(task),
            Self::Waiting(_) | Self::Runner(_) | Self::Group(_) | Self::More(..) => None,
        }
    }

    pub(super) fn runner(self) -> Option<&'a RunnerLine> {
        match self {
            Self::Runner(line) => Some(line),
            _ => None,
        }
    }

    /// The section that the row belongs to.
    pub(super) fn section(self) -> Option<&'a str> {
        let group = match self {
            Self::Group(group) | Self::Task(_, group) | Self::More(_, group) => group,
            Self::Held(held) => return held.task.section.as_deref(),
            Self::Attention(attention) => return attention.task.as_ref()?.section.as_deref(),
            Self::Waiting(_) | Self::Runner(_) => return None,
        };
        matches!(group.id, GroupId::Section(_)).then_some(group.name.as_str())
    }
}

/// The rows of a pane.
pub(super) fn rows(board: &Board, pane: Pane) -> Vec<Row<'_>> {
    match pane {
        Pane::Attention => board.attention.rows.iter().map(Row::Attention).collect(),
        Pane::Held => board.held.rows.iter().map(Row::Held).collect(),
        Pane::Queue => {
            let waiting = board.queue.rows.iter().map(Row::Waiting);
            waiting.chain(board.runners.iter().map(Row::Runner)).collect()
        }
        Pane::Tasks => {
            let mut rows = Vec::new();
            for group in &board.groups {
                rows.push(Row::Group(group));
                let Some(page) = &group.tasks else { continue };
                rows.extend(page.rows.iter().map(|task| Row::Task(task, group)));
                if page.more() > 0 {
                    rows.push(Row::More(page.more(), group));
                }
            }
            rows
        }
    }
}

/// A position in a list: the selected row and the first visible one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Place {
    selected: usize,
    id: Option<RowId>,
    top: usize,
}

#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) me: Holder,
    pub(super) focus: Pane,
    places: [Place; 4],
    pub(super) tab: Tab,
    /// How far the right pane is scrolled: lines from its beginning, or for the output lines from its end.
    pub(super) scroll: usize,
    pub(super) mode: Mode,
    pub(super) query: Query,
    pub(super) notice: Option<Notice>,
    pub(super) mouse: bool,
}

impl State {
    pub(super) fn new(me: Holder) -> Self {
        let mut places: [Place; 4] = Default::default();
        // The first task, below the row of its group.
        places[Pane::Tasks.index()].selected = 1;
        Self {
            me,
            focus: Pane::Tasks,
            places,
            tab: Tab::Info,
            scroll: 0,
            mode: Mode::Browse,
            query: Query::default(),
            notice: None,
            mouse: true,
        }
    }

    pub(super) fn selected(&self, pane: Pane) -> usize {
        self.places[pane.index()].selected
    }

    /// The selected row of the pane that has the focus.
    pub(super) fn row<'a>(&self, board: &'a Board) -> Option<Row<'a>> {
        rows(board, self.focus).get(self.selected(self.focus)).copied()
    }

    /// The target of a verb on the selected row.
    pub(super) fn target(&self, board: &Board) -> Target {
        let row = self.row(board);
        Target {
            task: row.and_then(Row::task).cloned(),
            section: row.and_then(Row::section).map(str::to_owned),
            runner: row.and_then(Row::runner).map(|line| line.runner.id.clone()),
        }
    }

    /// The task that is selected.
    pub(super) fn task<'a>(&self, board: &'a Board) -> Option<&'a TaskLine> {
        self.row(board)?.task()
    }

    /// Selects the row `index`, or the last one.
    pub(super) fn select(&mut self, board: &Board, pane: Pane, index: usize) {
        let rows = rows(board, pane);
        let place = &mut self.places[pane.index()];
        place.selected = index.min(rows.len().saturating_sub(1));
        let id = rows.get(place.selected).map(|row| row.id());
        if place.id != id {
            place.id = id;
            self.scroll = 0;
        }
    }

    /// Selects in every pane the row that was selected before, or the one in its place.
    pub(super) fn follow(&mut self, board: &Board) {
        for pane in Pane::ALL {
            let rows = rows(board, pane);
            let place = &self.places[pane.index()];
            let same = place.id.as_ref().and_then(|id| rows.iter().position(|row| row.id() == *id));
            let index = same.unwrap_or(place.selected);
            self.select(board, pane, index);
        }
    }

    /// The first visible row of a pane of this height, so that the selected row is visible.
    pub(super) fn top(&self, pane: Pane, height: usize, count: usize) -> usize {
        let Place { selected, top, .. } = self.places[pane.index()];
        let highest = selected.saturating_sub(height.saturating_sub(1));
        top.clamp(highest, selected.max(highest)).min(count.saturating_sub(height))
    }

    /// Remembers the first visible row, so that the list scrolls only when the selection leaves it.
    pub(super) fn set_top(&mut self, pane: Pane, top: usize) {
        self.places[pane.index()].top = top;
    }
}

/// Everything that is drawn besides the state.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub(super) board: Board,
    pub(super) detail: Option<TaskDetail>,
    pub(super) events: Vec<tenure_core::board::EventLine>,
    pub(super) output: super::output::Lines,
}

impl Scene {
    /// Whether a task is being worked on or can be claimed.
    pub(super) fn is_moving(&self) -> bool {
        let mut held = self.board.held.rows.iter();
        self.board.moving || held.any(|held| held.lease.state == LeaseState::Live)
    }

    /// Whether an agent works on the selected task, so that it may print more.
    pub(super) fn is_printing(&self) -> bool {
        let mut attempts = self.detail.iter().flat_map(|detail| &detail.attempts);
        attempts.any(|attempt| attempt.state == AttemptState::Running)
    }
}
