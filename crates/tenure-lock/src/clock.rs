//! The only function of this crate that reads the time.
//!
//! Not monotonic: the value is written to lock files for information, and no decision depends on it.

use jiff::Timestamp;

#[expect(
    clippy::disallowed_methods,
    reason = "this crate does not depend on tenure_core and stamps its own files"
)]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}
