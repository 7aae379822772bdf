//! What a person can change on the board, and what is refused because it has changed meanwhile.

use crate::SUITE;
use crate::client::{Server, shop};

/// The holder and actor of changes on the board.
fn is_web(actor: &str) -> bool {
    actor.contains('@') && actor.ends_with(":web")
}

#[test]
fn every_verb_does_what_its_command_does_under_the_name_of_the_person() {
    let shop = shop(&["One", "Two"]);
    shop.ok(&["sections", "add", "Backend"]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    let added = browser.post("add", "title=Three+%26+more&description=a%0D%0Ab&section=Backend&key=N1");
    assert_eq!(added.status, 200, "{added:?}");
    let task = shop.show("N1");
    assert_eq!((task["title"].as_str(), task["description"].as_str()), (Some("Three & more"), Some("a\nb")));
    browser.change("edit", "N1", "title=Three&description=&section=&priority=7");
    let task = shop.show("N1");
    assert_eq!(
        (task["title"].as_str(), task["section"].as_str(), task["priority"].as_i64()),
        (Some("Three"), None, Some(7))
    );

    browser.change("claim", "T1", "");
    let lease = shop.show("T1")["lease"].clone();
    assert!(is_web(lease["holder"]["id"].as_str().unwrap()), "{lease}");
    browser.change("release", "T1", "remark=later");
    assert_eq!(shop.status("T1"), "pending");

    shop.ok(&["tasks", "claim", "T1", "--agent", "ann"]);
    browser.change("evict", "T1", "");
    assert!(shop.show("T1")["lease"].is_null());
    browser.change("skip", "T1", "remark=not+needed");
    assert_eq!(shop.status("T1"), "skipped");
    browser.change("retry", "T1", "");
    assert_eq!(shop.status("T1"), "pending");

    shop.ok(&["tasks", "update", "T2", "--status", "review"]);
    browser.change("reject", "T2", "remark=The+tests+are+missing");
    assert_eq!(shop.status("T2"), "pending");
    shop.ok(&["tasks", "update", "T2", "--status", "review"]);
    browser.change("approve", "T2", "");
    assert_eq!(shop.status("T2"), "completed");

    let actors: Vec<String> = shop
        .feed()
        .iter()
        .filter(|event| event["to"] == "skipped" || event["to"] == "completed")
        .map(|event| event["actor"].as_str().unwrap().to_owned())
        .collect();
    assert!(actors.len() == 2 && actors.iter().all(|actor| is_web(actor)), "{actors:?}");
}

#[test]
fn a_change_of_something_that_has_changed_since_it_was_shown_is_refused() {
    let shop = shop(&["One"]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    let before = browser.seen("T1");
    shop.ok(&["tasks", "update", "T1", "--title", "Other"]);
    for (verb, more) in [("skip", ""), ("claim", ""), ("edit", "&title=Mine&priority=1")] {
        let reply = browser.post(verb, &format!("{before}{more}"));
        assert!(reply.status == 409 && reply.body.contains("CHANGED"), "{verb}: {reply:?}");
    }
    assert_eq!((shop.status("T1").as_str(), shop.show("T1")["title"].as_str()), ("pending", Some("Other")));

    shop.ok(&["tasks", "claim", "T1", "--agent", "ann"]);
    let held = browser.seen("T1");
    shop.ok(&["tasks", "release", "T1", "--agent", "ann"]);
    let fence = shop.ok(&["tasks", "claim", "T1", "--agent", "bob"])["lease"]["fence"].clone();
    // The page showed ann's lease, so bob's must not be ended.
    let reply = browser.post("evict", &held);
    assert_eq!(reply.status, 409, "{reply:?}");
    assert_eq!(shop.show("T1")["lease"]["fence"], fence);
    // A task of another holder is refused, as it is by the command.
    let reply = browser.post("skip", &browser.seen("T1"));
    assert!(reply.status == 409 && reply.body.contains("TASK_LOCKED"), "{reply:?}");
    let reply = browser.post("reject", &browser.seen("T1"));
    assert_eq!(reply.status, 400, "a rejection has a reason: {reply:?}");
    assert_eq!(browser.post("trust", "x=y").status, 404, "there is no such verb");
}

#[test]
fn runners_are_started_only_where_a_person_has_trusted_and_stopped_by_their_id() {
    let shop = shop(&[]);
    let agents = shop.agent_presets();
    shop.configure(&format!("{agents}{}", tenure_testkit::cli::PATIENT));
    shop.task("W1", &["wait end"]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    let started = browser.post("start-runner", "");
    assert_eq!(started.status, 200, "{started:?}");
    shop.wait_until("W1", "in_progress");
    let id = shop.runners()[0]["id"].as_str().unwrap().to_owned();
    assert!(browser.page("runners").body.contains(&id));
    let stopped = browser.post("stop-runner", &format!("runner={id}"));
    assert_eq!(stopped.status, 200, "{stopped:?}");
    assert!(shop.runners().is_empty());
    assert_eq!(browser.post("stop-runner", "runner=nonsense").status, 404);

    // The runner of another project, and a part of an id, are not on the page.
    let other = shop.sandbox().project("other");
    other.configure(&format!("{agents}{}", tenure_testkit::cli::PATIENT));
    other.task("O1", &["wait end"]);
    other.detached_runner(&[]);
    other.wait_until("O1", "in_progress");
    let runners = other.runners();
    let id = runners[0]["id"].as_str().unwrap().to_owned();
    for named in [id.as_str(), &id[..8]] {
        let reply = browser.post("stop-runner", &format!("runner={named}"));
        assert_eq!(reply.status, 404, "{reply:?}");
    }
    assert_eq!(other.runners().len(), 1);
    other.ok(&["runners", "stop"]);

    // Somebody changes what would run: the page cannot start it, and cannot trust it.
    let config = shop.root().join(".tenure/config.yaml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replacen("command: ['", "command: ['env', '", 1)).unwrap();
    let mut command = shop.command(&["web", "--http", "0"]);
    command.env_remove("TENURE_TRUST");
    if SUITE.is_on_postgres() {
        // On PostgreSQL, the server to connect to needs trust as well.
        assert_eq!(command.output().unwrap().status.code(), Some(5));
        return;
    }
    let distrusting = Server::of(command);
    let reply = distrusting.sign_in().post("start-runner", "");
    assert!(reply.status == 403 && reply.body.contains("UNTRUSTED"), "{reply:?}");
    assert!(shop.runners().is_empty());
}
