//! Timers: the installed command runs in an empty environment, and no other line of a crontab changes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tenure_testkit::cli::{Answer, Running, processes, skip, write_program};

use crate::machine::Machine;

struct Crontab<'m> {
    machine: &'m Machine,
    file: PathBuf,
}

impl<'m> Crontab<'m> {
    fn new(machine: &'m Machine) -> Self {
        Self { machine, file: machine.path("crontab") }
    }

    fn command(&self, args: &[&str]) -> Command {
        self.machine.command(args)
    }

    fn run(&self, args: &[&str]) -> Answer {
        Running::start(self.command(args)).end()
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.file).unwrap_or_default()
    }

    /// The command of our crontab line, as cron passes it to the shell.
    fn command_line(&self) -> String {
        let text = self.text();
        let line =
            text.lines().find(|line| line.starts_with("* * * * * ")).unwrap_or_else(|| panic!("{text}"));
        let mut command = String::new();
        let mut rest = line.strip_prefix("* * * * * ").unwrap().chars().peekable();
        // A percent sign ends the command unless a backslash precedes it.
        while let Some(c) = rest.next() {
            match c {
                '%' => break,
                '\\' if rest.peek() == Some(&'%') => command.extend(rest.next()),
                _ => command.push(c),
            }
        }
        command
    }
}

/// Runs a command with only the environment that cron gives it.
fn run_like_cron(machine: &Machine, line: &str) -> std::process::Output {
    Command::new("/bin/sh")
        .args(["-c", line])
        .env_clear()
        .env("HOME", machine.path("home"))
        .env("LOGNAME", "tester")
        .env("SHELL", "/bin/sh")
        .env("PATH", "/usr/bin:/bin")
        .current_dir(machine.path("home"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn the_installed_crontab_line_starts_the_work_and_is_reported_as_fired() {
    let machine = Machine::new();
    let crontab = Crontab::new(&machine);
    // An agent that is found only through the captured PATH, in a folder with special characters in its name.
    let odd = machine.path("it's 100% odd");
    std::fs::create_dir(&odd).unwrap();
    std::os::unix::fs::symlink(machine.path("agent/pretend-agent.sh"), odd.join("pretend")).unwrap();
    let config = machine.path("home/.tenure/config.yaml");
    let text = std::fs::read_to_string(&config).unwrap();
    let script = machine.path("agent/pretend-agent.sh").display().to_string();
    std::fs::write(&config, text.replace(&format!("['{script}']"), "[pretend]")).unwrap();
    // The binary is in that folder, too.
    let binary = odd.join("tenure");
    std::fs::copy(env!("CARGO_BIN_EXE_tenure"), &binary).unwrap();
    let project = machine.project("p");
    project.task("A", &["mark begun"]);

    let mut install = Command::new(&binary);
    install.args(["--json", "runners", "cron", "install"]).env_clear();
    install.env("HOME", machine.path("home"));
    let bin = machine.path("bin");
    install.env("PATH", format!("{}:{}:/usr/bin:/bin:{}", odd.display(), bin.display(), odd.display()));
    let installed = install.output().unwrap();
    assert!(installed.status.success(), "{installed:?}");
    let line = crontab.command_line();
    assert!(line.contains("runners wakeup --quiet"), "{line}");

    let status = |at: &str| {
        let answer = crontab.run(&["--json", "runners", "cron", "status"]);
        answer.json()["data"]["timers"][0][at].clone()
    };
    // The same home, given by `HOME` alone.
    let mut own = crontab.command(&["--json", "runners", "cron", "status"]);
    own.env_remove("TENURE_HOME");
    let answer = Running::start(own).end();
    let timer = answer.json()["data"]["timers"][0].clone();
    assert_eq!(
        (timer["kind"].as_str(), timer["installed"].as_bool()),
        (Some("cron"), Some(true)),
        "{answer:?}"
    );
    assert_eq!(timer["binary"].as_str(), binary.to_str());
    assert_eq!((timer["lastFiredAt"].is_null(), timer["firing"].as_bool()), (true, Some(false)), "not yet");

    let ran = run_like_cron(&machine, &line);
    assert_eq!((ran.status.code(), ran.stdout.len(), ran.stderr.len()), (Some(0), 0, 0), "{ran:?}");
    machine.wait_for("begun");
    project.wait_until("A", "completed");
    assert!(status("lastFiredAt").is_string());
    assert_eq!(status("firing"), true);
    // A call by hand does not count as a call by the timer.
    let fired = status("lastFiredAt");
    machine.wake_up(&[]);
    assert_eq!(status("lastFiredAt"), fired);
}

#[test]
fn another_tenure_home_is_captured_and_has_its_own_crontab_block() {
    let machine = Machine::new();
    let crontab = Crontab::new(&machine);
    let other = machine.path("elsewhere/t");
    let project = machine.project("p");
    project.task("A", &["mark begun"]);
    let with_home = |args: &[&str]| {
        let mut command = crontab.command(args);
        command.env("TENURE_HOME", &other).current_dir(project.root());
        Running::start(command).end()
    };
    std::fs::create_dir_all(&other).unwrap();
    std::fs::copy(machine.tenure_home().join("config.yaml"), other.join("config.yaml")).unwrap();
    std::fs::rename(machine.tenure_home().join("trust"), other.join("trust")).unwrap();
    assert_eq!(with_home(&["projects", "add"]).code, Some(0));
    assert_eq!(with_home(&["runners", "cron", "install"]).code, Some(0));
    let line = crontab.command_line();
    assert!(line.contains(&format!("TENURE_HOME={}", other.display())), "{line}");
    assert!(run_like_cron(&machine, &line).status.success());
    machine.wait_for("begun");
    let here = crontab.run(&["--json", "runners", "cron", "status"]);
    assert_eq!(
        here.json()["data"]["timers"][0]["installed"],
        false,
        "it belongs to the other home: {here:?}"
    );
    assert_eq!(crontab.run(&["runners", "cron", "uninstall"]).code, Some(0));
    assert!(crontab.text().contains("runners wakeup"), "the timer of the other home stays");
    assert_eq!(with_home(&["runners", "cron", "uninstall"]).code, Some(0));
    assert!(!crontab.file.exists());
    let mut fired = crontab.command(&["--json", "runners", "cron", "status"]);
    fired.env("TENURE_HOME", &other);
    assert!(Running::start(fired).end().json()["data"]["timers"][0]["lastFiredAt"].is_string());
    processes::end_all(&format!("TENURE_HOME={}", other.display()));
}

#[test]
fn every_other_line_of_a_crontab_stays_and_failures_are_reported() {
    let machine = Machine::new();
    let crontab = Crontab::new(&machine);
    // No crontab: one is created, and removed again.
    assert_eq!(crontab.run(&["runners", "cron", "install"]).code, Some(0));
    assert_eq!(crontab.run(&["runners", "cron", "uninstall"]).code, Some(0));
    assert!(!crontab.file.exists());
    assert_eq!(crontab.run(&["runners", "cron", "uninstall"]).code, Some(0), "twice is no error");
    // Without a final newline, and with bytes that are not UTF-8.
    let before = b"MAILTO=ann\n# caf\xe9 \n0 5 * * 1 tar cf /tmp/%d.tar /home".to_vec();
    std::fs::write(&crontab.file, &before).unwrap();
    for _ in 0..2 {
        assert_eq!(crontab.run(&["runners", "cron", "install"]).code, Some(0));
        let now = std::fs::read(&crontab.file).unwrap();
        assert!(now.starts_with(&before));
        assert_eq!(crontab.text_lossy().matches("runners wakeup").count(), 1);
    }
    assert_eq!(crontab.run(&["runners", "cron", "uninstall"]).code, Some(0));
    assert_eq!(std::fs::read(&crontab.file).unwrap(), [&before[..], b"\n"].concat());
    // A crontab that may not be written.
    std::fs::write(crontab.file.with_extension("readonly"), "").unwrap();
    let refused = crontab.run(&["--json", "runners", "cron", "install"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.json()["error"]["message"].as_str().unwrap().contains("Permission denied"),
        "{refused:?}"
    );
    // No `crontab` program, and one requested by name.
    let mut none = machine.command(&["--json", "runners", "cron", "install", "--with", "cron"]);
    none.env("PATH", machine.path("run"));
    let refused = Running::start(none).end();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(refused.json()["error"]["message"], "there is no `crontab` on PATH");
    for verb in ["uninstall", "status"] {
        let mut none = machine.command(&["runners", "cron", verb]);
        none.env("PATH", machine.path("run"));
        assert_eq!(Running::start(none).end().code, Some(0), "{verb} checks every timer that it can");
    }
}

impl Crontab<'_> {
    fn text_lossy(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.file).unwrap_or_default()).into_owned()
    }
}

#[test]
fn units_of_systemd_and_launchd_are_written_enabled_and_removed() {
    let machine = Machine::new();
    let folder = machine.path("bin");
    let record = format!("#!/bin/sh\necho \"${{0##*/}} $*\" >>'{}'\n", machine.path("called").display());
    write_program(&folder.join("systemctl"), &record);
    write_program(&folder.join("launchctl"), &record);
    let run = |args: &[&str]| {
        let mut command = machine.command(args);
        command.env("PATH", format!("{}:/usr/bin:/bin", folder.display())).env_remove("TENURE_HOME");
        Running::start(command).end()
    };
    for kind in ["systemd", "launchd"] {
        let dry = run(&["--json", "runners", "cron", "install", "--with", kind, "--dry-run"]);
        assert_eq!(dry.code, Some(0), "{dry:?}");
        assert!(!machine.path("called").exists(), "a dry run calls no program");
        let installed = run(&["--json", "runners", "cron", "install", "--with", kind]);
        assert_eq!(installed.json()["data"]["timer"]["enabled"], true, "{installed:?}");
        let file = installed.json()["data"]["timer"]["entry"].as_str().unwrap().to_owned();
        assert!(Path::new(&file).is_file());
        let listed = run(&["--json", "runners", "cron", "status"]).json()["data"]["timers"].clone();
        let found: Vec<_> = listed.as_array().unwrap().iter().filter(|t| t["installed"] == true).collect();
        assert_eq!(found.len(), 1, "{listed}");
        assert_eq!(
            (found[0]["kind"].as_str(), found[0]["binary"].as_str()),
            (Some(kind), Some(env!("CARGO_BIN_EXE_tenure")))
        );
        let removed = run(&["--json", "runners", "cron", "uninstall"]);
        assert_eq!(removed.json()["data"]["removed"][0], kind, "found wherever it is: {removed:?}");
        assert!(!Path::new(&file).exists());
        std::fs::rename(machine.path("called"), machine.path(&format!("called-{kind}"))).unwrap();
    }
    let called = std::fs::read_to_string(machine.path("called-systemd")).unwrap();
    assert!(called.contains("systemctl --user enable --now tenure-wakeup.timer"), "{called}");
    assert!(called.contains("systemctl --user disable --now tenure-wakeup.timer"), "{called}");
    let called = std::fs::read_to_string(machine.path("called-launchd")).unwrap();
    assert!(called.contains("launchctl bootstrap gui/"), "{called}");
    // The manager does not answer: the files exist, and the remaining command is printed.
    write_program(&folder.join("systemctl"), "#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n");
    let alone = run(&["--json", "runners", "cron", "install", "--with", "systemd"]);
    assert_eq!(alone.json()["data"]["timer"]["enabled"], false);
    let hint = alone.json()["hints"][0]["command"].as_str().unwrap().to_owned();
    assert!(hint.ends_with("systemctl --user enable --now tenure-wakeup.timer"), "{hint}");
}

#[test]
fn doctor_names_a_folder_that_launchd_may_not_read() {
    let machine = Machine::new();
    let folder = machine.path("bin");
    write_program(&folder.join("launchctl"), "#!/bin/sh\n");
    let run = |project: &str, args: &[&str]| {
        let mut command = machine.command(args);
        command.env("PATH", format!("{}:/usr/bin:/bin", folder.display())).env_remove("TENURE_HOME");
        std::fs::create_dir_all(machine.path(project)).unwrap();
        command.current_dir(machine.path(project));
        Running::start(command).end()
    };
    run("home", &["runners", "cron", "install", "--with", "launchd"]);
    for (project, hidden) in [("home/Documents/a", true), ("home/code/Documents", false)] {
        assert_eq!(run(project, &["init"]).code, Some(0));
        let text = run(project, &["doctor"]).out;
        assert_eq!(text.contains("the project is in ~/Documents, which macOS hides"), hidden, "{text}");
    }
}

/// With the machine's real `crontab`, in a mount namespace without any crontab.
#[test]
fn the_real_crontab_accepts_the_line() {
    if !rustix::process::geteuid().is_root() {
        skip("only root can have a mount namespace; the real crontab was not tested");
        return;
    }
    let spool = Path::new("/var/spool/cron/crontabs");
    assert!(
        Path::new("/usr/bin/crontab").exists() && spool.is_dir(),
        "there is no crontab; ./test installs one"
    );
    let machine = Machine::new();
    let script = format!(
        "set -e; mount -t tmpfs none /var/spool/cron/crontabs; printf '# mine\\n' | crontab -\n\
         '{tenure}' runners cron install; crontab -l; echo ==; '{tenure}' runners cron uninstall >&2; crontab -l",
        tenure = env!("CARGO_BIN_EXE_tenure")
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).env_clear().stdin(Stdio::null());
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", machine.path("home"));
    let answer = Running::start(command).end();
    if answer.err.contains("unshare") {
        skip(&format!("no mount namespace here: {}", answer.err));
        return;
    }
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let (with, without) = answer.out.split_once("==\n").unwrap();
    assert!(
        with.contains("# mine\n# >>> tenure wake-up") && with.contains("runners wakeup --quiet --timer cron")
    );
    assert_eq!(without, "# mine\n");
}
