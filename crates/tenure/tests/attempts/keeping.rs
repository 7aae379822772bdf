//! `tasks claim --while-pid`: a keeper renews the lease while another process is alive.

use std::process::{Child, Command};

use rustix::process::Signal;
use tenure_testkit::cli::processes;

use crate::project::{Project, finish, wait_for};

struct Sleeper(Child);

impl Sleeper {
    fn new() -> Self {
        Self(Command::new("sleep").arg("120").spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn end(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn claim(project: &Project, pid: &str, ttl: &str) {
    project.ok(&["task", "claim", "T", "--agent", "a", "--ttl", ttl, "--while-pid", pid]);
}

/// The keepers of this project, by their command line.
fn keepers(project: &Project) -> Vec<u32> {
    let root = project.path("");
    let root = root.to_string_lossy().trim_end_matches('/').to_owned();
    let is_one = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
        words.iter().any(|w| w == "keep-lease") && words.contains(&root.as_str().into())
    };
    project.tenures().into_iter().filter(is_one).collect()
}

fn renewed_for(project: &Project) -> i64 {
    let lock = project.lock();
    let ms = |field: &str| {
        let text = lock[field].as_str().unwrap_or("1970-01-01T00:00:00Z");
        tenure_core::Timestamp::parse(text).unwrap().as_millis()
    };
    ms("heartbeatAt") - ms("acquiredAt")
}

#[test]
fn the_lease_is_renewed_while_the_process_lives_and_released_when_it_dies() {
    let project = Project::new();
    let mut sleeper = Sleeper::new();
    claim(&project, &sleeper.pid(), "1s");
    assert_eq!(project.lock()["holder"]["pid"].to_string(), sleeper.pid());
    wait_for("the renewals", || renewed_for(&project) > 2000);
    assert_eq!(project.code(&["task", "claim", "T", "--agent", "b"]), 6);
    let keeper = keepers(&project);
    assert_eq!(keeper.len(), 1);
    sleeper.end();
    wait_for("the release", || project.lock().is_null());
    assert_eq!((project.status().as_str(), project.attempts()), ("pending", 0));
    wait_for("the keeper's end", || !processes::is_alive(keeper[0]));
}

#[test]
fn without_its_keeper_the_lease_of_a_dead_process_is_free_at_once() {
    let project = Project::new();
    let mut sleeper = Sleeper::new();
    claim(&project, &sleeper.pid(), "10m");
    wait_for("the keeper", || keepers(&project).len() == 1);
    processes::signal(keepers(&project)[0], Signal::KILL);
    assert_eq!(project.code(&["task", "claim", "T", "--agent", "b"]), 6);
    sleeper.end();
    project.ok(&["task", "claim", "T", "--agent", "b"]);
}

#[test]
fn the_keeper_inherits_no_pipes_and_leads_its_own_session() {
    let project = Project::new();
    let sleeper = Sleeper::new();
    // The keeper inherits nothing, not even a pipe on another descriptor.
    let script = format!(
        "x=$(tenure task claim T --agent a --while-pid {}) || exit; echo \"$x\" | grep -q Claimed && \
         tenure task claim T --agent a --while-pid {} 9>&1 > /dev/null",
        sleeper.pid(),
        sleeper.pid()
    );
    let output = finish(project.shell(&script));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for keeper in keepers(&project) {
        wait_for("the keeper to settle", || {
            let folder = std::fs::read_link(format!("/proc/{keeper}/cwd")).unwrap();
            let stat = std::fs::read_to_string(format!("/proc/{keeper}/stat")).unwrap();
            let session = stat.rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap().to_owned();
            folder.to_string_lossy() == "/" && session == keeper.to_string()
        });
    }
}

#[test]
fn the_keeper_ends_when_the_task_is_done() {
    let project = Project::new();
    let sleeper = Sleeper::new();
    claim(&project, &sleeper.pid(), "1s");
    wait_for("the keeper", || keepers(&project).len() == 1);
    project.ok(&["task", "done", "T", "--agent", "a"]);
    wait_for("the keeper's end", || keepers(&project).is_empty());
    assert_eq!(project.status(), "completed");
}

#[test]
fn a_process_that_does_not_exist_cannot_be_watched() {
    let project = Project::new();
    let mut sleeper = Sleeper::new();
    let pid = sleeper.pid();
    sleeper.end();
    assert_eq!(project.code(&["task", "claim", "T", "--agent", "a", "--while-pid", &pid]), 2);
    assert_eq!(project.status(), "pending");
}

#[test]
fn a_second_process_of_the_same_agent_is_refused() {
    let project = Project::new();
    let (first, second) = (Sleeper::new(), Sleeper::new());
    claim(&project, &first.pid(), "10m");
    let words = ["task", "claim", "T", "--agent", "a", "--while-pid", &second.pid()];
    assert_eq!(project.code(&words), 6);
    assert_eq!(project.code(&["tasks", "run", "T", "--agent", "a", "--", "true"]), 6);
}
