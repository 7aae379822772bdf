//! Killed at any moment: nothing is lost, no recorded item is done twice, nothing is left unreadable.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::process::Signal;

use tenure_testkit::cli::{Dice, full_or, until};

use crate::project::Project;

/// Says if another process is at the same item, works a little, and leaves its effect as the last thing it does.
pub(crate) const ITEM: &str = "here=\"$PRETEND/at-$1\"
if ! mkdir \"$here\" 2>/dev/null; then
    other=$(cat \"$here/pid\" 2>/dev/null)
    # A zombie has no environment, and a process that has got its pid since has another one.
    if tr '\\0' '\\n' 2>/dev/null <\"/proc/$other/environ\" | grep -qx \"TENURE_ITEM=$1\"; then
        echo \"$1 $other $$\" >>\"$PRETEND/overlaps\"
    fi
fi
echo $$ >\"$here/pid\"
# Some last longer than a resume takes to begin: left alone, they would meet their successors.
case $1 in *7) sleep 0.6 ;; *) sleep 0.0$(($1 % 4)) ;; esac
echo \"$1\" >>\"$PRETEND/effects\"
rm -rf \"$here\"";

fn effects(p: &Project) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    for line in p.marks("effects") {
        *counts.entry(line.parse().unwrap()).or_default() += 1;
    }
    counts
}

#[test]
fn a_job_that_is_killed_again_and_again_does_every_item_once() {
    let (items, kills) = full_or((500, 50), (60, 6));
    let mut dice = Dice::for_test("a_job_that_is_killed_again_and_again_does_every_item_once");
    let p = Project::new();
    p.numbers("items.txt", items);
    p.script("item.sh", ITEM);
    let mut running = p.spawn(&[
        "jobs",
        "start",
        "a",
        "--items",
        "items.txt",
        "--parallel",
        "4",
        "--",
        "./item.sh",
        "{item}",
    ]);
    until("the job is there", || p.run(&["jobs", "show", "a"]).code == Some(0));
    let mut hits = 0;
    for kill in 0..kills {
        std::thread::sleep(Duration::from_millis(dice.below(full_or(400, 300))));
        running.signal(Signal::KILL);
        hits += u32::from(running.end().code.is_none());
        // The checkpoint is readable, and what it says is final.
        let done = p.successes();
        let before = effects(&p);
        running = p.spawn(&["resume", "a"]);
        if kill % 5 == 0 || kill + 1 == kills {
            until("it continues or has ended", || {
                let job = p.job("a");
                job["running"].as_u64().unwrap() > 0 || job["status"] == "completed"
            });
        }
        let after = effects(&p);
        for item in &done {
            assert_eq!(before.get(item), after.get(item), "item {item} had succeeded and was run again");
        }
        assert!(done.windows(2).all(|pair| pair[0] != pair[1]), "a success was written twice: {done:?}");
    }
    let answer = running.end();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(p.successes(), (1..=items).collect::<Vec<_>>());
    let job = p.job("a");
    assert_eq!((job["status"].as_str(), job["failed"].as_u64()), (Some("completed"), Some(0)));
    let effects = effects(&p);
    assert_eq!(effects.len() as u64, items, "every item had its effect");
    let again: usize = effects.values().map(|count| count - 1).sum();
    // Four are at work at a time; only what was not yet written down may be done again.
    assert!(again as u64 <= u64::from(hits) * 4, "{again} effects repeated by {hits} kills");
    assert_eq!(p.marks("overlaps"), Vec::<String>::new(), "two processes were at one item");
    p.expect_no_agents();
    eprintln!("{items} items, {hits} kills, {again} unfinished items done again");
}

#[test]
fn a_start_that_is_killed_leaves_a_whole_job_or_none() {
    let mut dice = Dice::for_test("a_start_that_is_killed_leaves_a_whole_job_or_none");
    let p = Project::new();
    let items = 20_000;
    p.numbers("items.txt", items);
    let count = |rows: &str| -> u64 {
        p.select(&format!("SELECT count(*) FROM job_items WHERE {rows}"))[0].parse().unwrap()
    };
    let stored = |name: &str| count(&format!("job_id = (SELECT id FROM jobs WHERE name = '{name}')"));
    let (mut none, mut whole, mut in_the_middle) = (0, 0, 0);
    let rounds = full_or(60, 6);
    for round in 0..10 * rounds {
        // On a busy machine it may be over before the kill comes; then some more are tried.
        if round >= rounds && in_the_middle > 0 {
            break;
        }
        let name = format!("j{round}");
        let running = p.spawn(&["jobs", "start", &name, "--items", "items.txt", "--", "sleep", "1000"]);
        // Every other one while its items are being stored, which is over soon.
        if round % 2 == 0 {
            until("some of its items are there", || stored(&name) > 0);
        } else {
            std::thread::sleep(Duration::from_millis(dice.below(1500)));
        }
        running.signal(Signal::KILL);
        running.end();
        in_the_middle += u32::from((1..items).contains(&stored(&name)));
        let shown = p.run(&["--json", "jobs", "show", &name]);
        if shown.code == Some(4) {
            none += 1;
        } else {
            assert_eq!(shown.json()["data"]["job"]["total"], items, "{shown:?}");
            whole += 1;
        }
    }
    eprintln!("{none} never were, {whole} are whole; {in_the_middle} were killed in the middle");
    assert!(in_the_middle > 0, "nobody was killed in the middle: this has tried nothing");
    // What the killed ones have left is cleared away by the next, also under their own names.
    p.numbers("few.txt", 2);
    assert_eq!(p.run(&["jobs", "start", "last", "--items", "few.txt", "--", "true"]).code, Some(0));
    let orphans = count("job_id NOT IN (SELECT id FROM jobs WHERE state <> 'loading')");
    assert_eq!(orphans, 0);
    assert_eq!(p.ok(&["jobs", "list"])["total"], whole + 1);
}

#[test]
fn a_session_that_is_killed_again_and_again_completes_every_task_once() {
    let (tasks, kills) = full_or((40, 40), (8, 5));
    let mut dice = Dice::for_test("a_session_that_is_killed_again_and_again_completes_every_task_once");
    let p = Project::with("runners: {preset: pretend, killGrace: 300ms}\ntasks: {maxAttempts: 1000}");
    let keys: Vec<String> = (1..=tasks).map(|n| format!("K{n}")).collect();
    for key in &keys {
        p.task(key, &["sleep 0.05", &format!("mark done-{key}")]);
    }
    let mut running = p.spawn(&["runners", "start", "--foreground"]);
    until("the session is there", || p.ok(&["sessions", "list"])["total"] == 1);
    let id = crate::sessions::id(&p);
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(dice.below(400)));
        running.signal(Signal::KILL);
        running.end();
        // Readable, and what it is through with is what the tasks say.
        let session = p.ok(&["sessions", "show", &id])["session"].clone();
        for done in session["done"].as_array().unwrap() {
            assert_eq!(p.status(done["key"].as_str().unwrap()), done["status"].as_str().unwrap());
        }
        running = p.spawn(&["resume", &id]);
    }
    let answer = running.end();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let session = p.ok(&["sessions", "show", &id])["session"].clone();
    assert_eq!(
        (session["status"].as_str(), &session["current"]),
        (Some("completed"), &serde_json::Value::Null)
    );
    let mut done: Vec<&str> =
        session["done"].as_array().unwrap().iter().map(|task| task["key"].as_str().unwrap()).collect();
    done.sort_unstable();
    let mut wanted: Vec<&str> = keys.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    assert_eq!(done, wanted, "each once");
    for key in &keys {
        assert_eq!(p.moves(key, "completed"), 1, "{key}");
    }
    p.expect_no_agents();
}
