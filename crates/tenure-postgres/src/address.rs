//! The server's address and the user's name, parsed from a URL. The displayed form never contains the password.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tenure_core::{Error, Result};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode as Plain};

use crate::passwords;
use crate::tls::TlsMode;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const DEFAULT_PORT: u16 = 5432;

/// Settings from the environment that complete an address.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `PGPASSWORD`.
    pub password: Option<String>,
    /// `PGPASSFILE`, or `~/.pgpass`.
    pub password_file: Option<PathBuf>,
    /// `~/.postgresql/root.crt`, if the URL names no other.
    pub root_certificate: Option<PathBuf>,
}

/// A server, a database and a user.
#[derive(Clone)]
pub struct Address {
    pub(crate) config: Config,
    url: String,
    pub(crate) tls: TlsMode,
    pub(crate) root_certificate: Option<PathBuf>,
    pub(crate) connect_limit: Duration,
}

impl Address {
    /// Whether this is the URL of a PostgreSQL database.
    pub fn is_one(url: &str) -> bool {
        url.starts_with("postgres://") || url.starts_with("postgresql://")
    }

    /// Parses `postgres://user:password@host:port/database?options`. Errors quote nothing of the text, because a
    /// mistyped URL may contain its password anywhere.
    pub fn parse(url: &str, surroundings: &Surroundings) -> Result<Self> {
        if !Self::is_one(url) {
            return Err(invalid("it does not begin with postgres://"));
        }
        let (kept, tls, root) = split_options(url)?;
        let mut config = Config::from_str(&kept)
            .map_err(|_| invalid("its form is postgres://user@host:port/database?option=value"))?;
        if config.get_hosts().is_empty() {
            return Err(invalid("it names no host"));
        }
        if !matches!(config.get_ports().len(), 0 | 1) && config.get_ports().len() != config.get_hosts().len()
        {
            return Err(invalid("it needs one port, or as many as hosts"));
        }
        if config.get_application_name().is_none() {
            config.application_name("tenure");
        }
        // Encryption is negotiated in `connect`, before the protocol begins.
        config.ssl_mode(Plain::Disable);
        let connect_limit = config.get_connect_timeout().copied().unwrap_or(CONNECT_LIMIT);
        let mut address = Self {
            config,
            url: without_password(url),
            tls: tls.unwrap_or(TlsMode::Prefer),
            root_certificate: root.or_else(|| surroundings.root_certificate.clone()),
            connect_limit,
        };
        if address.config.get_password().is_none() {
            let found = surroundings.password.clone().or_else(|| {
                surroundings.password_file.as_deref().and_then(|file| passwords::find(file, &address))
            });
            if let Some(password) = found {
                address.config.password(password);
            }
        }
        Ok(address)
    }

    /// The URL as it was given, without its password.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn servers(&self) -> Vec<(&Host, u16)> {
        let ports = self.config.get_ports();
        let hosts = self.config.get_hosts().iter().enumerate();
        hosts
            .map(|(at, host)| (host, ports.get(at).or(ports.first()).copied().unwrap_or(DEFAULT_PORT)))
            .collect()
    }

    pub(crate) fn user(&self) -> &str {
        self.config.get_user().unwrap_or_default()
    }

    pub(crate) fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or_else(|| self.user())
    }
}

fn without_password(url: &str) -> String {
    let (before, query) = url.split_once('?').unwrap_or((url, ""));
    let (scheme, rest) = before.split_once("://").unwrap_or(("postgres", before));
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let user = user.split(':').next().unwrap_or_default();
    let at = if user.is_empty() { "" } else { "@" };
    let options: Vec<&str> =
        query.split('&').filter(|option| !option.is_empty() && !option.starts_with("password=")).collect();
    let mark = if options.is_empty() { "" } else { "?" };
    format!("{scheme}://{user}{at}{hosts}{path}{mark}{}", options.join("&"))
}

pub(crate) fn host_text(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    }
}

/// Without the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> =
            self.servers().iter().map(|(host, port)| format!("{}:{port}", host_text(host))).collect();
        let at = if self.user().is_empty() { "" } else { "@" };
        write!(f, "postgres://{}{at}{}/{}", self.user(), servers.join(","), self.database())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Extracts the options about encryption, which tenure interprets itself, and returns the URL without them.
fn split_options(url: &str) -> Result<(String, Option<TlsMode>, Option<PathBuf>)> {
    let Some((base, query)) = url.split_once('?') else { return Ok((url.to_owned(), None, None)) };
    let (mut tls, mut root, mut kept) = (None, None, Vec::new());
    for option in query.split('&') {
        match option.split_once('=') {
            Some(("sslmode", mode)) => {
                tls = Some(TlsMode::parse(mode).ok_or_else(|| {
                    invalid("sslmode is one of disable, prefer, require, verify-ca and verify-full")
                })?);
            }
            Some(("sslrootcert", path)) => root = Some(PathBuf::from(decode(path)?)),
            _ => kept.push(option),
        }
    }
    let kept = if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) };
    Ok((kept, tls, root))
}

fn decode(text: &str) -> Result<String> {
    let wrong = || invalid("an option has a broken %-escape");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next().ok_or_else(wrong)?, rest.next().ok_or_else(wrong)?];
        let digits = std::str::from_utf8(&digits).map_err(|_| wrong())?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

fn invalid(why: &str) -> Error {
    Error::Config(format!("store.url is not the URL of a PostgreSQL database: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> Result<Address> {
        Address::parse(url, &Surroundings::default())
    }

    #[test]
    fn the_password_is_never_shown() {
        let found = address("postgres://ann:s3cret@db.example:6000/work?sslmode=require").unwrap();
        assert_eq!(found.to_string(), "postgres://ann@db.example:6000/work");
        assert_eq!(format!("{found:?}"), found.to_string());
    }

    #[test]
    fn a_url_that_cannot_be_read_is_not_repeated() {
        for url in [
            "postgres://ann:s3cret@host:port/work",
            "postgres://ann:s3cret@[::1/work",
            "postgres://ann:s3cret@host/work?sslmode=s3cret",
            "postgres://ann:s3cret@host/work?sslrootcert=%zz-s3cret",
            "postgres://ann:s3cret@host/work?nonsense=s3cret",
            "mysql://ann:s3cret@host/work",
        ] {
            let error = address(url).unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
            assert_eq!(error.code(), tenure_core::ErrorCode::Config, "{url}");
        }
    }

    #[test]
    fn several_hosts_have_one_port_or_one_each() {
        let shown = |url| address(url).unwrap().to_string();
        assert_eq!(shown("postgres://ann@a,b:1/w"), "postgres://ann@a:5432,b:1/w");
        assert_eq!(shown("postgres://ann@a:1,b:2/w"), "postgres://ann@a:1,b:2/w");
        assert_eq!(shown("postgresql://ann@%2Frun%2Fpg/w"), "postgres://ann@/run/pg:5432/w");
    }

    #[test]
    fn the_url_without_its_password_names_the_same_server() {
        for (given, expected) in [
            (
                "postgres://ann:s3cret@a,b:5433/work?sslmode=require",
                "postgres://ann@a,b:5433/work?sslmode=require",
            ),
            (
                "postgres://ann@%2Frun%2Fpostgresql/work?password=s3cret&connect_timeout=3",
                "postgres://ann@%2Frun%2Fpostgresql/work?connect_timeout=3",
            ),
            ("postgres://db/work?password=s3cret", "postgres://db/work"),
            ("postgres://ann:a%40b:c@db", "postgres://ann@db"),
        ] {
            assert_eq!(Address::parse(given, &Surroundings::default()).unwrap().url(), expected);
        }
    }

    #[test]
    fn the_url_beats_the_environment_and_that_beats_the_file() {
        let around = Surroundings { password: Some("from-env".into()), ..Surroundings::default() };
        let password = |url, around: &Surroundings| {
            let found = Address::parse(url, around).unwrap();
            found.config.get_password().map(|p| String::from_utf8(p.to_vec()).unwrap())
        };
        assert_eq!(password("postgres://a:from-url@h/d", &around).as_deref(), Some("from-url"));
        assert_eq!(password("postgres://a@h/d", &around).as_deref(), Some("from-env"));
        assert_eq!(password("postgres://a@h/d", &Surroundings::default()), None);
    }
}
