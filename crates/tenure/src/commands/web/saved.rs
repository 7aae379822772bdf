//! What a server of the board keeps for the next one, in `~/.tenure/web/`: its name and port, so that open pages find it again, the
//! hashes of its sessions, and the token for `/metrics`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_serve::web::SessionRecord;

use crate::atomic;
use crate::env::Env;

#[derive(Debug)]
pub(super) struct Saved {
    path: PathBuf,
    name: String,
    token: String,
    port: Option<u16>,
    sessions: Vec<SessionRecord>,
}

impl Saved {
    /// A file that is missing or damaged counts as empty.
    pub(super) fn read(path: &Path, env: &Env) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let before: Value = serde_json::from_str(&text).unwrap_or_default();
        let named = |key: &str, is_good: &dyn Fn(&str) -> bool| {
            before[key].as_str().filter(|text| is_good(text)).map(str::to_owned)
        };
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let name = named("name", &|text| text.len() == 8 && is_hex(text));
        let token = named("metricsToken", &|text| text.len() == 64 && is_hex(text));
        let secret = || format!("{}{}", env.ids.uuid(), env.ids.uuid()).replace('-', "");
        Self {
            path: path.to_owned(),
            name: name.unwrap_or_else(|| env.ids.hex8().to_lowercase()),
            token: token.unwrap_or_else(secret),
            port: before["port"].as_u64().and_then(|port| u16::try_from(port).ok()),
            sessions: serde_json::from_value(before["sessions"].clone()).unwrap_or_default(),
        }
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
        if let Some(folder) = self.path.parent() {
            atomic::make_folder(folder)?;
        }
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
