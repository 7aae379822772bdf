//! Changes of other processes reach open pages, and a server that is started again is the same server.

use std::io::Read;
use std::time::{Duration, Instant};

use tenure_testkit::cli::{PATIENT, until};

use crate::client::{Server, next_event, shop, until_quiet};

#[test]
fn a_change_of_another_process_is_announced() {
    let shop = shop(&["One"]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    let mut stream = browser.stream();
    until_quiet(&mut stream);
    shop.ok(&["tasks", "add", "From elsewhere"]);
    let asked = Instant::now();
    assert_eq!(next_event(&mut stream), "changed");
    // Without a change, a page is made to read again after a minute.
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert!(browser.page("").body.contains("From elsewhere"));
}

#[test]
fn the_log_of_an_attempt_that_begins_after_the_page_was_opened_is_followed() {
    let shop = shop(&[]);
    let agents = shop.agent_presets();
    shop.configure(&format!("{agents}{PATIENT}"));
    shop.task("W1", &["mark begun", "wait go", "print more", "wait end"]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    let mut stream = browser.stream_of("changes?task=W1");
    assert_eq!(browser.post("start-runner", "").status, 200);
    shop.wait_for("begun");
    until_quiet(&mut stream);
    shop.give("go");
    let printed = Instant::now();
    assert_eq!(next_event(&mut stream), "changed");
    // Sooner than the next heartbeat, which would change the store as well.
    assert!(printed.elapsed() < Duration::from_secs(10), "{:?}", printed.elapsed());
    until("the page shows the line", || browser.page("t/W1").body.contains(">more</span>"));
    shop.ok(&["runners", "stop"]);
}

/// How often the threads of a process have gone to sleep.
fn sleeps(pid: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of_thread = |path: std::path::PathBuf| {
        // A thread may end meanwhile.
        let status = std::fs::read_to_string(path.join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.map_or(0, |line| line.trim().parse::<u64>().unwrap())
    };
    threads.map(|entry| of_thread(entry.unwrap().path())).sum()
}

#[test]
fn the_log_of_a_silent_agent_is_not_polled() {
    let shop = shop(&[]);
    let agents = shop.agent_presets();
    shop.configure(&format!("{agents}{PATIENT}"));
    shop.task("W1", &["print first", "mark begun", "wait end"]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    assert_eq!(browser.post("start-runner", "").status, 200);
    shop.wait_for("begun");
    let mut stream = browser.stream_of("changes?task=W1");
    assert_eq!(next_event(&mut stream), "changed");
    // Polling the size every 300 ms would be ten wake-ups in three seconds. The settings are checked every five
    // seconds.
    until("the server sleeps", || {
        let before = sleeps(server.pid());
        std::thread::sleep(Duration::from_secs(3));
        sleeps(server.pid()) - before < 6
    });
    shop.ok(&["runners", "stop"]);
}

#[test]
fn the_oldest_page_of_a_browser_makes_room_for_a_fifth() {
    let shop = shop(&["One"]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    let mut first = browser.stream();
    let others: Vec<_> = (0..4).map(|_| browser.stream()).collect();
    let mut event = next_event(&mut first);
    while event == "changed" {
        event = next_event(&mut first);
    }
    assert_eq!(event, "crowded");
    let mut rest = String::new();
    first.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("event: "), "the stream has ended: {rest}");
    drop(others);
}

#[test]
fn after_a_restart_the_same_cookie_opens_the_same_pages_at_the_same_address() {
    let shop = shop(&["One"]);
    let server = Server::start(&shop, &[]);
    let browser = server.sign_in();
    let (host, cookie) = (server.host.clone(), browser.cookie.clone());
    let stream = browser.stream();
    drop(stream);
    server.end();
    let server = Server::start(&shop, &[]);
    assert_eq!(server.host, host);
    let browser = server.browser(cookie);
    assert!(browser.page("").body.contains("One"));
    browser.change("skip", "T1", "");
    assert_eq!(shop.status("T1"), "skipped");
}
