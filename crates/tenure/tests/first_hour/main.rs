//! The first hour of a new user, at real terminals of 80 columns and 24 rows: what is typed, and the screens that follow. The
//! screens are snapshots, to be read as that user would read them.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod backlog;
mod library;
mod overnight;
mod release;
mod screens;
mod server;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_testkit::cli::{Sandbox, StoreKind, Suite, Terminal};

const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Sqlite };

/// A user with an empty home, and a folder for the project.
struct Desk {
    sandbox: Arc<Sandbox>,
    folder: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let sandbox = Sandbox::new(SUITE);
        sandbox.put_tenure_on_path();
        // The user's own timers are not read.
        let crontab = "#!/bin/sh\necho 'no crontab for tester' >&2\nexit 1\n";
        tenure_testkit::cli::write_program(&sandbox.path("bin/crontab"), crontab);
        let folder = sandbox.path("projects/shop");
        std::fs::create_dir(&folder).unwrap();
        Self { sandbox, folder }
    }

    /// A window in which commands run as the agent with this name.
    fn window(&self, name: &str) -> Terminal {
        self.window_in(name, &self.folder)
    }

    fn window_in(&self, name: &str, folder: &Path) -> Terminal {
        let terminal = Terminal::open(&self.sandbox, name, folder, (80, 24));
        terminal.run(&format!("export TENURE_AGENT={name}"));
        terminal.clear();
        terminal
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).unwrap();
    }

    fn write_program(&self, name: &str, text: &str) {
        tenure_testkit::cli::write_program(&self.folder.join(name), text);
    }

    fn give(&self, name: &str) {
        self.write(name, "");
    }
}
