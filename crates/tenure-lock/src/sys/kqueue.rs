//! Kernel events from kqueue, behind safe functions: the end of a process, changes of a folder, the unlocking of a file.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::kqueue::{Event, EventFilter, EventFlags, ProcessEvents, VnodeEvents, kevent, kqueue};
use rustix::process::Pid;

/// `NOTE_FUNLOCK` of `sys/event.h`: the file was unlocked by flock(2), also by being closed.
const UNLOCKED: VnodeEvents = VnodeEvents::from_bits_retain(0x100);

/// A queue of events. Its descriptor is readable while it is not empty. Programs that this process starts do not
/// inherit it.
#[derive(Debug)]
pub struct EventQueue(OwnedFd);

impl EventQueue {
    pub fn new() -> io::Result<Self> {
        let queue = kqueue()?;
        rustix::io::fcntl_setfd(&queue, rustix::io::FdFlags::CLOEXEC)?;
        Ok(Self(queue))
    }

    /// Reports the end of the process that has this pid now.
    pub fn watch_exit(&self, pid: u32) -> io::Result<()> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
        self.add(EventFilter::Proc { pid, flags: ProcessEvents::EXIT }, EventFlags::ADD)
    }

    /// Reports added, removed and renamed entries of an open folder, and its own removal, until it is closed.
    pub fn watch_folder(&self, folder: &File) -> io::Result<()> {
        self.watch_file(folder, VnodeEvents::WRITE)
    }

    /// Reports when a lock of an open file is released, and when the file is removed or renamed, until it is closed.
    pub fn watch_unlocking(&self, file: &File) -> io::Result<()> {
        self.watch_file(file, UNLOCKED)
    }

    /// Reports when an open file grows, and when it is removed or renamed, until it is closed.
    pub fn watch_growth(&self, file: &File) -> io::Result<()> {
        self.watch_file(file, VnodeEvents::WRITE | VnodeEvents::EXTEND)
    }

    fn watch_file(&self, file: &File, changes: VnodeEvents) -> io::Result<()> {
        let flags = changes | VnodeEvents::DELETE | VnodeEvents::RENAME;
        self.add(EventFilter::Vnode { vnode: file.as_raw_fd(), flags }, EventFlags::ADD | EventFlags::CLEAR)
    }

    #[expect(unsafe_code, reason = "kevent is unsafe for descriptors that are closed while they are watched")]
    fn add(&self, filter: EventFilter, flags: EventFlags) -> io::Result<()> {
        let event = Event::new(filter, flags, std::ptr::null_mut());
        let mut none: [Event; 0] = [];
        // SAFETY: a descriptor that is watched is open now, and the kernel forgets it when it is closed.
        unsafe { kevent(&self.0, &[event], &mut none, Some(Duration::ZERO)) }?;
        Ok(())
    }

    /// Takes events from the queue, at most eight. Returns their number.
    #[expect(unsafe_code, reason = "kevent is unsafe for what it adds, and here it adds nothing")]
    pub fn take(&self) -> io::Result<usize> {
        let mut events: Vec<Event> = Vec::with_capacity(8);
        // SAFETY: nothing is added to the queue.
        let taken = unsafe {
            kevent(&self.0, &[], rustix::buffer::spare_capacity(&mut events), Some(Duration::ZERO))
        };
        Ok(taken?)
    }
}

impl AsFd for EventQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<EventQueue> for OwnedFd {
    fn from(queue: EventQueue) -> Self {
        queue.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_folder_and_the_end_of_a_process_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let (queue, opened) = (EventQueue::new().unwrap(), File::open(folder.path()).unwrap());
        queue.watch_folder(&opened).unwrap();
        assert_eq!(queue.take().unwrap(), 0);
        std::fs::write(folder.path().join("new"), "").unwrap();
        assert_eq!(queue.take().unwrap(), 1);
        assert_eq!(queue.take().unwrap(), 0);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        // It may have ended already, which is an error and not an event.
        let watched = queue.watch_exit(child.id()).is_ok();
        child.wait().unwrap();
        assert_eq!(queue.take().unwrap(), usize::from(watched));
    }

    #[test]
    fn the_release_of_a_lock_is_reported() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (queue, opened) = (EventQueue::new().unwrap(), File::open(file.path()).unwrap());
        queue.watch_unlocking(&opened).unwrap();
        let other = File::options().write(true).open(file.path()).unwrap();
        other.lock().unwrap();
        assert_eq!(queue.take().unwrap(), 0);
        drop(other);
        assert_eq!(queue.take().unwrap(), 1);
    }
}
