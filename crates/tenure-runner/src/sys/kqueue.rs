//! Watches a file for growth with kqueue.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use tenure_lock::EventQueue;

#[derive(Debug)]
pub(crate) struct GrowthWatch {
    queue: EventQueue,
    /// Kept open, because kqueue watches only open files.
    file: Option<File>,
}

impl GrowthWatch {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { queue: EventQueue::new()?, file: None })
    }

    /// Discards pending notifications and watches the file that has this name now.
    pub(crate) fn restart(&mut self, path: &Path) -> io::Result<()> {
        self.file = None;
        while self.queue.take()? > 0 {}
        let file = File::open(path)?;
        self.queue.watch_growth(&file)?;
        self.file = Some(file);
        Ok(())
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}
