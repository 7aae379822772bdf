//! All projects of the machine: what is not trusted, missing or another user's is a row and is not opened.

use std::net::TcpListener;

use tenure_testkit::cli::{PATIENT, skip, until};

use crate::client::{Server, shop};

#[test]
fn a_project_that_is_not_trusted_is_a_row_and_its_store_is_not_opened() {
    let shop = shop(&["One"]);
    let other = shop.sandbox().project("other");
    other.ok(&["tasks", "add", "In the other project"]);
    let hostile = shop.sandbox().project("hostile");
    // Its file now names a server, which must not be connected to.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = hostile.root().join(".tenure/config.yaml");
    let text = std::fs::read_to_string(&config).unwrap_or_default();
    std::fs::write(&config, format!("{text}store: {{url: 'postgres://ann@127.0.0.1:{port}/work'}}\n"))
        .unwrap();
    let gone = shop.sandbox().project("gone");
    std::fs::remove_dir_all(gone.root().join(".tenure")).unwrap();
    for project in [&other, &hostile] {
        shop.sandbox().command(&["projects", "add", project.root().to_str().unwrap()]).output().unwrap();
    }

    let mut command = shop.command(&["web", "--http", "0"]);
    command.env_remove("TENURE_TRUST");
    let server = Server::of(command);
    let browser = server.sign_in();
    let page = server.get("/projects", &[("Cookie", &browser.cookie)]);
    assert_eq!(page.status, 200, "{page:?}");
    let row = |project: &str| {
        let end = format!("/{project}</td>");
        page.body
            .split("<tr>")
            .find(|row| row.contains(&end))
            .unwrap_or_else(|| panic!("{project}: {}", page.body))
            .to_owned()
    };
    assert!(row("other").contains("1 pending"), "{}", page.body);
    let refused = row("hostile");
    assert!(refused.contains("not trusted") && refused.contains("tenure trust -C"), "{refused}");
    assert!(!refused.contains("<a "), "{refused}");
    assert!(listener.accept().is_err(), "it was connected to");
    assert!(row("gone").contains("missing"), "{}", page.body);
    // The trusted project opens, and an unknown name does not.
    let slug = row("other").split("/p/").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let opened = server.get(&format!("/p/{slug}/"), &[("Cookie", &browser.cookie)]);
    assert!(opened.body.contains("In the other project"), "{opened:?}");
    assert_eq!(server.get("/p/000000000000/", &[("Cookie", &browser.cookie)]).status, 404);
    assert!(listener.accept().is_err(), "it was connected to");
}

#[test]
fn withdrawn_trust_and_changed_settings_count_while_the_server_runs() {
    let shop = shop(&["One"]);
    let other = shop.sandbox().project("other");
    other.ok(&["tasks", "add", "In the other project"]);
    let mut command = shop.command(&["web", "--http", "0"]);
    command.env_remove("TENURE_TRUST");
    let server = Server::of(command);
    let browser = server.sign_in();
    let cookie = [("Cookie", browser.cookie.as_str())];
    let rows = server.get("/projects", &cookie).body;
    let row = rows.split("<tr>").find(|row| row.contains("/other</td>")).unwrap();
    let address = format!("/p/{}/", row.split("/p/").nth(1).unwrap().split('/').next().unwrap());
    assert!(server.get(&address, &cookie).body.contains("In the other project"));
    other.ok(&["untrust"]);
    let refused = server.get(&address, &cookie);
    assert!(refused.status == 403 && refused.body.contains("not trusted"), "{refused:?}");
    assert!(!refused.body.contains("In the other project"), "{refused:?}");
    other.trust();
    assert!(server.get(&address, &cookie).body.contains("In the other project"));

    // The hooks of the server's own project.
    let (config, ran) = (shop.root().join(".tenure/config.yaml"), shop.path("ran"));
    let text = std::fs::read_to_string(&config).unwrap_or_default();
    let hook = format!(
        "{{name: note, event: task.created, type: script, command: sh, args: ['-c', 'echo {{{{task.title}}}} >> \"$0\"', '{}']}}",
        ran.display()
    );
    std::fs::write(&config, format!("{text}hooks: [{hook}]\n")).unwrap();
    let noted = || std::fs::read_to_string(&ran).unwrap_or_default();
    browser.post("add", "title=untrusted");
    shop.trust();
    browser.post("add", "title=trusted");
    until("the hook has run", || noted().contains("trusted"));
    shop.ok(&["untrust"]);
    browser.post("add", "title=withdrawn");
    shop.trust();
    browser.post("add", "title=last");
    until("the hook has run again", || noted().contains("last"));
    assert_eq!(noted(), "trusted\nlast\n");
}

#[test]
fn another_users_project_is_a_row() {
    let shop = shop(&["One"]);
    let other = shop.sandbox().project("other");
    if std::os::unix::fs::chown(other.root().join(".tenure"), Some(12345), None).is_err() {
        return skip("giving a project to another user needs root");
    }
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    let rows = server.get("/projects", &[("Cookie", &browser.cookie)]).body;
    let row = rows.split("<tr>").find(|row| row.contains("/other</td>")).unwrap();
    assert!(row.contains("belongs to another user (uid 12345") && !row.contains("<a "), "{row}");
}

#[test]
fn a_log_on_another_machine_names_that_machine() {
    let shop = shop(&[]);
    let agents = shop.agent_presets();
    shop.configure(&format!("{agents}{PATIENT}"));
    shop.task("T1", &["print printed here", "tenure -q task done T1"]);
    shop.work(&["--once"]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    let here = browser.page("t/T1").body;
    assert!(here.contains(">printed here</span>"), "{here}");
    shop.rewrite_processes(|process| {
        process["host_id"] = "elsewhere".into();
        process["hostname"] = "other-machine".into();
    });
    let page = browser.page("t/T1").body;
    assert!(
        page.contains("the log of T1 is on other-machine: ") && !page.contains(">printed here<"),
        "{page}"
    );
}
