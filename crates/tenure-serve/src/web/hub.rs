//! The open projects: each has a thread with its store and, while pages are open, another thread that follows
//! its changes.
//!
//! Guaranteed: no store is used on the executor's thread; at most [`QUEUE`] requests of a project are queued; a project without
//! open pages is not followed. A slow store delays the pages of its project only.

use std::collections::HashMap;
use std::fmt;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tenure_core::ErrorCode;
use tenure_runner::{LocalStream, local_pair};
use tokio::sync::{mpsc, oneshot, watch};

use super::handler::{Following, Job, ProjectHandler, Projects, Requests};
use crate::request_handler::Refusal;

/// How many requests of one project may be queued.
const QUEUE: usize = 64;
/// How long a request may take, including its time in the queue.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause before a project is followed again, if its follower has returned while pages are still open.
const RETRY: Duration = Duration::from_millis(500);

/// How often the threads are checked while the server ends.
const CLOSED_INTERVAL: Duration = Duration::from_millis(5);

pub(crate) struct JobReceiver(mpsc::Receiver<Job>);

impl fmt::Debug for JobReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobReceiver").finish_non_exhaustive()
    }
}

impl JobReceiver {
    pub(super) fn next(&mut self) -> Option<Job> {
        self.0.blocking_recv()
    }

    /// Accepts no more jobs. Those that are queued already can still be received.
    pub(super) fn close(&mut self) {
        self.0.close();
    }
}

/// The version of a project's state, and how many pages follow it.
pub(crate) struct Changes {
    version: watch::Sender<u64>,
    watchers: AtomicUsize,
    is_followed: AtomicBool,
    is_closing: AtomicBool,
    wake: LocalStream,
    pub(super) woken: LocalStream,
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("watchers", &self.watchers).finish_non_exhaustive()
    }
}

impl Changes {
    fn new() -> std::io::Result<Self> {
        let (wake, woken) = local_pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        Ok(Self {
            version: watch::Sender::new(1),
            watchers: AtomicUsize::new(0),
            is_followed: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            wake,
            woken,
        })
    }

    pub(super) fn bump(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    pub(super) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::SeqCst) > 0 && !self.is_closing.load(Ordering::SeqCst)
    }

    pub(super) fn drain(&self) {
        let mut bytes = [0; 64];
        let _ = (&self.woken).read(&mut bytes);
    }

    fn wake(&self) {
        // If the pipe is full, the follower is woken anyway.
        let _ = (&self.wake).write(&[1]);
    }
}

/// A page that follows a project, until it is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    changes: Arc<Changes>,
    pub(crate) version: watch::Receiver<u64>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.changes.watchers.fetch_sub(1, Ordering::SeqCst);
        self.changes.wake();
    }
}

struct OpenProject {
    jobs: mpsc::Sender<Job>,
    changes: Arc<Changes>,
}

pub(crate) struct Hub {
    projects: Arc<dyn Projects>,
    open: Arc<Mutex<HashMap<String, OpenProject>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    pub(crate) fn new(projects: Arc<dyn Projects>) -> Self {
        Self { projects, open: Arc::default(), threads: Mutex::default() }
    }

    pub(crate) fn projects(&self) -> Arc<dyn Projects> {
        Arc::clone(&self.projects)
    }

    /// Runs `request` on the project's thread, which is started if there is none. A request that times out, or whose client is
    /// gone, before its turn is not run.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        project: &str,
        request: impl FnOnce(&mut dyn ProjectHandler) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let jobs = self.jobs(project)?;
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |handler| {
            if !answer.is_closed() {
                let _ = answer.send(request(handler));
            }
        });
        let answered = async {
            jobs.send(job).await.ok()?;
            answered.await.ok()
        };
        match tokio::time::timeout(PATIENCE, answered).await {
            Ok(Some(answer)) => answer,
            Ok(None) => Err(Refusal::new(ErrorCode::Store, "the project was closed; try again")),
            Err(_) => Err(Refusal::new(ErrorCode::Store, "the project does not answer in time")),
        }
    }

    /// The version of the project's state; `None` if no page follows the project.
    pub(crate) fn version(&self, project: &str) -> Option<u64> {
        let open = lock(&self.open);
        let changes = &open.get(project)?.changes;
        changes.is_followed.load(Ordering::SeqCst).then(|| *changes.version.borrow())
    }

    /// Makes all pages of the project read it again.
    pub(crate) fn changed(&self, project: &str) {
        if let Some(open) = lock(&self.open).get(project) {
            open.changes.bump();
        }
    }

    /// Follows the project until the watcher is dropped.
    pub(crate) fn watch(&self, project: &str) -> Result<Watcher, Refusal> {
        self.jobs(project)?;
        let open = lock(&self.open);
        let Some(entry) = open.get(project) else {
            return Err(Refusal::new(ErrorCode::Store, "the project was closed; try again"));
        };
        let changes = Arc::clone(&entry.changes);
        changes.watchers.fetch_add(1, Ordering::SeqCst);
        let watcher = Watcher { version: changes.version.subscribe(), changes: Arc::clone(&changes) };
        if !changes.is_followed.swap(true, Ordering::SeqCst) {
            let (projects, name) = (Arc::clone(&self.projects), project.to_owned());
            self.start("follow", move || {
                let following = Following { changes: Arc::clone(&changes) };
                loop {
                    projects.follow(&name, &following);
                    changes.is_followed.store(false, Ordering::SeqCst);
                    // A page that was opened in the meantime did not start another follower, so this one
                    // continues.
                    if !changes.is_watched() || changes.is_followed.swap(true, Ordering::SeqCst) {
                        return;
                    }
                    std::thread::sleep(RETRY);
                }
            })?;
        }
        Ok(watcher)
    }

    fn jobs(&self, project: &str) -> Result<mpsc::Sender<Job>, Refusal> {
        let mut open = lock(&self.open);
        let earlier = match open.get(project) {
            Some(entry) if !entry.jobs.is_closed() => return Ok(entry.jobs.clone()),
            Some(entry) => Some(Arc::clone(&entry.changes)),
            None => None,
        };
        let (jobs, queue) = mpsc::channel(QUEUE);
        let changes = match earlier {
            Some(changes) => changes,
            None => Arc::new(Changes::new().map_err(|error| cannot_start(&error))?),
        };
        open.insert(project.to_owned(), OpenProject { jobs: jobs.clone(), changes });
        let (projects, name) = (Arc::clone(&self.projects), project.to_owned());
        let all = Arc::clone(&self.open);
        self.start("project", move || {
            projects.serve(&name, Requests::new(JobReceiver(queue)));
            // A name without a project leaves no entry behind.
            let mut all = lock(&all);
            let is_over = |entry: &OpenProject| entry.jobs.is_closed() && !entry.changes.is_watched();
            if all.get(&name).is_some_and(is_over) {
                all.remove(&name);
            }
        })?;
        Ok(jobs)
    }

    fn start(&self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), Refusal> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread.map_err(|error| cannot_start(&error))?);
        Ok(())
    }

    /// Asks all threads to end. Must be called when no further request can arrive.
    pub(crate) fn close(&self) {
        for (_, open) in lock(&self.open).drain() {
            open.changes.is_closing.store(true, Ordering::SeqCst);
            open.changes.wake();
        }
    }

    /// Returns when all threads have ended.
    pub(crate) async fn closed(&self) {
        while !lock(&self.threads).iter().all(JoinHandle::is_finished) {
            tokio::time::sleep(CLOSED_INTERVAL).await;
        }
    }
}

fn cannot_start(error: &std::io::Error) -> Refusal {
    Refusal::new(ErrorCode::General, format!("cannot start a thread: {error}"))
}
