//! Waiting for conditions, always with a bound.

use std::io::Write;
use std::time::{Duration, Instant};

/// A condition that does not hold after this long counts as hanging.
pub const HANG: Duration = Duration::from_mins(2);

const POLL: Duration = Duration::from_millis(5);

/// Polls `condition` until it holds, and fails the test after [`HANG`].
#[track_caller]
pub fn until(what: &str, condition: impl FnMut() -> bool) {
    until_within(HANG, what, condition);
}

/// [`until`], for a test in which the limit itself matters.
#[track_caller]
pub fn until_within(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {limit:?} in vain until {what}");
        std::thread::sleep(POLL);
    }
}

/// `long` with `TENURE_TEST_FULL=1`, else `short`.
pub fn full_or<T>(long: T, short: T) -> T {
    if std::env::var("TENURE_TEST_FULL").is_ok_and(|v| v == "1") { long } else { short }
}

/// Reports that a test could not run here: to standard error directly, because `eprintln!` of a passing test is
/// captured, and to the file `TENURE_TEST_SKIPS`, because nextest shows no output of passing tests at all. `./test`
/// prints that file.
pub fn skip(why: &str) {
    let line = format!("SKIPPED: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os("TENURE_TEST_SKIPS") {
        let file = std::fs::File::options().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

/// Whether processes are found as on macOS: on macOS itself, or in a run that simulates it.
pub fn is_like_macos() -> bool {
    cfg!(target_os = "macos") || std::env::var_os("TENURE_SIMULATE").is_some_and(|value| value == "macos")
}

/// Whether a test has to be skipped because macOS neither shows nor hands over the processes that it needs. Reports the
/// skip.
pub fn lacks_linux(test: &str, why: &str) -> bool {
    if is_like_macos() {
        skip(&format!("{test} needs Linux: {why}"));
    }
    is_like_macos()
}
