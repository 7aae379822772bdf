//! What a person sees while a command waits.

use std::time::Duration;

use tenure_core::error::Locked;
use tenure_core::lease::ResourceKind;

use crate::app::App;
use crate::text::Text;
use crate::waiting::Want;

/// What a person sees while waiting: a notice at once, and on a terminal a bar that moves.
#[derive(Debug, Default)]
pub(crate) struct Bar {
    begun: bool,
    pub(crate) is_live: bool,
}

impl Bar {
    /// True the first time.
    pub(crate) fn begin(&mut self, app: &mut App<'_>, want: &Want, locked: Option<&Locked>) -> bool {
        if self.begun {
            return false;
        }
        self.begun = true;
        self.is_live = app.printer.err_is_terminal() && !app.env.flag("CI") && !app.global.quiet;
        let mut text = Text::new();
        match (want, locked) {
            (Want::Task(_), Some(locked)) => {
                let who = locked.lease.as_ref().map_or_else(
                    || "promised to whoever waits before you".to_owned(),
                    |lease| format!("locked by another {}: {}", lease.holder.kind.as_str(), lease.holder.id),
                );
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
                text.line("Nothing is ready.");
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

    /// Reports the end of the waiting, if its beginning was reported.
    pub(crate) fn released(&self, app: &mut App<'_>, want: &Want) {
        if self.begun && matches!(want, Want::Task(_)) {
            let mut text = Text::new();
            text.line("Lock released!");
            app.printer.notice(&text);
        }
    }
}
