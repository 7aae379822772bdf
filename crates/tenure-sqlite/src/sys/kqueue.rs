//! Watching a database by kqueue.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::kqueue::{Event, EventFilter, EventFlags, VnodeEvents, kevent, kqueue};

use crate::follow::Watched;

/// "The file was unlocked by flock(2) or close(2)": the end of a writer's turn.
const UNLOCKED: VnodeEvents = VnodeEvents::from_bits_retain(0x100);

/// Short, because it was never run on a Mac whether the unlocking is reported.
pub(crate) const RECHECK: Duration = Duration::from_secs(1);

/// A watch on the gate of a database and on its folder, by kqueue.
#[derive(Debug)]
pub(crate) struct FileWatch {
    queue: OwnedFd,
    watched: Watched,
    folder: File,
    /// `None` until a writer has made it.
    gate: Option<File>,
}

impl FileWatch {
    pub(crate) fn new(watched: Watched) -> io::Result<Self> {
        let folder = File::open(&watched.folder)?;
        let queue = kqueue()?;
        rustix::io::fcntl_setfd(&queue, rustix::io::FdFlags::CLOEXEC)?;
        let mut watch = Self { queue, watched, folder, gate: None };
        let changed = VnodeEvents::WRITE | VnodeEvents::DELETE | VnodeEvents::RENAME;
        watch.add(&watch.folder, changed)?;
        watch.open_gate();
        Ok(watch)
    }

    fn open_gate(&mut self) {
        let Ok(gate) = File::open(self.watched.folder.join(&self.watched.gate)) else { return };
        if self.add(&gate, UNLOCKED | VnodeEvents::DELETE | VnodeEvents::RENAME).is_ok() {
            self.gate = Some(gate);
        }
    }

    #[expect(
        unsafe_code,
        reason = "kevent is unsafe for descriptors that are closed early; these are closed with the queue or replaced in it"
    )]
    fn add(&self, file: &File, events: VnodeEvents) -> io::Result<()> {
        let filter = EventFilter::Vnode { vnode: file.as_raw_fd(), flags: events };
        let event = Event::new(filter, EventFlags::ADD | EventFlags::CLEAR, std::ptr::null_mut());
        let mut none: [Event; 0] = [];
        // SAFETY: the descriptor is open, and the queue forgets it when it is closed.
        unsafe { kevent(&self.queue, &[event], &mut none, Some(Duration::ZERO)) }?;
        Ok(())
    }

    #[expect(unsafe_code, reason = "kevent is unsafe for what it adds, and here it adds nothing")]
    pub(crate) fn clear(&mut self) -> bool {
        // A gate that was removed is made again by the next writer, which changes the folder.
        self.open_gate();
        let mut events: Vec<Event> = Vec::with_capacity(8);
        // SAFETY: nothing is added to the queue.
        let found = unsafe {
            kevent(&self.queue, &[], rustix::buffer::spare_capacity(&mut events), Some(Duration::ZERO))
        };
        found.map_or(true, |count| count > 0)
    }
}

impl FileWatch {
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}
