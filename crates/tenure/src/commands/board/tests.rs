//! Screens and keys of the board, without a terminal.

use std::time::Duration;

use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier};
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use tenure_core::Clock as _;
use tenure_core::board::{self, GroupBy, Surroundings};
use tenure_core::holder::{Caller, Holder};
use tenure_core::kernel::Finish;
use tenure_core::lease::Resource;
use tenure_core::runner::{Runner, RunnerStatus};
use tenure_core::section::SectionMode;
use tenure_core::store::TaskEdit;
use tenure_core::task::TaskStatus;
use tenure_core::why::Asking;
use tenure_runner::transcript::EntryKind;
use tenure_testkit::Fixture;

use super::layout::{Areas, SMALLEST};
use super::output::Lines;
use super::render::{self, Look};
use super::state::{Mode, Notice, Pane, Scene, State, Tab};
use super::update::{Action, update};
use crate::local_time::LocalTime;

const SMALL: Rect = Rect::new(0, 0, 80, 24);
const LARGE: Rect = Rect::new(0, 0, 200, 50);

fn ask<T>(f: &Fixture, me: &Holder, ask: impl FnOnce(&Asking<'_>) -> T) -> T {
    let ctx = f.context();
    ask(&Asking {
        ctx: &ctx,
        me: Some(me),
        claimant: &|_| Caller::new(me.clone()),
        time: &|at| at.to_seconds(),
        exclusive: None,
        remedy: &|_| None,
        no_runner: &|| None,
    })
}

/// A shop with two sections, a holder, a lapsed lease, a waiter, a review and a failure.
fn shop() -> Fixture {
    let f = Fixture::memory();
    let backend = f.add_section("Backend", SectionMode::Serial);
    let frontend = f.add_section("Frontend", SectionMode::Parallel);
    for (key, title, section) in [
        ("F001", "Store the carts in the database", Some(&backend)),
        ("F002", "Send a mail after each order", Some(&backend)),
        ("F003", "Show the cart on every page", Some(&frontend)),
        ("F004", "Let guests order without an account", Some(&frontend)),
        ("F005", "Translate the checkout", Some(&frontend)),
        ("F006", "Upgrade the build to the new compiler", None),
        ("F007", "Remove the old theme", None),
    ] {
        f.add_task_in(key, section);
        f.edit(key, &TaskEdit { title: Some(title.to_owned()), ..TaskEdit::default() });
    }
    f.depend("F002", "F001");
    f.claim(&f.bare("codex-7"), "F006").unwrap();
    f.clock.advance(Duration::from_mins(12));
    let claude = f.worker("claude-1", 41);
    let lease = f.claim(&claude, "F001").unwrap().lease;
    f.begin_attempt(&lease, &claude);
    f.wait_for(&f.worker("bob", 42), &Resource::task(&f.id("F001")), "bell");
    f.claim(&f.bare("ann"), "F003").unwrap();
    f.finish(&f.bare("ann"), "F003", Finish::Review).unwrap();
    f.override_status(&f.bare("ann"), "F005", TaskStatus::Failed, false).unwrap();
    f.override_status(&f.bare("ann"), "F007", TaskStatus::Completed, false).unwrap();
    f
}

fn scene(f: &Fixture, state: &mut State) -> Scene {
    let me = state.me.clone();
    let around = Surroundings { name: Some("shop".to_owned()), ..Surroundings::default() };
    let rows = ask(f, &me, |asking| f.read(|view| board::read(view, asking, &state.query)));
    let board = rows.board(&f.world, &around);
    state.follow(&board);
    let detail = state.task(&board).map(|task| {
        let key = task.key.clone();
        ask(f, &me, |asking| f.read(|view| board::read_task(view, asking, &key, 50)))
    });
    let events = f.read(|view| board::recent_events(view, 50));
    Scene { board, detail, events, output: Lines::default() }
}

/// A runner of this machine.
fn add_runner(f: &Fixture) -> String {
    let runner = Runner {
        id: "5f0c1d2e-0000-4000-8000-000000000000".to_owned(),
        status: RunnerStatus::Running,
        process: f.world.process(77),
        project_path: "/srv/shop".to_owned(),
        section: None,
        preset: "claude".to_owned(),
        current_task: None,
        log_path: None,
        started_at: f.clock.now(),
        heartbeat_at: f.clock.now(),
        completed_at: None,
        error: None,
    };
    f.write(|tx| tx.save_runner(&runner)).unwrap();
    runner.id
}

fn me() -> State {
    State::new(Holder::person("ann@host:pts/1"))
}

fn look(color: bool) -> Look {
    Look { color, times: LocalTime::utc() }
}

fn drawn(size: Rect, scene: &Scene, state: &State, color: bool) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(size.width, size.height)).unwrap();
    let now = scene.board.now;
    terminal
        .draw(|frame| {
            render::draw(frame, scene, state, &look(color), now);
        })
        .unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let lines = (0..buffer.area.height).map(|y| {
        let line: String = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn shown(size: Rect, f: &Fixture, state: &mut State) -> String {
    let scene = scene(f, state);
    text(&drawn(size, &scene, state, true))
}

fn press(f: &Fixture, state: &mut State, keys: &str) -> Option<Action> {
    let mut last = None;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\u{1b}' => KeyCode::Esc,
            '←' => KeyCode::Left,
            letter => KeyCode::Char(letter),
        };
        let scene = scene(f, state);
        let event = Event::Key(KeyEvent::new(code, KeyModifiers::NONE));
        last = update(state, &scene.board, &Areas::of(SMALL), &event);
    }
    last
}

fn run(args: &[&str]) -> Action {
    Action::Run(args.iter().map(|word| (*word).to_owned()).collect())
}

/// The command, with the options that describe the task as the board shows it.
fn run_as_shown(f: &Fixture, task: &str, args: &[&str]) -> Action {
    let found = f.task(task);
    let mut args: Vec<String> = args.iter().map(|word| (*word).to_owned()).collect();
    args.push(format!("--if-updated-at={}", found.updated_at));
    args.extend(found.lease.map(|lease| format!("--if-fence={}", lease.fence)));
    Action::Run(args)
}

#[test]
fn a_small_terminal_shows_every_list_and_the_selected_task() {
    let f = shop();
    insta::assert_snapshot!(shown(SMALL, &f, &mut me()));
}

#[test]
fn a_large_terminal_also_shows_the_project() {
    let (f, mut state) = (shop(), me());
    press(&f, &mut state, "1j");
    insta::assert_snapshot!(shown(LARGE, &f, &mut state));
}

#[test]
fn the_help_fits_into_a_small_terminal() {
    let (f, mut state) = (shop(), me());
    press(&f, &mut state, "?");
    insta::assert_snapshot!(shown(SMALL, &f, &mut state));
}

#[test]
fn a_wide_character_beside_the_help_does_not_cover_its_frame() {
    let (f, mut state) = (shop(), me());
    press(&f, &mut state, "?");
    // One of two neighbouring columns of such titles is the one before the frame.
    for indent in ["", "."] {
        f.edit(
            "F006",
            &TaskEdit { title: Some(format!("{indent}{}", "日本語".repeat(9))), ..TaskEdit::default() },
        );
        let scene = scene(&f, &mut state);
        let screen = drawn(SMALL, &scene, &state, true);
        let left = (0..SMALL.width).find(|x| screen[(*x, 0)].symbol() == "┌").unwrap();
        for y in 0..SMALL.height {
            let before = screen[(left - 1, y)].symbol();
            assert!(unicode_width::UnicodeWidthStr::width(before) < 2, "{before} in line {y}");
        }
    }
}

#[test]
fn a_project_with_a_column_of_its_own_is_not_shown_twice() {
    let (f, mut state) = (shop(), me());
    press(&f, &mut state, "p");
    for (size, times) in [(SMALL, 1), (LARGE, 1)] {
        let screen = shown(size, &f, &mut state);
        assert_eq!(screen.matches("none is running").count(), times, "{screen}");
    }
    assert!(shown(LARGE, &f, &mut state).contains("changed"), "the selected task is shown instead");
}

#[test]
fn the_selected_row_has_one_look() {
    let (f, mut state) = (shop(), me());
    press(&f, &mut state, "2");
    let scene = scene(&f, &mut state);
    let screen = drawn(SMALL, &scene, &state, true);
    let areas = Areas::of(SMALL);
    let area = areas.panes[Pane::Held.index()];
    for x in area.x..area.right() {
        let cell = &screen[(x, area.y + 1)];
        assert_eq!((cell.fg, cell.modifier), (Color::Reset, Modifier::REVERSED), "column {x}");
    }
}

#[test]
fn the_remark_of_the_last_change_is_shown_with_the_task() {
    let (f, mut state) = (shop(), me());
    let ann = f.bare("ann");
    f.claim(&ann, "F004").unwrap();
    f.finish(&ann, "F004", Finish::Fail("The tests need a token")).unwrap();
    press(&f, &mut state, "/F004\nj");
    let screen = shown(SMALL, &f, &mut state);
    assert!(screen.contains("remark    The tests need a token (ann)"), "{screen}");
}

#[test]
fn a_terminal_of_any_size_can_be_drawn() {
    let f = shop();
    let mut state = me();
    let scene = scene(&f, &mut state);
    for mode in [Mode::Browse, Mode::Help, Mode::Filter] {
        state.mode = mode;
        for (width, height) in
            [(1, 1), (39, 30), (40, 12), (41, 13), (60, 200), (149, 29), (150, 30), (300, 12)]
        {
            drawn(Rect::new(0, 0, width, height), &scene, &state, true);
        }
    }
}

#[test]
fn every_list_has_a_row_in_the_smallest_terminal() {
    let areas = Areas::of(Rect::new(0, 0, SMALLEST.0, SMALLEST.1));
    for pane in Pane::ALL {
        assert!(areas.height(pane) > 0, "{pane:?}");
    }
}

#[test]
fn no_list_moves_when_the_board_changes() {
    let (f, mut state) = (shop(), me());
    let titles = |screen: &str| {
        let found = screen.lines().enumerate().filter(|(_, line)| line.starts_with(['─', '━']));
        found.map(|(at, _)| at).collect::<Vec<_>>()
    };
    let before = titles(&shown(SMALL, &f, &mut state));
    assert_eq!(before.len(), 4);
    for number in 0..30 {
        let key = format!("X{number}");
        f.add_task(&key);
        f.override_status(&f.bare("ann"), &key, TaskStatus::Failed, false).unwrap();
    }
    assert_eq!(titles(&shown(SMALL, &f, &mut state)), before);
}

#[test]
fn the_selection_stays_on_its_task_when_others_come_before_it() {
    let (f, mut state) = (shop(), me());
    press(&f, &mut state, "jj");
    let selected = |state: &mut State| {
        let scene = scene(&f, state);
        state.task(&scene.board).map(|task| task.key.clone())
    };
    let before = selected(&mut state);
    assert!(before.is_some());
    let id = f.add_task("FIRST");
    f.edit("FIRST", &TaskEdit { priority: Some(-5), ..TaskEdit::default() });
    assert_eq!(selected(&mut state), before);
    assert_eq!(f.id("FIRST"), id);
}

#[test]
fn stored_text_reaches_the_screen_only_escaped() {
    let f = shop();
    let evil = "\x1b[2J\x07\u{202e}\u{9b}31m\r\nnext";
    f.edit("F001", &TaskEdit { title: Some(evil.to_owned()), ..TaskEdit::default() });
    let mut state = me();
    press(&f, &mut state, "2j");
    for size in [SMALL, LARGE] {
        for tab in Tab::ALL {
            state.tab = tab;
            state.notice = Some(Notice::bad(evil));
            let mut scene = scene(&f, &mut state);
            scene.output.lines.push_back((EntryKind::Line, evil.to_owned()));
            let screen = text(&drawn(size, &scene, &state, true));
            let bad = |c: &char| (c.is_control() && *c != '\n') || *c == '\u{202e}';
            assert_eq!(screen.chars().find(bad), None, "{tab:?}: {screen}");
            assert!(screen.contains(r"\x1b[2J"), "{tab:?}: {screen}");
        }
    }
}

#[test]
fn without_colour_there_is_none_and_the_selection_is_still_visible() {
    let (f, mut state) = (shop(), me());
    let scene = scene(&f, &mut state);
    let plain = drawn(SMALL, &scene, &state, false);
    assert!(plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(plain.content.iter().any(|cell| cell.modifier.contains(Modifier::REVERSED)));
    let colored = drawn(SMALL, &scene, &state, true);
    assert!(colored.content.iter().any(|cell| cell.fg != Color::Reset));
    assert!(colored.content.iter().all(|cell| cell.bg == Color::Reset), "the background is the terminal's");
    assert_eq!(text(&plain), text(&colored));
}

#[test]
fn a_key_runs_the_command_of_its_verb_on_the_selected_task() {
    let (f, mut state) = (shop(), me());
    // What waits: the review, then the failure.
    assert_eq!(press(&f, &mut state, "1a"), Some(run_as_shown(&f, "F003", &["tasks", "approve", "F003"])));
    assert_eq!(
        press(&f, &mut state, "xno tests\n"),
        Some(run_as_shown(&f, "F003", &["tasks", "reject", "F003", "--message=no tests"]))
    );
    let retry = run_as_shown(&f, "F005", &["tasks", "retry", "F005"]);
    assert_eq!(press(&f, &mut state, "jt"), Some(retry));
    assert_eq!(
        press(&f, &mut state, "mhello\n"),
        Some(run(&["msg", "send", "--task", "F005", "--message=hello"]))
    );
    assert_eq!(press(&f, &mut state, "s"), None);
    assert_eq!(press(&f, &mut state, "y"), Some(run_as_shown(&f, "F005", &["tasks", "skip", "F005"])));
    let lease = f.lease("F001").unwrap().id;
    assert_eq!(press(&f, &mut state, "2jvy"), Some(run(&["locks", "release", lease.as_str(), "--force"])));
    let claim = run_as_shown(&f, "F006", &["tasks", "claim", "F006"]);
    assert_eq!(press(&f, &mut state, "kc"), Some(claim), "its lease has lapsed");
    let add = Some(run(&["tasks", "add", "--section=Backend", "--", "New one"]));
    assert_eq!(press(&f, &mut state, "jnNew one\n"), add);
}

#[test]
fn the_title_is_changed_from_what_it_is_and_the_description_in_an_editor() {
    let (f, mut state) = (shop(), me());
    press(&f, &mut state, "2je");
    assert!(shown(SMALL, &f, &mut state).contains("Title of F001: Store the carts in the database"));
    let title = "--title=Store the carts in the database twice";
    let edit = run_as_shown(&f, "F001", &["tasks", "update", "F001", title]);
    assert_eq!(press(&f, &mut state, " twice\n"), Some(edit));
    assert_eq!(press(&f, &mut state, "e\n"), None, "it is as before");
    assert_eq!(press(&f, &mut state, "E"), Some(Action::Describe(f.id("F001"))));
}

#[test]
fn your_task_is_finished_under_the_lease_that_is_shown() {
    let (f, mut state) = (shop(), me());
    let mine = f.claim(&Caller::new(state.me.clone()), "F004").unwrap().lease;
    press(&f, &mut state, "2G");
    let fence = format!("--fence={}", mine.fence);
    for (key, verb) in [("d", "done"), ("r", "release")] {
        assert_eq!(press(&f, &mut state, key), Some(run(&["tasks", verb, "F004", &fence])));
    }
}

#[test]
fn runners_are_started_with_or_without_a_preset_and_stopped_after_a_yes() {
    let (f, mut state) = (shop(), me());
    assert_eq!(press(&f, &mut state, "S\n"), Some(run(&["runners", "start"])));
    assert_eq!(press(&f, &mut state, "Sfast\n"), Some(run(&["runners", "start", "--preset=fast"])));
    assert_eq!(press(&f, &mut state, "X"), None, "a task is selected");
    assert!(!state.notice.as_ref().unwrap().is_good);
    let id = add_runner(&f);
    press(&f, &mut state, "4j");
    let screen = shown(SMALL, &f, &mut state);
    assert!(screen.contains("4 Queue (1) Runners (1)") && screen.contains(" 5f0c1d2e  "), "{screen}");
    assert_eq!(press(&f, &mut state, "Xn"), None);
    press(&f, &mut state, "X");
    assert!(shown(SMALL, &f, &mut state).contains("Stop runner 5f0c1d2e?"));
    assert_eq!(press(&f, &mut state, "y"), Some(run(&["runners", "stop", &id])));
}

#[test]
fn scrolling_ends_where_the_text_ends() {
    let (f, mut state) = (shop(), me());
    let long = (0..60).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    f.edit("F001", &TaskEdit { description: Some(long), ..TaskEdit::default() });
    press(&f, &mut state, "2jJJJJJJJJJJJJJJJJJJJJ");
    let scene = scene(&f, &mut state);
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    let mut furthest = 0;
    let now = scene.board.now;
    terminal.draw(|frame| furthest = render::draw(frame, &scene, &state, &look(true), now)).unwrap();
    assert!(furthest > 20 && state.scroll > furthest, "{furthest}");
    state.scroll = furthest;
    press(&f, &mut state, "K");
    assert!(!shown(SMALL, &f, &mut state).contains("line 59"), "one key is enough to go back");
}

#[test]
fn a_verb_is_for_the_task_that_was_selected_when_it_was_begun() {
    let (f, mut state) = (shop(), me());
    press(&f, &mut state, "1xno te");
    let reject = run_as_shown(&f, "F003", &["tasks", "reject", "F003", "--message=no tests"]);
    // The task leaves the list while the remark is typed, and the next one takes its place.
    f.override_status(&f.bare("bob"), "F003", TaskStatus::Completed, false).unwrap();
    assert!(shown(SMALL, &f, &mut state).contains("Remark for rejecting F003: no te"));
    assert_eq!(press(&f, &mut state, "sts\n"), Some(reject), "as it was shown then");
}

#[test]
fn a_verb_that_does_not_apply_or_is_not_confirmed_runs_nothing() {
    let (f, mut state) = (shop(), me());
    assert_eq!(press(&f, &mut state, "1t"), None, "a task in review is not retried");
    assert!(!state.notice.as_ref().unwrap().is_good);
    assert_eq!(press(&f, &mut state, "2jvn"), None);
    assert_eq!(state.mode, Mode::Browse);
    assert_eq!(press(&f, &mut state, "1x\n"), None, "a rejection needs a remark");
    assert!(matches!(state.mode, Mode::Text { .. }));
    assert_eq!(press(&f, &mut state, "\u{1b}"), None);
    assert_eq!(press(&f, &mut state, "4a"), None, "no task is selected in the queue");
}

#[test]
fn the_filter_groups_and_finished_tasks_change_what_is_read() {
    let (f, mut state) = (shop(), me());
    assert_eq!(press(&f, &mut state, "/cart\n"), None);
    assert_eq!(state.query.search.as_deref(), Some("cart"));
    let screen = shown(SMALL, &f, &mut state);
    assert!(screen.contains("F003") && !screen.contains("F004"), "{screen}");
    assert!(!screen.contains("No section"), "{screen}");
    press(&f, &mut state, "/zz\n");
    let screen = shown(SMALL, &f, &mut state);
    assert!(screen.contains("no task matches"), "{screen}");
    assert_eq!(press(&f, &mut state, "\u{1b}"), Some(Action::Read));
    assert_eq!(state.query.search, None);
    assert!(!shown(LARGE, &f, &mut state).contains("✓ F007"));
    assert_eq!(press(&f, &mut state, "f"), Some(Action::Read));
    assert!(shown(LARGE, &f, &mut state).contains("✓ F007"));
    assert_eq!(press(&f, &mut state, "b"), Some(Action::Read));
    assert_eq!(state.query.group_by, GroupBy::Status);
    assert_eq!(press(&f, &mut state, "bg←"), Some(Action::Read), "the first group is closed");
    assert_eq!(state.query.closed.len(), 1);
    assert_eq!(press(&f, &mut state, "\n"), Some(Action::Read));
    assert!(state.query.closed.is_empty());
}

#[test]
fn a_click_selects_a_row_and_a_tab() {
    let (f, mut state) = (shop(), me());
    let scene = scene(&f, &mut state);
    let areas = Areas::of(SMALL);
    let click = |state: &mut State, column, row| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        let event = Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE });
        update(state, &scene.board, &areas, &event)
    };
    let held = areas.panes[Pane::Held.index()];
    click(&mut state, 3, held.y + 2);
    assert_eq!((state.focus, state.selected(Pane::Held)), (Pane::Held, 1));
    let (tab, place) = areas.tabs().remove(2);
    click(&mut state, place.x + 1, place.y);
    assert_eq!(state.tab, tab);
}

#[test]
fn ctrl_c_and_ctrl_z_work_while_typing() {
    let (f, mut state) = (shop(), me());
    press(&f, &mut state, "/abc");
    let scene = scene(&f, &mut state);
    for (letter, action) in [('c', Action::Interrupt), ('z', Action::Suspend)] {
        let event = Event::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL));
        assert_eq!(update(&mut state, &scene.board, &Areas::of(SMALL), &event), Some(action));
    }
}
