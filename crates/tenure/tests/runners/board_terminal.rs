//! `tenure board` and its terminal: sizes, stopping and continuing, being killed, hostile text, and an agent's output.

use rustix::process::Signal;
use tenure_testkit::cli::processes::signal;
use tenure_testkit::cli::{Sandbox, Terminal, lacks_linux, until};

use crate::SUITE;
use crate::project::Project;

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (200, 50);

fn shop() -> tenure_testkit::cli::Project {
    let project = Sandbox::new(SUITE).project("shop");
    project.ok(&["sections", "add", "Backend", "--parallel"]);
    for (key, title) in [("F001", "Store the carts"), ("F002", "\u{1b}[31mred\u{202e}")] {
        project.ok(&["tasks", "add", title, "--id", key, "--section", "Backend"]);
    }
    project.ok(&["tasks", "add", "Ship it", "--id", "F003", "--depends-on", "F001"]);
    project.ok(&["tasks", "update", "F002", "--status", "review"]);
    project.ok(&["tasks", "claim", "F001", "--agent", "ann", "--ttl", "2h"]);
    project
}

fn open(project: &tenure_testkit::cli::Project, size: (u16, u16)) -> Terminal {
    let terminal = Terminal::open(project.sandbox(), "board", project.root(), size);
    terminal.start(&format!("{} board", SUITE.binary));
    terminal.wait_for("1 Waits for you (1)");
    terminal
}

/// The processes of boards, among those that have the sandbox's environment.
fn boards(project: &tenure_testkit::cli::Project) -> Vec<u32> {
    let is_board = |pid: &u32| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.ends_with("\0board\0")
    };
    project.tenures().into_iter().filter(is_board).collect()
}

#[test]
fn the_board_fits_terminals_of_every_size_and_follows_a_resize() {
    let project = shop();
    let terminal = open(&project, SMALL);
    terminal.wait_for("quit");
    // The snapshots of whole screens are beside the code; here it is a real terminal that shows them.
    let shown = terminal.screen();
    let lines: Vec<&str> = shown.lines().collect();
    for (at, begin) in [
        (0, " shop  1 pending 1 working 1 review"),
        (2, "─ 1 Waits for you (1) ─"),
        (3, r" review     F002 \x1b[31mred"),
        (5, "─ 2 Held (1) ─"),
        (6, " F001   ann "),
        (8, "━ 3 Tasks (3) ━"),
        (19, "─ 4 Queue ─"),
        (22, "claim done release v evict"),
    ] {
        assert!(lines[at].starts_with(begin), "line {at} is not {begin:?}:\n{shown}");
    }
    terminal.resize(LARGE);
    terminal.wait_for("F001 Pending → In progress");
    until("the keys are in the last line", || {
        terminal.screen().lines().nth(49).is_some_and(|line| line.contains("q quit"))
    });
    // The times of events and the name of the terminal differ between runs, so only the shape is compared.
    let shown = terminal.screen();
    for text in ["project ─", "Progress", "Events", "F001 Pending → In progress", "none is running"] {
        assert!(shown.contains(text), "{text:?} is missing:\n{shown}");
    }
    terminal.resize(SMALL);
    until("the keys are in the last line again", || {
        terminal.screen().lines().nth(23).is_some_and(|line| line.contains("quit"))
    });
    assert!(terminal.screen().contains(r"\x1b[31mred"), "{}", terminal.screen());
    terminal.press(&["q"]);
    terminal.wait_until_idle();
}

#[test]
fn the_terminal_is_as_before_while_the_board_is_stopped_and_after_every_end() {
    if lacks_linux(
        "the_terminal_is_as_before_while_the_board_is_stopped_and_after_every_end",
        "it reads /proc",
    ) {
        return;
    }
    let project = shop();
    let terminal = open(&project, SMALL);
    terminal.press(&["C-z"]);
    terminal.wait_for("Stopped");
    terminal.run("echo still here");
    terminal.wait_for("still here");
    terminal.start("fg");
    terminal.wait_for("1 Waits for you (1)");
    terminal.press(&["C-c"]);
    terminal.wait_until_idle();
    terminal.run("echo ended with $?");
    terminal.wait_for("ended with 130");

    let kill = |with: Signal| {
        terminal.start(&format!("{} board", SUITE.binary));
        terminal.wait_for("1 Waits for you (1)");
        let boards = boards(&project);
        assert_eq!(boards.len(), 1);
        signal(boards[0], with);
    };
    kill(Signal::TERM);
    terminal.wait_until_idle();
    terminal.run("echo ended with $?");
    terminal.wait_for("ended with 143");

    kill(Signal::KILL);
    until("the board is gone", || boards(&project).is_empty());
    terminal.start("reset");
    terminal.wait_until_idle();
    terminal.run("echo typed after a reset");
    terminal.wait_for("typed after a reset");
    project.ok(&["tasks", "release", "F001", "--agent", "ann"]);
    assert_eq!(project.status("F001"), "pending");
    assert_eq!(project.store().check(false).unwrap(), [], "the store is sound");
}

#[test]
fn the_board_shows_what_the_agent_of_the_selected_task_prints() {
    let project =
        Project::with("runners: {preset: pretend-claude, killGrace: 300ms}\nlocking: {pollInterval: 1s}");
    let message = |text: &str| {
        format!(r#"print {{"type":"assistant","message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
    };
    let (first, second) = (message("I look around."), message("I am done here."));
    project.task("A", &[&first, "mark begun", "storm wait go", &second, "tenure -q task done A"]);
    let mut runner = project.runner(&["--once"]);
    project.wait_for("begun");
    let terminal = Terminal::open(project.sandbox(), "board", project.root(), SMALL);
    terminal.start(&format!("{} board", SUITE.binary));
    terminal.wait_for("2 Held (1)");
    terminal.press(&["2", "o"]);
    terminal.wait_for("I look around.");
    project.give("go");
    terminal.press(&["3", "f"]);
    until("the runner has ended", || !runner.is_running());
    terminal.press(&["g", "j", "o"]);
    terminal.wait_for("I am done here.");
    terminal.press(&["q"]);
    terminal.wait_until_idle();
}
