//! Diagnostic output of the libraries below: spans and events of `tracing`, on standard error or in a file.
//!
//! Off by default, and then a span costs one relaxed atomic load. `-vv` shows debug events and `-vvv` all events.
//! `TENURE_LOG=debug` and `TENURE_LOG=trace` do the same and are inherited by detached runners and hooks. Those have no
//! standard error, so `TENURE_LOG_FILE` names a file to append to.

use std::fs::File;
use std::path::Path;
use std::sync::Mutex;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::env::Env;
use crate::sys;

/// Starts the diagnostic output if the command line or the environment enables it. Only the first call in a process has an
/// effect.
pub(crate) fn start(env: &Env, verbose: u8) {
    let level = level(env.var("TENURE_LOG"), verbose);
    if level == LevelFilter::OFF {
        return;
    }
    // When a span closes, its busy and idle times are printed. They distinguish waiting from slow work.
    let format = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_target(true)
        .with_thread_names(true)
        .with_span_events(FmtSpan::NEW | FmtSpan::CLOSE);
    // An error means that a subscriber is installed already, as in a test that calls several commands.
    let _ = match env.var("TENURE_LOG_FILE").map(|path| append(&env.cwd.join(path))) {
        Some(Ok(file)) => {
            tracing::subscriber::set_global_default(format.with_writer(Mutex::new(file)).finish())
        }
        _ => tracing::subscriber::set_global_default(format.with_writer(std::io::stderr).finish()),
    };
}

fn append(path: &Path) -> std::io::Result<File> {
    sys::with_mode(File::options().append(true).create(true), 0o600).open(path)
}

/// The more verbose of the flag and the variable. An unknown value of the variable counts as `debug`.
fn level(word: Option<&str>, verbose: u8) -> LevelFilter {
    let named = match word.map(str::to_ascii_lowercase).as_deref() {
        None | Some("off" | "0") => LevelFilter::OFF,
        Some("error") => LevelFilter::ERROR,
        Some("warn") => LevelFilter::WARN,
        Some("info") => LevelFilter::INFO,
        Some("trace") => LevelFilter::TRACE,
        Some(_) => LevelFilter::DEBUG,
    };
    let counted = match verbose {
        0 | 1 => LevelFilter::OFF,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    named.max(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_talkative_of_flag_and_variable_decides() {
        assert_eq!(level(None, 0), LevelFilter::OFF);
        assert_eq!(level(None, 1), LevelFilter::OFF);
        assert_eq!(level(None, 2), LevelFilter::DEBUG);
        assert_eq!(level(Some("info"), 3), LevelFilter::TRACE);
        assert_eq!(level(Some("TRACE"), 2), LevelFilter::TRACE);
        assert_eq!(level(Some("yes"), 0), LevelFilter::DEBUG);
        assert_eq!(level(Some("off"), 0), LevelFilter::OFF);
    }
}
