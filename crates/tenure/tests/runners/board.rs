//! `tenure board` in a real terminal: what other processes change appears, and its keys are commands.

use tenure_testkit::cli::{Sandbox, Terminal, until, write_program};

use crate::SUITE;
use crate::project::Project;

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
    terminal.press(&["2", "v"]);
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

#[test]
fn tasks_are_edited_and_runners_are_started_and_stopped_on_the_board() {
    let project = Project::new();
    project.task("A", &["wait end"]);
    project.ok(&["tasks", "add", "Task B", "--id", "B", "-d", "First line"]);
    project.ok(&["tasks", "add", "Task C", "--id", "C"]);
    project.ok(&["tasks", "update", "C", "--status", "review"]);
    let editor = project.path("editor");
    write_program(&editor, "#!/bin/sh\necho 'Typed in the editor' >> \"$1\"\n");
    let terminal = Terminal::open(project.sandbox(), "board", project.root(), (80, 24));
    terminal.start(&format!("EDITOR={} {} board", editor.display(), SUITE.binary));
    terminal.wait_for("1 Waits for you (1)");

    // If another process changes the task while the remark is typed, the task is not rejected.
    terminal.press(&["1", "x"]);
    terminal.press(&["-l", "No tests"]);
    terminal.wait_for("Remark for rejecting C: No tests");
    project.ok(&["tasks", "update", "C", "--title", "Other"]);
    terminal.press(&["Enter"]);
    terminal.wait_for("has changed since it was shown");
    assert_eq!(project.status("C"), "review");
    terminal.press(&["a"]);
    project.wait_until("C", "completed");

    terminal.press(&["3", "G", "e"]);
    terminal.wait_for("Title of B: Task B");
    terminal.press(&["-l", " and more"]);
    terminal.press(&["Enter"]);
    until("the title is changed", || project.show("B")["title"] == "Task B and more");
    terminal.wait_for("Task B and more");
    terminal.press(&["E"]);
    until("the description is changed", || {
        project.show("B")["description"] == "First line\nTyped in the editor"
    });
    terminal.wait_for("Updated B");
    let left = std::fs::read_dir(project.tenure_home()).unwrap();
    let names: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| !name.starts_with("description-")), "{names:?}");

    terminal.press(&["S"]);
    terminal.wait_for("Preset of the runner");
    terminal.press(&["Enter"]);
    project.wait_until("A", "in_progress");
    terminal.wait_for("Runners (1)");
    terminal.press(&["4", "G", "X"]);
    terminal.wait_for("Stop runner ");
    terminal.press(&["y"]);
    until("the runner is stopped", || project.runners().is_empty());
    terminal.wait_for("Stopped runner");
    terminal.press(&["q"]);
    terminal.wait_until_idle();
}
