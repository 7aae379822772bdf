use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use tenure_core::config::{Hook, HookAction};
use tenure_runner::hooks::{Failure, preview};

use super::server::Server;
use super::{Project, hook, titled};

fn webhook(url: &str, method: &str, headers: &[(&str, &str)], body: Option<&str>) -> Hook {
    let headers: BTreeMap<_, _> =
        headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let body = body.map(str::to_owned);
    hook(HookAction::Webhook { url: url.into(), method: method.into(), headers, body })
}

#[test]
fn what_happened_is_posted_as_json() {
    let server = Server::answering(&["200 OK"]);
    let project = Project::new();
    let hook = webhook(&server.url("/in"), "POST", &[], None);
    assert_eq!(project.run(&hook, &titled("a \"b\"")).failure(), None);
    let [request] = server.received().try_into().unwrap();
    assert_eq!(request.line, "POST /in HTTP/1.1");
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert!(request.header("user-agent").unwrap().starts_with("tenure/"));
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!((&body["event"], &body["task"]["title"]), (&"task.completed".into(), &"a \"b\"".into()));
}

#[test]
fn url_headers_and_body_are_filled_each_in_its_own_way() {
    let server = Server::answering(&["204 No Content"]);
    let project = Project::new().var("TOKEN", "s3cret-value\n");
    let hook = webhook(
        &server.url("/t/{{task.key}}?q={{task.title}}"),
        "PUT",
        &[("Authorization", "Bearer ${TOKEN}"), ("X-Title", "{{task.title}}")],
        Some(r#"{"text": "{{task.title}}", "task": {{task}}, "token": "${TOKEN}"}"#),
    );
    let title = "a\"b\r\nX-Evil: 1 ${TOKEN} ü&x=1";
    let outcome = project.run(&hook, &titled(title));
    assert_eq!(outcome.failure(), None, "{outcome:?}");
    let [request] = server.received().try_into().unwrap();
    assert_eq!(
        request.line,
        "PUT /t/F001?q=a%22b%0D%0AX-Evil%3A%201%20%24%7BTOKEN%7D%20%C3%BC%26x%3D1 HTTP/1.1"
    );
    assert_eq!(request.header("authorization"), Some("Bearer s3cret-value"));
    assert_eq!(request.header("x-title"), Some("a\"b\\r\\nX-Evil: 1 ${TOKEN} ü&x=1"));
    assert_eq!(request.header("x-evil"), None);
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!((&body["text"], &body["task"]["title"]), (&title.into(), &title.into()));
    assert_eq!(body["token"], "s3cret-value\n");
    assert!(!format!("{outcome:?}{}", project.log_text()).contains("s3cret"));
}

#[test]
fn a_server_in_trouble_is_asked_again_and_a_refusal_is_final() {
    let server = Server::answering(&["500 Oops", "503 Later", "200 OK"]);
    let project = Project::new();
    let hook = Hook { retry: 3, ..webhook(&server.url("/"), "POST", &[], None) };
    let outcome = project.run(&hook, &titled("a"));
    assert_eq!((outcome.failure(), outcome.tries), (None, 3));
    assert_eq!(server.received().len(), 3);

    let server = Server::answering(&["403 Forbidden\n\ninvalid_token s3cret-value\nmore"]);
    let project = project.var("TOKEN", "s3cret-value");
    let hook = Hook { retry: 3, ..webhook(&server.url("/?t=${TOKEN}"), "POST", &[], None) };
    let outcome = project.run(&hook, &titled("a"));
    assert_eq!((outcome.failure(), outcome.tries), (Some(&Failure::Status(403)), 1));
    assert_eq!(outcome.said.as_deref(), Some("invalid_token ${TOKEN}"));

    let server = Server::answering(&["500 Oops"]);
    let hook = Hook { retry: 1, ..webhook(&server.url("/"), "POST", &[], None) };
    let outcome = project.run(&hook, &titled("a"));
    assert_eq!((outcome.failure(), outcome.tries), (Some(&Failure::Status(500)), 2));
}

#[test]
fn no_redirect_is_followed() {
    let elsewhere = Server::answering(&["200 OK"]);
    let server = Server::answering(&[&format!("302 Found\r\nLocation: {}", elsewhere.url("/"))]);
    let hook = webhook(&server.url("/"), "POST", &[("X-Token", "t")], None);
    assert_eq!(Project::new().run(&hook, &titled("a")).failure(), Some(&Failure::Status(302)));
    assert!(elsewhere.received().is_empty());
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let (url, _listener) = Server::silent();
    let hook = Hook { timeout: Duration::from_millis(300), ..webhook(&url, "POST", &[], None) };
    let begin = Instant::now();
    let outcome = Project::new().run(&hook, &titled("a"));
    assert_eq!(outcome.failure(), Some(&Failure::TimedOut(Duration::from_millis(300))));
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn what_cannot_be_sent_is_reported_without_its_secrets() {
    let project = Project::new()
        .var("URL", "http://127.0.0.1:1/s3cret")
        .var("BAD", "not a url s3cret")
        .var("CR", "a\r\ns3cret");
    for (hook, message) in [
        (webhook("${URL}", "POST", &[], None), "the server could not be reached: connection refused"),
        (webhook("${BAD}", "POST", &[], None), "the request is not possible: the URL is not one"),
        (webhook("ftp://h/", "POST", &[], None), "the request is not possible: the URL must begin with http"),
        (webhook("http://h/", "GET", &[], Some("x")), "the request is not possible: GET has no body"),
        (webhook("http://h/", "POST", &[("X", "${CR}")], None), "the request is not possible: headers.X has"),
        (webhook("http://h/${NOPE}", "POST", &[], None), "url: the variable NOPE is not set"),
    ] {
        let outcome = project.run(&hook, &titled("a"));
        let failure = outcome.failure().unwrap().to_string();
        assert!(failure.starts_with(message), "{failure}");
    }
    assert!(!project.log_text().contains("s3cret"));
}

#[test]
fn a_preview_shows_placeholders_filled_and_variables_as_written() {
    let project = Project::new();
    let log = project.log();
    let hook = webhook("https://h/${TOKEN}?k={{task.key}}", "POST", &[("A", "${TOKEN}")], None);
    let shown = preview(&hook, &titled("a"), &project.environment(&log)).unwrap();
    assert_eq!((&shown["url"], &shown["method"]), (&"https://h/${TOKEN}?k=F001".into(), &"POST".into()));
}
