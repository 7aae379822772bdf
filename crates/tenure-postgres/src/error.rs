//! Failures of the server and the network as errors of tenure.

use std::io;
use std::time::Duration;

use tenure_core::Error;
use tenure_core::error::Advice;
use tenure_core::hints::{self, Hint};
use tenure_core::shell_quote::quote;
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
    /// The database has this encoding, in which not every text can be stored.
    Encoding(String),
    /// The server is a standby.
    InRecovery,
    /// The transaction shares its turn with other claims, and cannot continue without an exclusive one.
    NeedsExclusiveTurn,
    /// The commit failed together with its rings, perhaps because of them.
    WithRings(Box<Failure>),
    /// A stored value that tenure does not write.
    Unreadable(String),
    /// An error of tenure, returned unchanged.
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
            Self::Plain | Self::Untrusted(_) | Self::Unreadable(_) | Self::Refused(_) | Self::Encoding(_) => {
                Remedy::None
            }
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
            Self::Plain => return untrusted(address, "it does not support TLS, which sslmode requires"),
            Self::Untrusted(error) => return untrusted(address, &error.to_string()),
            Self::Encoding(encoding) => {
                return Error::Store {
                    message: format!("the database is encoded in {encoding}, which cannot hold every text"),
                    advice: Advice::hints([create_utf8_database(address)]),
                };
            }
            Self::InRecovery => {
                return Error::Store {
                    message: format!("the server {address} is a standby and cannot be used"),
                    advice: Advice::note("set store.url to the primary"),
                };
            }
            Self::NeedsExclusiveTurn => {
                return Error::store("the transaction did not get an exclusive turn");
            }
            Self::Unreadable(what) => {
                return Error::damaged(format!("unexpected data in the store: {what}"));
            }
        };
        let Some(db) = error.as_db_error() else {
            return if is_of_the_network(&error) {
                away(address, &cause(&error))
            } else {
                unheard(address, &cause(&error))
            };
        };
        let (message, advice) = match db.code().code() {
            "42501" => return denied(address, db.message()),
            "28P01" | "28000" => {
                return Error::PermissionDenied {
                    message: format!("the server refuses the login of {}: {}", user(address), db.message()),
                    path: None,
                };
            }
            "3D000" => (
                format!("the server has no database {:?}", address.database()),
                Advice::hints([create_database(address)]),
            ),
            "55P03" | "57014" => (
                "the project is locked by another program".to_owned(),
                Advice::note("end the transaction that is open on the schema tenure, then try again"),
            ),
            "53100" => ("the server's disk is full; nothing was changed".to_owned(), None),
            "25006" => (
                format!("the server {address} is read-only"),
                Advice::note("set store.url to the primary"),
            ),
            "25P03" => (
                "this process was suspended during a transaction, so the server ended it; nothing was changed"
                    .to_owned(),
                Advice::note("try again"),
            ),
            "53300" => (
                format!("the server {address} has no free connection: {}", db.message()),
                Advice::note("end processes that wait, or raise max_connections on the server, then try again"),
            ),
            // A value or a statement that does not fit the tables, or damaged pages.
            code if ["22", "42", "XX001", "XX002"].iter().any(|class| code.starts_with(class)) => {
                return Error::damaged(format!("the store failed: {} ({code})", db.message()));
            }
            text if text.starts_with("57P") || text.starts_with("08") => return away(address, db.message()),
            code => (format!("the store failed: {} ({code})", db.message()), None),
        };
        Error::Store { message, advice }
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
                "the server requires a password for {}: set it in ~/.pgpass or PGPASSWORD",
                user(address)
            ),
            path: None,
        };
    }
    Error::store(format!("the store failed: {why}"))
}

fn create_database(address: &Address) -> Hint {
    hints::create_database(server_options(address), quote(address.database()))
}

/// A database in which every text can be stored, beside the one that the address names.
fn create_utf8_database(address: &Address) -> Hint {
    hints::create_utf8_database(server_options(address), quote(&format!("{}_utf8", address.database())))
}

/// The options of PostgreSQL's programs for the server and the user of the address, with a space before each.
fn server_options(address: &Address) -> String {
    let server = address
        .servers()
        .first()
        .map(|server| format!(" -h {} -p {}", quote(&host_text(server.host)), server.port));
    let user =
        Some(address.user()).filter(|user| !user.is_empty()).map(|user| format!(" -U {}", quote(user)));
    format!("{}{}", server.unwrap_or_default(), user.unwrap_or_default())
}

fn user(address: &Address) -> String {
    if address.user().is_empty() { "this user".to_owned() } else { format!("{:?}", address.user()) }
}

fn away(address: &Address, why: &str) -> Error {
    Error::Store {
        message: format!("the server {address} cannot be reached: {why}"),
        advice: Advice::note(
            "check that it is running and that store.url (or TENURE_STORE) is correct, then try again",
        ),
    }
}

fn untrusted(address: &Address, why: &str) -> Error {
    Error::Store {
        message: format!("no trusted connection to {address}: {why}"),
        advice: Advice::note("give the server's root certificate with ?sslrootcert=FILE in store.url"),
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
