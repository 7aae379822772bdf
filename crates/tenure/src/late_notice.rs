//! Prints what a command waits for, once it has waited for a second.

use std::io::Write as _;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use tenure_core::text::escape_line;

/// How long a command waits before it says so.
const SILENCE: Duration = Duration::from_secs(1);

/// Prints its sentence to standard error unless it is dropped within a second.
#[derive(Debug)]
pub(crate) struct LateNotice {
    _done: Sender<()>,
}

impl LateNotice {
    pub(crate) fn new(sentence: String) -> Self {
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || {
            if is_done.recv_timeout(SILENCE) == Err(RecvTimeoutError::Timeout) {
                print(&sentence);
            }
        });
        Self { _done: done }
    }
}

/// Prints directly, because the command is busy waiting.
pub(crate) fn print(sentence: &str) {
    let _ = writeln!(std::io::stderr(), "{}", escape_line(sentence));
}
