//! All projects of the machine: what is not trusted, missing or another user's is a row and is not opened.

use std::net::TcpListener;

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
    // Its address leads nowhere either.
    let slug = row("other").split("/p/").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let opened = server.get(&format!("/p/{slug}/"), &[("Cookie", &browser.cookie)]);
    assert!(opened.body.contains("In the other project"), "{opened:?}");
    assert_eq!(server.get("/p/000000000000/", &[("Cookie", &browser.cookie)]).status, 404);
    assert!(listener.accept().is_err(), "it was connected to");
}
