//! One stream of server-sent events per page. The events say that the project has changed or that a log has
//! grown.
//!
//! Guaranteed: a session has at most [`MOST_STREAMS`] streams, because browsers open at most six connections to a server. A
//! page whose stream is closed to make room for another polls until it is visible again.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::response::sse::Event;
use futures::Stream;
use futures::future::BoxFuture;
use tenure_runner::LogWatch;
use tokio::sync::oneshot;

use super::hub::Watcher;
use crate::sys::Watched;

/// Streams of one session.
const MOST_STREAMS: usize = 4;
/// Streams of all sessions.
const MOST_IN_ALL: usize = 256;
/// The shortest time between two reports that a log has grown.
const LOG_PAUSE: Duration = Duration::from_millis(300);
/// A page is read again after this time, because leases expire without a change in the store.
const TICK: Duration = Duration::from_mins(1);

/// The open streams of all sessions, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    open: Mutex<Vec<OpenStream>>,
}

#[derive(Debug)]
struct OpenStream {
    /// A hash that identifies the session.
    session: String,
    /// Sent to when the stream has to make room for another. The stream also ends if the sender is dropped.
    close: oneshot::Sender<()>,
}

impl Streams {
    /// Registers a stream. If its session has too many, its oldest stream is closed. `None` if there are too
    /// many streams in total.
    pub(crate) fn register(&self, session: &str) -> Option<oneshot::Receiver<()>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|stream| !stream.close.is_closed());
        while open.iter().filter(|stream| stream.session == session).count() >= MOST_STREAMS {
            let oldest = open.iter().position(|stream| stream.session == session)?;
            let _ = open.remove(oldest).close.send(());
        }
        if open.len() >= MOST_IN_ALL {
            return None;
        }
        let (close, closed) = oneshot::channel();
        open.push(OpenStream { session: session.to_owned(), close });
        Some(closed)
    }

    /// Ends the streams of a session.
    pub(crate) fn close(&self, session: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|stream| stream.session != session);
    }
}

/// Browsers ignore an event without data.
const DATA: &str = "-";

/// Finds the log that a page follows. Each attempt at a task has a new one.
pub(crate) type FindLog = Box<dyn Fn() -> BoxFuture<'static, Option<PathBuf>> + Send + Sync>;

/// What a stream waits for.
struct Source {
    watcher: Watcher,
    closed: oneshot::Receiver<()>,
    find_log: Option<FindLog>,
    log: Option<WatchedLog>,
    /// The stream has announced that it was closed to make room, and ends.
    is_over: bool,
}

/// The log that a page shows, and its size when the page was asked to read it.
struct WatchedLog {
    watch: LogWatch,
    /// Reports growth to the executor. `None` where the log has to be polled.
    reports: Option<Watched>,
    size: Option<u64>,
    reported_at: Instant,
}

impl WatchedLog {
    fn new(path: &Path) -> Self {
        let watch = LogWatch::new(path);
        let reports = watch.fd().and_then(|fd| fd.try_clone_to_owned().ok()).and_then(Watched::new);
        let mut log = Self { watch, reports, size: None, reported_at: Instant::now() };
        log.has_changed();
        log
    }

    fn has_changed(&mut self) -> bool {
        self.watch.clear();
        let size = std::fs::metadata(self.watch.path()).ok().map(|found| found.len());
        std::mem::replace(&mut self.size, size) != size
    }

    /// Returns when the log may have grown.
    async fn reported(&self) {
        // If the executor cannot poll the watch, the log is polled instead.
        let recheck = if self.reports.is_some() { self.watch.recheck() } else { LOG_PAUSE };
        let reported = async {
            match &self.reports {
                Some(reports) => reports.reported().await,
                None => futures::future::pending().await,
            }
        };
        drop(tokio::time::timeout(recheck, reported).await);
    }
}

/// The events of one page. Each `changed` makes it read its address again.
pub(crate) fn events(
    mut watcher: Watcher,
    closed: oneshot::Receiver<()>,
    find_log: Option<FindLog>,
) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    // The first read of the page was before the stream was opened.
    watcher.version.mark_changed();
    let source = Source { watcher, closed, find_log, log: None, is_over: false };
    futures::stream::unfold(source, |mut source| async move {
        if source.is_over {
            return None;
        }
        let woken = next(&mut source).await?;
        let find_log = source.find_log.as_ref().filter(|_| woken == Woken::Changed);
        if let Some(found) = find_log.map(|find| find()) {
            // The size is read before the page is, so that no growth is missed.
            source.log = match (found.await, source.log.take()) {
                (Some(path), Some(mut log)) if log.watch.path() == path => {
                    log.has_changed();
                    Some(log)
                }
                (path, _) => path.as_deref().map(WatchedLog::new),
            };
        }
        source.is_over = woken == Woken::Crowded;
        let name = if source.is_over { "crowded" } else { "changed" };
        Some((Ok(Event::default().event(name).data(DATA)), source))
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woken {
    Changed,
    LogGrown,
    Crowded,
}

async fn next(source: &mut Source) -> Option<Woken> {
    let Source { watcher, closed, log, .. } = source;
    tokio::select! {
        changed = watcher.version.changed() => {
            changed.ok()?;
            watcher.version.mark_unchanged();
            Some(Woken::Changed)
        }
        room = closed => room.ok().map(|()| Woken::Crowded),
        () = grown(log) => Some(Woken::LogGrown),
        () = tokio::time::sleep(TICK) => Some(Woken::Changed),
    }
}

async fn grown(log: &mut Option<WatchedLog>) {
    let Some(log) = log else { return futures::future::pending().await };
    loop {
        log.reported().await;
        let pause = LOG_PAUSE.saturating_sub(log.reported_at.elapsed());
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        if log.has_changed() {
            log.reported_at = Instant::now();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_stream_of_a_session_makes_room_and_no_other_sessions() {
        let streams = Streams::default();
        let other = streams.register("other").unwrap();
        let mut first = streams.register("mine").unwrap();
        let rest: Vec<_> = (1..MOST_STREAMS).map(|_| streams.register("mine").unwrap()).collect();
        assert!(first.try_recv().is_err(), "there is room");
        let _newest = streams.register("mine").unwrap();
        assert!(first.try_recv().is_ok(), "it makes room");
        drop((other, rest));
        let all: Vec<_> = (0..MOST_IN_ALL - 1).filter_map(|n| streams.register(&n.to_string())).collect();
        assert_eq!(all.len(), MOST_IN_ALL - 1);
        assert!(streams.register("one more").is_none());
    }
}
