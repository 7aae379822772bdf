//! Snapshots: a command line and what it answers, as text and as JSON.

use std::fmt::{self, Write as _};

use crate::support::TestEnv;

/// Tells command lines one after the other, each in a fresh world that the same steps have prepared, and each twice:
/// for a person and for a program. So no answer depends on one before it.
pub(crate) struct Story {
    prepare: Box<dyn Fn(&mut TestEnv)>,
    told: String,
}

impl Story {
    /// Begins outside any project.
    pub(crate) fn outside(prepare: impl Fn(&mut TestEnv) + 'static) -> Self {
        Self { prepare: Box::new(prepare), told: String::new() }
    }

    /// Begins in the project `shop`.
    pub(crate) fn project(prepare: impl Fn(&mut TestEnv) + 'static) -> Self {
        Self::outside(move |env| {
            env.ok(&["init", "--name", "shop"]);
            prepare(env);
        })
    }

    fn world(&self) -> TestEnv {
        let mut env = TestEnv::new();
        (self.prepare)(&mut env);
        env
    }

    pub(crate) fn tell(mut self, words: &[&str]) -> Self {
        let mut as_json = vec!["--json"];
        as_json.extend(words);
        let env = self.world();
        let text = env.run(words);
        // What was refused, or only tried, has changed nothing.
        let unchanged = text.code != 0 || words.contains(&"--dry-run");
        let env = if unchanged { env } else { self.world() };
        let _ = write!(self.told, "{text}\n{}\n", env.run(&as_json));
        self
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.told.trim_end())
    }
}

/// Runs each line, split at spaces; every one must succeed.
pub(crate) fn steps(env: &TestEnv, lines: &[&str]) {
    for line in lines {
        env.ok(&line.split(' ').collect::<Vec<_>>());
    }
}
