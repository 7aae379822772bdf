//! At a terminal the command has it, although it is a process group of its own.

use std::io::Write;
use std::process::{Command, Stdio};

use tenure_testkit::cli::Running;

use crate::project::{Project, end, wait_for};

/// A terminal made by `script`, in which `line` runs.
fn at_a_terminal(project: &Project, line: &str) -> (Running, impl Write) {
    let mut command = Command::new("script");
    command.args(["-qefc", line, "/dev/null"]);
    project.surround(&mut command);
    let (reader, writer) = std::io::pipe().unwrap();
    command.stdin(Stdio::from(reader));
    (Running::start(command), writer)
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
    end(running);
    assert_eq!(project.status(), "completed");
}

#[test]
fn ctrl_c_at_the_terminal_gives_the_task_back() {
    let project = Project::new();
    let line = "sh -c 'trap : INT; tenure tasks run T -- sh -c \"echo \\$\\$ > pid; exec sleep 120\"; \
                echo $? > code'";
    let (running, mut keys) = at_a_terminal(&project, line);
    let pid = project.wait_for_pids("pid", 1)[0];
    // A shell that is about to start something swallows the signal.
    wait_for("the command itself", || {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap() == "sleep\n"
    });
    keys.write_all(b"\x03").unwrap();
    wait_for("the end", || project.read("code") == "130\n");
    drop(keys);
    end(running);
    assert_eq!((project.status().as_str(), project.attempts()), ("pending", 0));
}

#[test]
fn ctrl_z_gives_the_shell_its_terminal_and_fg_gives_it_to_the_command_again() {
    let project = Project::new();
    let (running, mut keys) = at_a_terminal(&project, "exec bash --norc --noprofile -i");
    let line = "tenure tasks run T -- sh -c 'echo $$ > pid; read x < /dev/tty; echo $x > line'\n";
    keys.write_all(line.as_bytes()).unwrap();
    let pid = project.wait_for_pids("pid", 1)[0];
    // After the parenthesis: state, parent, group, session, terminal, and the group in the terminal's foreground.
    let fields = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(')').next().unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    keys.write_all(b"\x1a").unwrap();
    // The shell leads the session.
    wait_for("the shell to have the terminal", || {
        let fields = fields();
        fields[0] == "T" && fields[5] == fields[3]
    });
    keys.write_all(b"echo back > back\n").unwrap();
    project.wait_for_file("back");
    assert!(!project.path("line").exists());
    keys.write_all(b"fg\n").unwrap();
    wait_for("the command to have the terminal", || {
        let fields = fields();
        fields[0] == "S" && fields[5] == fields[2]
    });
    keys.write_all(b"hello\n").unwrap();
    wait_for("the line", || project.read("line") == "hello\n");
    keys.write_all(b"exit\n").unwrap();
    drop(keys);
    end(running);
    assert_eq!((project.status().as_str(), project.attempts()), ("completed", 0));
}
