//! A project `shop` in a sandbox, for the clients of `tenure mcp`.

use std::ops::Deref;

use serde_json::Value;
use tenure_testkit::cli::{Project, Sandbox, StoreKind, Suite};

const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Sqlite };

/// `tenure` is on `PATH`, where clients look for it.
pub(crate) struct Shop(Project);

impl Deref for Shop {
    type Target = Project;

    fn deref(&self) -> &Project {
        &self.0
    }
}

impl Shop {
    pub(crate) fn new() -> Self {
        Self::on(None)
    }

    /// On this PostgreSQL server, or on SQLite.
    pub(crate) fn on(server: Option<String>) -> Self {
        let sandbox = Sandbox::on(SUITE, server);
        sandbox.put_tenure_on_path();
        Self(sandbox.project("shop"))
    }

    pub(crate) fn with_tasks(count: usize) -> Self {
        Self::with_tasks_on(None, count)
    }

    pub(crate) fn with_tasks_on(server: Option<String>, count: usize) -> Self {
        let shop = Self::on(server);
        let plan: Vec<String> = (1..=count).map(|n| format!("- [ ] task number {n}")).collect();
        std::fs::write(shop.root().join("plan.md"), plan.join("\n")).unwrap();
        shop.ok(&["tasks", "import", "plan.md"]);
        shop
    }

    /// The JSON envelope of a command, whatever its exit code.
    pub(crate) fn try_cli(&self, words: &[&str]) -> Value {
        self.run(&[&["--json"], words].concat()).json()
    }
}
