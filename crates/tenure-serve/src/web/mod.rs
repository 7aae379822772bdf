//! The board in a browser: pages of the projects of this machine, the changes that a person may make, and `/metrics`.
//!
//! Guaranteed: only this machine can connect, and pages are shown only to a browser with a session; see [`guard`] and
//! [`sessions`]. Pages are rendered from the model in `tenure_core::board` with escaping that cannot be switched off, so no
//! text of a task becomes markup. Reading works without the script; the script keeps a page up to date and sends forms without
//! leaving it.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

mod forms;
mod guard;
mod handler;
mod hub;
mod metrics;
mod pages;
mod routes;
mod sessions;
mod streams;

pub use guard::Address;
pub use handler::{
    Action, AttemptLog, Following, LogEntry, ProjectHandler, ProjectRow, Projects, Requests, Served,
    TaskChange, TaskPage,
};
pub use metrics::{HANDOFF_BOUNDS, Histogram, Metrics};
pub use sessions::{CODE_LIFE, MakeSecret, SaveSessions, SessionRecord, Sessions};

use crate::connections::{self, Limits};
use crate::sys::asked_to_stop;
use hub::Hub;
use routes::Site;

/// How the board is served.
pub struct Web {
    /// Bound to loopback addresses, with the same port.
    pub listeners: Vec<TcpListener>,
    pub address: Address,
    pub sessions: Arc<Sessions>,
    pub metrics_token: String,
    /// No change is offered or made.
    pub read_only: bool,
    /// The project that `/` shows; the list of all projects if there is none.
    pub home: Option<String>,
    pub projects: Arc<dyn Projects>,
}

impl std::fmt::Debug for Web {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Web").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Generous, because browsers open connections in advance and leave them idle.
const LIMITS: Limits = Limits { connections: 512, newcomers: 64, newcomer_time: Duration::from_secs(3) };

/// How long the threads of the projects may take to end. A store that does not answer must not keep the server
/// from ending.
const CLOSING: Duration = Duration::from_secs(5);

/// Serves until the process is asked to stop. Then returns when the projects are closed, after [`CLOSING`] at the latest, or at
/// once if it is asked again. The caller must then end the process.
pub fn run(web: Web) -> io::Result<()> {
    let Web { listeners, address, sessions, metrics_token, read_only, home, projects } = web;
    let hub = Arc::new(Hub::new(projects));
    let site = Site::new(address, sessions, metrics_token, read_only, home, Arc::clone(&hub));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let router = routes::router(Arc::new(site));
    let served = runtime.block_on(connections::serve(listeners, LIMITS, move |authorized| {
        routes::service(router.clone(), authorized)
    }));
    // Streams, requests and their watchers end with the executor, so no further request can arrive.
    runtime.shutdown_background();
    hub.close();
    let closing = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    closing.block_on(async {
        tokio::select! {
            () = hub.closed() => {}
            () = asked_to_stop() => {}
            () = tokio::time::sleep(CLOSING) => {}
        }
    });
    served
}
