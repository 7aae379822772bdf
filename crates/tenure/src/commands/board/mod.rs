//! `tenure board`: the project in the terminal, with its verbs as keys.
//!
//! The board reads through [`tenure_core::board`] and is woken by changes of the store. Verbs are ordinary commands ([`verbs`]). The state and what keys do to it ([`update`]), and what is drawn
//! ([`render`]), are pure.

mod describe;
mod layout;
mod output;
mod render;
mod run_verb;
mod screen;
mod signals;
mod state;
#[cfg(test)]
mod tests;
mod update;
mod verbs;

use std::time::{Duration, Instant};

use ratatui_core::layout::Rect;
use ratatui_crossterm::crossterm::event;
use rustix::fd::BorrowedFd;
use tenure_core::board::{self, TaskDetail};
use tenure_core::error::TaskName;
use tenure_core::id::TaskId;
use tenure_core::lease::LeaseState;
use tenure_core::{ErrorCode, Timestamp, hints};

use self::describe::{Edited, describe};
use self::layout::Areas;
use self::output::{AttemptOutput, Lines};
use self::render::Look;
use self::run_verb::Verbs;
use self::screen::Screen;
use self::signals::TerminalSignals;
use self::state::{Notice, Scene, State, Tab};
use self::update::Action;
use crate::app::{App, Open};
use crate::commands::board_reader::BoardReader;
use crate::follow::Follower;
use crate::identity::{Identity, IdentityArgs};
use crate::interrupt::Interrupts;
use crate::report::{CommandResult, Report};
use crate::sys;

/// Watch and steer the project in the terminal: what waits for you, who holds which task, why nothing moves
///
/// The keys are at the bottom of the screen; `?` explains them. Every verb is the command of the same name.
///
/// Example: tenure board
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// The shortest time between two reads of the store.
const PAUSE: Duration = Duration::from_millis(100);
/// How often ages and remaining times are drawn again.
const TICK: Duration = Duration::from_secs(1);
/// The shortest time between two reads of an agent's output.
const OUTPUT_PAUSE: Duration = Duration::from_millis(100);
/// How long to wait for the rest of a key.
const PARTIAL_KEY: Duration = Duration::from_millis(10);
/// How long a store that does not answer is left alone.
const RETRY: Duration = Duration::from_secs(2);
/// How many events of a task and of the project are shown.
const EVENTS: u64 = 100;

pub(crate) fn run(app: &mut App<'_>, _args: Args) -> CommandResult<()> {
    if app.printer.json || !app.printer.out_is_terminal() || !app.env.input_is_terminal {
        return Err(
            Report::usage("the board needs a terminal for input and output").hint(hints::watch_as_json())
        );
    }
    let open = app.open()?;
    let identity = app.identity(&IdentityArgs::default())?;
    let cannot = |error: std::io::Error| {
        Report::new(ErrorCode::General, format!("the terminal cannot be used: {error}"))
    };
    let config = app.global.config.as_ref().map(|path| app.env.cwd.join(path));
    let runs = Verbs::new(&open.paths.root, config).map_err(cannot)?;
    let interrupts = Interrupts::listen().map_err(Report::from)?;
    let signals = TerminalSignals::listen().map_err(cannot)?;
    let mut state = State::new(identity.holder.clone());
    let look = Look { color: app.printer.render_options().color, times: app.local_time() };
    // The first read comes before the terminal is taken over, so that an error is printed as usual.
    let mut follower = Follower::new(&open.store, PAUSE);
    follower.begin_read()?;
    let reader = Reader { app: &*app, open: &open, identity: &identity, boards: BoardReader::default() };
    let mut scene = reader.scene(&mut state)?;
    let mut output: Option<AttemptOutput> = None;
    let mut screen = Screen::open(state.mouse).map_err(cannot)?;
    let mut read_at = Instant::now();
    // When to try again, after the store could not be read.
    let mut retry_at: Option<Instant> = None;
    let mut output_read_at = Instant::now();
    let mut was_wide = false;
    loop {
        if state.tab == Tab::Output {
            reader.open_output(&mut output, &mut scene);
            output_read_at = Instant::now();
        }
        let areas = Areas::of(screen.area().map_err(cannot)?);
        if areas.project.is_some() && !was_wide {
            // Events are read only if they are shown.
            reader.read_selected(&state, &mut scene);
        }
        was_wide = areas.project.is_some();
        for pane in state::Pane::ALL {
            let rows = state::rows(&scene.board, pane).len();
            state.set_top(pane, state.top(pane, areas.height(pane), rows));
        }
        let now = scene.board.now.after(read_at.elapsed());
        let mut furthest = 0;
        screen.draw(|frame| furthest = render::draw(frame, &scene, &state, &look, now)).map_err(cannot)?;
        state.scroll = state.scroll.min(furthest);

        let printing = output.as_ref().filter(|_| state.tab == Tab::Output && scene.is_printing());
        let output_pause = OUTPUT_PAUSE.saturating_sub(output_read_at.elapsed());
        // Keys that were already read together with an earlier one do not make the terminal's descriptor
        // readable.
        let is_queued = event::poll(Duration::ZERO).map_err(cannot)?;
        let input: Option<BorrowedFd<'_>> = sys::terminal_input();
        let mut fds = vec![interrupts.fd(), signals.fd(), runs.fd()];
        let mut nap = if is_queued { Duration::ZERO } else { TICK };
        if let Some(printing) = printing {
            nap = nap.min(printing.recheck().max(output_pause));
            if output_pause.is_zero() {
                fds.extend(printing.fd());
            } else if printing.fd().is_some() {
                nap = nap.min(output_pause);
            }
        }
        fds.extend(input);
        let woken = follower.wait(&fds, Some(nap));
        if let Some(code) = interrupts.caught() {
            drop(screen);
            return Err(Report::interrupted(code).silent());
        }
        let expired = has_expired(&scene, scene.board.now.after(read_at.elapsed()));
        let mut read = woken.changed || expired || retry_at.is_some();
        if signals.take_stop() {
            screen.suspend().map_err(cannot)?;
            // The whole job was stopped, this process included.
            signals.take_stop();
            read = true;
        }
        for notice in runs.results() {
            state.notice = Some(notice);
            read = true;
        }
        let before = state.task(&scene.board).map(|task| task.id.clone());
        let tab_before = state.tab;
        let is_typed = input.is_some() && woken.ready.last() == Some(&true);
        let mut events = 0;
        while event::poll(Duration::ZERO).map_err(cannot)? {
            let event = event::read().map_err(cannot)?;
            events += 1;
            match update::update(&mut state, &scene.board, &areas, &event) {
                Some(Action::Quit) => return Ok(()),
                Some(Action::Interrupt) => {
                    drop(screen);
                    return Err(Report::interrupted(130).silent());
                }
                Some(Action::Suspend) => {
                    screen.suspend().map_err(cannot)?;
                    signals.take_stop();
                    read = true;
                }
                Some(Action::Read) => read = true,
                Some(Action::Mouse) => screen.set_mouse(state.mouse).map_err(cannot)?,
                Some(Action::Run(args)) => {
                    state.notice = Some(Notice::good(format!("{} …", verbs::typed(&args))));
                    runs.start(args, None).map_err(cannot)?;
                }
                Some(Action::Describe(task)) => {
                    let edited = screen.lend(|| describe(&reader, &task)).map_err(cannot)?;
                    // Keys pressed in the meantime were for the editor.
                    interrupts.take();
                    signals.take_stop();
                    match edited {
                        Ok(Some(Edited { args, file })) => runs.start(args, Some(file)).map_err(cannot)?,
                        Ok(None) => state.notice = Some(Notice::good("nothing was changed")),
                        Err(report) => state.notice = Some(Notice::bad(report.message)),
                    }
                    read = true;
                }
                None => {}
            }
            // The remaining keys are handled after the new state was drawn, so that a verb applies to what is
            // on the screen.
            if read {
                break;
            }
        }
        if is_typed && events == 0 {
            // A part of a key, which must not keep the processor busy until the rest arrives.
            std::thread::sleep(PARTIAL_KEY);
        }
        let pause = retry_at.map(|at| at.saturating_duration_since(Instant::now())).unwrap_or_default();
        if read && pause.is_zero() {
            let seen = follower.begin_read().map_err(Report::from).and_then(|()| reader.scene(&mut state));
            match seen {
                Ok(found) => {
                    let lines = std::mem::take(&mut scene.output);
                    scene = Scene { output: lines, ..found };
                    read_at = Instant::now();
                    // The log may be there now.
                    output = output.filter(|output| !output.is_unreadable());
                    if retry_at.take().is_some() {
                        state.notice = None;
                    }
                }
                Err(report) => {
                    state.notice = Some(Notice::bad(format!("the store cannot be read: {}", report.message)));
                    retry_at = Some(Instant::now() + RETRY);
                }
            }
        } else {
            if woken.changed {
                // The change stays reported until the store is read, so this wait leaves it out. Keys stay
                // responsive in the meantime.
                tenure_runner::until_any(&fds, pause.min(TICK));
            }
            let selected = state.task(&scene.board).map(|task| task.id.clone());
            if selected != before || (state.tab != tab_before && state.tab == Tab::Project) {
                reader.read_selected(&state, &mut scene);
            }
        }
    }
}

/// Whether a lease that is shown as live has expired since it was read.
fn has_expired(scene: &Scene, now: Timestamp) -> bool {
    let held = scene.board.held.rows.iter();
    held.into_iter().any(|held| held.lease.state == LeaseState::Live && held.lease.expires_at <= now)
}

/// Reads what is shown.
struct Reader<'o, 'a> {
    app: &'o App<'a>,
    open: &'o Open<'a>,
    identity: &'o Identity,
    boards: BoardReader,
}

impl Reader<'_, '_> {
    /// The whole board, with the selection moved to where its row is now.
    fn scene(&self, state: &mut State) -> CommandResult<Scene> {
        let Self { app, open, identity, boards } = self;
        let board = boards.board(app, open, identity, &state.query)?;
        state.follow(&board);
        let mut scene = Scene { board, detail: None, events: Vec::new(), output: Lines::default() };
        self.read_selected(state, &mut scene);
        Ok(scene)
    }

    /// One task, with its last events.
    fn task(&self, id: &TaskId) -> CommandResult<TaskDetail> {
        let Self { app, open, identity, boards } = self;
        Ok(boards.task(app, open, identity, id.as_str(), EVENTS)?.1)
    }

    /// Reads the selected task and the events of the project. If that fails, they are not shown; the next read of the board
    /// reports the reason.
    fn read_selected(&self, state: &State, scene: &mut Scene) {
        scene.detail = state.task(&scene.board).and_then(|task| self.task(&task.id).ok());
        let wide = sys::terminal_size().is_some_and(|(columns, rows)| {
            let size = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
            Areas::of(Rect::new(0, 0, size(columns), size(rows))).project.is_some()
        });
        if wide || state.tab == Tab::Project {
            scene.events = self.open.read(|view| board::recent_events(view, EVENTS)).unwrap_or_default();
        }
    }

    /// Continues to read the log of the selected task.
    fn open_output(&self, output: &mut Option<AttemptOutput>, scene: &mut Scene) {
        let Some(detail) = &scene.detail else {
            *output = None;
            scene.output = Lines { note: Some("no task is selected".to_owned()), ..Lines::default() };
            return;
        };
        let newest = detail.attempts.iter().find(|attempt| attempt.log_path.is_some());
        let task = &detail.task;
        if !output.as_ref().is_some_and(|output| output.is_of(&task.id, newest.map(|attempt| &attempt.id))) {
            let name = TaskName {
                id: task.id.to_string(),
                key: task.key.clone(),
                title: task.title.clone(),
                status: task.status,
            };
            let newest = newest.map(|attempt| &attempt.id);
            *output = Some(AttemptOutput::open(self.open, &name, newest, &mut scene.output));
        }
        if let Some(output) = output {
            output.read(&mut scene.output);
        }
    }
}
