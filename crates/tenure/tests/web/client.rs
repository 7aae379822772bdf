//! A server of the board, and a client that sends exactly the headers that a test gives it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::Signal;
use tenure_testkit::cli::{HANG, Project, Sandbox, processes, until};

use crate::SUITE;

/// A project `shop` with these tasks.
pub(crate) fn shop(tasks: &[&str]) -> Project {
    let project = Sandbox::new(SUITE).project("shop");
    for title in tasks {
        project.ok(&["tasks", "add", title]);
    }
    project
}

pub(crate) struct Server {
    pub(crate) child: Child,
    /// The exact name with the port, as browsers use it.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The code of the printed link.
    pub(crate) code: String,
    lines: Receiver<String>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer: its status, its head in lower case, and its body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")))
    }
}

/// A signed-in browser.
pub(crate) struct Browser<'s> {
    pub(crate) server: &'s Server,
    pub(crate) cookie: String,
    /// The project's name in addresses.
    pub(crate) project: String,
    pub(crate) csrf: String,
}

pub(crate) type Headers<'h> = &'h [(&'h str, &'h str)];

impl Server {
    pub(crate) fn start(project: &Project, more: &[&str]) -> Self {
        Self::of(project.command(&[&["web"], more].concat()))
    }

    /// Starts it and waits for the link.
    pub(crate) fn of(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (send, lines) = channel();
        let output = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let mut said = Vec::new();
        let link = loop {
            let line = lines.recv_timeout(HANG).unwrap_or_else(|_| panic!("no link: {said:?}"));
            if let Some((_, link)) = line.split_once("within a minute: http://") {
                break link.to_owned();
            }
            said.push(line);
        };
        let (host, code) = link.split_once("/login#").unwrap();
        let port = host.rsplit(':').next().unwrap().parse().unwrap();
        Self { child, host: host.to_owned(), port, code: code.to_owned(), lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn end(mut self) {
        processes::signal(self.child.id(), Signal::TERM);
        assert!(self.child.wait().unwrap().success());
        let left: Vec<String> = self.lines.try_iter().collect();
        assert!(left.iter().all(|line| !line.contains("panicked")), "{left:?}");
    }

    /// Sends one request and leaves the connection open. A header with an empty value is left out.
    pub(crate) fn send(&self, method: &str, path: &str, headers: Headers<'_>, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        let length = body.len().to_string();
        let usual = [("Host", self.host.as_str()), ("Content-Length", &length)];
        let is_given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let usual = usual.iter().filter(|(name, _)| !is_given(name));
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in usual.chain(headers).filter(|(_, value)| !value.is_empty()) {
            head = format!("{head}{name}: {value}\r\n");
        }
        // The server may answer before it has read everything.
        let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
        stream
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: Headers<'_>, body: &str) -> Reply {
        let mut stream = self.send(method, path, &[headers, &[("Connection", "close")]].concat(), body);
        let mut bytes = Vec::new();
        // The connection may be reset after the answer, if the server has not read everything.
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
        let status = head[9..12].parse().unwrap();
        let body = if head.to_lowercase().contains("transfer-encoding: chunked") {
            joined(body)
        } else {
            body.to_owned()
        };
        Reply { status, head: head.to_lowercase().replace("\r\n", "\n"), body }
    }

    pub(crate) fn get(&self, path: &str, headers: Headers<'_>) -> Reply {
        self.ask("GET", path, headers, "")
    }

    pub(crate) fn sign_in(&self) -> Browser<'_> {
        let reply = self.ask("POST", "/login", &[FORM], &format!("code={}", self.code));
        assert_eq!(reply.status, 200, "{reply:?}");
        let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        self.browser(cookie)
    }

    /// A browser with this cookie, at the server's project.
    pub(crate) fn browser(&self, cookie: String) -> Browser<'_> {
        let front = self.get("/", &[("Cookie", &cookie)]);
        let to = front.header("location").unwrap_or_else(|| panic!("{front:?}")).to_owned();
        let project = to.trim_start_matches("/p/").trim_end_matches('/').to_owned();
        let page = self.get(&to, &[("Cookie", &cookie)]);
        assert_eq!(page.status, 200, "{page:?}");
        let csrf = attribute(&page.body, "data-csrf").unwrap_or_default();
        Browser { server: self, cookie, project, csrf }
    }
}

pub(crate) const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// The body of an answer that was sent in chunks.
fn joined(mut text: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        if size == 0 || rest.len() < size {
            break;
        }
        whole.push_str(&rest[..size]);
        text = rest[size..].trim_start_matches("\r\n");
    }
    whole
}

/// The value of the first such attribute.
pub(crate) fn attribute(page: &str, name: &str) -> Option<String> {
    let (_, rest) = page.split_once(&format!("{name}=\""))?;
    rest.split('"').next().map(str::to_owned)
}

/// The value of the first hidden field with this name.
pub(crate) fn field(page: &str, name: &str) -> String {
    let (_, rest) =
        page.split_once(&format!("name=\"{name}\"")).unwrap_or_else(|| panic!("no {name}: {page}"));
    attribute(rest, "value").unwrap()
}

impl Browser<'_> {
    pub(crate) fn page(&self, below: &str) -> Reply {
        self.server.get(&format!("/p/{}/{below}", self.project), &[("Cookie", &self.cookie)])
    }

    /// What the page of a task shows of its state, as fields of a form.
    pub(crate) fn seen(&self, key: &str) -> String {
        let page = self.page(&format!("t/{key}"));
        assert_eq!(page.status, 200, "{page:?}");
        let of = |name: &str| format!("{name}={}", field(&page.body, name));
        [of("task"), of("updatedAt"), of("fence")].join("&")
    }

    /// The headers of a form that a page of the server sends.
    pub(crate) fn form_headers(&self) -> Vec<(&'static str, String)> {
        vec![
            ("Cookie", self.cookie.clone()),
            ("Origin", format!("http://{}", self.server.host)),
            ("Sec-Fetch-Site", "same-origin".to_owned()),
            (FORM.0, FORM.1.to_owned()),
            ("X-Tenure-CSRF", self.csrf.clone()),
            ("X-Tenure-Script", "1".to_owned()),
        ]
    }

    pub(crate) fn post(&self, verb: &str, body: &str) -> Reply {
        let headers = self.form_headers();
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.server.ask("POST", &format!("/p/{}/do/{verb}", self.project), &headers, body)
    }

    /// Makes a change of a task as its page shows it, which must succeed.
    #[track_caller]
    pub(crate) fn change(&self, verb: &str, key: &str, more: &str) -> String {
        let reply = self.post(verb, &format!("{}&{more}", self.seen(key)));
        assert_eq!(reply.status, 200, "{verb}: {reply:?}");
        reply.body
    }

    /// Opens a stream and waits for its first event.
    pub(crate) fn stream(&self) -> BufReader<TcpStream> {
        self.stream_of("changes")
    }

    /// Opens a stream at this address of the project, and waits for its first event.
    pub(crate) fn stream_of(&self, below: &str) -> BufReader<TcpStream> {
        let headers = [("Cookie", self.cookie.as_str()), ("Sec-Fetch-Site", "same-origin")];
        let stream = self.server.send("GET", &format!("/p/{}/{below}", self.project), &headers, "");
        let mut reader = BufReader::new(stream);
        next_event(&mut reader);
        reader
    }
}

/// Reads events until there are no more for a while: a stream begins with some.
pub(crate) fn until_quiet(reader: &mut BufReader<TcpStream>) {
    reader.get_ref().set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
        line.clear();
    }
    reader.get_ref().set_read_timeout(Some(HANG)).unwrap();
}

/// The name of the next event of a stream.
pub(crate) fn next_event(reader: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    let mut name = None;
    until("an event arrives", || {
        line.clear();
        let read = reader.read_line(&mut line).unwrap();
        assert!(read > 0, "the stream has ended");
        name = line.trim_end().strip_prefix("event: ").map(str::to_owned).or(name.take());
        // Browsers ignore an event without data.
        name.is_some() && line.starts_with("data: ")
    });
    name.unwrap()
}
