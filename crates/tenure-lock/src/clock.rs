//! The one place of this crate that reads the time.
//!
//! Guarantees nothing about monotonicity: the value goes into lock files for people to read, and no decision depends on it.

use jiff::Timestamp;

#[expect(clippy::disallowed_methods, reason = "this crate is below tenure_core and stamps its own files")]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}
