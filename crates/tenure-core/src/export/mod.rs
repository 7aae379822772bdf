//! Tasks as text for other programs: Markdown and JSON, which an import reads back as the same tasks, and CSV for
//! spreadsheets.
//!
//! Guarantees: pure, and linear in the size of the tasks. For any tasks and sections, [`crate::import::parse`] of the
//! Markdown or the JSON gives the same keys, titles, descriptions, sections, priorities, dependencies, labels, sources and
//! statuses, in the same order within each section. A task that is in progress is read as pending, because an import grants no lease.
//! Not exported to any format: ids, leases, attempts, messages and events. `tenure store backup` has all of that.

mod csv;
mod json;
mod markdown;

pub use csv::csv;
pub use json::document;
pub use markdown::markdown;

#[cfg(test)]
mod tests;
