//! The server as a process: its addresses, another one beside it, its children, and its end.

use std::io::{Read, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure_testkit::cli::{HANG, PATIENT, lacks_linux, processes, skip, until};

use crate::client::{Server, shop};

#[test]
fn the_name_leads_to_the_server_over_ipv6_as_well() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return skip("the web board over IPv6 needs ::1");
    }
    let shop = shop(&["One"]);
    let server = Server::start(&shop, &[]);
    let mut stream = TcpStream::connect((Ipv6Addr::LOCALHOST, server.port)).unwrap();
    stream.set_read_timeout(Some(HANG)).unwrap();
    let head = format!("GET /login HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.host);
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn a_second_server_of_a_project_has_a_name_and_sessions_of_its_own() {
    let shop = shop(&["One"]);
    let first = Server::start(&shop, &[]);
    let browser = first.sign_in();
    let second = Server::start(&shop, &[]);
    let cookie_name = |cookie: &str| cookie.split('=').next().unwrap().to_owned();
    let (host, cookie) = (first.host.clone(), browser.cookie.clone());
    let (other_host, other_cookie) = (second.host.clone(), second.sign_in().cookie);
    assert_ne!(first.port, second.port);
    assert_ne!(cookie_name(&cookie), cookie_name(&other_cookie));
    first.end();
    second.end();
    // Both are found again as they were.
    let first = Server::start(&shop, &[]);
    assert_eq!(first.host, host);
    assert_eq!(first.browser(cookie).page("").status, 200);
    let second = Server::start(&shop, &[]);
    assert_eq!(second.host, other_host);
    assert_eq!(second.browser(other_cookie).page("").status, 200);
}

#[test]
fn a_runner_that_has_ended_leaves_no_zombie() {
    if lacks_linux("a_runner_that_has_ended_leaves_no_zombie", "it reads /proc") {
        return;
    }
    let shop = shop(&[]);
    let agents = shop.agent_presets();
    shop.configure(&format!("{agents}{PATIENT}"));
    shop.task("W1", &["wait end"]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    assert_eq!(browser.post("start-runner", "").status, 200);
    shop.wait_until("W1", "in_progress");
    let runner = shop.runners()[0].clone();
    let reply = browser.post("stop-runner", &format!("runner={}", runner["id"].as_str().unwrap()));
    assert_eq!(reply.status, 200, "{reply:?}");
    let pid = u32::try_from(runner["pid"].as_u64().unwrap()).unwrap();
    until("the runner was reaped", || processes::state(pid).is_none());
}

#[test]
fn a_server_whose_store_does_not_answer_ends_in_time_and_at_a_second_signal_at_once() {
    let shop = shop(&["One"]);
    for signals in [1, 2] {
        let mut server = Server::start(&shop, &["--http", "0"]);
        let browser = server.sign_in();
        let held = shop.hold_writers();
        let body = browser.seen("T1");
        let headers = browser.form_headers();
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        // Both requests use the project's thread, so the second is answered only after the first.
        let _change = server.send("POST", &format!("/p/{}/do/skip", browser.project), &headers, &body);
        let cookie = [("Cookie", browser.cookie.as_str())];
        let page = server.send("GET", &format!("/p/{}/", browser.project), &cookie, "");
        page.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        assert!((&page).read(&mut [0; 16]).is_err(), "the store does not answer");
        let asked = Instant::now();
        processes::signal(server.child.id(), Signal::TERM);
        until("the server has ended", || {
            if signals == 2 && asked.elapsed() > Duration::from_millis(200) {
                processes::signal(server.child.id(), Signal::TERM);
            }
            server.child.try_wait().unwrap().is_some()
        });
        // The store's own patience is 10 seconds.
        let most = Duration::from_secs(if signals == 1 { 8 } else { 4 });
        assert!(asked.elapsed() < most, "{signals}: {:?}", asked.elapsed());
        drop(held);
    }
}
