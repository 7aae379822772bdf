//! Decides whether a person has trusted a project's file. The only module that reads and writes the records of trust,
//! `~/.tenure/trust/*.json`, one per project.
//!
//! Guarantees: a record is complete or absent; what is recorded is exactly what was examined, not what the file has become
//! meanwhile; a record that cannot be read counts as none.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use tenure_core::config::{Document, TrustContent, TrustRecord, TrustState};
use tenure_core::{Error, ErrorCode};
use tenure_runner::preset::agent_session_variable;

use crate::atomic;
use crate::env::Env;
use crate::layers::read_document;
use crate::project::ProjectPaths;
use crate::report::{CommandResult, Report};
use crate::sys;

/// `1` trusts every project, a hash only that content. For machines without a person; agents and hooks do not get it.
pub(crate) const VARIABLE: &str = "TENURE_TRUST";

/// Below the home.
const FOLDER: &str = "trust";

/// A project's file, compared with its record.
#[derive(Debug)]
pub(crate) struct Examined {
    /// Without symbolic links.
    pub(crate) root: PathBuf,
    pub(crate) document: Document,
    pub(crate) content: TrustContent,
    pub(crate) record: Option<TrustRecord>,
    pub(crate) state: TrustState,
}

/// Whether the settings of the project's file that need trust count. Reads nothing if there are none.
pub(crate) fn counts(env: &Env, paths: &ProjectPaths, document: &Document) -> bool {
    if !document.needs_trust() {
        return false;
    }
    if env.var(VARIABLE) == Some("1") {
        return true;
    }
    let root = real_root(paths);
    let content = content_of(&root, document);
    has_hash(env, &content) || record_of(env, &root).is_some_and(|record| record.content == content)
}

/// Compares the project's file, which may be missing, with its record.
pub(crate) fn examine(env: &Env, paths: &ProjectPaths) -> CommandResult<Examined> {
    crate::links::check_config(paths)?;
    let document = read_document(Some(&paths.config()))?.unwrap_or_default();
    Ok(examine_document(env, paths, document))
}

pub(crate) fn examine_document(env: &Env, paths: &ProjectPaths, document: Document) -> Examined {
    let root = real_root(paths);
    let content = content_of(&root, &document);
    let record = record_of(env, &root);
    let state = TrustState::of(&content, record.as_ref());
    Examined { root, document, content, record, state }
}

impl Examined {
    /// Whether agents may be started here. A record is required even if no setting needs trust, because agents read
    /// other settings of the repository themselves.
    pub(crate) fn allows_agents(&self, env: &Env) -> bool {
        self.state == TrustState::Trusted || env.var(VARIABLE) == Some("1") || has_hash(env, &self.content)
    }

    /// The refusal to start an agent.
    pub(crate) fn refusal(&self) -> Report {
        let root = self.root.display();
        let message = match self.state {
            TrustState::Changed => {
                format!("{root} has changed since it was trusted, so no agent is started there")
            }
            _ => format!("{root} is not trusted, so no agent is started there"),
        };
        Report::from(Error::Untrusted { message, root: self.root.clone() })
    }

    /// Whether the files that the settings name are still those that were examined.
    pub(crate) fn files_are_unchanged(&self, env: &Env) -> bool {
        env.var(VARIABLE) == Some("1") || content_of(&self.root, &self.document).files == self.content.files
    }

    /// The other projects in which the same content was trusted, if it needs trust.
    pub(crate) fn trusted_elsewhere(&self, env: &Env) -> Vec<String> {
        if self.content.is_empty() {
            return Vec::new();
        }
        let same = |record: &TrustRecord| {
            record.content == self.content && Path::new(&record.path) != self.root.as_path()
        };
        all_records(env).into_iter().filter(same).map(|record| record.path).collect()
    }

    /// Records the content that was examined.
    pub(crate) fn save(&self, env: &Env) -> CommandResult<()> {
        let folder = folder(env).ok_or_else(Report::no_home)?;
        let path = self.root.to_string_lossy().into_owned();
        let file = folder.join(TrustRecord::file_name(&path));
        let record = TrustRecord { path, trusted_at: env.clock.now(), content: self.content.clone() };
        let text =
            serde_json::to_string(&record).map_err(|e| Report::new(ErrorCode::General, e.to_string()))?;
        atomic::make_folder(&folder)
            .and_then(|()| atomic::write(&file, &text, &std::process::id().to_string()))
            .map_err(|e| Report::io(&e, ErrorCode::General, "write", &file))
    }
}

/// Whether there is a record of a project, even a damaged one.
pub(crate) fn is_known(env: &Env, paths: &ProjectPaths) -> bool {
    record_file(env, &real_root(paths)).is_some_and(|file| file.exists())
}

/// Removes the record of a project.
pub(crate) fn forget(env: &Env, paths: &ProjectPaths) -> CommandResult<()> {
    let Some(file) = record_file(env, &real_root(paths)) else { return Ok(()) };
    match fs::remove_file(&file) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Report::io(&e, ErrorCode::General, "remove", &file))
        }
        _ => Ok(()),
    }
}

/// All records, by path.
pub(crate) fn all_records(env: &Env) -> Vec<TrustRecord> {
    let entries = folder(env).and_then(|folder| fs::read_dir(folder).ok());
    let mut records: Vec<TrustRecord> =
        entries.into_iter().flatten().flatten().filter_map(|entry| read_record(&entry.path())).collect();
    records.sort_by(|a, b| a.path.cmp(&b.path));
    records
}

/// Why the caller is not a person at a terminal; `None` if it is one.
pub(crate) fn why_no_person(env: &Env) -> Option<String> {
    agent_variable(env)
        .map(|variable| format!("{variable} is set, so the caller is an agent"))
        .or_else(|| (!env.input_is_terminal).then(|| "standard input is not a terminal".to_owned()))
}

/// A variable that only processes of agents have.
pub(crate) fn agent_variable(env: &Env) -> Option<&'static str> {
    let own = ["TENURE_AGENT", "TENURE_SUPERVISED"].into_iter().find(|name| env.var(name).is_some());
    own.or_else(|| agent_session_variable(|name| env.var(name).is_some()))
}

fn has_hash(env: &Env, content: &TrustContent) -> bool {
    env.var(VARIABLE).is_some_and(|hash| hash.eq_ignore_ascii_case(&content.hash()))
}

fn real_root(paths: &ProjectPaths) -> PathBuf {
    sys::real_path(&paths.root).unwrap_or_else(|_| paths.root.clone())
}

fn content_of(root: &Path, document: &Document) -> TrustContent {
    let words = document.words_that_may_name_files().into_iter();
    let files: BTreeMap<String, String> =
        words.filter_map(|word| Some((word.clone(), mark_of_file(root, &word)?))).collect();
    TrustContent { files, ..TrustContent::of(document) }
}

/// The hash of a project's file, or the target of a project's link. `None` if the word names no file, or a file outside
/// the project.
fn mark_of_file(root: &Path, word: &str) -> Option<String> {
    let path = root.join(word);
    let real = sys::real_path(&path).ok()?;
    if !real.metadata().ok()?.is_file() {
        return None;
    }
    if !real.starts_with(root) {
        return path.starts_with(root).then(|| format!("outside of the project: {}", real.display()));
    }
    let hash = File::open(&real).and_then(TrustContent::hash_file);
    Some(hash.unwrap_or_else(|error| format!("unreadable: {}", error.kind())))
}

fn record_of(env: &Env, root: &Path) -> Option<TrustRecord> {
    let record = read_record(&record_file(env, root)?)?;
    (Path::new(&record.path) == root).then_some(record)
}

fn read_record(file: &Path) -> Option<TrustRecord> {
    serde_json::from_str(&fs::read_to_string(file).ok()?).ok()
}

fn record_file(env: &Env, root: &Path) -> Option<PathBuf> {
    Some(folder(env)?.join(TrustRecord::file_name(root.to_str()?)))
}

fn folder(env: &Env) -> Option<PathBuf> {
    env.home().map(|home| home.join(FOLDER))
}
