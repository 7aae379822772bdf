//! The project that every test of runners begins with.

use std::ops::Deref;

use tenure_testkit::cli::{self, HASTY, PATIENT};

use crate::SUITE;

/// In a sandbox of its own, with the pretend agent.
pub(crate) struct Project(cli::Project);

impl Project {
    /// Nothing expires by itself.
    pub(crate) fn new() -> Self {
        Self::with(PATIENT)
    }

    /// Leases expire after three seconds without a heartbeat.
    pub(crate) fn hasty() -> Self {
        Self::with(HASTY)
    }

    pub(crate) fn with(config: &str) -> Self {
        Self(cli::Project::with_agent(SUITE, config))
    }
}

impl Deref for Project {
    type Target = cli::Project;

    fn deref(&self) -> &cli::Project {
        &self.0
    }
}
