//! `~/.pgpass`: lines of `host:port:database:user:password`, of which the first match is used.

use std::path::Path;

use tokio_postgres::config::Host;

use crate::address::Address;

/// Finds the password for `address`. A file that other users can read is ignored, as by `psql`.
pub(crate) fn find(file: &Path, address: &Address) -> Option<String> {
    let found = std::fs::metadata(file).ok()?;
    if !found.is_file() || others_can_read(&found) {
        return None;
    }
    let text = std::fs::read_to_string(file).ok()?;
    address.servers().into_iter().find_map(|(host, port)| {
        let host = match host {
            Host::Tcp(name) => name.as_str(),
            #[cfg(unix)]
            Host::Unix(path) if path == Path::new("/var/run/postgresql") || path == Path::new("/tmp") => {
                "localhost"
            }
            #[cfg(unix)]
            Host::Unix(path) => path.to_str()?,
        };
        look_up(&text, [host, &port.to_string(), address.database(), address.user()])
    })
}

#[cfg(unix)]
fn others_can_read(found: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(found) & 0o077 != 0
}

#[cfg(not(unix))]
fn others_can_read(_found: &std::fs::Metadata) -> bool {
    false
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
            let around = crate::Surroundings { password_file: Some(file.clone()), ..Default::default() };
            let address = Address::parse("postgres://a@h/d", &around).unwrap();
            address.config.get_password().is_some()
        };
        assert!(found(0o600));
        assert!(!found(0o640));
    }
}
