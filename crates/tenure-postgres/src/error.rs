//! Failures of the server and the network as errors of tenure.

use std::io;
use std::time::Duration;

use tenure_core::Error;
use tokio_postgres::error::{DbError, SqlState};

use crate::address::Address;
use crate::sys::host_text;

const LEASE_IDS: &str = "leases_lease_id_project_key";

/// Why a statement or a connection failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Server(tokio_postgres::Error),
    Network(io::Error),
    /// The server sent nothing for this long.
    Silent(Duration),
    /// The server does not support encryption, but the mode requires it.
    Plain,
    /// The TLS handshake failed, most often because the certificate is not trusted.
    Untrusted(io::Error),
    /// The server is a standby.
    InRecovery,
    /// The transaction shares its turn with other claims, and cannot continue without an exclusive one.
    NeedsExclusiveTurn,
    /// The commit failed together with its rings, perhaps because of them.
    WithRings(Box<Failure>),
    /// A stored value that tenure does not write.
    Unreadable(String),
    /// An error of tenure.
    Refused(Error),
}

/// What the store does about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Connect again: the connection is gone, or the server is stopping or starting.
    Reconnect,
    /// Run the transaction again: it conflicted with another.
    Retry,
    /// Run the transaction again in an exclusive turn.
    RetryExclusively,
    /// Run the transaction again and ring no doorbell.
    RetryWithoutRings,
    None,
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Network(error)
    }
}

impl Failure {
    pub(crate) fn state(&self) -> Option<&SqlState> {
        match self {
            Self::Server(error) => error.code(),
            _ => None,
        }
    }

    /// Whether the server refused the connection because it has too many.
    pub(crate) fn is_exhaustion(&self) -> bool {
        self.state() == Some(&SqlState::TOO_MANY_CONNECTIONS)
    }

    pub(crate) fn remedy(&self) -> Remedy {
        match self {
            // A standby may be about to be promoted.
            Self::Network(_) | Self::Silent(_) | Self::InRecovery => Remedy::Reconnect,
            Self::NeedsExclusiveTurn => Remedy::RetryExclusively,
            Self::WithRings(_) => Remedy::RetryWithoutRings,
            Self::Plain | Self::Untrusted(_) | Self::Unreadable(_) | Self::Refused(_) => Remedy::None,
            Self::Server(error) => match error.code() {
                None if is_of_the_network(error) => Remedy::Reconnect,
                None => Remedy::None,
                Some(code) if *code == SqlState::T_R_SERIALIZATION_FAILURE => Remedy::Retry,
                Some(code) if *code == SqlState::T_R_DEADLOCK_DETECTED => Remedy::Retry,
                // Another lease has the drawn id. The next try draws another one.
                Some(_) if error.as_db_error().and_then(DbError::constraint) == Some(LEASE_IDS) => {
                    Remedy::Retry
                }
                Some(code) => {
                    let text = code.code();
                    let away = text.starts_with("08") || text.starts_with("57P") || text == "25P03";
                    if away || *code == SqlState::TOO_MANY_CONNECTIONS {
                        Remedy::Reconnect
                    } else {
                        Remedy::None
                    }
                }
            },
        }
    }

    pub(crate) fn into_error(self, address: &Address) -> Error {
        let error = match self {
            Self::Refused(error) => return error,
            Self::WithRings(failure) => return failure.into_error(address),
            Self::Server(error) => error,
            Self::Network(error) => return away(address, &error.to_string()),
            Self::Silent(limit) => return away(address, &format!("no answer for {} s", limit.as_secs())),
            Self::Plain => return untrusted(address, "it does not speak TLS, which sslmode asks for"),
            Self::Untrusted(error) => return untrusted(address, &error.to_string()),
            Self::InRecovery => {
                return Error::Store {
                    message: format!("the server {address} is a standby: what it grants may not last"),
                    hint: Some("set store.url to the primary".to_owned()),
                };
            }
            Self::NeedsExclusiveTurn => {
                return Error::store("the transaction did not get an exclusive turn");
            }
            Self::Unreadable(what) => {
                return Error::damaged(format!("the store answered unexpectedly: {what}"));
            }
        };
        let Some(db) = error.as_db_error() else {
            return if is_of_the_network(&error) {
                away(address, &cause(&error))
            } else {
                unheard(address, &cause(&error))
            };
        };
        let (message, hint) = match db.code().code() {
            "42501" => return denied(address, db.message()),
            "28P01" | "28000" => {
                return Error::PermissionDenied {
                    message: format!("the server refuses the login of {}: {}", user(address), db.message()),
                    path: None,
                };
            }
            "3D000" => (
                format!("the server has no database {:?}", address.database()),
                Some(create_database(address)),
            ),
            "55P03" | "57014" => (
                "another program keeps the project locked".to_owned(),
                Some("end the transaction that is open on the schema tenure, then try again".to_owned()),
            ),
            "53100" => ("the server's disk is full; nothing was changed".to_owned(), None),
            "25006" => (
                format!("the server {address} is read-only"),
                Some("set store.url to the primary".to_owned()),
            ),
            "25P03" => (
                "the server ended the transaction, because this process was suspended in it; nothing was changed"
                    .to_owned(),
                Some("try again".to_owned()),
            ),
            "53300" => (
                format!("the server {address} has no free connection: {}", db.message()),
                Some("end processes that wait, or raise max_connections on the server, then try again".to_owned()),
            ),
            // A value or a statement that does not fit the tables, or damaged pages.
            code if ["22", "42", "XX001", "XX002"].iter().any(|class| code.starts_with(class)) => {
                return Error::damaged(format!("the store failed: {} ({code})", db.message()));
            }
            text if text.starts_with("57P") || text.starts_with("08") => return away(address, db.message()),
            code => (format!("the store failed: {} ({code})", db.message()), None),
        };
        Error::Store { message, hint }
    }
}

/// Whether the connection broke, as opposed to an error that the server sent.
fn is_of_the_network(error: &tokio_postgres::Error) -> bool {
    let mut inner: Option<&dyn std::error::Error> = Some(error);
    while let Some(found) = inner {
        if found.is::<io::Error>() {
            return true;
        }
        inner = found.source();
    }
    error.is_closed()
}

/// The error for a failure before the first statement: most often the server requires a password and none was given.
fn unheard(address: &Address, why: &str) -> Error {
    if why.contains("password") {
        return Error::PermissionDenied {
            message: format!(
                "the server asks for the password of {}: give it in ~/.pgpass or in PGPASSWORD",
                user(address)
            ),
            path: None,
        };
    }
    Error::store(format!("the store failed: {why}"))
}

/// The command that creates the database on the server of the address.
fn create_database(address: &Address) -> String {
    let user = Some(address.user()).filter(|user| !user.is_empty()).map(|user| format!(" -U {user}"));
    let server =
        address.servers().first().map(|server| format!(" -h {} -p {}", host_text(server.host), server.port));
    format!("createdb{}{} {}", server.unwrap_or_default(), user.unwrap_or_default(), address.database())
}

fn user(address: &Address) -> String {
    if address.user().is_empty() { "this user".to_owned() } else { format!("{:?}", address.user()) }
}

fn away(address: &Address, why: &str) -> Error {
    Error::Store {
        message: format!("the server {address} cannot be reached: {why}"),
        hint: Some(
            "see that it runs and that store.url (or TENURE_STORE) names it, then try again".to_owned(),
        ),
    }
}

fn untrusted(address: &Address, why: &str) -> Error {
    Error::Store {
        message: format!("no trusted connection to {address}: {why}"),
        hint: Some("give the server's root certificate with ?sslrootcert=FILE in store.url".to_owned()),
    }
}

/// Names the missing privilege, as the statement that grants it.
fn denied(address: &Address, message: &str) -> Error {
    let role = format!("\"{}\"", address.user().replace('"', "\"\""));
    let grant = if message.contains("schema") {
        format!("GRANT USAGE ON SCHEMA tenure TO {role}")
    } else if message.contains("database") {
        let database = address.database().replace('"', "\"\"");
        format!("GRANT CREATE ON DATABASE \"{database}\" TO {role}")
    } else if message.contains("sequence") {
        format!("GRANT USAGE ON ALL SEQUENCES IN SCHEMA tenure TO {role}")
    } else {
        format!("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tenure TO {role}")
    };
    Error::PermissionDenied { message: format!("{message}; its owner can run: {grant}"), path: None }
}

/// The innermost source of the error: the outer ones only say that the network failed.
fn cause(error: &tokio_postgres::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    inner.to_string()
}
