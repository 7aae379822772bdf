//! What an attempt led to, and outcomes that are kept outside the store while it does not answer (F6).
//!
//! A supervisor that cannot write an outcome keeps it, together with a nonce that only the supervisor knew while the
//! command ran: the attempt's row has the hash of that nonce, so that a command cannot invent an outcome for its own
//! attempt. The transaction that closes the lease applies what was kept.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::id::{AttemptId, Fence, Ids};

/// What an attempt led to, as its supervisor has judged it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum AttemptResult {
    Done,
    /// The task or the item has failed. A review has rejected its task.
    Failed {
        why: String,
        /// Whether the attempt is charged.
        #[serde(default)]
        charged: bool,
    },
    /// The agent did not say what became of the task: a person or a reviewer decides, and nothing is charged.
    Unreported {
        why: String,
    },
    /// The attempt broke off without a result: the task is returned and the attempt charged.
    Broken {
        why: String,
    },
    /// Returned without a charge.
    Returned {
        why: String,
    },
}

/// An outcome that could not be written to the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptOutcome {
    pub attempt: AttemptId,
    pub fence: Fence,
    pub nonce: Nonce,
    pub exit_code: Option<i32>,
    pub result: AttemptResult,
}

/// The secret that proves that an outcome was kept by the supervisor of its attempt.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nonce(String);

impl Nonce {
    pub fn new(ids: &dyn Ids) -> Self {
        Self(ids.uuid())
    }

    /// The hash that the attempt's row records.
    pub fn hash(&self) -> String {
        let mut text = String::new();
        for byte in Sha256::digest(self.0.as_bytes()) {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce")
    }
}

/// Where outcomes are kept. The kernel only reads; supervisors and reapers change it, outside of transactions.
pub trait Outcomes: Send + Sync + fmt::Debug {
    /// What was kept for the lease with this fence. Not verified.
    fn kept(&self, fence: Fence) -> Option<KeptOutcome>;

    fn keep(&self, outcome: &KeptOutcome) -> std::io::Result<()>;

    /// Removes what was kept for a lease that is over.
    fn forget(&self, fence: Fence);
}

/// Keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOutcomes;

impl Outcomes for NoOutcomes {
    fn kept(&self, _fence: Fence) -> Option<KeptOutcome> {
        None
    }

    fn keep(&self, _outcome: &KeptOutcome) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn forget(&self, _fence: Fence) {}
}
