use crate::story::{Story, steps};

#[test]
fn joining_prints_the_id_that_agent_takes() {
    let story = Story::project(|_| {})
        .tell(&["agents", "join", "--name", "reviewer", "--capability", "rust", "--capability", "sql"])
        .tell(&["agents", "join", "--quiet"])
        .tell(&["agents", "join", "--name", ""])
        .tell(&["agents", "join", "--dry-run"]);
    insta::assert_snapshot!(story);
}

#[test]
fn the_list_shows_names_claims_and_who_has_left() {
    let story = Story::project(|env| {
        steps(env, &["agents join --name reviewer --capability rust", "tasks add One", "tasks add Two"]);
        steps(env, &["tasks claim T1 --agent bob", "tasks claim T2 --agent carl", "agents leave carl"]);
    })
    .tell(&["agents", "list"])
    .tell(&["agent"]);
    insta::assert_snapshot!(story);
    insta::assert_snapshot!("no_agents", Story::project(|_| {}).tell(&["agents", "list"]));
}

#[test]
fn leaving_gives_back_what_the_agent_holds() {
    let story = Story::project(|env| {
        steps(
            env,
            &["tasks add One", "tasks add Two", "tasks claim T1 --agent bob", "tasks claim T2 --agent bob"],
        );
    })
    .tell(&["agents", "leave", "bob"])
    .tell(&["agents", "leave", "--agent", "bob", "--dry-run"])
    .tell(&["agents", "leave", "nobody"])
    .tell(&["agents", "leave"]);
    insta::assert_snapshot!(story);
}
