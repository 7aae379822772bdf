//! A TCP proxy in front of a server, with which a test can cut connections.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// The texts by which a commit is recognized, even if other statements follow.
const COMMITS: [&[u8]; 2] = [b"COMMIT;", b"COMMIT\0"];
const LENGTH: usize = 7;
const HOLD_BEFORE: usize = Cut::HoldBefore as usize;
const HOLD_AFTER: usize = Cut::HoldAfter as usize;

/// What happens to a connection that commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Never,
    /// The connection is cut before the commit is sent to the server.
    Before,
    /// The commit is sent to the server, and the connection is cut before its answer.
    After,
    /// The commit is not sent to the server. The connection stays open, and nothing more passes.
    HoldBefore,
    /// The commit is sent to the server. The connection stays open, and nothing more passes, not even the answer.
    HoldAfter,
}

#[derive(Debug, Default)]
struct ProxyState {
    /// A [`Cut`].
    cut: AtomicUsize,
    /// Only every `every`th commit is cut; 0 counts as 1.
    every: AtomicU64,
    commits: AtomicU64,
    asks: AtomicU64,
    cuts: AtomicU64,
    refusals: AtomicU64,
    closed: AtomicBool,
    held: AtomicBool,
    frozen: AtomicBool,
    /// Weak, because a long test opens thousands of connections.
    open: Mutex<Vec<Weak<TcpStream>>>,
}

#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: Arc<ProxyState>,
}

impl Proxy {
    /// A proxy in front of the server at this port on loopback.
    pub fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(ProxyState::default());
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                while shared.held.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                let is_open = !shared.closed.load(Ordering::SeqCst);
                let reached = is_open.then(|| TcpStream::connect(("127.0.0.1", server)).ok()).flatten();
                let Some(server) = reached else {
                    shared.refusals.fetch_add(1, Ordering::SeqCst);
                    continue;
                };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let (client, server) = (Arc::new(client), Arc::new(server));
                let mut open = shared.open.lock().unwrap();
                open.retain(|stream| stream.strong_count() > 0);
                open.extend([Arc::downgrade(&client), Arc::downgrade(&server)]);
                drop(open);
                let (from, to) = (Arc::clone(&server), Arc::clone(&client));
                let silenced = Arc::new(AtomicBool::new(false));
                let (state, silent) = (Arc::clone(&shared), Arc::clone(&silenced));
                let asked = Arc::clone(&state);
                std::thread::spawn(move || ask(&client, &server, &asked, &silenced));
                std::thread::spawn(move || answer(&from, &to, &state, &silent));
            }
        });
        Self { port, state }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts each `every`th commit from now on.
    pub fn cut(&self, how: Cut, every: u64) {
        self.state.every.store(every, Ordering::SeqCst);
        self.state.cut.store(how as usize, Ordering::SeqCst);
    }

    /// The number of reads from clients. It equals their round trips as long as no request is longer than a packet.
    pub fn asks(&self) -> u64 {
        self.state.asks.load(Ordering::SeqCst)
    }

    /// Commits that were cut or held.
    pub fn cuts(&self) -> u64 {
        self.state.cuts.load(Ordering::SeqCst)
    }

    /// New connections are accepted and get no answer until [`Proxy::release`].
    pub fn hold(&self) {
        self.state.held.store(true, Ordering::SeqCst);
    }

    pub fn release(&self) {
        self.state.held.store(false, Ordering::SeqCst);
    }

    /// Connections that did not reach the server, because it or the proxy was closed.
    pub fn refusals(&self) -> u64 {
        self.state.refusals.load(Ordering::SeqCst)
    }

    /// Closes all connections, and every new one as soon as it is accepted, so that clients notice it.
    pub fn close(&self) {
        self.state.closed.store(true, Ordering::SeqCst);
        for stream in self.state.open.lock().unwrap().drain(..).filter_map(|stream| stream.upgrade()) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Discards everything that clients send from now on. The connections stay open, as if packets were lost.
    pub fn freeze(&self) {
        self.state.frozen.store(true, Ordering::SeqCst);
    }

    pub fn open(&self) {
        self.state.closed.store(false, Ordering::SeqCst);
    }
}

fn ask(mut client: &TcpStream, mut server: &TcpStream, state: &ProxyState, silenced: &AtomicBool) {
    let mut tail: Vec<u8> = Vec::new();
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        if state.frozen.load(Ordering::SeqCst) {
            continue;
        }
        let said = &buffer[..count];
        state.asks.fetch_add(1, Ordering::SeqCst);
        tail.extend_from_slice(said);
        let commits = tail.windows(LENGTH).any(|window| COMMITS.contains(&window));
        let keep = tail.len().min(LENGTH - 1);
        tail.drain(..tail.len() - keep);
        if commits {
            tail.clear();
            let number = state.commits.fetch_add(1, Ordering::SeqCst) + 1;
            let chosen = number.is_multiple_of(state.every.load(Ordering::SeqCst).max(1));
            match state.cut.load(Ordering::SeqCst) {
                1 if chosen => {
                    state.cuts.fetch_add(1, Ordering::SeqCst);
                    break;
                }
                2 if chosen => {
                    state.cuts.fetch_add(1, Ordering::SeqCst);
                    silenced.store(true, Ordering::SeqCst);
                    if server.write_all(said).is_ok() {
                        // A varying delay, so that the cut comes sometimes before and sometimes after the
                        // commit.
                        std::thread::sleep(Duration::from_millis(number % 4));
                    }
                    break;
                }
                held @ (HOLD_BEFORE | HOLD_AFTER) if chosen => {
                    silenced.store(true, Ordering::SeqCst);
                    if held == HOLD_BEFORE {
                        state.cuts.fetch_add(1, Ordering::SeqCst);
                    } else if server.write_all(said).is_err() {
                        break;
                    }
                    // Discards everything until the client is gone.
                    while let Ok(1..) = client.read(&mut buffer) {}
                    break;
                }
                _ => {}
            }
        }
        if server.write_all(said).is_err() {
            break;
        }
    }
    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
}

fn answer(mut server: &TcpStream, mut client: &TcpStream, state: &ProxyState, silenced: &AtomicBool) {
    let mut buffer = [0; 16 * 1024];
    let mut is_held = false;
    while let Ok(count @ 1..) = server.read(&mut buffer) {
        if silenced.load(Ordering::SeqCst) {
            if !is_held && state.cut.load(Ordering::SeqCst) == HOLD_AFTER {
                // The server has answered, so it has committed.
                is_held = true;
                state.cuts.fetch_add(1, Ordering::SeqCst);
            }
        } else if client.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
}
