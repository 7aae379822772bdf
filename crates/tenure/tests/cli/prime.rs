use crate::story::{Story, steps};
use crate::support::TestEnv;

fn busy(env: &mut TestEnv) {
    steps(
        env,
        &[
            "tasks add One --id F001",
            "tasks add Two --id F002",
            "tasks add Three --depends-on F001",
            "tasks claim F001 --agent ann",
            "tasks claim F002 --agent bob --ttl 1s",
            "msg send --to ann --from bob -m Hello",
        ],
    );
}

#[test]
fn an_agent_is_told_who_it_is_what_it_holds_and_how_to_go_on() {
    let story = Story::project(busy).tell(&["prime", "--agent", "ann"]).tell(&["prime"]);
    insta::assert_snapshot!(story);
}

#[test]
fn every_command_on_the_page_is_one_that_there_is_and_the_page_is_short() {
    let mut env = TestEnv::project();
    busy(&mut env);
    for words in [&["prime"][..], &["prime", "--agent", "ann"]] {
        let page = env.ok(words).out;
        assert!(page.len() < 2048, "{} bytes", page.len());
        let spans = page.split('`').skip(1).step_by(2).filter(|span| span.starts_with("tenure "));
        for span in spans {
            let parsed = tenure::command().try_get_matches_from(span.split(' '));
            assert!(parsed.is_ok(), "{span}: {}", parsed.unwrap_err());
        }
    }
}

#[test]
fn a_hundred_ready_tasks_are_five_and_a_number() {
    let env = TestEnv::project();
    for number in 1..=100 {
        env.ok(&["tasks", "add", &format!("Task {number}")]);
    }
    let page = env.ok(&["prime"]).out;
    assert!(page.contains("100 tasks are open, 100 of them ready"), "{page}");
    assert_eq!(page.lines().filter(|line| line.starts_with("- T")).count(), 5, "{page}");
}
