//! The content of an exclusive lock file.
//!
//! Guarantees: required fields are checked in the order holder, pid, hostname, `started_at`; unknown fields are kept.

use std::fmt;

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::error::{ExclusiveError, MalformedLock};
use crate::identity::{Host, Liveness, Probe, ProcessIdentity, judge, judge_by_hostname};
use crate::lock_file::Content;
use crate::resume::{Mark, nonce};
use crate::{clock, host, sys, text};

/// The content of an exclusive lock file.
///
/// ```
/// use tenure_lock::ExclusiveLock;
///
/// let lock = ExclusiveLock::new("ci-runner", "1.0.0");
/// lock.validate()?;
/// assert_eq!(ExclusiveLock::parse(lock.to_json()?.as_bytes())?, lock);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ExclusiveLock {
    /// The tool's name.
    pub holder: String,
    /// The tool's pid. A file may contain any number; only positive ones are valid.
    pub pid: i64,
    /// The host that the tool runs on.
    pub hostname: String,
    /// When the lock was acquired.
    pub started_at: Timestamp,
    /// The tool's version.
    pub version: Option<String>,
    /// Present only in files written by this crate: the exact process, and a value that is unique per acquisition.
    pub tenure: Option<Mark>,
    /// Unknown fields.
    pub extra: Map<String, Value>,
}

impl ExclusiveLock {
    /// A lock for the calling process, starting now. An empty version is omitted.
    pub fn new(holder: impl Into<String>, version: impl Into<String>) -> Self {
        Self::with_identity(holder.into(), version.into(), ProcessIdentity::current())
    }

    /// A lock for another running process, for example the parent shell.
    pub fn for_process(
        holder: impl Into<String>,
        version: impl Into<String>,
        pid: u32,
    ) -> Result<Self, ExclusiveError> {
        let identity = ProcessIdentity::of(pid).ok_or(ExclusiveError::NoSuchProcess { pid })?;
        Ok(Self::with_identity(holder.into(), version.into(), identity))
    }

    fn with_identity(holder: String, version: String, identity: ProcessIdentity) -> Self {
        let started_at = clock::now();
        Self {
            holder,
            pid: identity.pid.into(),
            hostname: host::hostname(),
            started_at,
            version: Some(version).filter(|version| !version.is_empty()),
            tenure: Some(Mark { nonce: nonce(std::process::id(), started_at), identity }),
            extra: Map::new(),
        }
    }

    /// The same acquisition, held by the calling process from now on.
    #[must_use]
    pub fn handed_to_this_process(&self) -> Self {
        let identity = ProcessIdentity::current();
        let pid = identity.pid.into();
        let tenure = self.tenure.as_ref().map(|mark| Mark { identity, nonce: mark.nonce.clone() });
        Self { pid, tenure, ..self.clone() }
    }

    /// Whether both are one acquisition, also if it was handed from one process to another.
    pub fn is_same_acquisition(&self, other: &Self) -> bool {
        match (&self.tenure, &other.tenure) {
            (Some(mine), Some(theirs)) => mine.nonce == theirs.nonce,
            _ => self == other,
        }
    }

    /// Parses the text of a lock file; the error names the first problem.
    pub fn parse(text: &[u8]) -> Result<Self, MalformedLock> {
        let value: Value = serde_json::from_slice(text).map_err(|error| {
            MalformedLock::new(if error.is_eof() { "unexpected EOF".to_owned() } else { error.to_string() })
        })?;
        let Value::Object(mut fields) = value else {
            return Err(MalformedLock::new("it is not a JSON object"));
        };
        let holder = required_text(&mut fields, "holder")?;
        let pid = match fields.shift_remove("pid") {
            None | Some(Value::Null) => return Err(MalformedLock::new("pid is missing")),
            Some(value) => value.as_i64().ok_or_else(|| MalformedLock::new("pid is not a whole number"))?,
        };
        check_pid(pid)?;
        let hostname = required_text(&mut fields, "hostname")?;
        let started_at = required_text(&mut fields, "started_at")?;
        let started_at =
            started_at.parse().map_err(|_| MalformedLock::new("started_at is not an RFC 3339 time"))?;
        let version = take_if(&mut fields, "version", |value| value.as_str().map(str::to_owned));
        let tenure = take_if(&mut fields, "tenure", |value| serde_json::from_value(value.clone()).ok());
        let lock = Self { holder, pid, hostname, started_at, version, tenure, extra: fields };
        lock.validate()?;
        Ok(lock)
    }

    pub(crate) fn from_content(content: &Content) -> Result<Self, MalformedLock> {
        match content {
            Content::Bytes(bytes) => Self::parse(bytes),
            Content::TooLarge => Err(MalformedLock::new("it is too large")),
        }
    }

    /// Whether the required fields have valid values: holder, pid, hostname, `started_at`, in this order.
    pub fn validate(&self) -> Result<(), MalformedLock> {
        if self.holder.is_empty() {
            return Err(MalformedLock::new("holder is empty"));
        }
        check_pid(self.pid)?;
        if self.hostname.is_empty() {
            return Err(MalformedLock::new("hostname is empty"));
        }
        // Go's zero time: the first second of the year 1.
        if self.started_at.as_second() == -62_135_596_800 {
            return Err(MalformedLock::new("started_at is empty"));
        }
        Ok(())
    }

    /// The text of the lock file.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The liveness of the holder. A holder on another host is unknown, which counts as alive.
    pub fn liveness(&self) -> Liveness {
        self.liveness_at(&Host::here(), sys::process::probe)
    }

    /// [`liveness`](Self::liveness) with host and probe as arguments. Uses the exact process if it is recorded, else
    /// pid and hostname.
    pub fn liveness_at(&self, here: &Host, probe: impl Fn(u32) -> Probe) -> Liveness {
        match &self.tenure {
            // If another tool changed the pid and kept the mark, the mark refers to a different process.
            Some(mark) if i64::from(mark.identity.pid) == self.pid => judge(&mark.identity, here, probe),
            _ => judge_by_hostname(self.pid, &self.hostname, here, probe),
        }
    }

    /// Whether this lock names that process: by its full identity if recorded, else by pid and hostname.
    pub fn is_held_by(&self, process: &ProcessIdentity) -> bool {
        match &self.tenure {
            Some(mark) if i64::from(mark.identity.pid) == self.pid => mark.identity == *process,
            _ => self.pid == i64::from(process.pid) && self.hostname.eq_ignore_ascii_case(&host::hostname()),
        }
    }
}

/// Whether a process is running: by pid on this host, and always assumed so on others. Hostnames are compared
/// case-insensitively.
pub fn is_process_alive(pid: i64, hostname: &str) -> bool {
    check_pid(pid).is_ok()
        && judge_by_hostname(pid, hostname, &Host::here(), sys::process::probe) != Liveness::Dead
}

impl fmt::Display for ExclusiveLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (holder, host) = (text::printable(&self.holder), text::printable(&self.hostname));
        let since = self.started_at.strftime("%Y-%m-%d %H:%M:%S UTC");
        write!(f, "{holder} (PID {} on {host} since {since})", self.pid)
    }
}

impl Serialize for ExclusiveLock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;

        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("holder", &self.holder)?;
        map.serialize_entry("pid", &self.pid)?;
        map.serialize_entry("hostname", &self.hostname)?;
        map.serialize_entry("started_at", &self.started_at)?;
        if let Some(version) = &self.version {
            map.serialize_entry("version", version)?;
        }
        if let Some(tenure) = &self.tenure {
            map.serialize_entry("tenure", tenure)?;
        }
        for (name, value) in &self.extra {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

fn check_pid(pid: i64) -> Result<(), MalformedLock> {
    if pid > 0 { Ok(()) } else { Err(MalformedLock::new(format!("pid {pid} is not positive"))) }
}

fn required_text(fields: &mut Map<String, Value>, name: &str) -> Result<String, MalformedLock> {
    match fields.shift_remove(name) {
        None | Some(Value::Null) => Err(MalformedLock::new(format!("{name} is missing"))),
        Some(Value::String(text)) if text.is_empty() => Err(MalformedLock::new(format!("{name} is empty"))),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(MalformedLock::new(format!("{name} is not a text"))),
    }
}

/// Removes an optional field if it has the expected shape; otherwise it stays among the unknown fields.
fn take_if<T>(
    fields: &mut Map<String, Value>,
    name: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Option<T> {
    let found = fields.get(name).and_then(read);
    if found.is_some() {
        fields.shift_remove(name);
    }
    found
}
