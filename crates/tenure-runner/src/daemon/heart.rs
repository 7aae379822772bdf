//! The runner's heartbeat: a thread of its own that keeps the place and the row alive while the runner works or idles.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tenure_core::lease::Lease;
use tenure_core::runner::Runner;
use tenure_core::store::{Durability, Store};
use tenure_core::{Context, Error, Result, kernel};

use super::place::Seat;
use super::{Orders, Outside, Site};
use crate::beat::{OpenStore, rhythm};
use crate::database::DatabaseFile;
use crate::wait::until_any;

/// However often it is rung, a heart beats no faster.
const FASTEST: Duration = Duration::from_secs(1);

/// What the heart has found out, for the loop to ask.
#[derive(Debug)]
pub(super) struct Pulse {
    lost: Mutex<Option<String>>,
    /// Hung up, it stops the heart; a byte makes it beat.
    heart: UnixStream,
}

impl Pulse {
    /// Why the place is no longer the runner's, if that is so.
    pub(super) fn lost(&self) -> Option<Error> {
        let why = self.lost.lock().ok()?.clone()?;
        Some(Error::General(why))
    }

    /// Somebody rang: it may be to ask whether we are alive. After a sleep of the machine the next beat is far.
    pub(super) fn quicken(&self) {
        let _ = (&self.heart).write(&[1]);
    }

    fn lose(&self, why: String) {
        if let Ok(mut lost) = self.lost.lock() {
            lost.get_or_insert(why);
        }
    }
}

/// Runs `body` while the heart beats.
pub(super) fn beside<T>(
    site: &Site<'_>,
    seat: &mut Seat,
    body: impl FnOnce(&mut Seat, &Pulse) -> Result<T>,
) -> Result<T> {
    let broken = |e: std::io::Error| Error::General(format!("the heartbeat cannot be started: {e}"));
    let (own, theirs) = UnixStream::pair().map_err(broken)?;
    own.set_nonblocking(true).map_err(broken)?;
    theirs.set_nonblocking(true).map_err(broken)?;
    let pulse = Pulse { lost: Mutex::default(), heart: own };
    let heart = Heart {
        open: site.open,
        ctx: site.ctx,
        database: site.database,
        orders: site.orders,
        outside: site.outside,
        slot: seat.slot.clone(),
        session: seat.session.clone(),
        id: seat.runner.id.clone(),
    };
    std::thread::scope(|scope| {
        let pulse = &pulse;
        std::thread::Builder::new()
            .name("runner-heartbeat".into())
            .spawn_scoped(scope, move || heart.beat(&theirs, pulse))
            .map_err(broken)?;
        let answer = body(seat, pulse);
        let _ = pulse.heart.shutdown(Shutdown::Both);
        answer
    })
}

/// The part of a site that a thread of its own may have.
struct Heart<'a> {
    open: OpenStore<'a>,
    ctx: Context<'a>,
    database: Option<&'a DatabaseFile>,
    orders: &'a Orders,
    outside: &'a dyn Outside,
    slot: Lease,
    session: Lease,
    id: String,
}

impl Heart<'_> {
    fn beat(&self, wishes: &UnixStream, pulse: &Pulse) {
        let every = rhythm(self.orders.timing.heartbeat, self.orders.timing.stale);
        let mut store: Option<Box<dyn Store>> = None;
        let mut beaten = Instant::now();
        let mut wished = false;
        loop {
            let pause = if wished { every.min(FASTEST) } else { every };
            let nap = pause.saturating_sub(beaten.elapsed());
            if until_any(&[wishes.as_fd()], nap).first() == Some(&true) {
                if is_over(wishes) {
                    return;
                }
                wished = true;
                continue;
            }
            wished = false;
            beaten = Instant::now();
            if let Some(loss) = self.database.and_then(DatabaseFile::loss) {
                pulse.lose(format!("{loss}"));
                return;
            }
            if store.is_none() {
                store = (self.open)().ok();
            }
            let Some(store) = &store else { continue };
            let beaten = store.write(Durability::Process, |tx| {
                let held = kernel::renew_resource(tx, &self.ctx, &self.slot, None)?
                    .and(kernel::renew_resource(tx, &self.ctx, &self.session, None)?);
                let row = match tx.runner(&self.id)? {
                    Some(row) if held.is_some() => Some(Runner { heartbeat_at: tx.now(), ..row }),
                    _ => None,
                };
                if let Some(row) = &row {
                    tx.save_runner(row)?;
                }
                Ok((held.is_some(), row))
            });
            match beaten {
                Ok((true, Some(row))) => self.outside.announce(&row, self.orders.section_name()),
                Ok((false, _)) => {
                    pulse.lose("another runner has this place or this session now".to_owned());
                    return;
                }
                // A busy store is tried again with the next beat; the place lasts for several.
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// Takes all wishes for a beat. Or is there nobody left to wish?
fn is_over(mut wishes: &UnixStream) -> bool {
    let mut bytes = [0; 64];
    loop {
        match wishes.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return e.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
}
