//! `tenure msg wait`.

use std::time::{Duration, Instant};

use tenure_core::Error;

use super::filter::Filter;
use super::list;
use crate::answer::Answer;
use crate::app::{App, parse_duration};
use crate::message_wait::MessageWaiter;
use crate::report::CommandResult;

/// Wait until there is a message
///
/// Example: tenure msg wait --mine --agent A1234ABCD --for 10m
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// At most this long (default: locking.waitTimeout)
    #[arg(long = "for", value_name = "DUR", value_parser = parse_duration)]
    at_most: Option<Duration>,
}

/// Reads the messages, and reads them again each time the doorbell rings.
pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    let open = app.open()?;
    let filter = args.filter.resolve(app, &open)?;
    let patience = args.at_most.unwrap_or(open.config.locking.wait_timeout);
    let patience = app.global.timeout.map_or(patience, |limit| patience.min(limit));
    let patience = if app.never_waits() { Duration::ZERO } else { patience };
    let begun = Instant::now();
    let mut listener = MessageWaiter::new(app, &open, &args.filter.identity)?;
    loop {
        let (messages, total) = open.read(|view| view.messages(&filter))?;
        if total > 0 {
            listener.leave(&open)?;
            return Ok(list::answer(&messages, total, &app.local_time()));
        }
        let left = patience.saturating_sub(begun.elapsed());
        if left.is_zero() {
            listener.leave(&open)?;
            let waited = patience;
            return Err(Error::WaitTimeout { what: "a message".to_owned(), waited, locked: None }.into());
        }
        listener.wait(app, &open, left)?;
    }
}
