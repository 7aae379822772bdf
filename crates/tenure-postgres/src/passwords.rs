//! Where a password comes from. Each is looked up for one host: no server gets a password that is meant for another.
//!
//! In order of precedence: the connection service, `PGPASSWORD`, and `~/.pgpass`, which has lines of
//! `host:port:database:user:password`, of which the first match is used.

use std::path::{Path, PathBuf};

use crate::address::Surroundings;
use crate::services::Service;
use crate::sys;

/// The server and the login that a password is needed for.
pub(crate) struct Wanted<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) database: &'a str,
    pub(crate) user: &'a str,
}

/// The passwords that are known besides the URL's.
#[derive(Clone)]
pub(crate) struct Passwords {
    /// Of the connection service, for the service's own hosts.
    service: Option<Scoped>,
    /// For any host: a person has named or trusted the URL.
    environment: Option<String>,
    file: Option<PathBuf>,
}

#[derive(Clone)]
struct Scoped {
    password: String,
    /// The hosts that it is for; `None` for any.
    hosts: Option<Vec<String>>,
}

impl Scoped {
    fn find(&self, host: &str) -> Option<String> {
        let fits = self.hosts.as_ref().is_none_or(|hosts| hosts.iter().any(|named| named == host));
        fits.then(|| self.password.clone())
    }
}

impl Passwords {
    pub(crate) fn of(service: &Service, surroundings: &Surroundings) -> Self {
        let list = |hosts: &str| hosts.split(',').map(|host| host.trim().to_owned()).collect::<Vec<_>>();
        Self {
            service: service.get("password").map(|password| Scoped {
                password: password.clone(),
                hosts: service.get("host").map(|hosts| list(hosts)),
            }),
            environment: surroundings.password.clone(),
            file: surroundings.password_file.clone(),
        }
    }

    pub(crate) fn find(&self, wanted: &Wanted<'_>) -> Option<String> {
        let of_service = self.service.as_ref().and_then(|known| known.find(wanted.host));
        of_service.or_else(|| self.environment.clone()).or_else(|| in_file(self.file.as_deref()?, wanted))
    }
}

/// A file that other users can read is ignored, as by `psql`.
fn in_file(file: &Path, wanted: &Wanted<'_>) -> Option<String> {
    let found = std::fs::metadata(file).ok()?;
    if !found.is_file() || sys::others_can_read(&found) {
        return None;
    }
    let text = std::fs::read_to_string(file).ok()?;
    let host = match wanted.host {
        "/var/run/postgresql" | "/run/postgresql" | "/tmp" => "localhost",
        host => host,
    };
    look_up(&text, [host, &wanted.port.to_string(), wanted.database, wanted.user])
}

fn look_up(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = split(line);
        let [given @ .., password] = fields.as_slice() else { return None };
        let fits = given.len() == 4 && given.iter().zip(wanted).all(|(g, w)| g == "*" || g == w);
        (fits && !password.is_empty()).then(|| password.clone())
    })
}

/// Splits at colons, except those after a backslash.
fn split(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut letters = line.trim_end_matches('\r').chars();
    while let Some(letter) = letters.next() {
        let letter = match letter {
            ':' if fields.len() < 5 => {
                fields.push(String::new());
                continue;
            }
            '\\' => letters.next().unwrap_or('\\'),
            other => other,
        };
        if let Some(field) = fields.last_mut() {
            field.push(letter);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# comment\nother:*:*:*:no\nhost:5432:db\\:1:ann:se\\:cr\\\\et\n*:*:*:*:any\n";

    #[test]
    fn the_first_line_that_fits_counts_and_escapes_are_undone() {
        assert_eq!(look_up(FILE, ["host", "5432", "db:1", "ann"]).as_deref(), Some("se:cr\\et"));
        assert_eq!(look_up(FILE, ["host", "5432", "db", "ann"]).as_deref(), Some("any"));
        assert_eq!(look_up("host:5432:db:ann\n", ["host", "5432", "db", "ann"]), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pgpass");
        std::fs::write(&file, "*:*:*:*:pw\n").unwrap();
        let found = |mode| {
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
            in_file(&file, &Wanted { host: "h", port: 5432, database: "d", user: "a" }).is_some()
        };
        assert!(found(0o600));
        assert!(!found(0o640));
    }
}
