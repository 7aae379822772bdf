//! Snapshots: a command line and its output, as text and as JSON.

use std::fmt::{self, Write as _};

use crate::support::TestEnv;

/// Runs command lines one after the other, each in a fresh environment that the same steps have prepared, and each twice:
/// as text and as JSON. So no output depends on an earlier command.
pub(crate) struct Story {
    prepare: Box<dyn Fn(&mut TestEnv)>,
    transcript: String,
}

impl Story {
    /// Begins outside any project.
    pub(crate) fn outside(prepare: impl Fn(&mut TestEnv) + 'static) -> Self {
        Self { prepare: Box::new(prepare), transcript: String::new() }
    }

    /// Begins in the project `shop`.
    pub(crate) fn project(prepare: impl Fn(&mut TestEnv) + 'static) -> Self {
        Self::outside(move |env| {
            env.ok(&["init", "--name", "shop"]);
            prepare(env);
        })
    }

    fn fresh(&self) -> TestEnv {
        let mut env = TestEnv::new();
        (self.prepare)(&mut env);
        env
    }

    pub(crate) fn tell(mut self, words: &[&str]) -> Self {
        let mut as_json = vec!["--json"];
        as_json.extend(words);
        let env = self.fresh();
        let text = env.run(words);
        // A refused command or a dry run has changed nothing, so its environment is used again.
        let unchanged = text.code != 0 || words.contains(&"--dry-run");
        let env = if unchanged { env } else { self.fresh() };
        let _ = write!(self.transcript, "{text}\n{}\n", env.run(&as_json));
        self
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.transcript.trim_end())
    }
}

/// Runs each line, split at spaces; every one must succeed.
pub(crate) fn steps(env: &TestEnv, lines: &[&str]) {
    for line in lines {
        env.ok(&line.split(' ').collect::<Vec<_>>());
    }
}
