//! One connection to one server: socket, encryption, protocol.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::fd::{AsFd, OwnedFd};
use rustls::pki_types::ServerName;
use tenure_core::Error;
use tenure_core::error::Advice;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{Client, NoTls};

use crate::address::{Address, Server};
use crate::error::Failure;
use crate::sys;
use crate::tls::{self, TlsMode};

/// The request to encrypt the connection.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
/// The peer counts as gone if data stays unacknowledged for this long.
const SILENCE: Duration = Duration::from_secs(10);

/// The protocol's state machine, which has to be polled for anything to happen on the socket.
pub(crate) type Protocol = tokio_postgres::Connection<Wire, NoTlsStream>;

/// A connection, and the process id that the server sent when it began.
pub(crate) struct Connected {
    pub(crate) client: Client,
    pub(crate) connection: Protocol,
    /// For waiting until there is something to read.
    pub(crate) socket: OwnedFd,
    pub(crate) given_pid: i32,
}

pub(crate) async fn connect(address: &Address, server: Server<'_>) -> Result<Connected, Failure> {
    match tokio::time::timeout(address.connect_limit, open(address, server)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failure::Silent(address.connect_limit)),
    }
}

async fn open(address: &Address, server: Server<'_>) -> Result<Connected, Failure> {
    let port = server.port;
    // Whether a password that the server can read may be sent.
    let confidential;
    let (stream, socket): (Box<dyn Socket>, OwnedFd) = match sys::socket_folder(server.host) {
        None => {
            let name = sys::host_text(server.host);
            let stream = match server.address {
                Some(address) => TcpStream::connect((address, port)).await?,
                None => TcpStream::connect((name.as_str(), port)).await?,
            };
            notice_silence(&stream)?;
            let socket = stream.as_fd().try_clone_to_owned()?;
            let is_local = stream.peer_addr()?.ip().to_canonical().is_loopback();
            confidential = is_local || tls::verifies(address.tls, address.root_certificate.as_deref());
            (encrypted(address, &name, stream).await?, socket)
        }
        Some(folder) => {
            confidential = true;
            sys::connect_to_socket(&folder.join(format!(".s.PGSQL.{port}"))).await?
        }
    };
    let greeted = Arc::new(Greeting::default());
    let wire =
        Wire { socket: stream, greeting: Some(Vec::new()), confidential, greeted: Arc::clone(&greeted) };
    let connected = address.config_for(server).connect_raw(wire, NoTls).await;
    if greeted.wants_readable_password.load(Ordering::Relaxed) {
        return Err(Failure::Refused(readable_password(address)));
    }
    let (client, connection) = connected?;
    Ok(Connected { client, connection, socket, given_pid: greeted.pid.load(Ordering::Relaxed) })
}

fn readable_password(address: &Address) -> Error {
    Error::Store {
        message: format!(
            "{address} asks for the password in clear text or as MD5, and its identity is not verified"
        ),
        advice: Advice::note(
            "let the server use scram-sha-256, or verify it with ?sslmode=verify-full in store.url",
        ),
    }
}

/// Sends data without delay, and detects a peer that is gone.
fn notice_silence(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sys::notice_silence(stream, SILENCE)
}

async fn encrypted(address: &Address, name: &str, mut stream: TcpStream) -> Result<Box<dyn Socket>, Failure> {
    if address.tls == TlsMode::Disable {
        return Ok(Box::new(stream));
    }
    stream.write_all(&SSL_REQUEST).await?;
    let mut answer = [0];
    stream.read_exact(&mut answer).await?;
    match answer {
        [b'S'] => {
            let config = tls::client_config(address.tls, address.root_certificate.as_deref())
                .map_err(Failure::Refused)?;
            let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "the host's name cannot be verified");
            let name = ServerName::try_from(name.to_owned()).map_err(|_| wrong())?;
            let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
            Ok(Box::new(connector.connect(name, stream).await.map_err(Failure::Untrusted)?))
        }
        [b'N'] if address.tls == TlsMode::Prefer => Ok(Box::new(stream)),
        [b'N'] => Err(Failure::Plain),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "this is not a PostgreSQL server").into()),
    }
}

pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Socket for S {}

/// Authentication requests whose answer contains the password in a form that the server, or a program in its place,
/// could use elsewhere.
const CLEAR_TEXT: u32 = 3;
const MD5: u32 = 5;

/// What the server sent before the first query.
#[derive(Default)]
struct Greeting {
    /// The process id in the server's greeting. If it differs from that of the process that runs the queries, the connection
    /// goes through a pooler.
    pid: AtomicI32,
    /// It asked for a password in clear text or as MD5 on a connection that is not confidential.
    wants_readable_password: AtomicBool,
}

/// The socket. It also inspects the server's greeting, and ends the connection before a password is sent that must not
/// be sent.
pub(crate) struct Wire {
    socket: Box<dyn Socket>,
    greeting: Option<Vec<u8>>,
    confidential: bool,
    greeted: Arc<Greeting>,
}

impl Wire {
    /// False if the connection must be ended.
    fn read_greeting(&mut self, bytes: &[u8]) -> bool {
        let Some(received) = &mut self.greeting else { return true };
        received.extend_from_slice(bytes);
        // Each message is a letter and a length that includes itself.
        while let [letter, a, b, c, d, body @ ..] = received.as_slice() {
            let length = usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).unwrap_or(usize::MAX);
            let end = length.saturating_add(1);
            if received.len() < end {
                return true;
            }
            match (letter, body) {
                (b'R', [p, q, r, s, ..]) if !self.confidential => {
                    if matches!(u32::from_be_bytes([*p, *q, *r, *s]), CLEAR_TEXT | MD5) {
                        self.greeted.wants_readable_password.store(true, Ordering::Relaxed);
                        return false;
                    }
                }
                (b'K', [p, q, r, s, ..]) => {
                    self.greeted.pid.store(i32::from_be_bytes([*p, *q, *r, *s]), Ordering::Relaxed);
                }
                _ => {}
            }
            if matches!(letter, b'K' | b'Z' | b'E') {
                self.greeting = None;
                return true;
            }
            received.drain(..end);
        }
        true
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, buf))?;
        if self.greeting.is_some() && !self.read_greeting(buf.filled().get(before..).unwrap_or_default()) {
            return Poll::Ready(Err(io::ErrorKind::PermissionDenied.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
