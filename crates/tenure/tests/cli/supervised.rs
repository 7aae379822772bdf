//! What an agent under a runner may do: every verb, for a person, an agent at work, a reviewer and a command of `tasks run`.
//! The table is [`tenure_core::supervised::VERBS`]; a verb without a line fails a test beside the dispatch.

use serde_json::Value;
use tenure_core::supervised::{Permission, Role, VERBS, permission};

use crate::examples::{EXAMPLES, prepare, run};
use crate::support::{Ran, TestEnv};
use crate::walk::commands;

/// A project in which this process is the agent of a runner, started for the task `HELD` of bob.
fn supervised(role: Role) -> TestEnv {
    started_for(role, "HELD")
}

fn started_for(role: Role, task: &str) -> TestEnv {
    let mut env = prepare();
    let id = id_of(&env, task);
    env.set("TENURE_SUPERVISED", role.as_str()).set("TENURE_TASK_ID", id);
    env
}

fn id_of(env: &TestEnv, key: &str) -> String {
    let shown = env.run(&["tasks", "show", key, "--json"]);
    shown.envelope()["data"]["task"]["id"].as_str().unwrap().to_owned()
}

/// Whether a command was refused because of the agent's role.
fn is_refused(ran: &Ran) -> bool {
    if ran.code == 0 {
        return false;
    }
    let error = ran.envelope()["error"].clone();
    let by_role = error["details"]["role"].is_string();
    if by_role {
        assert_eq!((ran.code, error["code"].as_str()), (5, Some("PERMISSION_DENIED")), "{ran}");
        assert!(error["message"].as_str().unwrap().contains("under a runner"), "{ran}");
    }
    by_role
}

fn json(words: &[&str]) -> Vec<String> {
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let mut words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    words.insert(end, "--json".into());
    words
}

fn run_json(env: &mut TestEnv, words: &[&str]) -> Ran {
    let words = json(words);
    run(env, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The name in the table of an example's command: a group alone does what its default verb does.
fn verb_of(path: &str) -> Option<String> {
    let default_verb = match path {
        "tasks" | "sections" | "locks" | "agents" | "msg" | "projects" | "hooks" | "runners" | "jobs"
        | "sessions" => "list",
        "exclusive" => "status",
        "config" => "show",
        // Its example is one of its verbs.
        "store" => return None,
        _ => return Some(path.split(' ').take(2).collect::<Vec<_>>().join(" ")),
    };
    Some(format!("{path} {default_verb}"))
}

#[test]
fn every_verb_is_decided_by_the_role_of_the_agent() {
    for role in Role::ALL {
        let mut env = supervised(role);
        for example in EXAMPLES.iter().filter(|example| example.path != "mcp") {
            let Some(verb) = verb_of(example.path) else { continue };
            let refused = match permission(&verb, role) {
                Permission::Refused => true,
                Permission::Allowed => false,
                // These examples are about the task HELD, those of a review about REVIEW.
                Permission::OwnTask => !example.good.contains(&"HELD"),
            };
            if permission(&verb, role) == Permission::OwnTask {
                env = supervised(role);
            }
            let ran = run_json(&mut env, example.good);
            assert_eq!(is_refused(&ran), refused, "{role} {ran}");
            assert!(refused || ran.code == 0, "{role} {ran}");
        }
    }
}

#[test]
fn a_person_and_a_command_of_tasks_run_are_refused_nothing() {
    // Each fails for its own reason, after the role was checked.
    let mut person = prepare();
    let mut of_run = prepare();
    let id = id_of(&of_run, "OPEN");
    of_run.set("TENURE_ATTEMPT", "mark").set("TENURE_TASK_ID", id).set("TENURE_AGENT", "eve");
    for example in EXAMPLES {
        for env in [&mut person, &mut of_run] {
            let outside = usize::from(example.bad[0] == "outside");
            let words = [&example.bad[..outside], &["--json"], &example.bad[outside..]].concat();
            let ran = run(env, &words);
            assert!(!is_refused(&ran), "{ran}");
        }
    }
}

#[test]
fn the_verbs_of_the_holder_are_for_the_agents_own_task() {
    let holders = ["done", "fail", "release", "renew", "check"];
    for role in Role::ALL {
        let env = started_for(role, "OPEN");
        for verb in holders {
            assert_eq!(permission(&format!("tasks {verb}"), role), Permission::OwnTask);
            let mut words = vec!["tasks", verb, "HELD", "--agent", "bob", "--json"];
            words.extend((verb == "fail").then_some(["-m", "No"]).into_iter().flatten());
            let ran = env.run(&words);
            assert!(is_refused(&ran), "the lease of bob proves nothing: {ran}");
            assert!(ran.out.contains("HELD"), "{ran}");
        }
    }
    let listed: Vec<&str> =
        VERBS.iter().filter(|(_, work, _)| *work == Permission::OwnTask).map(|(verb, ..)| *verb).collect();
    assert_eq!(listed, holders.map(|verb| format!("tasks {verb}")));
}

#[test]
fn only_a_reviewer_approves_and_rejects_and_only_its_own_task() {
    for (role, own, refused) in
        [(Role::Work, "REVIEW", true), (Role::Review, "OPEN", true), (Role::Review, "REVIEW", false)]
    {
        for words in [
            &["tasks", "approve", "REVIEW"][..],
            &["task", "verify", "REVIEW"],
            &["tasks", "reject", "REVIEW", "-m", "No"],
        ] {
            let mut env = started_for(role, own);
            let ran = run_json(&mut env, words);
            assert_eq!((is_refused(&ran), ran.code == 0), (refused, !refused), "{role} {own} {ran}");
        }
    }
}

#[test]
fn a_flag_that_makes_a_verb_another_one_is_decided_by_itself() {
    let mut env = supervised(Role::Review);
    for (verb, words) in [
        ("tasks next --claim", &["tasks", "next", "--claim", "--agent", "eve"][..]),
        ("doctor --fix", &["doctor", "--fix"]),
        ("mcp --http", &["mcp", "--http", "0"]),
    ] {
        assert_eq!(permission(verb, Role::Review), Permission::Refused);
        let ran = run_json(&mut env, words);
        assert!(is_refused(&ran) && ran.out.contains(verb), "{ran}");
    }
    let with_flags = VERBS.iter().filter(|(verb, ..)| verb.contains("--")).count();
    // The demo's agents run under a runner, which the demo's own tests cover.
    assert_eq!(with_flags, 3 + 1, "each is tested here");
}

#[test]
fn hidden_verbs_that_run_a_command_are_refused() {
    let mut env = supervised(Role::Work);
    for words in [&["hooks", "deliver"][..], &["start-exclusive", "--", "true"], &["keep-lease", "L1"]] {
        let ran = run_json(&mut env, words);
        assert!(is_refused(&ran), "{ran}");
    }
    // The command with which a runner starts its agent. Without the store that only the runner passes, it
    // starts nothing.
    env.set("TENURE_ATTEMPT", "mark");
    let ran = run_json(&mut env, &["start-attempt", "--", "true"]);
    assert_eq!((ran.code, is_refused(&ran)), (2, false), "{ran}");
}

#[test]
fn an_agent_under_a_runner_uses_neither_another_configuration_nor_another_project() {
    let mut env = supervised(Role::Work);
    let root = env.path("work");
    env.write("work/evil.yaml", "hooks: [{event: task.created, type: script, command: ./evil}]\n");
    std::fs::create_dir_all(env.path("elsewhere")).unwrap();
    env.set("TENURE_PROJECT", root.to_str().unwrap());
    for words in
        [&["tasks", "add", "X", "--config", "evil.yaml"][..], &["tasks", "list", "-C", "../elsewhere"]]
    {
        let ran = run_json(&mut env, words);
        assert!(is_refused(&ran), "{ran}");
    }
    let own = run_json(&mut env, &["tasks", "list", "-C", "."]);
    assert_eq!(own.code, 0, "{own}");
}

#[test]
fn an_unknown_role_has_the_permissions_of_an_agent_at_work() {
    let mut env = supervised(Role::Work);
    env.set("TENURE_SUPERVISED", "1");
    assert!(is_refused(&run_json(&mut env, &["tasks", "approve", "REVIEW"])));
    assert_eq!(run_json(&mut env, &["tasks", "list"]).code, 0);
    env.set("TENURE_SUPERVISED", "");
    let ran = run_json(&mut env, &["tasks", "approve", "REVIEW"]);
    assert_eq!((ran.code, ran.envelope()["error"].clone()), (0, Value::Null), "{ran}");
}

#[test]
fn every_visible_verb_has_an_example_here() {
    let without: Vec<String> = commands()
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| !EXAMPLES.iter().any(|example| example.path == path))
        .collect();
    assert_eq!(without, Vec::<String>::new());
}
