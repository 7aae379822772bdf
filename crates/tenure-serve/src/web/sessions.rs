//! Access to the web board: single-use codes, and the sessions that are opened with them.
//!
//! Guaranteed: a code opens one session, within [`CODE_LIFE`]; neither codes nor the tokens of sessions are kept, only their hashes. The
//! records of sessions outlive the server if the caller saves them, so open pages keep working after a restart.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tenure_lock::BootTime;

/// How long a code can be used.
pub const CODE_LIFE: Duration = Duration::from_mins(1);
/// How long a session lasts, in milliseconds.
const SESSION_LIFE: i64 = 7 * 24 * 60 * 60 * 1000;
/// When there are more codes or sessions than this, the oldest are dropped.
const MOST_CODES: usize = 16;
const MOST_SESSIONS: usize = 64;

/// What is kept of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRecord {
    /// The SHA-256 hash of its token.
    pub hash: String,
    /// Milliseconds since 1970.
    pub expires_at: i64,
}

/// The secret of one session: the value of its cookie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The value that forms and scripts of this session's pages send with a change. It is derived from the token, so it
    /// is not stored.
    pub(crate) fn csrf(&self) -> String {
        hash(&format!("csrf {}", self.0))
    }
}

/// Makes a new secret of at least 128 random bits.
pub type MakeSecret = Box<dyn Fn() -> String + Send + Sync>;
/// Saves the records of all sessions.
pub type SaveSessions = Box<dyn Fn(&[SessionRecord]) + Send + Sync>;

pub struct Sessions {
    make_secret: MakeSecret,
    save: SaveSessions,
    now: Box<dyn Fn() -> i64 + Send + Sync>,
    /// The clock by which codes expire. It cannot be set and counts suspend.
    boot_time: Box<dyn Fn() -> BootTime + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    codes: Vec<(String, BootTime)>,
    sessions: Vec<SessionRecord>,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Sessions {
    /// `now` is the wall clock in milliseconds; `known` are the records of earlier servers.
    pub fn new(
        make_secret: MakeSecret,
        save: SaveSessions,
        now: Box<dyn Fn() -> i64 + Send + Sync>,
        known: Vec<SessionRecord>,
    ) -> Self {
        let state = Mutex::new(State { codes: Vec::new(), sessions: known });
        Self { make_secret, save, now, boot_time: Box::new(BootTime::now), state }
    }

    /// A new code, which opens one session within [`CODE_LIFE`].
    pub fn issue_code(&self) -> String {
        let code = (self.make_secret)();
        let now = (self.boot_time)();
        let mut state = self.state();
        state.codes.retain(|(_, issued)| is_fresh(*issued, now));
        if state.codes.len() >= MOST_CODES {
            state.codes.remove(0);
        }
        state.codes.push((hash(&code), now));
        code
    }

    /// Opens a session, if the code is valid. The code is used up.
    pub(crate) fn open(&self, code: &str) -> Option<Token> {
        let mut state = self.state();
        let (code, now) = (hash(code), (self.now)());
        let boot_time = (self.boot_time)();
        let is_valid = |(known, issued): &(String, BootTime)| *known == code && is_fresh(*issued, boot_time);
        let at = state.codes.iter().position(is_valid)?;
        state.codes.remove(at);
        let token = Token((self.make_secret)());
        state.sessions.retain(|session| session.expires_at > now);
        if state.sessions.len() >= MOST_SESSIONS {
            state.sessions.remove(0);
        }
        state.sessions.push(SessionRecord { hash: hash(&token.0), expires_at: now + SESSION_LIFE });
        (self.save)(&state.sessions);
        Some(token)
    }

    pub(crate) fn is_open(&self, token: &Token) -> bool {
        let (wanted, now) = (hash(&token.0), (self.now)());
        self.state().sessions.iter().any(|session| session.hash == wanted && session.expires_at > now)
    }

    pub(crate) fn close(&self, token: &Token) {
        let closed = hash(&token.0);
        let mut state = self.state();
        state.sessions.retain(|session| session.hash != closed);
        (self.save)(&state.sessions);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_fresh(issued: BootTime, now: BootTime) -> bool {
    now.since(issued) < CODE_LIFE
}

fn hash(text: &str) -> String {
    let mut hex = String::new();
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

    use super::*;

    fn sessions(known: Vec<SessionRecord>) -> (Sessions, Arc<AtomicI64>, Arc<Mutex<Vec<SessionRecord>>>) {
        let (number, clock, saved) =
            (AtomicU64::new(0), Arc::new(AtomicI64::new(1_000)), Arc::new(Mutex::new(Vec::new())));
        let (now, store) = (Arc::clone(&clock), Arc::clone(&saved));
        let all = Sessions::new(
            Box::new(move || format!("secret-{}", number.fetch_add(1, Ordering::SeqCst))),
            Box::new(move |records| *store.lock().unwrap() = records.to_vec()),
            Box::new(move || now.load(Ordering::SeqCst)),
            known,
        );
        (all, clock, saved)
    }

    #[test]
    fn a_code_opens_one_session_and_no_other() {
        let (all, ..) = sessions(Vec::new());
        let code = all.issue_code();
        assert!(all.open("secret-1").is_none());
        let token = all.open(&code).unwrap();
        assert!(all.is_open(&token));
        assert!(all.open(&code).is_none(), "it was used");
        assert!(!all.is_open(&Token::new("made up")));
        all.close(&token);
        assert!(!all.is_open(&token));
    }

    #[test]
    fn a_code_expires_after_a_minute() {
        let (mut all, ..) = sessions(Vec::new());
        let elapsed = Arc::new(Mutex::new(Duration::from_secs(5)));
        let clock = Arc::clone(&elapsed);
        all.boot_time = Box::new(move || BootTime::after_boot(*clock.lock().unwrap()));
        let (in_time, late) = (all.issue_code(), all.issue_code());
        *elapsed.lock().unwrap() += CODE_LIFE.checked_sub(Duration::from_millis(1)).unwrap();
        assert!(all.open(&in_time).is_some());
        *elapsed.lock().unwrap() += Duration::from_millis(1);
        assert!(all.open(&late).is_none());
        assert!(all.open(&all.issue_code()).is_some(), "a new code works");
    }

    #[test]
    fn a_session_lasts_beyond_the_server_and_not_beyond_its_time() {
        let (all, _, saved) = sessions(Vec::new());
        let token = all.open(&all.issue_code()).unwrap();
        let records = saved.lock().unwrap().clone();
        assert!(!format!("{records:?}").contains(token.as_str()), "only the hash is kept");
        let (later, clock, _) = sessions(records);
        assert!(later.is_open(&token));
        clock.fetch_add(SESSION_LIFE, Ordering::SeqCst);
        assert!(!later.is_open(&token));
    }
}
