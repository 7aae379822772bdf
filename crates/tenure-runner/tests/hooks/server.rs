//! A small HTTP server on a free loopback port, which gives the configured answers and records the requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

pub(crate) struct Server {
    address: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Server {
    /// Gives these answers (`500 Oops`, more header lines, an empty line, a body), one per request, and then repeats the
    /// last one.
    pub(crate) fn answering(answers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let answers: Vec<String> = answers.iter().map(|&answer| answer.to_owned()).collect();
        let seen = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
                let Some(request) = read(&stream) else { continue };
                let number = seen.lock().unwrap().len();
                seen.lock().unwrap().push(request);
                let answer = answers.get(number).or(answers.last()).unwrap();
                let (status, body) = answer.split_once("\n\n").unwrap_or((answer, ""));
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let _ = (&stream).write_all(format!("{head}{body}").as_bytes());
            }
        });
        Self { address, received }
    }

    /// Accepts requests and never answers.
    pub(crate) fn silent() -> (String, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        (format!("http://{}/", listener.local_addr().unwrap()), listener)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

fn read(stream: &TcpStream) -> Option<Received> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut headers = Vec::new();
    for _ in 0..100 {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let mut body = vec![0; length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(Received { line: line.trim_end().to_owned(), headers, body: String::from_utf8(body).ok()? })
}
