//! The progress of a job: a bar on a terminal, a line from time to time elsewhere. Always on standard error.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use tenure_core::job::Job;

use super::view::short;
use crate::app::App;
use crate::printer::Printer;
use crate::text::Text;

/// How often a line is written without a bar.
const PACE: Duration = Duration::from_secs(10);
const WIDTH: usize = 30;

#[derive(Debug)]
pub(super) struct Progress {
    live: bool,
    drawn: bool,
    told: Instant,
    last: String,
}

impl Progress {
    pub(super) fn begin(app: &mut App<'_>, job: &Job, parallel: u32, coordinates: bool) -> Self {
        let live = app.printer.err_is_terminal() && !app.env.flag("CI") && !app.global.quiet;
        let left = job.counts.pending + job.counts.running;
        let verb = if coordinates { "Job" } else { "Working on job" };
        let mut text = Text::new();
        text.line(format!(
            "{verb} {} ({}): {left} of {} items to do, {parallel} at a time",
            job.name,
            short(&job.id),
            job.counts.total
        ));
        // With --json only the result is printed, and messages about long operations.
        if !app.global.json {
            app.printer.notice(&text);
        }
        Self { live, drawn: false, told: Instant::now(), last: String::new() }
    }

    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    pub(super) fn say(&mut self, printer: &mut Printer<'_>, line: &str) {
        self.clear(printer);
        let mut text = Text::new();
        text.line(line);
        printer.notice(&text);
    }

    pub(super) fn tell(&mut self, printer: &mut Printer<'_>, job: &Job) {
        let line = sentence(job);
        if self.live {
            let done = job.counts.succeeded + job.counts.failed + job.counts.skipped;
            let filled = usize::try_from(done * WIDTH as u64 / job.counts.total.max(1)).unwrap_or(WIDTH);
            let bar = format!("{}{}", "=".repeat(filled.min(WIDTH)), " ".repeat(WIDTH - filled.min(WIDTH)));
            printer.draw(&format!("\r[{bar}] {line}\x1b[K"));
            self.drawn = true;
        } else if self.told.elapsed() >= PACE && self.last != line {
            self.told = Instant::now();
            self.last.clone_from(&line);
            self.say(printer, &format!("{}: {line}", job.name));
        }
    }

    fn clear(&mut self, printer: &mut Printer<'_>) {
        if std::mem::take(&mut self.drawn) {
            printer.draw("\r\x1b[K");
        }
    }

    pub(super) fn end(&mut self, printer: &mut Printer<'_>) {
        self.clear(printer);
    }
}

/// `120 of 500 done, 3 running, 1 failed`.
pub(super) fn sentence(job: &Job) -> String {
    let counts = &job.counts;
    let mut line = format!("{} of {} done", counts.succeeded, counts.total);
    for (count, what) in [(counts.running, "running"), (counts.failed, "failed"), (counts.skipped, "skipped")]
    {
        if count > 0 {
            let _ = write!(line, ", {count} {what}");
        }
    }
    line
}
