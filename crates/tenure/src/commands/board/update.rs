//! What a key or a click does to the state. Pure: the effects are returned as an [`Action`].

use ratatui_crossterm::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind,
};
use tenure_core::board::{Board, GroupBy};
use tenure_core::id::TaskId;

use super::layout::{Areas, Spot};
use super::state::{Mode, Notice, Pane, Row, State, Tab, Target};
use super::verbs::{Asks, Verb};

/// How many more tasks of a group are read at a time.
const MORE: u64 = 200;
/// The longest text that can be typed.
const LONGEST: usize = 2000;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    Quit,
    /// Ctrl+C.
    Interrupt,
    Suspend,
    /// The query has changed, so the store is read again.
    Read,
    /// Runs a command of this program.
    Run(Vec<String>),
    /// Opens the description of this task in an editor.
    Describe(TaskId),
    /// Takes or returns the mouse.
    Mouse,
}

pub(super) fn update(state: &mut State, board: &Board, areas: &Areas, event: &Event) -> Option<Action> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => press(state, board, key),
        Event::Paste(text) => {
            for letter in text.chars() {
                type_letter(state, if letter.is_control() { ' ' } else { letter });
            }
            matches!(state.mode, Mode::Filter).then_some(Action::Read)
        }
        Event::Mouse(mouse) => {
            let spot = areas.spot(mouse.column, mouse.row)?;
            match (mouse.kind, spot) {
                (MouseEventKind::Down(MouseButton::Left), Spot::Row(pane, line)) => {
                    state.focus = pane;
                    let count = super::state::rows(board, pane).len();
                    let top = state.top(pane, areas.height(pane), count);
                    if state.selected(pane) == top + line {
                        return toggle(state, board);
                    }
                    state.select(board, pane, top + line);
                }
                (MouseEventKind::Down(MouseButton::Left), Spot::Tab(tab)) => set_tab(state, tab),
                (MouseEventKind::ScrollDown, Spot::Row(pane, _)) => step(state, board, pane, 3),
                (MouseEventKind::ScrollUp, Spot::Row(pane, _)) => step(state, board, pane, -3),
                (MouseEventKind::ScrollDown, _) => scroll(state, 3),
                (MouseEventKind::ScrollUp, _) => scroll(state, -3),
                _ => {}
            }
            None
        }
        _ => None,
    }
}

fn press(state: &mut State, board: &Board, key: &KeyEvent) -> Option<Action> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        match key.code {
            KeyCode::Char('c') => return Some(Action::Interrupt),
            KeyCode::Char('z') => return Some(Action::Suspend),
            _ => {}
        }
    }
    match &state.mode {
        Mode::Browse => browse(state, board, key),
        Mode::Help => {
            state.mode = Mode::Browse;
            None
        }
        Mode::Confirm { verb, target } => {
            let action = run(*verb, target, "");
            state.mode = Mode::Browse;
            match key.code {
                KeyCode::Char('y' | 'Y') => action,
                _ => {
                    state.notice = Some(Notice::good("nothing was changed"));
                    None
                }
            }
        }
        Mode::Filter => type_filter(state, key),
        Mode::Text { .. } => type_text(state, key),
    }
}

fn browse(state: &mut State, board: &Board, key: &KeyEvent) -> Option<Action> {
    if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
        return None;
    }
    let focus = state.focus;
    match key.code {
        KeyCode::Char('q') => return Some(Action::Quit),
        KeyCode::Char('?') => state.mode = Mode::Help,
        KeyCode::Char('/') => state.mode = Mode::Filter,
        KeyCode::Esc => {
            state.notice = None;
            if state.query.search.take().is_some() {
                return Some(Action::Read);
            }
        }
        KeyCode::Tab => turn(state, 1),
        KeyCode::BackTab => turn(state, 3),
        KeyCode::Char(digit @ '1'..='4') => {
            if let Some((pane, _)) = Pane::ALL.into_iter().zip('1'..).find(|(_, number)| *number == digit) {
                state.focus = pane;
                state.scroll = 0;
            }
        }
        KeyCode::Down | KeyCode::Char('j') => step(state, board, focus, 1),
        KeyCode::Up | KeyCode::Char('k') => step(state, board, focus, -1),
        KeyCode::Home | KeyCode::Char('g') => state.select(board, focus, 0),
        KeyCode::End | KeyCode::Char('G') => state.select(board, focus, usize::MAX),
        KeyCode::PageDown | KeyCode::Char('J') => scroll(state, 10),
        KeyCode::PageUp | KeyCode::Char('K') => scroll(state, -10),
        KeyCode::Left => return fold(state, board, Some(true)),
        KeyCode::Right => return fold(state, board, Some(false)),
        KeyCode::Enter | KeyCode::Char(' ') => return toggle(state, board),
        KeyCode::Char('f') => {
            state.query.finished = !state.query.finished;
            let shown = if state.query.finished { "shown" } else { "hidden" };
            state.notice = Some(Notice::good(format!("completed and skipped tasks are {shown}")));
            return Some(Action::Read);
        }
        KeyCode::Char('b') => {
            state.query.group_by = match state.query.group_by {
                GroupBy::Section => GroupBy::Status,
                GroupBy::Status => GroupBy::Section,
            };
            return Some(Action::Read);
        }
        KeyCode::Char('M') => {
            state.mouse = !state.mouse;
            let whose = if state.mouse { "selects rows" } else { "belongs to the terminal" };
            state.notice = Some(Notice::good(format!("the mouse {whose}")));
            return Some(Action::Mouse);
        }
        KeyCode::Char(letter) => {
            if let Some(tab) = Tab::ALL.into_iter().find(|tab| tab.key() == letter) {
                set_tab(state, tab);
            } else if let Some(verb) = Verb::of_key(letter) {
                return begin(state, board, verb);
            }
        }
        _ => {}
    }
    None
}

fn set_tab(state: &mut State, tab: Tab) {
    state.tab = tab;
    state.scroll = 0;
}

fn turn(state: &mut State, by: usize) {
    state.focus = Pane::ALL[(state.focus.index() + by) % Pane::ALL.len()];
    state.scroll = 0;
}

fn step(state: &mut State, board: &Board, pane: Pane, by: isize) {
    let to = state.selected(pane).saturating_add_signed(by);
    state.select(board, pane, to);
}

/// The output is shown from its end, so that it follows what the agent prints.
fn scroll(state: &mut State, by: isize) {
    let by = if state.tab == Tab::Output { -by } else { by };
    state.scroll = state.scroll.saturating_add_signed(by);
}

/// Opens or closes the selected group, or reads more of it.
fn toggle(state: &mut State, board: &Board) -> Option<Action> {
    match state.row(board)? {
        Row::More(..) => {
            state.query.rows += MORE;
            Some(Action::Read)
        }
        Row::Group(_) => fold(state, board, None),
        _ => None,
    }
}

/// Closes or opens the group of the selected row; `None` toggles it.
fn fold(state: &mut State, board: &Board, close: Option<bool>) -> Option<Action> {
    let (Row::Group(group) | Row::Task(_, group) | Row::More(_, group)) = state.row(board)? else {
        return None;
    };
    let is_open = group.tasks.is_some();
    if close.unwrap_or(is_open) {
        // The row of the group remains, so it is selected.
        let rows = super::state::rows(board, Pane::Tasks);
        let at = rows.iter().position(|row| matches!(row, Row::Group(of) if of.id == group.id));
        state.select(board, Pane::Tasks, at.unwrap_or(0));
        state.query.closed.insert(group.id.clone());
    } else {
        state.query.closed.remove(&group.id);
    }
    Some(Action::Read)
}

/// Runs a verb, or first asks for the text or confirmation that it needs.
fn begin(state: &mut State, board: &Board, verb: Verb) -> Option<Action> {
    let row = state.row(board);
    if !verb.applies(row, &state.me) {
        let what = match row.and_then(Row::task) {
            _ if verb == Verb::Stop => "select a runner of this machine first, in list 4".to_owned(),
            Some(task) => format!("{} cannot be used on {}: it is {}", verb.label(), task.key, task.status),
            None => format!("{} needs a task: select one first", verb.label()),
        };
        state.notice = Some(Notice::bad(what));
        return None;
    }
    state.notice = None;
    match verb.asks() {
        Asks::Nothing => run(verb, &state.target(board), ""),
        Asks::Yes(_) => {
            state.mode = Mode::Confirm { verb, target: Box::new(state.target(board)) };
            None
        }
        Asks::Text(_) | Asks::OptionalText(_) => {
            let target = Box::new(state.target(board));
            let text = first_text(verb, &target);
            state.mode = Mode::Text { verb, target, text };
            None
        }
        Asks::Editor => row.and_then(Row::task).map(|task| Action::Describe(task.id.clone())),
    }
}

/// The initial text of the input field.
fn first_text(verb: Verb, target: &Target) -> String {
    let task = target.task.as_ref().filter(|_| verb == Verb::Edit);
    task.map(|task| task.title.clone()).unwrap_or_default()
}

fn run(verb: Verb, target: &Target, text: &str) -> Option<Action> {
    let args = verb.args(target, text);
    (!args.is_empty()).then_some(Action::Run(args))
}

fn type_filter(state: &mut State, key: &KeyEvent) -> Option<Action> {
    match key.code {
        KeyCode::Enter => state.mode = Mode::Browse,
        KeyCode::Esc => {
            state.mode = Mode::Browse;
            state.query.search = None;
            return Some(Action::Read);
        }
        _ => {
            let mut text = state.query.search.clone().unwrap_or_default();
            edit(&mut text, key);
            state.query.search = (!text.is_empty()).then_some(text);
            return Some(Action::Read);
        }
    }
    None
}

fn type_text(state: &mut State, key: &KeyEvent) -> Option<Action> {
    let Mode::Text { verb, target, text } = &mut state.mode else { return None };
    match key.code {
        KeyCode::Enter => {
            let typed = text.trim();
            if typed.is_empty() && !matches!(verb.asks(), Asks::OptionalText(_)) {
                return None;
            }
            let is_as_before = *verb == Verb::Edit && typed == first_text(*verb, target);
            let action = run(*verb, target, typed);
            state.mode = Mode::Browse;
            if is_as_before {
                state.notice = Some(Notice::good("nothing was changed"));
                return None;
            }
            action
        }
        KeyCode::Esc => {
            state.mode = Mode::Browse;
            state.notice = Some(Notice::good("nothing was changed"));
            None
        }
        _ => {
            edit(text, key);
            None
        }
    }
}

fn edit(text: &mut String, key: &KeyEvent) {
    match key.code {
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => text.clear(),
        KeyCode::Char('w') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            let kept = text.trim_end().rfind(' ').map_or(0, |at| at + 1);
            text.truncate(kept);
        }
        KeyCode::Char(letter) if !key.modifiers.contains(KeyModifiers::CONTROL) && text.len() < LONGEST => {
            text.push(letter);
        }
        _ => {}
    }
}

fn type_letter(state: &mut State, letter: char) {
    let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
    match &mut state.mode {
        Mode::Filter => drop(type_filter(state, &key)),
        Mode::Text { text, .. } => edit(text, &key),
        _ => {}
    }
}
