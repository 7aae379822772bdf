//! `tenure board` in a real terminal: what other processes change appears, and its keys are commands.

use tenure_testkit::cli::{Sandbox, Terminal, until};

use crate::SUITE;

#[test]
fn the_board_shows_what_others_change_and_its_keys_are_commands() {
    let project = Sandbox::new(SUITE).project("shop");
    for key in ["A", "B"] {
        project.ok(&["tasks", "add", &format!("Task {key}"), "--id", key]);
    }
    project.ok(&["tasks", "update", "A", "--status", "review"]);
    let terminal = Terminal::open(project.sandbox(), "board", project.root(), (80, 24));
    terminal.start(&format!("{} board", SUITE.binary));
    terminal.wait_for("1 Waits for you (1)");
    terminal.wait_for("B     Task B");

    project.ok(&["tasks", "add", "Appeared", "--id", "C"]);
    terminal.wait_for("C     Appeared");

    terminal.press(&["1", "a"]);
    project.wait_until("A", "completed");
    terminal.wait_for("Approved A");
    terminal.press(&["3", "g", "j", "c"]);
    project.wait_until("B", "in_progress");
    let holder = project.show("B")["lease"]["holder"].clone();
    assert_eq!(holder["kind"], "person", "{holder}");
    terminal.wait_for("2 Held (1)");
    terminal.press(&["r"]);
    project.wait_until("B", "pending");

    project.ok(&["tasks", "claim", "C", "--agent", "ann"]);
    terminal.wait_for("2 Held (1)");
    terminal.press(&["2", "e"]);
    terminal.wait_for("End the lease of another holder of C (agent ann)?");
    terminal.press(&["y"]);
    project.wait_until("C", "pending");
    terminal.press(&["3", "n"]);
    terminal.press(&["-l", "Typed in the board"]);
    terminal.press(&["Enter"]);
    terminal.wait_for("Added T1");
    until("the new task is there", || project.status("T1") == "pending");
    terminal.press(&["q"]);
    terminal.wait_until_idle();
}
