//! `cargo bench -p tenure` runs `tenure bench` in a release build, with the arguments after `--`. The measurements are in
//! `tenure_demo::bench`.

#![expect(clippy::unwrap_used, reason = "a bench stops where it fails")]

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    // Cargo passes `--bench` to every bench.
    let args = std::env::args_os().skip(1).filter(|arg| arg != "--bench");
    let status = Command::new(env!("CARGO_BIN_EXE_tenure")).arg("bench").args(args).status().unwrap();
    ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1))
}
