//! Connection service files, as libpq reads them: sections of `key=value` lines, one section for each service.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tenure_core::{Error, Result};

/// The settings of one service.
pub(crate) type Service = BTreeMap<String, String>;

/// Finds a service in the first of these files that has it.
pub(crate) fn find(files: &[PathBuf], name: &str) -> Result<Service> {
    for file in files {
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        if let Some(found) = look_up(&text, name) {
            return found.map_err(|line| broken(file, line));
        }
    }
    Err(Error::Config(format!(
        "there is no connection service {name:?} in ~/.pg_service.conf or PGSERVICEFILE"
    )))
}

fn broken(file: &Path, line: usize) -> Error {
    Error::Config(format!("{}:{line}: expected key=value", file.display()))
}

/// `None` if the service is not there, an error with the number of a line that cannot be read.
fn look_up(text: &str, name: &str) -> Option<std::result::Result<Service, usize>> {
    let mut found: Option<Service> = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            if section.strip_suffix(']') == Some(name) {
                found = Some(Service::new());
            }
            continue;
        }
        let Some(service) = &mut found else { continue };
        let Some((key, value)) = line.split_once('=') else { return Some(Err(index + 1)) };
        // The first value counts.
        service.entry(key.trim().to_owned()).or_insert_with(|| value.trim().to_owned());
    }
    found.map(Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# mine\n[other]\nhost=no\n\n[work]\nhost = db.internal\nport=6000\nhost=second\n# x\n[last]\nnonsense\n";

    #[test]
    fn a_service_has_the_settings_of_its_section() {
        let work = look_up(FILE, "work").unwrap().unwrap();
        assert_eq!(work.get("host").map(String::as_str), Some("db.internal"));
        assert_eq!((work.get("port").map(String::as_str), work.len()), (Some("6000"), 2));
        assert_eq!(look_up(FILE, "none"), None);
        assert_eq!(look_up(FILE, "last"), Some(Err(11)));
    }

    #[test]
    fn the_first_file_that_has_the_service_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let (own, system) = (folder.path().join("own"), folder.path().join("system"));
        std::fs::write(&own, "[a]\nhost=own\n").unwrap();
        std::fs::write(&system, "[a]\nhost=system\n[b]\nhost=system\n").unwrap();
        let files = [folder.path().join("missing"), own, system];
        let host = |name| find(&files, name).map(|service| service["host"].clone());
        assert_eq!((host("a").unwrap().as_str(), host("b").unwrap().as_str()), ("own", "system"));
        assert!(host("c").unwrap_err().to_string().contains("no connection service \"c\""));
    }
}
