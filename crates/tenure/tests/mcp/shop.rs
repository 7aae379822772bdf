//! A project `shop` in a sandbox, as the clients of `tenure mcp` find it.

use std::ops::Deref;

use serde_json::Value;
use tenure_testkit::cli::{Project, Sandbox, StoreKind, Suite};

const SUITE: Suite = Suite { binary: env!("CARGO_BIN_EXE_tenure"), store: StoreKind::Sqlite };

/// `tenure` is on the search path, where clients look for it.
pub(crate) struct Shop(Project);

impl Deref for Shop {
    type Target = Project;

    fn deref(&self) -> &Project {
        &self.0
    }
}

impl Shop {
    pub(crate) fn new() -> Self {
        let sandbox = Sandbox::new(SUITE);
        sandbox.put_tenure_on_path();
        Self(sandbox.project("shop"))
    }

    pub(crate) fn with_tasks(count: usize) -> Self {
        let shop = Self::new();
        let plan: Vec<String> = (1..=count).map(|n| format!("- [ ] task number {n}")).collect();
        std::fs::write(shop.root().join("plan.md"), plan.join("\n")).unwrap();
        shop.ok(&["tasks", "import", "plan.md"]);
        shop
    }

    /// The envelope of a command, whatever its exit code.
    pub(crate) fn try_cli(&self, words: &[&str]) -> Value {
        self.run(&[&["--json"], words].concat()).json()
    }
}
