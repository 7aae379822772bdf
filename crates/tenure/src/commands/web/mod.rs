//! `tenure web`: serves the board to a browser on this machine.

use std::io::{self, BufRead, ErrorKind, IsTerminal};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::ErrorCode;
use tenure_core::hints;
use tenure_core::text::escape_line;
use tenure_serve::web::{Address, Sessions, Web};

use crate::answer::Answer;
use crate::app::App;
use crate::atomic;
use crate::commands::runners::start::reap_later;
use crate::report::{CommandResult, Report};
use crate::sys;
use crate::text::Text;

mod handler;
mod metrics;
mod projects;
mod saved;
mod verbs;

use projects::MachineProjects;
use saved::SavedServer;

/// Serve the board to a browser on this machine
///
/// Only this machine can connect, and only with the printed link, which contains a single-use code that is valid for a minute.
/// Press Enter for another link. Numbers for Prometheus are at /metrics; their token is in the file whose path is printed.
///
/// Example: tenure web --open
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Listen on this loopback address or port (default: the last one, or any free one)
    #[arg(long, value_name = "ADDR", value_parser = crate::loopback::parse_address)]
    http: Option<SocketAddr>,
    /// Open the board in the browser
    #[arg(long)]
    open: bool,
    /// Show everything and change nothing
    #[arg(long)]
    read_only: bool,
}

/// How many free ports of one address are tried until one is also free at its counterpart.
const PORTS_TRIED: usize = 16;

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    if app.global.dry_run {
        return Err(Report::usage("`web` does not support --dry-run; use --read-only"));
    }
    let home = app.home()?;
    let start = app.start()?;
    let root = match app.find_from(&start) {
        Ok(project) => {
            let root = project.paths.root.clone();
            // Opened now, so that an error is reported here instead of on a page.
            drop(app.open_at(project)?);
            Some(root)
        }
        Err(report) if report.code == ErrorCode::NotInitialized && app.global.project.is_none() => None,
        Err(report) => return Err(report),
    };
    let slug = root.as_deref().map(projects::slug);
    let folder = home.join("web");
    let mut saved = SavedServer::take(&folder, slug.as_deref().unwrap_or("all"), app.env)
        .map_err(|e| Report::io(&e, ErrorCode::General, "lock a file in", &folder))?;
    let file = saved.path().to_owned();
    let (numeric, listeners) = listen(args.http, saved.port())?;
    let address = address_of(saved.name(), numeric);
    let metrics_token = saved.token().to_owned();
    saved.listens_on(numeric.port()).map_err(|e| Report::io(&e, ErrorCode::General, "write", &file))?;
    let sessions = Arc::new(sessions(app, saved));
    let link = Link { url: format!("http://{}", address.authority), sessions: Arc::clone(&sessions) };
    announce(app, &link, &file, args.open)?;
    let web = Web {
        listeners,
        address,
        sessions,
        metrics_token,
        read_only: args.read_only,
        home: slug,
        projects: Arc::new(MachineProjects::new(app, root)),
    };
    tenure_serve::web::run(web)
        .map_err(|error| Report::new(ErrorCode::General, format!("cannot serve: {error}")))?;
    Ok(None)
}

/// An address, and the listeners at it and at its counterpart.
type Bound = (SocketAddr, Vec<TcpListener>);

fn listen(wanted: Option<SocketAddr>, last: Option<u16>) -> CommandResult<Bound> {
    let local = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    // With the same port as before, open pages keep working.
    let earlier = last.filter(|_| wanted.is_none()).and_then(|port| bind(local(port)).ok());
    if let Some(bound) = earlier {
        return Ok(bound);
    }
    let address = wanted.unwrap_or_else(|| local(0));
    let is_taken = |bound: &io::Result<Bound>| matches!(bound, Err(e) if e.kind() == ErrorKind::AddrInUse);
    let mut bound = bind(address);
    for _ in 1..PORTS_TRIED {
        if address.port() != 0 || !is_taken(&bound) {
            break;
        }
        bound = bind(address);
    }
    bound.map_err(|e| cannot_listen(wanted, &e))
}

/// Listens at the address. The server's name may resolve to 127.0.0.1 or ::1, so for either of them both are used, with the
/// same port: otherwise another user of the machine could listen at the other one and receive codes and cookies.
fn bind(address: SocketAddr) -> io::Result<Bound> {
    let first = TcpListener::bind(address)?;
    let bound = first.local_addr()?;
    let counterpart: IpAddr = match address.ip() {
        IpAddr::V4(Ipv4Addr::LOCALHOST) => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::LOCALHOST) => Ipv4Addr::LOCALHOST.into(),
        _ => return Ok((bound, vec![first])),
    };
    match TcpListener::bind((counterpart, bound.port())) {
        Ok(second) => Ok((bound, vec![first, second])),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(error),
        // The machine has no such address, so no other program can use it either.
        Err(_) => Ok((bound, vec![first])),
    }
}

fn cannot_listen(address: Option<SocketAddr>, error: &io::Error) -> Report {
    let at = address.map(|address| format!(" on {address}")).unwrap_or_default();
    Report::new(ErrorCode::General, format!("cannot listen{at}: {error}")).hint(hints::choose_web_port())
}

/// Gives the server a unique name, because browsers send cookies to every port of a name, and agents start servers on other
/// ports. Uses the numeric address where such names do not resolve.
fn address_of(name: &str, numeric: SocketAddr) -> Address {
    let cookie = format!("tenure-{name}");
    let named = format!("tenure-{name}.localhost:{}", numeric.port());
    let is_loopback = |found: SocketAddr| found.ip().is_loopback();
    let resolves = sys::BROWSERS_KNOW_LOCALHOST
        || named.to_socket_addrs().is_ok_and(|mut found| found.len() > 0 && found.all(is_loopback));
    // Names below `localhost` resolve to 127.0.0.1 or ::1.
    let is_usual = ["127.0.0.1", "::1"].contains(&numeric.ip().to_string().as_str());
    let numeric = numeric.to_string();
    Address { authority: if resolves && is_usual { named } else { numeric.clone() }, numeric, cookie }
}

fn sessions(app: &App<'_>, saved: SavedServer) -> Sessions {
    let (ids, clock) = (Arc::clone(&app.env.ids), Arc::clone(&app.env.clock));
    let known = saved.sessions();
    Sessions::new(
        Box::new(move || format!("{}{}", ids.uuid(), ids.uuid()).replace('-', "")),
        Box::new(move |records| saved.keep(records)),
        Box::new(move || clock.now().as_millis()),
        known,
    )
}

/// Makes links that open a session.
#[derive(Debug, Clone)]
struct Link {
    url: String,
    sessions: Arc<Sessions>,
}

impl Link {
    /// The code is in the fragment after `#`, which browsers never send to a server.
    fn new_link(&self) -> String {
        format!("{}/login#{}", self.url, self.sessions.issue_code())
    }

    /// A page that submits a code by itself, for a browser to open. A link would be visible to other users among the browser's
    /// arguments.
    fn page(&self) -> String {
        format!(
            "<!doctype html>\n<meta charset=\"utf-8\">\n<title>tenure</title>\n\
             <form method=\"post\" action=\"{}/login\"><input type=\"hidden\" name=\"code\" value=\"{}\">\
             <button>Open the board</button></form>\n<script>document.forms[0].submit()</script>\n",
            self.url,
            self.sessions.issue_code()
        )
    }
}

fn announce(app: &mut App<'_>, link: &Link, file: &Path, open: bool) -> CommandResult<()> {
    let mut text = Text::new();
    text.line(format!("The board is at {}", link.url));
    if open {
        let page = file.with_extension("html");
        atomic::write_secret(&page, &link.page(), &app.env.ids.uuid())
            .map_err(|e| Report::io(&e, ErrorCode::General, "write", &page))?;
        match show_in_browser(app, &page) {
            Ok(()) => remove_later(page),
            Err(why) => {
                let _ = std::fs::remove_file(&page);
                text.line(format!("No browser could be started: {}", escape_line(&why)));
                text.line(format!("Open this link within a minute: {}", link.new_link()));
            }
        }
    } else {
        text.line(format!("Open this link within a minute: {}", link.new_link()));
    }
    text.line(format!("The token for {}/metrics is in {}", link.url, file.display()));
    app.printer.notice(&text);
    if io::stdin().is_terminal() {
        let mut text = Text::new();
        text.line("Press Enter for another link, Ctrl+C to end.");
        app.printer.notice(&text);
        print_links(link.clone());
    }
    Ok(())
}

/// Prints another link at each Enter.
fn print_links(link: Link) {
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            if line.is_err() {
                return;
            }
            let text = format!("{}\n", link.new_link());
            let _ = io::Write::write_all(&mut io::stderr(), text.as_bytes());
        }
    });
}

/// Removes the file once the code has expired.
fn remove_later(page: PathBuf) {
    std::thread::spawn(move || {
        std::thread::sleep(tenure_serve::web::CODE_LIFE);
        let _ = std::fs::remove_file(page);
    });
}

/// Starts the program of `BROWSER`, or the one that opens files.
fn show_in_browser(app: &App<'_>, page: &Path) -> Result<(), String> {
    let named = app.env.var("BROWSER").map(|names| names.split(':').next().unwrap_or_default());
    let program = named.filter(|name| !name.is_empty()).unwrap_or(sys::OPENER);
    let mut command = std::process::Command::new(program);
    command.arg(page).env_clear().envs(&app.env.vars);
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
    // An opener exits at once, a browser only when it is closed.
    reap_later(child);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_another_program_has_at_the_other_loopback_address_is_not_used() {
        let Ok(other) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else {
            return; // Without IPv6 there is no other address.
        };
        let port = other.local_addr().unwrap().port();
        let taken = bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        assert_eq!(taken.unwrap_err().kind(), ErrorKind::AddrInUse);
        let (address, listeners) = listen(None, Some(port)).unwrap();
        assert_ne!(address.port(), port);
        let ports: Vec<u16> = listeners.iter().map(|one| one.local_addr().unwrap().port()).collect();
        assert_eq!(ports, [address.port(); 2]);
    }

    #[test]
    fn another_loopback_address_has_no_name() {
        let usual = address_of("ab12", "127.0.0.1:7000".parse().unwrap());
        assert!(["tenure-ab12.localhost:7000", "127.0.0.1:7000"].contains(&usual.authority.as_str()));
        assert_eq!(address_of("ab12", "127.9.9.9:7000".parse().unwrap()).authority, "127.9.9.9:7000");
        assert_eq!((usual.numeric.as_str(), usual.cookie.as_str()), ("127.0.0.1:7000", "tenure-ab12"));
    }
}
