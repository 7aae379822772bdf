//! What a server of the board keeps for the next one, in `~/.tenure/web/`: its name and port, so that open pages find it again, the
//! hashes of its sessions, and the token for `/metrics`.
//!
//! Guaranteed: a file has one server at a time. Another server of the same project gets a separate file, and therefore
//! another name.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_serve::web::SessionRecord;

use crate::atomic;
use crate::env::Env;
use crate::sys;

/// The most servers of one project.
const MOST: usize = 32;

#[derive(Debug)]
pub(super) struct SavedServer {
    path: PathBuf,
    /// Locked while the server runs.
    _lock: File,
    name: String,
    token: String,
    port: Option<u16>,
    sessions: Vec<SessionRecord>,
}

impl SavedServer {
    /// The first of the files `KIND.json`, `KIND-2.json` and so on that no other server has.
    pub(super) fn take(folder: &Path, kind: &str, env: &Env) -> io::Result<Self> {
        atomic::make_folder(folder)?;
        for number in 1..=MOST {
            let name = if number == 1 { kind.to_owned() } else { format!("{kind}-{number}") };
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            let lock = sys::with_mode(&mut options, 0o600).open(folder.join(format!("{name}.lock")))?;
            match lock.try_lock() {
                Ok(()) => return Ok(Self::read(folder.join(format!("{name}.json")), lock, env)),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::other(format!("{MOST} servers of this project are running")))
    }

    /// A file that is missing or damaged counts as empty.
    fn read(path: PathBuf, lock: File, env: &Env) -> Self {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let before: Value = serde_json::from_str(&text).unwrap_or_default();
        let named = |key: &str, is_good: &dyn Fn(&str) -> bool| {
            before[key].as_str().filter(|text| is_good(text)).map(str::to_owned)
        };
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let name = named("name", &|text| text.len() == 8 && is_hex(text));
        let token = named("metricsToken", &|text| text.len() == 64 && is_hex(text));
        let secret = || format!("{}{}", env.ids.uuid(), env.ids.uuid()).replace('-', "");
        Self {
            path,
            _lock: lock,
            name: name.unwrap_or_else(|| env.ids.hex8().to_lowercase()),
            token: token.unwrap_or_else(secret),
            port: before["port"].as_u64().and_then(|port| u16::try_from(port).ok()),
            sessions: serde_json::from_value(before["sessions"].clone()).unwrap_or_default(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn port(&self) -> Option<u16> {
        self.port
    }

    pub(super) fn sessions(&self) -> Vec<SessionRecord> {
        self.sessions.clone()
    }

    /// Records the port, and writes the file for the first time.
    pub(super) fn listens_on(&mut self, port: u16) -> io::Result<()> {
        self.port = Some(port);
        self.write(&self.sessions)
    }

    /// Records the sessions. If that fails, they end with the server.
    pub(super) fn keep(&self, sessions: &[SessionRecord]) {
        let _ = self.write(sessions);
    }

    fn write(&self, sessions: &[SessionRecord]) -> io::Result<()> {
        let contents = json!({
            "name": self.name, "port": self.port, "metricsToken": self.token, "sessions": sessions,
        });
        atomic::write_secret(&self.path, &format!("{contents:#}\n"), &std::process::id().to_string())
    }
}
