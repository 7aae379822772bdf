//! tenure over MCP: any agent can hold work without a shell.
//!
//! A connection is a holder: its first call joins an agent named after the client. While the client is connected a thread
//! of this server renews what it holds; a lease that is lost all the same is told with the next answer. When the client is
//! gone, the renewing stops, what it held is let go (or expires, as configured), and a server of its own ends with it.
//!
//! The rules are the core's and the answers are the binary's, behind the [`Desk`] trait: here is the protocol, who is
//! connected, waiting and renewing. The async runtime lives in this crate only, on a thread of its own, and is started by
//! [`run`].
//!
//! What a client asks for is data before it is done, and checked before it reaches the store:
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

use tokio_util::sync::CancellationToken;

mod answer;
mod call;
mod client_leases;
mod desk;
mod handler;
mod http;
mod lines;
mod pages;
mod schema;
mod session;
mod signals;
mod stdio;
mod tools;
mod waiting;

pub use call::{
    AddTask, Call, Claim, Explain, FinishTask, GetStatus, GetTask, ListTasks, Outcome, ReadInbox,
    ReleaseTask, RenewLease, SendMessage, ttl,
};
pub use client_leases::HeartbeatOptions;
pub use desk::{Desk, Effect, Refusal, Reply, Step};
pub use http::Http;
pub use pages::Page;
pub use session::Session;

use client_leases::ClientLeases;
use handler::Shared;
use session::Roster;

/// How clients reach us.
#[derive(Debug)]
pub enum Way {
    /// One client, our parent.
    Stdio,
    /// Many.
    Http(Http),
}

/// Serves until the client is gone, or somebody ends it. The calling thread is the desk.
pub fn run(desk: &mut dyn Desk, heartbeat: HeartbeatOptions<'_>, way: Way) -> io::Result<()> {
    let (leases, woken) = ClientLeases::new(heartbeat.interval)?;
    let roster = Arc::new(Roster::default());
    let (queue, jobs) = desk::queue();
    let shared = Arc::new(Shared {
        queue,
        leases: Arc::clone(&leases),
        roster: Arc::clone(&roster),
        shutdown: CancellationToken::new(),
        numbers: AtomicU64::new(1),
        by_session: matches!(way, Way::Http(_)),
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::scope(|scope| {
        let kept = Arc::clone(&leases);
        scope.spawn(move || kept.run(&woken, heartbeat));
        let serving = scope.spawn(move || match way {
            Way::Stdio => runtime.block_on(stdio::serve(shared)),
            Way::Http(http) => runtime.block_on(http::serve(shared, http)),
        });
        // Until the other thread, with all its tasks, has let go of the queue.
        jobs.serve(desk);
        for session in roster.all() {
            handler::end(desk, &leases, &session);
        }
        leases.stop();
        serving.join().unwrap_or_else(|_| Err(io::Error::other("the server has failed")))
    })
}
