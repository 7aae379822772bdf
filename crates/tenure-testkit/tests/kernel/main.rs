//! The kernel as a whole: explored by a model checker, compared with a naive model, and tested with a jumping clock.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "this is test code: a failed expectation is a failed test, and the figures are part of the answer"
)]

mod clock;
mod model;
mod oracle;
mod store_clock;

/// Whether to run the long version of the tests (`TENURE_TEST_FULL`).
fn full() -> bool {
    std::env::var_os("TENURE_TEST_FULL").is_some_and(|value| value == "1")
}
