//! Runs only if no other process does the same job: `cargo run -p tenure-lock --example resume_lock -- FOLDER JOB`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program that prints")]

use std::path::PathBuf;
use std::process::ExitCode;

use tenure_lock::ResumeLockManager;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (Some(folder), Some(job)) = (args.next(), args.next()) else {
        eprintln!("usage: resume_lock FOLDER JOB");
        return ExitCode::from(2);
    };
    let lock = ResumeLockManager::new(PathBuf::from(folder)).and_then(|manager| manager.acquire(&job));
    // Held until it is dropped, also if this function returns early or panics. If the process is killed, the operating
    // system releases it.
    let _lock = match lock {
        Ok(lock) => lock,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(6);
        }
    };
    println!("working on {job}");
    // Reads to the end of standard input in place of the work.
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    ExitCode::SUCCESS
}
