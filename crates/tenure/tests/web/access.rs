//! Access to pages and changes: codes, cookies, names, origins, other pages, slow clients, and hostile text.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use sha2::{Digest, Sha256};
use tenure_testkit::cli::{HANG, until};

use crate::client::{FORM, Server, field, shop};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

#[test]
fn a_code_opens_one_session_and_the_answer_moves_on_by_itself() {
    let shop = shop(&["One"]);
    let server = Server::start(&shop, &[]);
    let wrong = server.ask("POST", "/login", &[FORM], "code=0123456789");
    assert_eq!((wrong.status, wrong.header("set-cookie")), (403, None), "{wrong:?}");
    // Sent from another origin, as by the page in a file.
    let from_file =
        [FORM, ("Origin", "null"), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")];
    let opened = server.ask("POST", "/login", &from_file, &format!("code={}", server.code));
    assert_eq!((opened.status, opened.header("location")), (200, None), "no redirect: {opened:?}");
    assert!(opened.body.contains(r#"<meta http-equiv="refresh" content="0;url=/">"#), "{opened:?}");
    let cookie = opened.header("set-cookie").unwrap();
    for part in ["; path=/", "; httponly", "; samesite=strict"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let again = server.ask("POST", "/login", &[FORM], &format!("code={}", server.code));
    assert_eq!((again.status, again.header("set-cookie")), (403, None), "it was used: {again:?}");
}

#[test]
fn nothing_secret_is_among_the_arguments_and_the_file_that_is_opened_is_private() {
    let shop = shop(&[]);
    // The browser of this test records what it is started with, and what it finds there.
    let seen = shop.path("seen");
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > '{0}.args'\nstat -c %a \"$1\" > '{0}.mode'\ncp \"$1\" '{0}.new'\nmv '{0}.new' '{0}'\n",
        seen.display()
    );
    let browser = shop.path("browser");
    tenure_testkit::cli::write_program(&browser, &script);
    let mut command = shop.command(&["web", "--open", "--http", "0"]);
    command.env("BROWSER", &browser).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    until("the browser was started", || seen.is_file());
    let page = std::fs::read_to_string(&seen).unwrap();
    let read = |ending: &str| std::fs::read_to_string(format!("{}.{ending}", seen.display())).unwrap();
    let (args, mode) = (read("args"), read("mode"));
    let code = page.split("value=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(code.len() >= 32 && !args.contains(code), "{args}");
    assert_eq!((mode.trim(), args.lines().count()), ("600", 1), "{args}");
    let action = page.split("action=\"http://").nth(1).unwrap().split('"').next().unwrap();
    let (host, path) = action.split_once('/').unwrap();
    let port = host.rsplit(':').next().unwrap();
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let body = format!("code={code}");
    let head = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        FORM.1,
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn the_file_with_hashes_of_sessions_is_private_and_has_no_token() {
    let shop = shop(&[]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    let folder = shop.tenure_home().join("web");
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    for file in &files {
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600, "{files:?}");
    }
    let file = files.iter().find(|path| path.extension().is_some_and(|ending| ending == "json")).unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let token = browser.cookie.split_once('=').unwrap().1;
    assert!(text.contains("\"hash\"") && !text.contains(token) && !text.contains(&server.code), "{text}");
}

#[test]
fn without_a_session_nothing_of_a_project_is_shown() {
    let shop = shop(&["The secret plan"]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    let project = &browser.project;
    let paths = [
        "/",
        "/projects",
        &format!("/p/{project}/"),
        &format!("/p/{project}/t/T1"),
        &format!("/p/{project}/events"),
    ];
    let name = browser.cookie.split('=').next().unwrap();
    let made_up = format!("{name}=0123456789abcdef0123456789abcdef");
    for path in paths {
        for cookie in ["", made_up.as_str()] {
            let reply = server.get(path, &[("Cookie", cookie)]);
            assert_eq!(reply.status, 401, "{path}: {reply:?}");
            assert!(!reply.body.contains("secret plan"), "{reply:?}");
        }
        let reply = server.get(path, &[("Cookie", &browser.cookie)]);
        assert!(reply.status == 200 || reply.status == 303, "{path}: {reply:?}");
    }
    assert_eq!(server.get("/style.css", &[]).status, 200);
    assert_eq!(server.get("/nowhere", &[]).status, 404);
}

#[test]
fn a_request_with_another_name_reaches_nothing() {
    let shop = shop(&["One"]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    let port = server.port;
    let (numeric, local) = (format!("127.0.0.1:{port}"), format!("localhost:{port}"));
    let rebound = format!("evil.example:{port}");
    let without_port = server.host.split(':').next().unwrap().to_owned();
    for host in [&rebound, &numeric, &local, &without_port, &"evil.example".to_owned()] {
        if *host == server.host {
            continue;
        }
        for path in [
            "/",
            "/login",
            "/style.css",
            "/board.js",
            "/projects",
            "/metrics",
            &format!("/p/{}/", browser.project),
        ] {
            let reply = server.get(path, &[("Host", host), ("Cookie", &browser.cookie)]);
            let expected = if path == "/metrics" && *host == numeric { 401 } else { 403 };
            assert_eq!(reply.status, expected, "{host} {path}: {reply:?}");
        }
    }
}

#[test]
fn a_change_needs_the_cookie_the_site_the_origin_and_the_value_of_the_session() {
    let shop = shop(&["One"]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    let path = format!("/p/{}/do/skip", browser.project);
    let good = browser.form_headers();
    let other_port = format!("http://{}:{}", server.host.split(':').next().unwrap(), server.port - 1);
    let weak: Vec<(&str, &str, u16)> = vec![
        ("Cookie", "", 401),
        ("Origin", "", 403),
        ("Origin", "null", 403),
        ("Origin", &other_port, 403),
        ("Origin", "http://evil.example", 403),
        ("Sec-Fetch-Site", "", 403),
        ("Sec-Fetch-Site", "same-site", 403),
        ("Sec-Fetch-Site", "cross-site", 403),
        ("Sec-Fetch-Site", "none", 403),
        ("X-Tenure-CSRF", "", 403),
        ("X-Tenure-CSRF", "0000", 403),
        ("Content-Type", "text/plain", 403),
        ("Host", "evil.example", 403),
    ];
    let body = browser.seen("T1");
    for (name, value, status) in weak {
        let mut headers: Vec<(&str, &str)> = good.iter().map(|(n, v)| (*n, v.as_str())).collect();
        headers.retain(|(given, _)| *given != name);
        headers.push((name, value));
        let reply = server.ask("POST", &path, &headers, &body);
        assert_eq!(reply.status, status, "{name}: {value:?}: {reply:?}");
        assert_eq!(shop.status("T1"), "pending", "{name}: {value:?}");
    }
    // A page of another port of the same name could send the cookie, but must not be able to read a page
    // either.
    let peeking =
        [("Cookie", browser.cookie.as_str()), ("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "no-cors")];
    assert_eq!(server.get(&format!("/p/{}/", browser.project), &peeking).status, 403);
    assert_eq!(server.get(&format!("/p/{}/changes", browser.project), &peeking).status, 403);
    let reply = browser.post("skip", &body);
    assert_eq!(reply.status, 200, "all of it together is enough: {reply:?}");
    assert_eq!(shop.status("T1"), "skipped");
}

#[test]
fn without_the_script_a_form_leads_back_to_its_page() {
    let shop = shop(&["One"]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    let (origin, csrf) = (format!("http://{}", server.host), &browser.csrf);
    let headers =
        [("Cookie", browser.cookie.as_str()), ("Origin", &origin), ("Sec-Fetch-Site", "same-origin"), FORM];
    let back = format!("/p/{}/t/T1", browser.project);
    let body = format!("{}&csrf={csrf}&back={back}", browser.seen("T1"));
    let reply = server.ask("POST", &format!("/p/{}/do/skip", browser.project), &headers, &body);
    assert_eq!(
        (reply.status, reply.header("location")),
        (303, Some(back.to_lowercase().as_str())),
        "{reply:?}"
    );
    assert_eq!(shop.status("T1"), "skipped");
}

#[test]
fn a_read_only_server_offers_and_makes_no_change() {
    let shop = shop(&["One"]);
    let server = Server::start(&shop, &["--read-only"]);
    let mut browser = server.sign_in();
    for page in ["", "t/T1", "runners"] {
        let reply = browser.page(page);
        assert_eq!(reply.status, 200, "{reply:?}");
        assert!(!reply.body.contains("/do/"), "{page}: {}", reply.body);
    }
    let token = browser.cookie.split_once('=').unwrap().1.to_owned();
    browser.csrf = csrf_of(&token);
    let updated = shop.select("SELECT updated_at FROM tasks").remove(0);
    let id = shop.show("T1")["id"].as_str().unwrap().to_owned();
    let reply = browser.post("skip", &format!("task={id}&updatedAt={updated}&fence="));
    assert!(reply.status == 403 && reply.body.contains("--read-only"), "{reply:?}");
    assert_eq!(shop.status("T1"), "pending");
}

/// Derives the CSRF value in the same way as the server.
fn csrf_of(token: &str) -> String {
    let hash = Sha256::digest(format!("csrf {token}").as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

#[test]
fn signing_out_ends_the_session_and_its_streams() {
    let shop = shop(&["One"]);
    let server = Server::start(&shop, &["--read-only"]);
    let browser = server.sign_in();
    let mut stream = browser.stream();
    let page = browser.page("");
    assert!(page.body.contains("action=\"/logout\""), "{}", page.body);
    let (origin, csrf) = (format!("http://{}", server.host), field(&page.body, "csrf"));
    let cookie = ("Cookie", browser.cookie.as_str());
    let headers = [cookie, ("Origin", &origin), ("Sec-Fetch-Site", "same-origin"), FORM];
    let refused = server.ask("POST", "/logout", &headers, "csrf=0123");
    assert_eq!((refused.status, browser.page("").status), (403, 200), "{refused:?}");
    let reply = server.ask("POST", "/logout", &headers, &format!("csrf={csrf}"));
    assert!(reply.status == 200 && reply.body.contains("You are signed out."), "{reply:?}");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!(browser.page("").status, 401);
}

#[test]
fn clients_that_say_nothing_or_little_do_not_keep_a_browser_out() {
    let shop = shop(&["One"]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    // More connections than the server accepts, some of them in the middle of a request.
    let mut idle: Vec<TcpStream> =
        (0..80).map(|_| TcpStream::connect(("127.0.0.1", server.port)).unwrap()).collect();
    for (number, stream) in idle.iter_mut().enumerate() {
        if number % 2 == 0 {
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ");
        }
    }
    let reply = browser.page("");
    assert_eq!(reply.status, 200);
    let mut first = idle.remove(0);
    first.set_read_timeout(Some(HANG)).unwrap();
    let mut rest = Vec::new();
    first.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"", "it was closed without an answer");
    let long = "x".repeat(3 * 1024 * 1024);
    let headers = [("Cookie", browser.cookie.as_str()), FORM, ("Sec-Fetch-Site", "same-origin")];
    let reply = server.ask("POST", &format!("/p/{}/do/add", browser.project), &headers, &long);
    assert_eq!(reply.status, 413, "{reply:?}");
    assert_eq!(browser.page("").status, 200, "the server still serves");
}

#[test]
fn every_answer_has_the_policy_and_no_text_of_a_task_becomes_markup() {
    let hostile =
        "</title><script>alert(1)</script><img src=x onerror=alert(1)>\" onfocus=\"alert(1)\" ' <!-- &lt;";
    let shop = shop(&[hostile]);
    shop.ok(&["tasks", "update", "T1", "--description", &format!("{hostile}\n</textarea></form>{hostile}")]);
    shop.ok(&["msg", "send", "-m", &format!("{hostile} message"), "--task", "T1", "--agent", "ann"]);
    shop.ok(&["sections", "add", "</h2><b>bold"]);
    shop.ok(&["tasks", "update", "T1", "--section", "</h2><b>bold", "--label", "<i>label"]);
    shop.ok(&[
        "tasks",
        "run",
        "T1",
        "--agent",
        "eve",
        "--",
        "sh",
        "-c",
        &format!("printf '%s\\n' '{}'", hostile.replace('\'', "")),
    ]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    for page in ["", "?by=section&done=1", "t/T1", "events", "queue", "runners", "jobs", "accounts"] {
        let reply = browser.page(page);
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.header("content-security-policy"), Some(POLICY), "{page}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        for markup in ["<script>", "<img src=x", "<b>", "<i>", "\" onfocus", "<!--", " style="] {
            assert!(!reply.body.contains(markup), "{page} has {markup}: {}", reply.body);
        }
        assert_eq!(reply.body.matches("<script").count(), 1, "only the server's own: {page}");
    }
    let body = browser.page("t/T1").body;
    assert!(body.contains("&lt;img src=x onerror=alert(1)&gt;"), "{body}");
}
