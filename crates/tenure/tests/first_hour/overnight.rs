//! A runner overnight: it is killed, wake-up starts another, and the morning shows what happened.

use rustix::process::Signal;
use tenure_testkit::cli::{PATIENT, processes, until};

use crate::Desk;
use crate::screens::{Screens, unspaced};

#[test]
fn a_killed_runner_is_replaced_and_the_morning_shows_it() {
    let desk = Desk::new();
    desk.sandbox.configure_user(&format!("{}{PATIENT}", desk.sandbox.agent_presets()));
    let ann = desk.window("ann");
    let mut screens = Screens::of(&desk);
    ann.run("tenure init");
    // The agent does what the description says, one step a line.
    for (title, steps) in [
        ("Add a login endpoint", "do: print I have added it"),
        ("Hash the passwords", "do: mark begun\ndo: wait go"),
        ("Write the notes", "do: print There is nothing to write\ndo: exit 3"),
    ] {
        let steps = steps.replace('\n', "'$'\\n''");
        ann.run(&format!("tenure tasks add '{title}' --description '{steps}'"));
    }
    ann.clear();
    ann.run("tenure runners start");
    desk.sandbox.wait_for("begun");
    screens.play("evening", &ann, &["tenure runners list", "tenure tasks"]);
    let listed = desk.sandbox.ok(&["-C", desk.folder.to_str().unwrap(), "runners", "list"]);
    let pid = listed["runners"][0]["pid"].as_u64().unwrap();
    processes::signal(u32::try_from(pid).unwrap(), Signal::KILL);
    desk.sandbox.give("go");
    screens.play("wake-up", &ann, &["tenure runners wakeup", "tenure runners cron status"]);
    until("every runner has ended", || desk.sandbox.ok(&["runners", "list"])["total"] == 0);
    screens.play("morning", &ann, &["tenure tasks --status all", "tenure why"]);
    screens.play("the failed task", &ann, &["tenure tasks show T3"]);
    screens.play("output of an agent", &ann, &["tenure tasks logs T1"]);
    screens.play("log of the runner", &ann, &["tenure runners logs"]);
    unspaced().bind(|| insta::assert_snapshot!(screens.into_text()));
}
