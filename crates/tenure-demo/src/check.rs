//! A guarantee that was observed on this machine.

/// A guarantee, and whether it held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub what: String,
    /// What was observed instead, if it did not hold.
    pub fault: Option<String>,
}

impl Check {
    pub(crate) fn new(what: impl Into<String>, fault: Option<String>) -> Self {
        Self { what: what.into(), fault }
    }

    pub fn holds(&self) -> bool {
        self.fault.is_none()
    }
}
