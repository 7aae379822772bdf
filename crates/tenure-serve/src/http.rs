//! Clients over HTTP: loopback only, with a token. Each session is a separate agent.
//!
//! A client is connected while one of its requests or streams is open. If its stream breaks, it may reconnect within
//! [`LINGER`]. A client that never opened a stream is connected until it has been silent for [`Http::quiet`].

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use crate::connection::{Connection, Shared};
use crate::connections::{self, Limits};
use crate::lines::LONGEST;
use crate::session::lock;

/// How long a client whose stream broke may take to reconnect.
const LINGER: Duration = Duration::from_secs(15);
const SWEEP: Duration = Duration::from_secs(2);
/// How often an open stream sends a ping, to detect a client that is gone.
const PING: Duration = Duration::from_secs(5);
/// The most connections that have presented the token.
const MOST_CONNECTIONS: usize = 128;
/// The most connections that have not presented the token yet, and how long they may take to do so.
const MOST_NEWCOMERS: usize = 32;
const NEWCOMER: Duration = Duration::from_secs(2);
const MOST_SESSIONS: usize = 64;
/// How long the body of a request may take. Clients are on this machine.
const SLOWEST_BODY: Duration = Duration::from_secs(10);
/// How long the server waits, before it ends, for the last answers to be sent.
const LAST_WRITE: Duration = Duration::from_millis(200);

const SESSION: &str = "mcp-session-id";
pub(crate) const PATH: &str = "/mcp";

/// Where to listen, and the token that clients present.
#[derive(Debug)]
pub struct Http {
    /// Bound to a loopback address.
    pub listener: TcpListener,
    pub token: String,
    /// A client without a stream that was silent for this long is disconnected.
    pub quiet: Duration,
}

type HttpResponse = Response<BoxBody<Bytes, Infallible>>;

struct HttpServer {
    mcp: StreamableHttpService<Connection, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    presence: Arc<Presence>,
    token: String,
}

pub(crate) async fn serve(shared: Arc<Shared>, http: Http) -> io::Result<()> {
    let mut config = SessionConfig::default();
    // [`Presence`] decides when a session ends, not the time since its last message.
    config.keep_alive = None;
    let mut sessions = LocalSessionManager::default();
    sessions.session_config = config;
    let sessions = Arc::new(sessions);
    let loopback = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];
    let settings = StreamableHttpServerConfig::default()
        .with_allowed_origins(loopback)
        .with_sse_keep_alive(Some(PING))
        .with_max_request_body_bytes(LONGEST)
        .with_cancellation_token(shared.shutdown.child_token());
    let factory = {
        let shared = Arc::clone(&shared);
        move || Ok(Connection::new(&shared))
    };
    let server = Arc::new(HttpServer {
        mcp: StreamableHttpService::new(factory, Arc::clone(&sessions), settings),
        sessions,
        presence: Arc::default(),
        token: http.token,
    });
    let sweeper = tokio::spawn(sweep(Arc::clone(&server), http.quiet));
    let limits = Limits { connections: MOST_CONNECTIONS, newcomers: MOST_NEWCOMERS, newcomer_time: NEWCOMER };
    let served = connections::serve(vec![http.listener], limits, move |authorized| {
        let server = Arc::clone(&server);
        service_fn(move |request| {
            let (server, authorized) = (Arc::clone(&server), Arc::clone(&authorized));
            async move {
                if server.is_authorized(&request) {
                    authorized.notify_one();
                }
                Ok::<_, Infallible>(server.answer(request).await)
            }
        })
    });
    let served = served.await;
    sweeper.abort();
    shared.shutdown.cancel();
    tokio::time::sleep(LAST_WRITE).await;
    served
}

impl HttpServer {
    async fn answer(&self, request: Request<Incoming>) -> HttpResponse {
        if request.uri().path() != PATH {
            return refuse(StatusCode::NOT_FOUND, "there is only /mcp");
        }
        if !self.is_authorized(&request) {
            let mut reply = refuse(StatusCode::UNAUTHORIZED, "the token is missing or wrong");
            reply.headers_mut().insert(WWW_AUTHENTICATE, http::HeaderValue::from_static("Bearer"));
            return reply;
        }
        let session = session_of(request.headers());
        if session.is_none() && self.sessions.sessions.read().await.len() >= MOST_SESSIONS {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "there are too many sessions");
        }
        let streams = request.method() == Method::GET;
        let json = is_json(request.headers());
        let open = session.map(|id| self.presence.enter(&id, streams));
        let request = match whole(request).await {
            Ok(request) => request,
            Err(refused) => return refused,
        };
        let reply = self.mcp.handle(request).await;
        if json && reply.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            // The content type is right, so the body is malformed.
            return parse_error();
        }
        let open = open.or_else(|| session_of(reply.headers()).map(|id| self.presence.enter(&id, false)));
        // The client counts as connected until it has read the answer.
        reply.map(|body| {
            let kept = move |frame| {
                let _ = &open;
                frame
            };
            body.map_frame(kept).boxed()
        })
    }

    fn is_authorized(&self, request: &Request<Incoming>) -> bool {
        has_token(request.headers(), &self.token)
    }
}

/// Whether a request presents this bearer token, compared in constant time.
pub(crate) fn has_token(headers: &http::HeaderMap, token: &str) -> bool {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some((scheme, given)) = given.and_then(|value| value.split_once(' ')) else { return false };
    scheme.eq_ignore_ascii_case("bearer") && is_equal(given.trim(), token)
}

/// Compares two secrets in constant time.
pub(crate) fn is_equal(given: &str, secret: &str) -> bool {
    let (given, secret) = (given.as_bytes(), secret.as_bytes());
    given.len() == secret.len() && given.iter().zip(secret).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// Reads the body, within limits for its size and time.
async fn whole(request: Request<Incoming>) -> Result<Request<Full<Bytes>>, HttpResponse> {
    let (head, body) = request.into_parts();
    match tokio::time::timeout(SLOWEST_BODY, Limited::new(body, LONGEST).collect()).await {
        Ok(Ok(body)) => Ok(Request::from_parts(head, Full::new(body.to_bytes()))),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, "the message is too long"))
        }
        Ok(Err(_)) => Err(refuse(StatusCode::BAD_REQUEST, "the message is not complete")),
        Err(_) => Err(refuse(StatusCode::REQUEST_TIMEOUT, "the message takes too long")),
    }
}

fn session_of(headers: &http::HeaderMap) -> Option<String> {
    headers.get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn is_json(headers: &http::HeaderMap) -> bool {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    given.is_some_and(|given| given.trim_start().to_ascii_lowercase().starts_with("application/json"))
}

/// The JSON-RPC error for a body that is not JSON or not a message.
fn parse_error() -> HttpResponse {
    const TEXT: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#;
    let mut reply = refuse(StatusCode::BAD_REQUEST, TEXT);
    reply.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    reply
}

fn refuse(status: StatusCode, why: &'static str) -> HttpResponse {
    let mut reply = Response::new(Full::new(Bytes::from_static(why.as_bytes())).boxed());
    *reply.status_mut() = status;
    reply
}

/// Closes the sessions of clients that have disconnected.
async fn sweep(server: Arc<HttpServer>, quiet: Duration) {
    loop {
        tokio::time::sleep(SWEEP).await;
        for id in server.presence.gone(quiet) {
            let _ = server.sessions.close_session(&id.into()).await;
        }
    }
}

/// The open requests of each session.
#[derive(Debug, Default)]
struct Presence(Mutex<HashMap<String, ClientPresence>>);

#[derive(Debug, Clone, Copy)]
struct ClientPresence {
    open: usize,
    /// The client has opened a stream. Without an open stream it then counts as gone.
    streamed: bool,
    last: Instant,
}

/// Counts one open request or stream until it is dropped.
#[derive(Debug)]
struct OpenRequest {
    presence: Arc<Presence>,
    id: String,
}

impl Presence {
    fn enter(self: &Arc<Self>, id: &str, streams: bool) -> OpenRequest {
        let mut all = lock(&self.0);
        // The number of entries is limited, because a client can invent any number of session ids.
        if all.len() < 4 * MOST_SESSIONS || all.contains_key(id) {
            let seen = ClientPresence { open: 0, streamed: false, last: Instant::now() };
            let seen = all.entry(id.to_owned()).or_insert(seen);
            seen.open += 1;
            seen.streamed |= streams;
            seen.last = Instant::now();
        }
        OpenRequest { presence: Arc::clone(self), id: id.to_owned() }
    }

    fn gone(&self, quiet: Duration) -> Vec<String> {
        let mut gone = Vec::new();
        lock(&self.0).retain(|id, seen| {
            let patience = if seen.streamed { LINGER.min(quiet) } else { quiet };
            let here = seen.open > 0 || seen.last.elapsed() < patience;
            if !here {
                gone.push(id.clone());
            }
            here
        });
        gone
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        if let Some(seen) = lock(&self.presence.0).get_mut(&self.id) {
            seen.open = seen.open.saturating_sub(1);
            seen.last = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_there_while_it_has_something_open_and_for_a_while_after() {
        let presence = Arc::new(Presence::default());
        let stream = presence.enter("a", true);
        let call = presence.enter("b", false);
        assert_eq!(presence.gone(Duration::ZERO), Vec::<String>::new());
        drop(call);
        assert_eq!(presence.gone(Duration::from_mins(1)), Vec::<String>::new());
        assert_eq!(presence.gone(Duration::ZERO), ["b"]);
        drop(stream);
        assert_eq!(presence.gone(Duration::ZERO), ["a"]);
    }
}
