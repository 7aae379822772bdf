//! Eight processes compete for one lock in thousands of rounds: each round has exactly one holder.

use std::path::Path;

use tenure_lock::{ResumeLockData, ResumeLockManager};

use super::rivals::foreign_json;
use super::worker::{Race, count, role};

const RACERS: usize = 8;
const ROUNDS: usize = 2_000;

pub(crate) fn a_dead_pid() -> u32 {
    let mut child = role("end", Path::new("")).spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

/// A lock file of this crate whose writer died during this boot.
pub(crate) fn our_text(id: &str, change: impl FnOnce(&mut ResumeLockData)) -> String {
    let mut data = ResumeLockData::new(id);
    change(&mut data);
    format!(" {}\n", serde_json::to_string_pretty(&data).unwrap())
}

fn stale_texts() -> Vec<String> {
    let dead = a_dead_pid();
    let ours = our_text("job", |data| {
        data.process_id = dead;
        data.tenure.as_mut().unwrap().identity.pid = dead;
    });
    let rebooted = our_text("job", |data| data.tenure.as_mut().unwrap().identity.boot_id = "earlier".into());
    let torn = ours[..ours.len() / 2].to_owned();
    vec![ours, rebooted, foreign_json("job", dead), torn, String::new()]
}

fn prepare(dir: &Path) -> std::path::PathBuf {
    ResumeLockManager::new(dir).unwrap();
    dir.join("resume_locks/job.lock")
}

fn winners(answers: &[String]) -> usize {
    answers.iter().filter(|answer| *answer == "won").count()
}

pub(crate) fn eight_processes_on_a_stale_lock_have_one_winner_each_round() {
    let dir = tempfile::tempdir().unwrap();
    let path = prepare(dir.path());
    let texts = stale_texts();
    let race = Race::start(dir.path(), &["race-ours"; RACERS]);
    for (round, text) in texts.iter().cycle().take(ROUNDS).enumerate() {
        std::fs::write(&path, text).unwrap();
        race.round(|answers| assert_eq!(winners(answers), 1, "round {round}: {answers:?} on {text:?}"));
        assert!(!path.exists(), "round {round}: the winner took its lock away");
    }
    println!("{ROUNDS} rounds of {RACERS} processes on a stale lock: one winner in each");
}

pub(crate) fn eight_processes_on_a_fresh_name_have_one_winner_each_round() {
    let dir = tempfile::tempdir().unwrap();
    let path = prepare(dir.path());
    let race = Race::start(dir.path(), &["race-ours"; RACERS]);
    for round in 0..ROUNDS {
        race.round(|answers| assert_eq!(winners(answers), 1, "round {round}: {answers:?}"));
        assert!(!path.exists());
    }
    println!("{ROUNDS} rounds of {RACERS} processes on a fresh name: one winner in each");
}

pub(crate) fn the_harness_detects_the_create_new_algorithm_on_a_stale_lock() {
    let dir = tempfile::tempdir().unwrap();
    let path = prepare(dir.path());
    let stale = foreign_json("job", a_dead_pid());
    let race = Race::start(dir.path(), &["race-create-new"; RACERS]);
    let mut broken = 0;
    let rounds = count(300, ROUNDS);
    for _ in 0..rounds {
        std::fs::write(&path, &stale).unwrap();
        race.round(|answers| broken += usize::from(winners(answers) != 1));
    }
    println!(
        "the create-new algorithm on a stale lock: {broken} of {rounds} rounds without exactly one winner"
    );
    assert!(broken * 20 > rounds, "the harness would not notice two holders");
}
