//! Wake-ups whose wall clock is wrong by two hours.

use tenure_testkit::cli::{Running, processes};

use crate::machine::{Machine, decisions, make_silent, slow};

#[test]
fn a_wake_up_two_hours_off_leaves_a_runner_that_answers_alone() {
    let machine = Machine::with(&slow());
    let project = machine.project("p");
    project.task("A", &["mark begun", "hang"]);
    let runner = project.detached_runner(&[]);
    machine.wait_for("begun");
    let agents = machine.agents();
    for skew in ["+2h", "-2h"] {
        for silent in [false, true] {
            if silent {
                // Wake-up rings the runner and judges its answer.
                make_silent(&project);
            }
            let wakeup = machine.skew(&machine.command(&["--json", "runners", "wakeup"]), skew);
            let answer = Running::start(wakeup).end();
            assert_eq!(decisions(&answer.json()["data"])["p"].0, "running", "{skew} {silent}: {answer:?}");
            assert!(processes::is_alive(runner));
            assert_eq!(machine.agents(), agents);
        }
    }
}
