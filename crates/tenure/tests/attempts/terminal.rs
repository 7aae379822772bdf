//! At a terminal the command has it, although it is a process group of its own.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::project::{Project, Running, wait_for};

/// A terminal made by `script`, in which `line` runs.
fn at_a_terminal(project: &Project, line: &str) -> (Running, impl Write) {
    let mut command = Command::new("script");
    command.args(["-qefc", line, "/dev/null"]);
    project.surround(&mut command);
    let (reader, writer) = std::io::pipe().unwrap();
    command.stdin(Stdio::from(reader));
    (Running::of(command), writer)
}

#[test]
fn a_command_reads_from_the_terminal_and_the_shell_has_it_back_afterwards() {
    let project = Project::new();
    let line = "sh -c 'tenure tasks run T -- sh -c \"echo up > up; read x < /dev/tty; echo \\$x > first\"; \
                read y < /dev/tty; echo $y > second'";
    let (running, mut keys) = at_a_terminal(&project, line);
    project.wait_for_file("up");
    keys.write_all(b"one\n").unwrap();
    wait_for("the first line", || project.read("first") == "one\n");
    keys.write_all(b"two\n").unwrap();
    wait_for("the second line", || project.read("second") == "two\n");
    drop(keys);
    running.wait();
    assert_eq!(project.status(), "completed");
}

#[test]
fn ctrl_c_at_the_terminal_gives_the_task_back() {
    let project = Project::new();
    let line = "sh -c 'trap : INT; tenure tasks run T -- sh -c \"echo up > up; sleep 120\"; echo $? > code'";
    let (running, mut keys) = at_a_terminal(&project, line);
    project.wait_for_file("up");
    keys.write_all(b"\x03").unwrap();
    wait_for("the end", || project.read("code") == "130\n");
    drop(keys);
    running.wait();
    assert_eq!((project.status().as_str(), project.attempts()), ("pending", 0));
}
