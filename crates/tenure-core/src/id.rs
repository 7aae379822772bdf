//! Identifiers, and how new ones are generated.
//!
//! Ids that are displayed shortened to eight characters are random (UUID v4), because the first eight characters of a
//! time-ordered id would be equal for all ids generated within a minute.

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
    /// A task's permanent id: a UUID.
    TaskId
}
text_id! {
    /// A section's id: a UUID.
    SectionId
}
text_id! {
    /// A lease's id for display: `L` and eight hex digits.
    LeaseId
}
text_id! {
    /// The id of one execution under a lease, and the value that marks its processes in their environment.
    AttemptId
}

text_id! {
    /// The id of a store: 32 random hex digits, drawn when the store is made. Two stores with the same rows, such as the
    /// source and the target of `store copy`, have different ids.
    StoreId
}

/// The number of a lease. A later lease on the same resource always has a greater fence.
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

/// A source of new ids.
pub trait Ids: Send + Sync + fmt::Debug {
    fn uuid(&self) -> String;

    /// Eight upper-case hex digits, for leases and agents.
    fn hex8(&self) -> String;

    fn store(&self) -> StoreId {
        StoreId::new(self.uuid().replace('-', ""))
    }

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

/// Generates ids from the operating system's random numbers.
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
