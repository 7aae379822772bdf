//! A project's store: `.tenure/tenure.db`, or the PostgreSQL server that `store.url` names.

use std::ffi::OsStr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fd::BorrowedFd;
use tenure_core::config::Config;
use tenure_core::holder::{AcrossMachines, InACopy, Judge};
use tenure_core::store::{Movable, Store, StoreContents, contents_of, export_store};
use tenure_core::{Clock, Error, Result, text};
use tenure_postgres::{Address, PostgresStore, RosterOptions, Surroundings};
use tenure_runner::{DatabaseFile, request_patience};
use tenure_sqlite::SqliteStore;

use crate::env::Env;
use crate::project::{ProjectPaths, StoreLocation};
use crate::sys;

/// How to open a project's store. It can be opened several times.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Sqlite {
        path: PathBuf,
        options: tenure_sqlite::OpenOptions,
    },
    Postgres {
        address: Box<Address>,
        project: Option<String>,
        root: PathBuf,
        options: tenure_postgres::OpenOptions,
    },
}

impl Source {
    pub(crate) fn of(
        paths: &ProjectPaths,
        config: &Config,
        env: &Env,
        options: tenure_sqlite::OpenOptions,
    ) -> Result<Self> {
        match paths.store(config) {
            StoreLocation::File(path) => Ok(Self::Sqlite { path, options }),
            StoreLocation::Untrusted => {
                let file = paths.config();
                let message = format!(
                    "{} names a store and is not trusted, so nothing is connected to",
                    file.display()
                );
                Err(Error::Untrusted { message, root: paths.root.clone() })
            }
            StoreLocation::Server(url) => Self::on_server(url, env, paths, config, options),
        }
    }

    /// The store at a URL that the user has given in an argument.
    pub(crate) fn at(
        url: &str,
        paths: &ProjectPaths,
        config: &Config,
        env: &Env,
        options: tenure_sqlite::OpenOptions,
    ) -> Result<Self> {
        Self::on_server(url, env, paths, config, options)
    }

    fn on_server(
        url: &str,
        env: &Env,
        paths: &ProjectPaths,
        config: &Config,
        options: tenure_sqlite::OpenOptions,
    ) -> Result<Self> {
        sys::resolve_names_without_modules();
        let roster = RosterOptions { folder: doorbells(env), poll_interval: config.locking.poll_interval };
        Ok(Self::Postgres {
            address: Box::new(Address::parse(url, &surroundings(env))?),
            project: config.project.id.map(|id| id.to_string()),
            root: paths.root.clone(),
            options: tenure_postgres::OpenOptions {
                patience: options.patience,
                dry_run: options.dry_run,
                read_only: options.read_only,
                max_listeners: config.max_listeners,
                judges_this_boot: true,
                roster: Some(roster),
                clock: None,
            },
        })
    }

    /// The store that a supervisor passes to `start-attempt`: a path, or with a project's id the URL of a server.
    pub(crate) fn of_attempt(
        store: &OsStr,
        project: Option<&str>,
        env: &Env,
        options: tenure_sqlite::OpenOptions,
    ) -> Result<Self> {
        let Some(project) = project else { return Ok(Self::Sqlite { path: store.into(), options }) };
        sys::resolve_names_without_modules();
        Ok(Self::Postgres {
            address: Box::new(Address::parse(&store.to_string_lossy(), &surroundings(env))?),
            project: Some(project.to_owned()),
            root: env.cwd.clone(),
            options: tenure_postgres::OpenOptions {
                patience: options.patience,
                dry_run: options.dry_run,
                read_only: options.read_only,
                judges_this_boot: true,
                ..tenure_postgres::OpenOptions::default()
            },
        })
    }

    pub(crate) fn open(&self) -> Result<Backend> {
        match self {
            Self::Sqlite { path, options } => {
                SqliteStore::open(path, options.clone()).map(Box::new).map(Backend::Sqlite)
            }
            Self::Postgres { root, .. } => match self.find()? {
                Some(store) => Ok(store),
                None => Err(Error::NotInitialized { start: root.clone(), clone_at: Some(root.clone()) }),
            },
        }
    }

    /// The store, if it exists and contains this project.
    pub(crate) fn find(&self) -> Result<Option<Backend>> {
        match self {
            Self::Sqlite { .. } => self.open().map(Some),
            Self::Postgres { address, project, options, .. } => {
                let Some(project) = project else { return Ok(None) };
                let store = PostgresStore::open(Address::clone(address), project, options.clone())?;
                Ok(store.knows_project().then(|| Backend::Postgres(Box::new(store))))
            }
        }
    }

    /// Moves a damaged database file out of the way, and returns its new name.
    pub(crate) fn set_damaged_aside(&self) -> Result<Option<PathBuf>> {
        match self {
            Self::Sqlite { path, options } if tenure_sqlite::is_damaged(path) => {
                tenure_sqlite::set_aside(path, options.patience).map(Some)
            }
            Self::Sqlite { .. } | Self::Postgres { .. } => Ok(None),
        }
    }

    /// Opens the store, creating what is missing.
    pub(crate) fn create(&self, name: &str) -> Result<Backend> {
        match self {
            Self::Sqlite { path, options } => {
                SqliteStore::create(path, options.clone()).map(Box::new).map(Backend::Sqlite)
            }
            Self::Postgres { address, project, options, .. } => {
                let project = project.as_deref().ok_or(Error::NoProjectId)?;
                let store = PostgresStore::create(Address::clone(address), project, name, options.clone())?;
                Ok(Backend::Postgres(Box::new(store)))
            }
        }
    }

    /// Another handle, for the heartbeat of leases with this ttl.
    pub(crate) fn open_for_beats(&self, ttl: Duration) -> Result<Box<dyn Store>> {
        let mut source = self.clone();
        let patience = match &mut source {
            Self::Sqlite { options, .. } => &mut options.patience,
            Self::Postgres { options, .. } => &mut options.patience,
        };
        *patience = request_patience(ttl).min(*patience);
        source.open().map(Backend::boxed)
    }

    /// Whether the store is on a server: other machines may use it, and it changes without any file of the project
    /// changing.
    pub(crate) fn is_on_server(&self) -> bool {
        matches!(self, Self::Postgres { .. })
    }

    /// The process that currently blocks other writers, if known.
    pub(crate) fn writer(&self) -> Option<u32> {
        match self {
            Self::Sqlite { path, .. } => tenure_sqlite::writer_of(path),
            Self::Postgres { .. } => None,
        }
    }

    /// The URL by which another store remembers this one.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite { path, .. } => format!("{PROJECT_FILE}{}", path.display()),
            Self::Postgres { address, .. } => address.url().to_owned(),
        }
    }

    /// For display; never contains a password.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Sqlite { path, .. } => path.display().to_string(),
            Self::Postgres { address, .. } => address.to_string(),
        }
    }
}

/// The value of `store.url` that means the project's database file.
const PROJECT_FILE: &str = "sqlite:";

/// The value of `store.url` for the store with this URL ([`Source::url`]).
pub(crate) fn setting_of(url: &str) -> &str {
    if url.starts_with(PROJECT_FILE) { PROJECT_FILE } else { url }
}

/// The environment variables and files that libpq uses.
fn surroundings(env: &Env) -> Surroundings {
    let home = env.user_home();
    let in_home = |name: &str| home.map(|home| home.join(name));
    let var = |name: &str| env.var(name).map(str::to_owned);
    let system = env.var("PGSYSCONFDIR").map(|folder| Path::new(folder).join("pg_service.conf"));
    Surroundings {
        user: var("PGUSER"),
        default_user: Some(env.user.clone()),
        host: var("PGHOST"),
        host_address: var("PGHOSTADDR"),
        port: var("PGPORT"),
        database: var("PGDATABASE"),
        ssl_mode: var("PGSSLMODE"),
        service: var("PGSERVICE"),
        service_files: var("PGSERVICEFILE")
            .map(PathBuf::from)
            .or_else(|| in_home(".pg_service.conf"))
            .into_iter()
            .chain(system)
            .collect(),
        password: env.var("PGPASSWORD").map(str::to_owned),
        password_file: env.var("PGPASSFILE").map(PathBuf::from).or_else(|| in_home(".pgpass")),
        root_certificate: env
            .var("PGSSLROOTCERT")
            .map(PathBuf::from)
            .or_else(|| in_home(".postgresql/root.crt").filter(|path| path.is_file())),
    }
}

/// An open store.
#[derive(Debug)]
pub(crate) enum Backend {
    Sqlite(Box<SqliteStore>),
    Postgres(Box<PostgresStore>),
}

impl Backend {
    pub(crate) fn as_ref(&self) -> &(dyn Store + 'static) {
        match self {
            Self::Sqlite(store) => store.as_ref(),
            Self::Postgres(store) => store.as_ref(),
        }
    }

    pub(crate) fn boxed(self) -> Box<dyn Store> {
        match self {
            Self::Sqlite(store) => store,
            Self::Postgres(store) => store,
        }
    }

    /// Writes everything to a new file, a complete database.
    pub(crate) fn back_up(&self, to: &Path, options: tenure_sqlite::OpenOptions) -> Result<StoreContents> {
        match self {
            Self::Sqlite(store) => store.back_up(to)?,
            Self::Postgres(store) => {
                let file = SqliteStore::create(to, options.clone())?;
                export_store(store.as_ref(), &file)?;
                file.close_as_one_file()?;
            }
        }
        let file = SqliteStore::open(to, options)?;
        // The file becomes a separate store, distinct from the one that it was copied from.
        file.adopt(&mut |_| Ok(()))?;
        contents_of(&file)
    }

    pub(crate) fn movable(&self) -> &dyn Movable {
        match self {
            Self::Sqlite(store) => store.as_ref(),
            Self::Postgres(store) => store.as_ref(),
        }
    }

    /// Whether this is a copy of another project's database, which can only be read until it is adopted.
    pub(crate) fn is_copy(&self) -> bool {
        matches!(self, Self::Sqlite(store) if store.is_copy())
    }

    /// Why the store may not keep its guarantees on this file system.
    pub(crate) fn warning(&self) -> Option<&'static str> {
        match self {
            Self::Sqlite(store) if store.is_on_fuse() => {
                Some("the project is on a FUSE file system; its locks may not hold")
            }
            Self::Sqlite(_) | Self::Postgres(_) => None,
        }
    }

    /// The clock of a store that machines share.
    pub(crate) fn server_clock(&self) -> Option<Arc<dyn Clock>> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(store) => Some(store.clock()),
        }
    }

    /// Judges the liveness of the processes that this store records, as far as they can be seen from here.
    pub(crate) fn judge(&self, env: &Env) -> Arc<dyn Judge> {
        match self {
            Self::Sqlite(_) if self.is_copy() => Arc::new(InACopy(Arc::clone(&env.judge))),
            Self::Sqlite(_) => Arc::clone(&env.judge),
            Self::Postgres(_) => Arc::new(AcrossMachines(Arc::clone(&env.judge))),
        }
    }

    /// This process's doorbell. Without one, waiters poll.
    pub(crate) fn doorbell(&self, env: &Env) -> Option<Doorbell> {
        let bound = match self {
            Self::Postgres(store) => return store.doorbell().map(Doorbell::Channel),
            Self::Sqlite(_) => {
                let name = format!("{}{}-{}", doorbell_prefix(env), std::process::id(), env.ids.uuid());
                tenure_sqlite::Doorbell::bind(&doorbells(env), &name)
            }
        };
        bound.ok().map(Doorbell::Socket)
    }

    /// How long a waiter that polls every `poll` sleeps between two refreshes of its ticket.
    pub(crate) fn refresh_pause(&self, poll: Duration) -> Duration {
        match self {
            Self::Sqlite(_) => poll,
            Self::Postgres(store) => store.refresh_pause(poll),
        }
    }

    /// The database file to watch for replacement, if the store is a file.
    pub(crate) fn file(&self) -> Result<Option<DatabaseFile>> {
        let Self::Sqlite(store) = self else { return Ok(None) };
        let path = store.path();
        let found = DatabaseFile::at(path)
            .map_err(|e| Error::store(format!("cannot inspect {}: {e}", path.display())))?;
        Ok(Some(found))
    }
}

impl Deref for Backend {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        self.as_ref()
    }
}

/// The folder with the doorbell sockets of this user's waiting processes.
fn doorbells(env: &Env) -> PathBuf {
    let is_own = env.var("XDG_RUNTIME_DIR").is_some();
    sockets(env).join(if is_own { "tenure".into() } else { sys::folder_of_user() })
}

/// The prefix of the names of this home's doorbells, because all homes of the user share the folder.
fn doorbell_prefix(env: &Env) -> String {
    let home = env.home().map(|home| sys::real_path(&home).unwrap_or(home)).unwrap_or_default();
    format!("{:08x}-", text::fingerprint(home.as_os_str().as_encoded_bytes()))
}

/// Counts the doorbells that killed processes of this home have left, and removes them if `remove` is set.
pub(crate) fn sweep_doorbells(env: &Env, remove: bool) -> usize {
    tenure_sqlite::sweep_doorbells(&doorbells(env), &doorbell_prefix(env), remove)
}

/// The folder for sockets: the runtime folder of this login, or else the one for temporary files.
pub(crate) fn sockets(env: &Env) -> PathBuf {
    env.var("XDG_RUNTIME_DIR").map_or_else(tenure_lock::temporary_folder, PathBuf::from)
}

/// A doorbell, by which other processes wake this one.
#[derive(Debug)]
pub(crate) enum Doorbell {
    Socket(tenure_sqlite::Doorbell),
    Channel(tenure_postgres::Doorbell),
}

impl Doorbell {
    pub(crate) fn address(&self) -> String {
        match self {
            Self::Socket(bell) => bell.address(),
            Self::Channel(bell) => bell.address(),
        }
    }

    /// Readable when the doorbell was rung.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(bell) => bell.fd(),
            Self::Channel(bell) => bell.fd(),
        }
    }

    pub(crate) fn silence(&self) {
        match self {
            Self::Socket(bell) => bell.silence(),
            Self::Channel(bell) => bell.silence(),
        }
    }
}
