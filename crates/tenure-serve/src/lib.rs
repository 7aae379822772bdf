//! tenure over MCP, so that an agent can hold work without a shell.
//!
//! Each connection is a holder: its first call registers an agent named after the client. While the client is connected, a
//! thread of this server renews its leases; if one is lost, the next answer reports it. When the client disconnects, the
//! renewals stop and its leases are released (or expire, as configured). A server on standard input ends with its client.
//!
//! This crate implements the protocol, sessions, waiting and renewal. The core has the rules, and the binary implements
//! the requests through the [`RequestHandler`] trait. The async runtime exists in this crate only, on a separate thread
//! that [`run`] starts.
//!
//! Arguments are parsed and checked before a request reaches the store:
//!
//! ```
//! use std::time::Duration;
//!
//! assert_eq!(tenure_serve::ttl(Some("10m")), Ok(Some(Duration::from_secs(600))));
//! assert!(tenure_serve::ttl(Some("ten minutes")).is_err());
//! ```

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tenure_runner::Execution;
use tokio_util::sync::CancellationToken;

mod answer;
mod call;
mod client_leases;
mod connection;
mod connections;
mod http;
mod lines;
mod pages;
mod parent;
mod request_handler;
mod session;
mod stdio;
mod sys;
mod tools;
mod waiting;
#[cfg(feature = "web")]
pub mod web;

pub use answer::{ExplainAnswer, HintJson, InboxAnswer, StatusAnswer};
pub use call::{
    Call, Claim, Explain, FinishOutcome, FinishTask, GetStatus, GetTask, ListTasks, ReadInbox, ReleaseTask,
    RenewLease, SendMessage, ttl,
};
pub use http::Http;
pub use pages::Page;
pub use request_handler::{Effect, Refusal, Reply, RequestHandler, Step};
pub use session::Session;

use client_leases::ClientLeases;
use connection::Shared;
use session::Roster;

/// How clients connect to the server.
#[derive(Debug)]
pub enum Transport {
    /// Standard input and output, for one client: the parent process.
    Stdio,
    /// HTTP, for any number of clients.
    Http(Http),
}

/// Serves until the client disconnects or the process is asked to stop. Requests run on the calling thread. The leases
/// of clients are renewed every `interval` (`runners.heartbeatInterval`).
pub fn run(
    handler: &mut dyn RequestHandler,
    exec: Execution<'_>,
    interval: Duration,
    transport: Transport,
) -> io::Result<()> {
    let (leases, woken) = ClientLeases::new(interval)?;
    let roster = Arc::new(Roster::default());
    let (queue, requests) = request_handler::queue();
    let shared = Arc::new(Shared {
        queue,
        leases: Arc::clone(&leases),
        roster: Arc::clone(&roster),
        shutdown: CancellationToken::new(),
        numbers: AtomicU64::new(1),
        by_session: matches!(transport, Transport::Http(_)),
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::scope(|scope| {
        let renewing = Arc::clone(&leases);
        scope.spawn(move || renewing.run(&woken, exec));
        let serving = scope.spawn(move || match transport {
            Transport::Stdio => runtime.block_on(stdio::serve(shared)),
            Transport::Http(http) => runtime.block_on(http::serve(shared, http)),
        });
        // Returns when the runtime and all its tasks have dropped their senders.
        requests.serve(handler);
        for session in roster.all() {
            connection::end(handler, &leases, &session);
        }
        leases.stop();
        serving.join().unwrap_or_else(|_| Err(io::Error::other("the server has failed")))
    })
}
