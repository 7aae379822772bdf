//! Which processes end with an attempt, and which survive it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use tenure_lock::ProcessInfo;
use tenure_testkit::cli::{Running, is_like_macos, lacks_linux, processes, skip};

use crate::project::{Project, end, finish, wait_for};

#[test]
fn a_process_without_its_environment_is_reaped_by_its_group() {
    let project = Project::new();
    let script = "env -i sh -c 'echo $$ > cleared; exec sleep 60' & wait";
    let first = project.start("first", &[], script);
    let cleared = project.wait_for_pids("cleared", 1)[0];
    first.signal(Signal::KILL);
    assert_eq!(end(first).0, 137);
    assert!(processes::is_alive(cleared));
    project.ok(&["task", "claim", "T", "--agent", "second"]);
    assert!(!processes::is_alive(cleared));
}

#[test]
fn a_supervisor_ends_orphans_without_environment_and_group() {
    let why = "an orphan without its environment, in a session of its own, is not handed to the supervisor";
    if lacks_linux("a_supervisor_ends_orphans_without_environment_and_group", why) {
        return;
    }
    let project = Project::new();
    let script = "env -i setsid sh -c 'setsid -f sh -c \"echo \\$\\$ > orphan; exec sleep 60\"'
                  while [ ! -s orphan ]; do sleep 0.02; done";
    let first = project.start("first", &[], script);
    let orphan = project.wait_for_pids("orphan", 1)[0];
    assert_eq!(end(first).0, 0);
    assert!(!processes::is_alive(orphan));
}

/// On Linux the orphan becomes a child of the supervisor; elsewhere the supervisor has recorded it.
#[test]
fn an_orphan_in_its_own_session_ends_with_the_attempt_if_it_was_seen_before() {
    let project = Project::new();
    let script =
        "(setsid sh -c 'echo $$ > orphan; exec sleep 60' & while [ ! -e leave ]; do sleep 0.02; done)
                  while [ ! -e go ]; do sleep 0.02; done";
    let mut run = project.command(&["tasks", "run", "T", "--ttl", "10m", "--", "sh", "-c", script]);
    run.env("TENURE_LOG", "debug").env("TENURE_LOG_FILE", project.path("log"));
    let run = Running::start(run);
    let orphan = project.wait_for_pids("orphan", 1)[0];
    let line = format!("recorded a descendant pid={orphan}\n");
    wait_for("the supervisor has seen it", || !is_like_macos() || project.read("log").contains(&line));
    let parent = ProcessInfo::of(orphan).unwrap().parent;
    std::fs::write(project.path("leave"), "").unwrap();
    wait_for("it is an orphan", || ProcessInfo::of(orphan).unwrap().parent != parent);
    std::fs::write(project.path("go"), "").unwrap();
    assert_eq!(end(run).0, 0);
    assert!(!processes::is_alive(orphan));
}

/// Outside Linux, the environment of the orphan cannot be read, so it can be found only through the supervisor's record.
#[test]
fn an_orphan_in_its_own_session_is_reaped_although_its_supervisor_was_killed() {
    let project = Project::new();
    let hide = if is_like_macos() { "env -i" } else { "" };
    let script = format!(
        "echo $TENURE_ATTEMPT > mark
         ({hide} setsid sh -c 'echo $$ > orphan; exec sleep 60' & while [ ! -e leave ]; do sleep 0.02; done)
         while :; do sleep 0.02; done"
    );
    let run = project.start("first", &["--ttl", "10m"], &script);
    let orphan = project.wait_for_pids("orphan", 1)[0];
    let folder = tenure_lock::temporary_folder();
    let record = folder.join(format!("tenure-descendants-{}", project.read("mark").trim()));
    let entry = format!("{orphan} {}\n", ProcessInfo::of(orphan).unwrap().start_time);
    let is_recorded = || std::fs::read_to_string(&record).is_ok_and(|text| text.contains(&entry));
    wait_for("the supervisor has recorded it", || !is_like_macos() || is_recorded());
    let parent = ProcessInfo::of(orphan).unwrap().parent;
    std::fs::write(project.path("leave"), "").unwrap();
    wait_for("it is an orphan", || ProcessInfo::of(orphan).unwrap().parent != parent);
    run.signal(Signal::KILL);
    assert_eq!(end(run).0, 137);
    // An orphan that does not belong to the attempt, but has a pid that once did.
    let start = "env -i setsid -f sh -c 'echo $$ > stranger; exec sleep 60' > /dev/null 2>&1";
    assert!(finish(project.shell(start)).status.success());
    let stranger = project.wait_for_pids("stranger", 1)[0];
    if is_like_macos() {
        let earlier = ProcessInfo::of(stranger).unwrap().start_time - 1;
        let mut record = std::fs::File::options().append(true).open(&record).unwrap();
        writeln!(record, "{stranger} {earlier}").unwrap();
    }
    assert!(processes::is_alive(orphan));
    project.ok(&["task", "claim", "T", "--agent", "second"]);
    assert!(!processes::is_alive(orphan));
    assert!(processes::is_alive(stranger));
    processes::signal(stranger, Signal::KILL);
    assert!(!record.exists(), "the record ends with the attempt");
}

#[test]
fn orphans_that_end_do_not_remain_as_zombies() {
    let project = Project::new();
    let script = "i=0; while [ $i -lt 5 ]; do setsid -f sh -c 'echo $$ >> orphans'; i=$((i + 1)); done
                  while [ ! -e go ]; do sleep 0.02; done";
    let first = project.start("first", &["--ttl", "10m"], script);
    let orphans = project.wait_for_pids("orphans", 5);
    wait_for("the orphans are reaped", || orphans.iter().all(|pid| processes::state(*pid).is_none()));
    std::fs::write(project.path("go"), "").unwrap();
    assert_eq!(end(first).0, 0);
}

#[test]
fn a_process_with_an_empty_mark_has_left_the_attempt() {
    let project = Project::new();
    let script = "TENURE_ATTEMPT= setsid -f sh -c 'echo $$ > left; exec sleep 60'
                  while [ ! -s left ]; do sleep 0.02; done";
    let first = project.start("first", &[], script);
    assert_eq!(end(first).0, 0);
    let left = project.pids("left")[0];
    assert!(processes::is_alive(left));
    processes::signal(left, Signal::KILL);
}

/// A person's command with the tmux sockets in the project's folder, so that no real tmux server is used.
fn as_person(project: &Project, words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    project.surround(&mut command);
    command.env("TMUX_TMPDIR", project.root()).env("TERM", "xterm").env_remove("TMUX");
    command
}

fn tmux(project: &Project, words: &[&str]) -> i32 {
    finish(as_person(project, &[&["tmux"], words].concat())).status.code().unwrap()
}

#[test]
fn a_persons_tmux_session_survives_the_agent_that_started_the_first_server() {
    if Command::new("tmux").arg("-V").output().is_err() {
        skip("tmux is not installed");
        return;
    }
    let project = Project::with_own_programs();
    let script = "tmux new-session -d 'echo $$ > agents; exec sleep 60'
                  while [ ! -e go ]; do sleep 0.02; done";
    let mut run = project.command(&["tasks", "run", "T", "--", "sh", "-c", script]);
    run.env("TMUX_TMPDIR", project.root()).stdin(Stdio::null());
    let run = Running::start(run);
    let agents = project.wait_for_pids("agents", 1)[0];
    assert_eq!(tmux(&project, &["new-session", "-d", "-s", "mine", "echo $$ > mine; exec sleep 60"]), 0);
    let mine = project.wait_for_pids("mine", 1)[0];
    std::fs::write(project.path("go"), "").unwrap();
    assert_eq!(end(run).0, 0);
    assert!(!processes::is_alive(agents), "the agent's own session ends with it");
    assert!(processes::is_alive(mine));
    assert_eq!(tmux(&project, &["has-session", "-t", "mine"]), 0);
    tmux(&project, &["kill-server"]);
}

#[test]
fn a_server_of_the_agent_survives_while_a_person_has_it_on_a_terminal() {
    if Command::new("tmux").arg("-V").output().is_err() {
        skip("tmux is not installed");
        return;
    }
    let project = Project::with_own_programs();
    let script = "tmux -S shared new-session -d 'sleep 60'
                  setsid -f sh -c 'echo $$ > leftover; exec sleep 60'
                  touch up; while [ ! -e go ]; do sleep 0.02; done";
    let run = project.start("agent", &[], script);
    project.wait_for_file("up");
    let leftover = project.wait_for_pids("leftover", 1)[0];
    let line = "tmux -S shared new-session -s mine 'echo $$ > mine; exec sleep 60'";
    let mut client = as_person(&project, &["script", "-qefc", line, "/dev/null"]);
    let (keys, writer) = std::io::pipe().unwrap();
    let client = Running::start({
        client.stdin(Stdio::from(keys));
        client
    });
    let mine = project.wait_for_pids("mine", 1)[0];
    std::fs::write(project.path("go"), "").unwrap();
    assert_eq!(end(run).0, 0);
    assert!(!processes::is_alive(leftover), "what nobody uses ends with the attempt");
    assert!(processes::is_alive(mine));
    assert_eq!(tmux(&project, &["-S", "shared", "has-session", "-t", "mine"]), 0);
    tmux(&project, &["-S", "shared", "kill-server"]);
    drop(writer);
    end(client);
}

/// The folder of an empty control group in which this test may start processes.
struct ControlGroup(PathBuf);

impl ControlGroup {
    fn create(name: &str) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let mount = mounts.lines().find_map(|line| {
            let (mount, kind) = line.split_once(" - ")?;
            kind.starts_with("cgroup2 ").then(|| mount.split(' ').nth(4))?
        })?;
        let folder = Path::new(mount).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).ok()?;
        let group = Self(folder);
        // A separate process tries to enter the group.
        let enter = Command::new("sh").arg("-c").arg(group.entering("true")).stderr(Stdio::null()).status();
        enter.is_ok_and(|status| status.success()).then_some(group)
    }

    /// A shell command that runs in the group.
    fn entering(&self, command: &str) -> String {
        format!("echo 0 > {}/cgroup.procs && {command}", self.0.display())
    }

    fn groups_below(&self) -> usize {
        let entries = std::fs::read_dir(&self.0).unwrap().flatten();
        entries.filter(|entry| entry.file_type().unwrap().is_dir()).count()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_control_group_finds_what_cleared_its_environment_left_its_group_and_lost_its_supervisor() {
    let name = "a_control_group_finds_what_cleared_its_environment_left_its_group_and_lost_its_supervisor";
    if lacks_linux(name, "there are no control groups") {
        return;
    }
    let Some(group) = ControlGroup::create("tenure-test") else {
        skip("no control group can be made here");
        return;
    };
    let project = Project::new();
    let agent = "env -i setsid -f sh -c \"echo \\$\\$ > hidden; exec sleep 60\"; sleep 60";
    std::fs::File::create(project.path("agent.sh")).unwrap().write_all(agent.as_bytes()).unwrap();
    let line = group.entering("exec tenure tasks run T --agent first -- sh agent.sh");
    let first = Running::start(project.shell(&line));
    let hidden = project.wait_for_pids("hidden", 1)[0];
    assert_eq!(group.groups_below(), 1);
    first.signal(Signal::KILL);
    assert_eq!(end(first).0, 137);
    assert!(processes::is_alive(hidden));
    project.ok(&["task", "claim", "T", "--agent", "second"]);
    assert!(!processes::is_alive(hidden));
    assert_eq!(group.groups_below(), 0, "the attempt's control group is removed");
}
