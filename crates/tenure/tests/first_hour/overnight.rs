//! A runner overnight: it is killed, wake-up starts another, and the morning shows what happened.

use rustix::process::Signal;
use tenure_testkit::cli::{PATIENT, processes, until};

use crate::Desk;
use crate::screens::Screens;

#[test]
fn a_killed_runner_is_replaced_and_the_morning_shows_it() {
    let desk = Desk::new();
    desk.sandbox.configure_user(&format!("{}{PATIENT}", desk.sandbox.agent_presets()));
    let ann = desk.window("ann");
    let mut screens = Screens::of(&desk);
    ann.run("tenure init");
    ann.run("tenure tasks add 'Add a login endpoint' --description 'do: print I have added it'");
    ann.run(
        "tenure tasks add 'Hash the passwords' --description 'do: mark begun\ndo: wait go'"
            .replace('\n', "'$'\\n''")
            .as_str(),
    );
    ann.run(
        "tenure tasks add 'Write the notes' --description 'do: print There is nothing to write\ndo: exit 3'"
            .replace('\n', "'$'\\n''")
            .as_str(),
    );
    ann.clear();
    ann.run("tenure runners start");
    desk.sandbox.wait_for("begun");
    ann.run("tenure runners list");
    ann.run("tenure tasks");
    screens.keep("evening", &ann);
    let listed = desk.sandbox.ok(&["-C", desk.folder.to_str().unwrap(), "runners", "list"]);
    let pid = listed["runners"][0]["pid"].as_u64().unwrap();
    processes::signal(u32::try_from(pid).unwrap(), Signal::KILL);
    desk.sandbox.give("go");
    ann.run("tenure runners wakeup");
    ann.run("tenure runners cron status");
    screens.keep("wake-up", &ann);
    until("every runner has ended", || desk.sandbox.ok(&["runners", "list"])["total"] == 0);
    ann.run("tenure tasks --status all");
    ann.run("tenure why");
    screens.keep("morning", &ann);
    ann.run("tenure tasks show T3");
    screens.keep("the failed task", &ann);
    ann.run("tenure tasks logs T1");
    ann.run("tenure runners logs");
    screens.keep("logs", &ann);
    let text = screens.into_text();
    for line in [
        "Started runner ID (pid NUMBER) with pretend",
        "T2  in_progress  -  ID  Hash the passwords",
        "restarted  ID",
        "T2   completed  -        -       Hash the passwords",
        "1 task has failed.",
        "try it again: tenure tasks retry T3",
        "Last attempt: unclassified: exited with 3: There is nothing to write",
        "Looking for tasks... none pending",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}
