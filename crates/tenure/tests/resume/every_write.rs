//! Killed at every write to the database file.

use tenure_testkit::cli::{full_or, skip};

use crate::kills::ITEM;
use crate::project::Project;

/// Runs a command whose process is killed as soon as one of its threads makes its write number `when`. True if it was.
fn killed_at_write(p: &Project, when: u32, args: &[&str]) -> bool {
    let plain = p.command(args);
    let mut traced = std::process::Command::new("strace");
    traced.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64"]);
    traced.args(["-e", &format!("inject=pwrite64:signal=KILL:when={when}")]);
    traced.arg(plain.get_program()).args(plain.get_args()).env_clear();
    traced.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(p.root());
    let ended = traced.output().unwrap();
    let code = ended.status.code();
    assert!(code.is_none() || code == Some(0) || code == Some(137), "{ended:?}");
    code != Some(0)
}

#[test]
fn a_kill_at_every_write_leaves_the_checkpoint_readable_and_every_item_done_once() {
    let tried = std::process::Command::new("strace").args(["-f", "-qq", "-o", "/dev/null", "true"]).output();
    if !tried.expect("there is no strace; ./test installs it").status.success() {
        skip("strace may not trace a process here; kills at every write were not tested");
        return;
    }
    let p = Project::new();
    p.numbers("items.txt", 4);
    p.script("item.sh", ITEM);
    let (mut kills, mut when) = (0, 1);
    // Each start is killed at a later write than the one before, until one comes through; each is resumed likewise.
    for round in 0..200 {
        let name = format!("j{round}");
        let start =
            ["jobs", "start", &name, "--items", "items.txt", "--parallel", "2", "--", "./item.sh", "{item}"];
        let mut killed = killed_at_write(&p, when, &start);
        let there = p.run(&["--json", "jobs", "show", &name]);
        let is_there = there.code == Some(0);
        assert!(is_there || there.code == Some(4), "{there:?}");
        assert!(is_there || killed, "a start that came through has made a job");
        let mut done = Vec::new();
        let mut again = when;
        while is_there && killed {
            kills += 1;
            again += 3;
            killed = killed_at_write(&p, again, &["resume", &name]);
            let job = p.job(&name);
            assert_eq!(job["total"], 4);
            let now: u64 = job["succeeded"].as_u64().unwrap();
            assert!(done.last().is_none_or(|before| *before <= now), "a success is for good");
            done.push(now);
            assert!(done.len() < 200, "it never comes through");
        }
        if is_there {
            let job = p.job(&name);
            assert_eq!(
                (job["status"].as_str(), job["succeeded"].as_u64()),
                (Some("completed"), Some(4)),
                "{job}"
            );
        } else {
            kills += 1;
        }
        if is_there && done.is_empty() {
            break;
        }
        when += full_or(1, 20);
    }
    let jobs = p.ok(&["jobs", "list", "--limit", "1000"])["total"].as_u64().unwrap();
    assert_eq!(p.successes().len() as u64, jobs * 4, "each item of each job once");
    assert_eq!(p.marks("overlaps"), Vec::<String>::new());
    eprintln!("{kills} kills at writes up to the {when}th, {jobs} jobs");
    assert!(kills >= 5, "only {kills} were killed: this has tried nothing");
}
