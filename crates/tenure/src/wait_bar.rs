//! The notice and the progress bar of a command that waits.

use std::time::Duration;

use tenure_core::error::{Locked, ReservedWork};
use tenure_core::lease::ResourceKind;

use crate::app::App;
use crate::text::Text;
use crate::waiting::ClaimRequest;

/// A notice when the wait begins and, on a terminal, a moving bar.
#[derive(Debug, Default)]
pub(crate) struct Bar {
    begun: bool,
    pub(crate) is_live: bool,
}

impl Bar {
    /// Prints the notice. Returns true the first time.
    pub(crate) fn begin(
        &mut self,
        app: &mut App<'_>,
        request: &ClaimRequest,
        locked: Option<&Locked>,
        reserved: Option<&ReservedWork>,
    ) -> bool {
        if self.begun {
            return false;
        }
        self.begun = true;
        self.is_live = app.printer.err_is_terminal() && !app.env.flag("CI") && !app.global.quiet;
        let mut text = Text::new();
        match (request, locked) {
            (ClaimRequest::Task(_), Some(locked)) => {
                let who = match (&locked.lease, &locked.first) {
                    (Some(lease), _) => {
                        format!("locked by another {}: {}", lease.holder.kind.as_str(), lease.holder.id)
                    }
                    (None, Some(first)) => format!("reserved for an earlier waiter: {first}"),
                    (None, None) => "reserved for an earlier waiter".to_owned(),
                };
                match locked.resource.kind {
                    ResourceKind::Section => {
                        text.line(format!("Section {:?} is {who}.", locked.name));
                    }
                    _ => {
                        text.line(format!("Task {:?} is {who}.", locked.name));
                    }
                }
                text.line("Waiting for lock... (Ctrl+C to cancel)");
            }
            _ => {
                match reserved {
                    Some(work) => text.line(format!("No task is available: {work} (first: {}).", work.first)),
                    None => text.line("Nothing is ready."),
                };
                text.line("Waiting for a task... (Ctrl+C to cancel)");
            }
        }
        app.printer.notice(&text);
        true
    }

    pub(crate) fn draw(&mut self, app: &mut App<'_>, elapsed: Duration) {
        const WIDTH: usize = 26;
        if !self.is_live {
            return;
        }
        let step = usize::try_from(elapsed.as_secs() / 5).unwrap_or(WIDTH).min(WIDTH - 1);
        let line = format!("{}>{}", "=".repeat(step), " ".repeat(WIDTH - 1 - step));
        app.printer.draw(&format!("\r[{line}] {}s elapsed", elapsed.as_secs()));
    }

    pub(crate) fn end(&mut self, app: &mut App<'_>) {
        if self.is_live {
            app.printer.draw("\r\x1b[K");
            self.is_live = false;
        }
    }

    /// Prints the end of the wait, if its beginning was printed.
    pub(crate) fn released(&self, app: &mut App<'_>, request: &ClaimRequest) {
        if self.begun && matches!(request, ClaimRequest::Task(_)) {
            let mut text = Text::new();
            text.line("Lock released!");
            app.printer.notice(&text);
        }
    }
}
