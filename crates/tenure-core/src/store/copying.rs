//! Copying a whole project from one store to another, row by row.
//!
//! Both stores have the same tables with the same columns, so a row is a list of cells. Values that a store derives
//! (counters, the project's key) are not copied. Neither are tickets: while a project is copied no lease is held, so no
//! process waits for one.
//!
//! Only one store serves a project. [`move_store`] copies in three steps, each one transaction: the target is filled and
//! refuses everything; the source is sealed; the target is opened. The source's transaction includes the filling of the
//! target, so nothing is committed in between. A crash leaves one store serving, or none, and the next call continues.

use serde::{Deserialize, Serialize};

use super::columns::{self, Cell, Table};
use super::{LeaseFilter, Store, Tx, View, Viewer};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::holder::Judge;
use crate::id::StoreId;
use crate::kernel;
use crate::lease::LeaseState;

/// The state of each of a store's sequences. No number may be drawn a second time, even if its row is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    pub next_task: i64,
    pub last_event: i64,
    pub last_fence: i64,
    pub last_number: i64,
}

impl Counters {
    fn greatest(self, other: Self) -> Self {
        Self {
            next_task: self.next_task.max(other.next_task),
            last_event: self.last_event.max(other.last_event),
            last_fence: self.last_fence.max(other.last_fence),
            last_number: self.last_number.max(other.last_number),
        }
    }
}

/// Another store, as a store records it. The URL never contains a password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherStore {
    pub id: StoreId,
    pub url: String,
}

/// Whether a store serves its project. One that does not fails every transaction with [`Error::StoreMoved`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Standing {
    Serving,
    /// A copy from that store has begun and is not complete.
    FilledFrom(OtherStore),
    /// It is sealed: everything was copied to that store.
    MovedTo(OtherStore),
}

impl Standing {
    /// The value that a store keeps; `None` if it serves.
    pub fn to_text(&self) -> Result<Option<String>> {
        if *self == Self::Serving {
            return Ok(None);
        }
        let text = serde_json::to_string(self);
        text.map(Some).map_err(|e| Error::store(format!("cannot write the store's standing: {e}")))
    }

    pub fn from_text(text: Option<&str>) -> Result<Self> {
        let Some(text) = text else { return Ok(Self::Serving) };
        serde_json::from_str(text).map_err(|e| super::unexpected(format!("the store's standing: {e}")))
    }

    pub fn require_serving(self) -> Result<()> {
        match self {
            Self::Serving => Ok(()),
            Self::FilledFrom(other) => Err(Error::StoreMoved { other: other.url, is_complete: false }),
            Self::MovedTo(other) => Err(Error::StoreMoved { other: other.url, is_complete: true }),
        }
    }
}

/// The copied columns of one row ([`Table::copied`]).
pub type CopiedRow = Vec<Cell<'static>>;

/// Receives some rows of a table.
pub type Put<'a> = dyn FnMut(&'static Table, Vec<CopiedRow>) -> Result<()> + 'a;

/// A store whose rows can be read and replaced as a whole.
pub trait Movable: Store {
    /// One durable transaction, alone in its project, that runs whatever the store's standing is. It is not retried.
    fn transfer_with(&self, body: &mut dyn FnMut(&mut dyn Transfer) -> Result<()>) -> Result<()>;
}

/// A transaction of [`Movable::transfer_with`].
pub trait Transfer: Tx {
    fn standing(&self) -> Result<Standing>;

    fn set_standing(&mut self, to: &Standing) -> Result<()>;

    /// Whether nothing ever happened in the project.
    fn is_empty(&self) -> Result<bool>;

    /// Passes all rows of a table to `put`, in the order of its key.
    fn read_rows(&self, table: &'static Table, put: &mut Put<'_>) -> Result<()>;

    fn insert_rows(&mut self, table: &'static Table, rows: &[CopiedRow]) -> Result<()>;

    /// Deletes all rows of a table, except those that every store has from the start.
    fn delete_rows(&mut self, table: &'static Table) -> Result<()>;

    /// Computes the values that the store derives from other rows.
    fn derive_values(&mut self) -> Result<()>;

    fn counters(&self) -> Result<Counters>;

    /// The sequences continue after these numbers. None of them ever goes back.
    fn raise_counters(&mut self, to: Counters) -> Result<()>;
}

/// How many rows are copied at a time.
pub const BATCH: usize = 1000;

/// The copied tables, in an order in which every row comes after the rows that it refers to.
pub static COPIED_TABLES: [&Table; 15] = [
    &columns::sections::TABLE,
    &columns::section_deps::TABLE,
    &columns::tasks::TABLE,
    &columns::task_deps::TABLE,
    &columns::leases::TABLE,
    &columns::attempts::TABLE,
    &columns::agents::TABLE,
    &columns::runners::TABLE,
    &columns::parkings::TABLE,
    &columns::sessions::TABLE,
    &columns::session_tasks::TABLE,
    &columns::jobs::TABLE,
    &columns::job_items::TABLE,
    &columns::messages::TABLE,
    &columns::events::TABLE,
];

/// How many rows of each table a store has.
pub type RowCounts = Vec<(&'static str, usize)>;

/// A restored store does not know the fences that were granted after its backup was made. Its next fence is greater than
/// the last known one by more than a project grants in that time.
pub const FENCES_SKIPPED: i64 = 1 << 20;

/// What a backup contains, in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreContents {
    pub last_fence: i64,
    pub tasks: u64,
}

/// A store, and the URL under which the other store records it.
#[derive(Debug, Clone, Copy)]
pub struct StoreAt<'a> {
    pub store: &'a dyn Movable,
    pub url: &'a str,
}

impl StoreAt<'_> {
    fn named(&self) -> Result<OtherStore> {
        Ok(OtherStore { id: self.store.id()?, url: self.url.to_owned() })
    }
}

/// Copies everything to a store that is empty, or that was itself copied to this one, and makes that store serve instead of
/// this one. Continues a copy that was interrupted.
pub fn move_store(from: StoreAt<'_>, to: StoreAt<'_>, judge: &dyn Judge) -> Result<RowCounts> {
    let (source, target) = (from.named()?, to.named()?);
    if source.id == target.id {
        return Err(Error::invalid("both URLs name the same store"));
    }
    from.store.transfer_with(&mut |tx| {
        match tx.standing()? {
            // An earlier copy was interrupted after this step.
            Standing::MovedTo(other) if other.id == target.id => return Ok(()),
            standing => standing.require_serving()?,
        }
        refuse_live_leases(tx, judge)?;
        fill(to.store, tx, &source)?;
        tx.set_standing(&Standing::MovedTo(target.clone()))
    })?;
    let mut counts = RowCounts::new();
    to.store.transfer_with(&mut |tx| {
        match tx.standing()? {
            Standing::FilledFrom(other) if other.id == source.id => tx.set_standing(&Standing::Serving)?,
            standing => standing.require_serving()?,
        }
        counts = count_rows(tx)?;
        Ok(())
    })?;
    Ok(counts)
}

/// The first step: the target has the rows of `source` and does not serve.
fn fill(target: &dyn Movable, source: &dyn Transfer, named: &OtherStore) -> Result<()> {
    target.transfer_with(&mut |tx| {
        match tx.standing()? {
            Standing::Serving if tx.is_empty()? => {}
            Standing::Serving => return Err(Error::store("there are rows in it already")),
            // The rows of a copy that was interrupted, or the ones from which the source was made.
            Standing::FilledFrom(other) | Standing::MovedTo(other) if other.id == named.id => {}
            standing => standing.require_serving()?,
        }
        replace_rows(tx, source)?;
        tx.raise_counters(source.counters()?)?;
        tx.set_standing(&Standing::FilledFrom(named.clone()))
    })
}

/// The rows that [`move_store`] would copy.
pub fn count_movable_rows(from: &dyn Movable, judge: &dyn Judge) -> Result<RowCounts> {
    let mut counts = RowCounts::new();
    from.transfer_with(&mut |tx| {
        tx.standing()?.require_serving()?;
        refuse_live_leases(tx, judge)?;
        counts = count_rows(tx)?;
        Ok(())
    })?;
    Ok(counts)
}

/// Copies everything to an empty store, and leaves this one as it is.
pub fn export_store(from: &dyn Movable, to: &dyn Movable) -> Result<()> {
    from.transfer_with(&mut |source| {
        source.standing()?.require_serving()?;
        to.transfer_with(&mut |tx| {
            replace_rows(tx, source)?;
            tx.raise_counters(source.counters()?)
        })
    })
}

/// Replaces all rows of a store with those of a backup, in one transaction. The leases of the backup are ended, because
/// their holders may have lost them since. With `force` also if a lease is held now, or if the store was sealed.
pub fn restore_store(
    backup: &dyn Movable,
    to: &dyn Movable,
    ctx: &Context<'_>,
    actor: &str,
    force: bool,
) -> Result<StoreContents> {
    let mut contents = None;
    backup.transfer_with(&mut |source| {
        to.transfer_with(&mut |tx| {
            if !force {
                tx.standing()?.require_serving()?;
                refuse_live_leases(tx, ctx.judge)?;
            }
            let mut counters = tx.counters()?.greatest(source.counters()?);
            counters.last_fence = counters.last_fence.saturating_add(FENCES_SKIPPED);
            replace_rows(tx, source)?;
            tx.raise_counters(counters)?;
            tx.set_standing(&Standing::Serving)?;
            for lease in tx.leases(&LeaseFilter::default())? {
                // Ending an earlier one may have ended this one too.
                if tx.open_lease(&lease.resource)?.is_some_and(|open| open.fence == lease.fence) {
                    kernel::evict(tx, ctx, actor, &lease)?;
                }
            }
            contents = Some(StoreContents { last_fence: counters.last_fence, tasks: count_tasks(tx)? });
            Ok(())
        })
    })?;
    contents.ok_or_else(|| Error::store("nothing was restored"))
}

pub fn contents_of(store: &dyn Movable) -> Result<StoreContents> {
    let mut contents = None;
    store.transfer_with(&mut |tx| {
        contents = Some(StoreContents { last_fence: tx.counters()?.last_fence, tasks: count_tasks(tx)? });
        Ok(())
    })?;
    contents.ok_or_else(|| Error::store("nothing was read"))
}

fn count_tasks(view: &dyn View) -> Result<u64> {
    Ok(view.count_tasks()?.iter().map(|(_, count)| count).sum())
}

fn replace_rows(tx: &mut dyn Transfer, source: &dyn Transfer) -> Result<()> {
    tx.delete_rows(&columns::tickets::TABLE)?;
    // The rows that follow were not examined yet.
    tx.delete_rows(&columns::pruning::TABLE)?;
    for table in COPIED_TABLES.iter().rev() {
        tx.delete_rows(table)?;
    }
    for table in COPIED_TABLES {
        source.read_rows(table, &mut |table, rows| tx.insert_rows(table, &rows))?;
    }
    tx.derive_values()
}

fn count_rows(tx: &dyn Transfer) -> Result<RowCounts> {
    let mut counts = RowCounts::new();
    for table in COPIED_TABLES {
        let mut count = 0;
        tx.read_rows(table, &mut |_, rows| {
            count += rows.len();
            Ok(())
        })?;
        counts.push((table.name, count));
    }
    Ok(counts)
}

/// A live lease is an error, because its holder would lose it without notice.
fn refuse_live_leases(view: &dyn View, judge: &dyn Judge) -> Result<()> {
    let open = view.leases(&LeaseFilter::default())?;
    let Some(held) = open.into_iter().find(|lease| lease.state(view.now(), judge) == LeaseState::Live) else {
        return Ok(());
    };
    let task = match held.resource.task_id() {
        Some(id) => view.task_row(&id, &Viewer::default())?.map(|task| kernel::name_of(&task)),
        None => None,
    };
    let section = match held.resource.section_id() {
        Some(id) => view.section(&id)?.map(|section| section.name),
        None => None,
    };
    let name = task.as_ref().map(|task| task.key.clone()).or(section).unwrap_or(held.resource.id.clone());
    let locked = kernel::locked(view, held.resource.clone(), &name, task, Some(held), &[])?;
    Err(Error::Locked(Box::new(locked)))
}
