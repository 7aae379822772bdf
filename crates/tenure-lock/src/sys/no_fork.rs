//! Systems without `fork`: handles are not inherited by default, so nothing has to be registered.

use std::fs::File;
use std::io;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner;

impl Owner {
    pub(crate) fn current() -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "the same signature as on systems with fork")]
    pub(crate) fn is_this_process(self) -> bool {
        true
    }
}

#[derive(Debug)]
pub(crate) struct Registration;

impl Registration {
    #[expect(clippy::unused_self, reason = "the same signature as on systems with fork")]
    pub(crate) fn is_this_process(&self) -> bool {
        true
    }

    #[expect(clippy::unused_self, reason = "the same signature as on systems with fork")]
    pub(crate) fn remove(&self) {}
}

pub(crate) fn open_registered(
    mut open: impl FnMut() -> io::Result<File>,
) -> io::Result<(File, Registration)> {
    Ok((open()?, Registration))
}
