//! The runner's heartbeat: a thread of its own that keeps the place and the row alive while the runner works or idles.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;

use tenure_core::lease::Lease;
use tenure_core::runner::Runner;
use tenure_core::store::{Durability, Store};
use tenure_core::{Error, Result, World, kernel};

use super::place::Seat;
use super::{Orders, Outside, Site};
use crate::beat::{OpenStore, rhythm};
use crate::database::DatabaseFile;
use crate::wait::until_any;

/// What the heart has found out, for the loop to ask.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    lost: Mutex<Option<String>>,
}

impl Pulse {
    /// Why the place is no longer the runner's, if that is so.
    pub(super) fn lost(&self) -> Option<Error> {
        let why = self.lost.lock().ok()?.clone()?;
        Some(Error::General(why))
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
    let pulse = Pulse::default();
    let broken = |e: std::io::Error| Error::General(format!("the heartbeat cannot be started: {e}"));
    let (stop, stopped) = UnixStream::pair().map_err(broken)?;
    let heart = Heart {
        open: site.open,
        world: site.world,
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
            .spawn_scoped(scope, move || heart.beat(&stopped, pulse))
            .map_err(broken)?;
        let answer = body(seat, pulse);
        drop(stop);
        answer
    })
}

/// The part of a site that a thread of its own may have.
struct Heart<'a> {
    open: OpenStore<'a>,
    world: World<'a>,
    database: Option<&'a DatabaseFile>,
    orders: &'a Orders,
    outside: &'a dyn Outside,
    slot: Lease,
    session: Lease,
    id: String,
}

impl Heart<'_> {
    fn beat(&self, stopped: &UnixStream, pulse: &Pulse) {
        let every = rhythm(self.orders.timing.heartbeat, self.orders.timing.stale);
        let mut store: Option<Box<dyn Store>> = None;
        loop {
            if until_any(&[stopped.as_fd()], every).first() == Some(&true) {
                return;
            }
            if let Some(loss) = self.database.and_then(DatabaseFile::loss) {
                pulse.lose(format!("{loss}"));
                return;
            }
            if store.is_none() {
                store = (self.open)().ok();
            }
            let Some(store) = &store else { continue };
            let beaten = store.write(Durability::Process, |tx| {
                let held = kernel::renew_resource(tx, &self.world, &self.slot, None)?
                    .and(kernel::renew_resource(tx, &self.world, &self.session, None)?);
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
