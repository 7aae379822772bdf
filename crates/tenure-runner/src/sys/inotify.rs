//! Watches a file for growth with inotify.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};

#[derive(Debug)]
pub(crate) struct GrowthWatch(OwnedFd);

impl GrowthWatch {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?))
    }

    /// Discards pending notifications and watches the file that has this name now.
    pub(crate) fn restart(&mut self, path: &Path) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut events = Reader::new(&self.0, &mut buffer);
        while events.next().is_ok() {}
        let changes = WatchFlags::MODIFY | WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF;
        // For a file that is watched already, this changes nothing.
        inotify::add_watch(&self.0, path, changes)?;
        Ok(())
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
