//! Names of things, and where new ones come from.
//!
//! Ids that people see shortened to eight characters are random (UUID v4): the first eight of a time-ordered id
//! would be the same for everything made within a minute.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// A task, for ever: a UUID.
    TaskId
}
text_id! {
    /// A section: a UUID.
    SectionId
}
text_id! {
    /// One grant as people name it: `L` and eight hex digits.
    LeaseId
}
text_id! {
    /// One execution under a lease. It is also the mark in that execution's environment.
    AttemptId
}

/// The number of a grant. A later grant of the same resource always has a greater one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(i64);

impl Fence {
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    pub const fn number(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Where new ids come from.
pub trait Ids: Send + Sync + fmt::Debug {
    fn uuid(&self) -> String;

    /// Eight upper-case hex digits, for leases and agents.
    fn hex8(&self) -> String;

    fn task(&self) -> TaskId {
        TaskId::new(self.uuid())
    }

    fn section(&self) -> SectionId {
        SectionId::new(self.uuid())
    }

    fn lease(&self) -> LeaseId {
        LeaseId::new(format!("L{}", self.hex8()))
    }

    fn attempt(&self) -> AttemptId {
        AttemptId::new(self.uuid())
    }

    fn agent(&self) -> String {
        format!("A{}", self.hex8())
    }
}

/// Ids from the operating system's random numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn uuid(&self) -> String {
        uuid::Uuid::new_v4().to_string()
    }

    fn hex8(&self) -> String {
        let mut text = uuid::Uuid::new_v4().simple().to_string().to_uppercase();
        text.truncate(8);
        text
    }
}
