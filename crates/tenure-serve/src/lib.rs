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
mod desk;
mod handler;
mod http;
mod keeper;
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
pub use desk::{Desk, Effect, Refusal, Reply, Step};
pub use http::Http;
pub use keeper::Care;
pub use pages::Page;
pub use session::Session;

use handler::Shared;
use keeper::Keeper;
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
pub fn run(desk: &mut dyn Desk, care: Care<'_>, way: Way) -> io::Result<()> {
    let (keeper, woken) = Keeper::new(care.interval)?;
    let roster = Arc::new(Roster::default());
    let (queue, jobs) = desk::queue();
    let shared = Arc::new(Shared {
        queue,
        keeper: Arc::clone(&keeper),
        roster: Arc::clone(&roster),
        shutdown: CancellationToken::new(),
        numbers: AtomicU64::new(1),
        by_session: matches!(way, Way::Http(_)),
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::scope(|scope| {
        let heart = Arc::clone(&keeper);
        scope.spawn(move || heart.run(&woken, care));
        let serving = scope.spawn(move || match way {
            Way::Stdio => runtime.block_on(stdio::serve(shared)),
            Way::Http(http) => runtime.block_on(http::serve(shared, http)),
        });
        // Until the other thread, with all its tasks, has let go of the queue.
        jobs.serve(desk);
        for session in roster.all() {
            handler::end(desk, &keeper, &session);
        }
        keeper.stop();
        serving.join().unwrap_or_else(|_| Err(io::Error::other("the server has failed")))
    })
}
