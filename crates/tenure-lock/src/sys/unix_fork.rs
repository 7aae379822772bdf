//! Closes registered descriptors in forked children.
//!
//! A file lock belongs to the open file, which `fork` shares: a child would keep its parent's lock. `exec` closes the
//! descriptors already, and this module closes them on `fork`, so that a lock ends with the process that acquired it.
//! Guarantees: a child created by the C library's `fork` has no copy of a registered descriptor, however threads
//! interleave.
//! Does not cover a child created by a bare `clone` system call, which runs no handlers.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The number of forks started and finished. If they are equal, no fork is in progress.
static STARTED: AtomicU64 = AtomicU64::new(0);
static FINISHED: AtomicU64 = AtomicU64::new(0);
/// The number of forks between this process and the one that acquired the first lock.
static GENERATION: AtomicU64 = AtomicU64::new(0);
static TABLE: Chunk = Chunk::new();

const FREE: i32 = -1;
/// How long to wait for concurrent forks. A fork of a large process takes milliseconds.
const DEADLINE: Duration = Duration::from_secs(5);

/// The table grows by chunks and never shrinks. Reading it uses only atomics, as required in a fork handler.
struct Chunk {
    slots: [AtomicI32; 64],
    next: OnceLock<Box<Chunk>>,
}

impl Chunk {
    const fn new() -> Self {
        Self { slots: [const { AtomicI32::new(FREE) }; 64], next: OnceLock::new() }
    }
}

/// The process that created a guard. A pid alone is not sufficient: a grandchild may have the pid of its grandparent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    generation: u64,
    pid: u32,
}

impl Owner {
    pub(crate) fn current() -> Self {
        Self { generation: GENERATION.load(Ordering::SeqCst), pid: std::process::id() }
    }

    /// `false` in a forked child.
    pub(crate) fn is_this_process(self) -> bool {
        self.generation == GENERATION.load(Ordering::SeqCst) && self.pid == std::process::id()
    }
}

/// A registered descriptor and the process that registered it.
#[derive(Debug)]
pub(crate) struct Registration {
    slot: &'static AtomicI32,
    owner: Owner,
}

impl Registration {
    /// `false` in a forked child, where the descriptor is already closed.
    pub(crate) fn is_this_process(&self) -> bool {
        self.owner.is_this_process()
    }

    /// Must be called before the descriptor is closed; otherwise a fork could close an unrelated descriptor with the
    /// same number.
    pub(crate) fn remove(&self) {
        if self.is_this_process() {
            self.slot.store(FREE, Ordering::SeqCst);
        }
    }
}

/// Opens and registers a file without a fork in between. `open` may be called several times.
pub(crate) fn open_registered(
    mut open: impl FnMut() -> io::Result<File>,
) -> io::Result<(File, Registration)> {
    install_handlers()?;
    let mut began = None;
    loop {
        let finished = FINISHED.load(Ordering::SeqCst);
        if STARTED.load(Ordering::SeqCst) == finished {
            let file = open()?;
            let registration = register(&file);
            if STARTED.load(Ordering::SeqCst) == finished {
                return Ok((file, registration));
            }
            registration.remove();
        }
        if began.get_or_insert_with(Instant::now).elapsed() > DEADLINE {
            break;
        }
        std::thread::sleep(Duration::from_micros(20));
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "this process forks continuously"))
}

fn register(file: &File) -> Registration {
    let descriptor = file.as_raw_fd();
    let mut chunk = &TABLE;
    loop {
        for slot in &chunk.slots {
            if slot.compare_exchange(FREE, descriptor, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                return Registration { slot, owner: Owner::current() };
            }
        }
        chunk = chunk.next.get_or_init(|| Box::new(Chunk::new()));
    }
}

#[expect(unsafe_code, reason = "only pthread_atfork can act inside a fork")]
fn install_handlers() -> io::Result<()> {
    static INSTALLED: OnceLock<i32> = OnceLock::new();
    // SAFETY: the handlers use only atomics and close(2), which are async-signal-safe.
    let code = *INSTALLED
        .get_or_init(|| unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) });
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

extern "C" fn before() {
    STARTED.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn in_parent() {
    FINISHED.fetch_add(1, Ordering::SeqCst);
}

#[expect(unsafe_code, reason = "the descriptors belong to guards that will not run in the child")]
extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::SeqCst);
    let mut chunk = Some(&TABLE);
    while let Some(here) = chunk {
        for slot in &here.slots {
            let descriptor = slot.swap(FREE, Ordering::SeqCst);
            if descriptor != FREE {
                // SAFETY: the guards detect that they are in another process and do not use the descriptor again.
                unsafe { libc::close(descriptor) };
            }
        }
        chunk = here.next.get().map(|next| &**next);
    }
    FINISHED.store(STARTED.load(Ordering::SeqCst), Ordering::SeqCst);
}
