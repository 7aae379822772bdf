//! Identifiers, and how new ones are generated.
//!
//! Ids that are displayed shortened to eight characters are random (UUID v4), because the first eight characters of a
//! time-ordered id would be equal for all ids generated within a minute.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

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
    /// A lease's public name: `L` and eight hex digits.
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

impl StoreId {
    /// An id that was read from a store. It is used as the name of a folder, so anything but letters and digits is
    /// refused.
    pub fn stored(text: &str) -> Result<Self> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Ok(Self::new(text));
        }
        Err(Error::damaged("unexpected data in the store: its id is not valid"))
    }
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

/// The secret of a lease: 16 hex digits that only its holder is given. Stores keep a hash of it.
///
/// It is never formatted: `Debug` hides it, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct LeaseKey(String);

impl LeaseKey {
    pub const DIGITS: usize = 16;

    /// `None` unless `text` is 16 hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_key = text.len() == Self::DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_key.then(|| Self(text.to_ascii_uppercase()))
    }

    /// The secret itself. Only the holder may see it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for LeaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseKey(hidden)")
    }
}

/// The id and the key of a lease, which together prove that their bearer is its holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseProof {
    pub lease: LeaseId,
    pub key: LeaseKey,
}

impl LeaseProof {
    /// Reads what [`Self::reveal`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (lease, key) = text.trim().rsplit_once('-')?;
        let key = LeaseKey::parse(key)?;
        (!lease.is_empty()).then(|| Self { lease: LeaseId::new(lease), key })
    }

    /// `L1234ABCD-0123456789ABCDEF`, the value of `TENURE_LEASE` and `--lease`.
    pub fn reveal(&self) -> String {
        format!("{}-{}", self.lease, self.key.reveal())
    }

    /// What a store keeps of the key: a reader of the store cannot act as the holder.
    pub fn hash(&self) -> String {
        let digest = Sha256::digest(self.reveal().as_bytes());
        digest.iter().take(16).fold(String::with_capacity(32), |mut hex, byte| {
            use fmt::Write;
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

/// A source of new ids.
pub trait Ids: Send + Sync + fmt::Debug {
    fn uuid(&self) -> String;

    /// Eight upper-case hex digits, for leases and agents.
    fn hex8(&self) -> String;

    /// A secret for a new lease.
    fn lease_key(&self) -> LeaseKey;

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

    fn lease_key(&self) -> LeaseKey {
        LeaseKey(format!("{}{}", self.hex8(), self.hex8()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_read_as_it_is_written_and_nothing_else_is_one() {
        let key = RandomIds.lease_key();
        assert_ne!(key, RandomIds.lease_key());
        let proof = LeaseProof { lease: RandomIds.lease(), key };
        assert_eq!(LeaseProof::parse(&proof.reveal()), Some(proof.clone()));
        assert_eq!(
            LeaseProof::parse(&proof.reveal().to_ascii_lowercase()).map(|read| read.key),
            Some(proof.key)
        );
        for text in [
            "",
            "L1234ABCD",
            "L1234ABCD-",
            "-0123456789ABCDEF",
            "L1234ABCD-123",
            "L1234ABCD-0123456789ABCDEG",
        ] {
            assert_eq!(LeaseProof::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_key_is_neither_formatted_nor_kept_in_its_hash() {
        let key = LeaseKey::parse("0123456789ABCDEF").unwrap();
        let proof = LeaseProof { lease: LeaseId::new("L1234ABCD"), key };
        assert!(!format!("{proof:?}").contains("01234567"));
        assert_eq!(proof.hash().len(), 32);
        let other = LeaseProof { lease: LeaseId::new("L1234ABCE"), ..proof.clone() };
        assert_ne!(proof.hash(), other.hash(), "the hash is of the lease's id, too");
    }
}
