//! The content of a resume lock file, and its meaning when no OS lock is held on it.
//!
//! Guarantees: a file is considered free only if it is an incomplete write by this crate, or names a process that is
//! proven dead.
//! Does not guarantee that a recycled pid in a foreign file is detected: such files record no start time.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::identity::{Host, Liveness, Probe, ProcessIdentity, judge, judge_by_hostname};
use crate::lock_file::Content;
use crate::{clock, host, text};

/// The beginning of every file written by this crate. No other tool writes the leading blank, so even one byte of a
/// torn write is recognised.
const HEADER: &[u8] = b" {\n  \"tenure\": {";

/// The content of a lock file. Tools that know only the last four fields can read and write it.
///
/// ```
/// let data = tenure_lock::ResumeLockData::new("job-1");
/// let text = serde_json::to_string(&data)?;
/// assert_eq!(serde_json::from_str::<tenure_lock::ResumeLockData>(&text)?, data);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeLockData {
    /// Present only in files written by this crate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenure: Option<Mark>,
    /// The id of the session or job.
    pub job_id: String,
    /// The holder's pid.
    pub process_id: u32,
    /// The holder's hostname.
    pub hostname: String,
    /// When the lock was acquired.
    pub acquired_at: Timestamp,
}

/// Identifies the process that wrote a file, and the acquisition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The writing process.
    pub identity: ProcessIdentity,
    /// Unique per acquisition.
    pub nonce: String,
}

impl ResumeLockData {
    /// The calling process as the holder, acquired now.
    pub fn new(job_id: impl Into<String>) -> Self {
        let identity = ProcessIdentity::current();
        let acquired_at = clock::now();
        let nonce = nonce(identity.pid, acquired_at);
        Self {
            job_id: job_id.into(),
            process_id: identity.pid,
            hostname: host::hostname(),
            acquired_at,
            tenure: Some(Mark { identity, nonce }),
        }
    }

    pub(crate) fn to_text(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut text = vec![b' '];
        serde_json::to_writer_pretty(&mut text, self)?;
        text.push(b'\n');
        Ok(text)
    }

    /// The liveness of the recorded process, regardless of any OS lock.
    pub fn liveness(&self) -> Liveness {
        match &self.tenure {
            Some(mark) => mark.identity.liveness(),
            None => judge_by_hostname(
                self.process_id.into(),
                &self.hostname,
                &Host::here(),
                crate::sys::process::probe,
            ),
        }
    }
}

impl fmt::Display for ResumeLockData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "PID {} on {} (acquired {})",
            self.process_id,
            text::printable(&self.hostname),
            self.acquired_at.strftime("%Y-%m-%d %H:%M:%S UTC")
        )
    }
}

/// Unique among all processes of a boot: the time distinguishes processes with the same pid, the counter acquisitions
/// of one process.
pub(crate) fn nonce(pid: u32, now: Timestamp) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{pid:x}-{:x}-{:x}", now.as_nanosecond(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The meaning of the content of an unlocked file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Free; the recorded holder, if any, is dead.
    Free(Option<ResumeLockData>),
    /// The recorded process is running or may be running.
    Taken(ResumeLockData, Liveness),
    /// Not recognisable as a lock file.
    Unreadable(String),
}

pub(crate) fn read_data(content: &Content) -> Option<ResumeLockData> {
    match content {
        Content::Bytes(bytes) => serde_json::from_slice(bytes).ok(),
        Content::TooLarge => None,
    }
}

/// Evaluates the content of a file on which no OS lock is held.
pub(crate) fn judge_content(content: &Content, here: &Host, probe: impl Fn(u32) -> Probe) -> Verdict {
    let bytes = match content {
        Content::Bytes(bytes) => bytes,
        Content::TooLarge => return Verdict::Unreadable("the lock file is too large".to_owned()),
    };
    if HEADER.starts_with(bytes) {
        return Verdict::Free(None);
    }
    let data: ResumeLockData = match serde_json::from_slice(bytes) {
        Ok(data) => data,
        Err(error) if error.is_eof() && bytes.starts_with(HEADER) => return Verdict::Free(None),
        Err(error) => return Verdict::Unreadable(format!("malformed lock file: {error}")),
    };
    let liveness = match &data.tenure {
        // The kernel releases the OS lock when its holder ends. A file of this boot without an OS lock therefore has
        // no live holder, in whichever container or under whatever hostname it ran.
        Some(mark) if !here.boot_id.is_empty() && mark.identity.boot_id == here.boot_id => Liveness::Dead,
        Some(mark) => judge(&mark.identity, here, probe),
        None => judge_by_hostname(data.process_id.into(), &data.hostname, here, probe),
    };
    match liveness {
        Liveness::Dead => Verdict::Free(Some(data)),
        Liveness::Alive | Liveness::Unknown => Verdict::Taken(data, liveness),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn here() -> Host {
        Host { host_id: "machine".into(), boot_id: "boot-2".into(), pid_ns: 7, hostname: "box".into() }
    }

    fn ours(host_id: &str, boot_id: &str) -> ResumeLockData {
        let identity = ProcessIdentity {
            host_id: host_id.into(),
            boot_id: boot_id.into(),
            pid: 42,
            start_time: 1,
            pid_ns: 7,
        };
        ResumeLockData {
            tenure: Some(Mark { identity, nonce: "n".into() }),
            job_id: "job".into(),
            process_id: 42,
            hostname: "elsewhere".into(),
            acquired_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn foreign(hostname: &str) -> Vec<u8> {
        let text =
            r#"{"job_id":"job","process_id":42,"hostname":"HOST","acquired_at":"2025-01-11T10:30:00.123Z"}"#;
        text.replace("HOST", hostname).into_bytes()
    }

    fn judged(bytes: &[u8], probe: Probe) -> Verdict {
        judge_content(&Content::Bytes(bytes.to_vec()), &here(), |_| probe)
    }

    const RUNS: Probe = Probe::Running { start_time: Some(1) };

    fn is_free(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Free(_))
    }

    #[test]
    fn every_text_written_by_this_crate_starts_with_the_header() {
        assert!(ResumeLockData::new("job").to_text().unwrap().starts_with(HEADER));
    }

    #[test]
    fn every_torn_write_of_this_crate_is_free() {
        let text = ours("machine", "boot-2").to_text().unwrap();
        for length in 0..text.len() {
            assert!(is_free(&judged(&text[..length], RUNS)), "cut after {length} bytes");
        }
    }

    #[test]
    fn a_torn_foreign_write_is_not_free_unless_it_is_empty() {
        let text = foreign("box");
        assert!(is_free(&judged(&text[..0], RUNS)));
        for length in 1..text.len() {
            assert!(
                matches!(judged(&text[..length], Probe::Gone), Verdict::Unreadable(_)),
                "cut after {length}"
            );
        }
    }

    #[test]
    fn a_file_of_this_boot_is_dead_whatever_host_or_pid_it_names() {
        assert!(is_free(&judged(&ours("machine", "boot-2").to_text().unwrap(), RUNS)));
        assert!(is_free(&judged(&ours("container", "boot-2").to_text().unwrap(), RUNS)));
    }

    #[test]
    fn a_file_of_an_earlier_boot_of_this_host_is_dead() {
        assert!(is_free(&judged(&ours("machine", "boot-1").to_text().unwrap(), RUNS)));
    }

    #[test]
    fn a_file_of_another_host_is_never_taken_over() {
        let verdict = judged(&ours("remote", "boot-9").to_text().unwrap(), Probe::Gone);
        assert!(matches!(verdict, Verdict::Taken(_, Liveness::Unknown)), "{verdict:?}");
    }

    #[test]
    fn a_foreign_file_is_judged_by_hostname_and_pid() {
        assert!(matches!(judged(&foreign("box"), RUNS), Verdict::Taken(_, Liveness::Alive)));
        assert!(is_free(&judged(&foreign("BOX"), Probe::Gone)));
        assert!(is_free(&judged(&foreign("box"), Probe::Zombie)));
        assert!(matches!(judged(&foreign("test-host"), Probe::Gone), Verdict::Taken(_, Liveness::Unknown)));
    }

    #[test]
    fn anything_else_is_unreadable() {
        for bytes in [
            &b"{}"[..],
            b"null",
            b"not json",
            b"\0\0\0\0",
            b"\xff\xfe",
            b"[1]",
            b" ",
            b"{\"job_id\":1}",
            b"  {",
            br#"{"job_id":"a","process_id":-1,"hostname":"box","acquired_at":"2025-01-11T10:30:00Z"}"#,
        ] {
            let verdict = judged(bytes, Probe::Gone);
            let blank = bytes == b" ";
            assert_eq!(is_free(&verdict), blank, "{bytes:?}: {verdict:?}");
        }
        let huge = judge_content(&Content::TooLarge, &here(), |_| Probe::Gone);
        assert!(matches!(huge, Verdict::Unreadable(_)));
    }

    proptest! {
        #[test]
        fn content_is_free_only_if_it_is_a_torn_write_or_names_a_dead_process(
            bytes in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..200),
                "[ {}\"a-z:,0-9\\n]{0,120}".prop_map(String::into_bytes),
                ("[a-z0-9_-]{0,12}", any::<i64>(), "[a-zA-Z.-]{0,12}|box", "[0-9TZ:.-]{0,24}|2025-01-11T10:30:00Z")
                    .prop_map(|(job, pid, host, at)| format!(
                        r#"{{"job_id":"{job}","process_id":{pid},"hostname":"{host}","acquired_at":"{at}"}}"#
                    ).into_bytes()),
            ],
            gone: bool,
        ) {
            let probe = if gone { Probe::Gone } else { RUNS };
            if let Verdict::Free(named) = judged(&bytes, probe) {
                let remnant = HEADER.starts_with(&bytes) || bytes.starts_with(HEADER);
                let dead = gone && named.is_some_and(|data| data.hostname.eq_ignore_ascii_case("box"));
                prop_assert!(remnant || dead, "{:?}", String::from_utf8_lossy(&bytes));
            }
        }

        #[test]
        fn flipping_any_byte_never_panics_and_never_frees_a_remote_holder_by_mistake(
            position in 0_usize..400, byte: u8,
        ) {
            let mut text = ours("remote", "boot-9").to_text().unwrap();
            let position = position % text.len();
            text[position] = byte;
            if let Verdict::Free(Some(data)) = judged(&text, Probe::Gone) {
                let identity = data.tenure.map(|mark| mark.identity);
                prop_assert!(identity.is_none_or(|found| found.host_id == "machine" || found.boot_id == "boot-2"));
            }
        }
    }
}
