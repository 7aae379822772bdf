//! The server's address and the user's name: from a URL, completed as libpq does it, by a connection service, then by the
//! environment, then by defaults. The displayed form never contains the password.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use tenure_core::{Error, Result};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode as Plain};

use crate::passwords::{self, Passwords};
use crate::services::{self, Service};
use crate::sys::host_text;
use crate::tls::TlsMode;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const DEFAULT_PORT: u16 = 5432;

/// Settings from the environment that complete an address.
#[derive(Clone, Default)]
pub struct Surroundings {
    /// `PGUSER`.
    pub user: Option<String>,
    /// The name of the operating system's user, if nothing else names one.
    pub default_user: Option<String>,
    /// `PGHOST`.
    pub host: Option<String>,
    /// `PGHOSTADDR`.
    pub host_address: Option<String>,
    /// `PGPORT`.
    pub port: Option<String>,
    /// `PGDATABASE`.
    pub database: Option<String>,
    /// `PGSSLMODE`.
    pub ssl_mode: Option<String>,
    /// `PGSERVICE`.
    pub service: Option<String>,
    /// `PGSERVICEFILE` or `~/.pg_service.conf`, then the system's file.
    pub service_files: Vec<PathBuf>,
    /// `PGPASSWORD`.
    pub password: Option<String>,
    /// `PGPASSFILE`, or `~/.pgpass`.
    pub password_file: Option<PathBuf>,
    /// `PGSSLROOTCERT`, or `~/.postgresql/root.crt`, if the URL names no other.
    pub root_certificate: Option<PathBuf>,
}

/// Without the password.
impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("host", &self.host).finish_non_exhaustive()
    }
}

/// A server, a database and a user.
#[derive(Clone)]
pub struct Address {
    /// Without a password, which depends on the host.
    pub(crate) config: Config,
    passwords: Passwords,
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
        let OwnOptions { kept, tls, root, service } = split_options(url)?;
        let service = match service.as_ref().or(surroundings.service.as_ref()) {
            Some(name) => services::find(&surroundings.service_files, name)?,
            None => Service::new(),
        };
        let ports =
            service.get("port").or(surroundings.port.as_ref()).map(|text| read_ports(text)).transpose()?;
        let kept = ports.as_ref().map_or_else(|| kept.clone(), |ports| with_ports(&kept, ports));
        let mut config = Config::from_str(&kept)
            .map_err(|_| invalid("its form is postgres://user@host:port/database?option=value"))?;
        if config.get_hosts().is_empty() {
            for port in ports.unwrap_or_default() {
                config.port(port);
            }
        }
        complete(&mut config, &service, surroundings)?;
        if !config.get_hostaddrs().is_empty() && config.get_hostaddrs().len() != config.get_hosts().len() {
            return Err(invalid("it needs no hostaddr, or as many as hosts"));
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
        let tls = match (tls, service.get("sslmode").or(surroundings.ssl_mode.as_ref())) {
            (Some(mode), _) => mode,
            (None, Some(text)) => tls_mode(text)?,
            (None, None) => TlsMode::Prefer,
        };
        let root = root.or_else(|| service.get("sslrootcert").map(PathBuf::from));
        Ok(Self {
            config,
            passwords: Passwords::of(&service, surroundings),
            url: without_password(url),
            tls,
            root_certificate: root.or_else(|| surroundings.root_certificate.clone()),
            connect_limit,
        })
    }

    /// The settings of a connection to one of the servers, with the password for this server.
    pub(crate) fn config_for(&self, server: Server<'_>) -> Config {
        let mut config = self.config.clone();
        if config.get_password().is_none()
            && let Some(password) = self.password_for(server)
        {
            config.password(password);
        }
        config
    }

    fn password_for(&self, server: Server<'_>) -> Option<String> {
        let (host, port) = (&host_text(server.host), server.port);
        let wanted = passwords::Wanted { host, port, database: self.database(), user: self.user() };
        self.passwords.find(&wanted)
    }

    /// The URL as it was given, without its password.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn servers(&self) -> Vec<Server<'_>> {
        let (ports, addresses) = (self.config.get_ports(), self.config.get_hostaddrs());
        let hosts = self.config.get_hosts().iter().enumerate();
        let server = |(at, host)| Server {
            host,
            address: addresses.get(at).copied(),
            port: ports.get(at).or(ports.first()).copied().unwrap_or(DEFAULT_PORT),
        };
        hosts.map(server).collect()
    }

    pub(crate) fn user(&self) -> &str {
        self.config.get_user().unwrap_or_default()
    }

    pub(crate) fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or_else(|| self.user())
    }
}

/// One of the servers that a URL names.
#[derive(Clone, Copy)]
pub(crate) struct Server<'a> {
    /// The name that selects its password and that its certificate is checked against.
    pub(crate) host: &'a Host,
    /// The address to connect to, instead of resolving the name.
    pub(crate) address: Option<IpAddr>,
    pub(crate) port: u16,
}

/// Fills in what the URL omits.
fn complete(config: &mut Config, service: &Service, surroundings: &Surroundings) -> Result<()> {
    let given = |key: &str, variable: &Option<String>| service.get(key).cloned().or_else(|| variable.clone());
    if config.get_hostaddrs().is_empty()
        && let Some(addresses) = given("hostaddr", &surroundings.host_address)
    {
        for address in addresses.split(',') {
            let wrong = |_| Error::Config("PGHOSTADDR, or hostaddr of a service, is not an address".into());
            config.hostaddr(address.trim().parse().map_err(wrong)?);
        }
    }
    if config.get_hosts().is_empty() {
        let addresses = || {
            let all: Vec<String> = config.get_hostaddrs().iter().map(ToString::to_string).collect();
            (!all.is_empty()).then(|| all.join(","))
        };
        let hosts = given("host", &surroundings.host).or_else(addresses).unwrap_or_else(default_host);
        hosts.split(',').for_each(|host| {
            config.host(host.trim());
        });
    }
    if config.get_user().is_none()
        && let Some(user) = given("user", &surroundings.user).or_else(|| surroundings.default_user.clone())
    {
        config.user(user);
    }
    if config.get_dbname().is_none()
        && let Some(database) = given("dbname", &surroundings.database)
    {
        config.dbname(database);
    }
    Ok(())
}

fn read_ports(text: &str) -> Result<Vec<u16>> {
    let wrong = |_| Error::Config("PGPORT, or the port of a connection service, is not a port".into());
    text.split(',').map(|port| port.trim().parse().map_err(wrong)).collect()
}

/// The URL with these ports, if it names hosts and no port. A URL without ports would be parsed as one with the default port.
fn with_ports(url: &str, ports: &[u16]) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let (authority, path) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
    let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
    let has_port = |host: &str| host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    let hosts: Vec<&str> = hosts.split(',').filter(|host| !host.is_empty()).collect();
    if hosts.is_empty() || hosts.iter().any(|host| has_port(host)) {
        return url.to_owned();
    }
    let with_port = |(at, host): (usize, &&str)| match ports.get(at).or(ports.first()) {
        Some(port) => format!("{host}:{port}"),
        None => (*host).to_owned(),
    };
    let hosts: Vec<String> = hosts.iter().enumerate().map(with_port).collect();
    let at = if user.is_empty() { "" } else { "@" };
    format!("{scheme}://{user}{at}{}{path}", hosts.join(","))
}

/// The folder of the server's socket on this machine.
fn default_host() -> String {
    let folders = ["/var/run/postgresql", "/run/postgresql"];
    folders.into_iter().find(|folder| Path::new(folder).is_dir()).unwrap_or("/tmp").to_owned()
}

fn tls_mode(text: &str) -> Result<TlsMode> {
    TlsMode::parse(text).ok_or_else(|| {
        invalid("sslmode is one of disable, allow, prefer, require, verify-ca and verify-full")
    })
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

/// Without the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A socket's folder is written as in a URL, so that the displayed text can be used as a URL.
        let in_url = |host: &Host| match host_text(host) {
            text if text.starts_with('/') => text.replace('%', "%25").replace('/', "%2F"),
            text if text.contains(':') => format!("[{text}]"),
            text => text,
        };
        let servers: Vec<String> =
            self.servers().iter().map(|server| format!("{}:{}", in_url(server.host), server.port)).collect();
        let at = if self.user().is_empty() { "" } else { "@" };
        write!(f, "postgres://{}{at}{}/{}", self.user(), servers.join(","), self.database())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The options of a URL that tenure interprets itself, and the URL without them.
#[derive(Default)]
struct OwnOptions {
    kept: String,
    tls: Option<TlsMode>,
    root: Option<PathBuf>,
    service: Option<String>,
}

fn split_options(url: &str) -> Result<OwnOptions> {
    let Some((base, query)) = url.split_once('?') else {
        return Ok(OwnOptions { kept: url.to_owned(), ..OwnOptions::default() });
    };
    let (mut own, mut kept) = (OwnOptions::default(), Vec::new());
    for option in query.split('&') {
        match option.split_once('=') {
            Some(("sslmode", mode)) => own.tls = Some(tls_mode(mode)?),
            Some(("sslrootcert", path)) => own.root = Some(PathBuf::from(decode(path)?)),
            Some(("service", name)) => own.service = Some(decode(name)?),
            _ => kept.push(option),
        }
    }
    own.kept = if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) };
    Ok(own)
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
        assert_eq!(shown("postgresql://ann@%2Frun%2Fpg/w"), "postgres://ann@%2Frun%2Fpg:5432/w");
    }

    #[test]
    fn what_is_displayed_can_be_used_as_a_url() {
        for url in
            ["postgres://ann@%2Frun%2Fpg/w", "postgres://ann@[::1],b:2/w", "postgres://ann@%2Fa%2525b/w"]
        {
            let found = address(url).unwrap();
            let again = address(&found.to_string()).unwrap();
            assert_eq!(again.config.get_hosts(), found.config.get_hosts(), "{found}");
            assert_eq!(again.to_string(), found.to_string());
        }
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

    /// The password for each host of the URL, in their order.
    fn passwords(url: &str, around: &Surroundings) -> Vec<Option<String>> {
        let found = Address::parse(url, around).unwrap();
        let of = |server: Server<'_>| {
            found.config_for(server).get_password().map(|p| String::from_utf8(p.to_vec()).unwrap())
        };
        found.servers().into_iter().map(of).collect()
    }

    #[test]
    fn the_url_beats_the_environment_and_that_beats_the_file() {
        let around = Surroundings { password: Some("from-env".to_owned()), ..Surroundings::default() };
        assert_eq!(passwords("postgres://a:from-url@h/d", &around), [Some("from-url".to_owned())]);
        assert_eq!(passwords("postgres://a@h/d", &around), [Some("from-env".to_owned())]);
        assert_eq!(passwords("postgres://a@h/d", &Surroundings::default()), [None]);
    }

    #[test]
    fn an_address_says_where_to_connect_and_the_name_stays() {
        let around = |addresses: &str| Surroundings {
            host_address: Some(addresses.to_owned()),
            ..Surroundings::default()
        };
        let servers = |url: &str, around: &Surroundings| -> Result<Vec<(String, Option<IpAddr>)>> {
            let found = Address::parse(url, around)?;
            Ok(found.servers().iter().map(|server| (host_text(server.host), server.address)).collect())
        };
        let ip = |text: &str| Some(text.parse::<IpAddr>().unwrap());
        let named = servers("postgres://a@db/d", &around("192.0.2.7")).unwrap();
        assert_eq!(named, [("db".to_owned(), ip("192.0.2.7"))]);
        let bare = servers("postgres:///d", &around("192.0.2.7, ::1")).unwrap();
        assert_eq!(bare, [("192.0.2.7".to_owned(), ip("192.0.2.7")), ("::1".to_owned(), ip("::1"))]);
        let of_url = servers("postgres://a@db/d?hostaddr=192.0.2.8", &around("192.0.2.7")).unwrap();
        assert_eq!(of_url, [("db".to_owned(), ip("192.0.2.8"))]);
        assert!(servers("postgres://a@db,spare/d", &around("192.0.2.7")).is_err());
        assert!(servers("postgres://a@db/d", &around("db.example")).is_err());
    }

    #[test]
    fn a_password_of_the_file_is_for_its_host_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pgpass");
        std::fs::write(&file, "db.internal:5432:prod:ann:s3cret\n").unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let around = Surroundings { password_file: Some(file), ..Surroundings::default() };
        assert_eq!(
            passwords("postgres://ann@attacker,db.internal/prod", &around),
            [None, Some("s3cret".to_owned())]
        );
        for other in ["ann@db.internal:5433/prod", "ann@db.internal/test", "bob@db.internal/prod"] {
            assert_eq!(passwords(&format!("postgres://{other}"), &around), [None], "{other}");
        }
    }

    #[test]
    fn what_the_url_leaves_open_comes_from_the_service_then_from_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("services");
        std::fs::write(
            &file,
            "[work]\nhost=from-service\nuser=service-user\npassword=s3cret\nsslmode=require\n",
        )
        .unwrap();
        let around = Surroundings {
            user: Some("env-user".into()),
            default_user: Some("login".into()),
            host: Some("env-a,env-b".into()),
            port: Some("1,2".into()),
            database: Some("env-db".into()),
            ssl_mode: Some("verify-full".into()),
            service_files: vec![file],
            ..Surroundings::default()
        };
        let shown = |url: &str, around: &Surroundings| Address::parse(url, around).unwrap().to_string();
        assert_eq!(shown("postgres://", &around), "postgres://env-user@env-a:1,env-b:2/env-db");
        assert_eq!(shown("postgres://ann@h:9/w", &around), "postgres://ann@h:9/w");
        assert_eq!(shown("postgres://ann@h/w", &around), "postgres://ann@h:1/w");
        assert_eq!(
            shown("postgres://ann:x@[::1],b/w?connect_timeout=3", &around),
            "postgres://ann@[::1]:1,b:2/w"
        );
        assert_eq!(Address::parse("postgres://", &around).unwrap().tls, TlsMode::VerifyFull);
        assert_eq!(Address::parse("postgres://h/d?sslmode=disable", &around).unwrap().tls, TlsMode::Disable);
        let in_service = Surroundings { service: Some("work".into()), port: None, ..around.clone() };
        assert_eq!(shown("postgres://", &in_service), "postgres://service-user@from-service:5432/env-db");
        let named = Surroundings { port: None, ..around };
        let address = Address::parse("postgres:///w?service=work", &named).unwrap();
        assert_eq!(address.to_string(), "postgres://service-user@from-service:5432/w");
        assert_eq!(address.tls, TlsMode::Require);
        // The service's password is for the service's host.
        assert_eq!(passwords("postgres:///w?service=work", &named), [Some("s3cret".to_owned())]);
        assert_eq!(passwords("postgres://attacker/w?service=work", &named), [None]);
        let unknown = Address::parse("postgres:///w?service=none", &named).unwrap_err();
        assert_eq!(unknown.code(), tenure_core::ErrorCode::Config);
        let login = Surroundings { default_user: Some("login".into()), ..Surroundings::default() };
        assert_eq!(shown("postgres://h", &login), "postgres://login@h:5432/login");
        let wrong = Surroundings { port: Some("x".into()), ..Surroundings::default() };
        assert!(Address::parse("postgres://h/d", &wrong).is_err());
    }
}
