//! `tenure msg wait`.

use std::time::{Duration, Instant};

use tenure_core::Error;

use super::filter::Filter;
use super::list;
use crate::answer::Answer;
use crate::app::{App, parse_duration};
use crate::follow::Follower;
use crate::interrupt::Interrupts;
use crate::late_notice::LateNotice;
use crate::report::{CommandResult, Report};

/// Wait until there is a message
///
/// Example: tenure msg wait --mine --agent A1234ABCD --for 10m
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Wait at most this long (default: locking.waitTimeout)
    #[arg(long = "for", value_name = "DUR", value_parser = parse_duration)]
    at_most: Option<Duration>,
}

/// The shortest time between two reads of the messages.
const PAUSE: Duration = Duration::from_millis(100);

/// Reads the messages, and reads them again after each change of the project.
pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let filter = args.filter.resolve(app, &open)?;
    let patience = args.at_most.unwrap_or(open.config.locking.wait_timeout);
    let patience = app.global.timeout.map_or(patience, |limit| patience.min(limit));
    let patience = if app.never_waits() { Duration::ZERO } else { patience };
    let begun = Instant::now();
    let interrupts = Interrupts::listen().map_err(Report::from)?;
    let notice = || LateNotice::new("Waiting for a message... (Ctrl+C to cancel)".to_owned());
    let _notice = (app.printer.shows_waits() && !patience.is_zero()).then(notice);
    // The first read needs no follower, so a message that is already there is printed without the cost of one.
    let mut follower: Option<Follower<'_>> = None;
    loop {
        if let Some(follower) = &mut follower {
            follower.begin_read()?;
        }
        let (messages, total) = open.read(|view| view.messages(&filter))?;
        if total > 0 {
            return Ok(list::answer(&messages, total, &app.local_time()));
        }
        let left = patience.saturating_sub(begun.elapsed());
        if left.is_zero() {
            let waited = patience;
            return Err(Error::WaitTimeout { what: "a message".to_owned(), waited, locked: None }.into());
        }
        let Some(follower) = &mut follower else {
            follower = Some(Follower::waiter(&open.store, PAUSE, open.config.locking.poll_interval));
            continue;
        };
        follower.wait(&[interrupts.fd()], Some(left));
        if let Some(code) = interrupts.caught() {
            return Err(Report::interrupted(code));
        }
    }
}
