//! Permissions, disk space, and the sockets of dead processes.

use std::path::{Path, PathBuf};

use tenure_core::hints;
use tenure_sqlite::Directory;

use super::Examination;
use super::finding::Finding;
use crate::app::App;
use crate::project::ProjectPaths;
use crate::shell_quote::quote;
use crate::store;
use crate::sys;

/// Warn below this many free bytes.
const DISK_LOW: u64 = 100 * 1024 * 1024;
/// Below this many free bytes only a few commits are possible.
const DISK_ALMOST_FULL: u64 = 5 * 1024 * 1024;

/// The paths that other users must not read: the folders and the database files. The configuration may be shared.
fn private(app: &App<'_>, paths: Option<&ProjectPaths>) -> Vec<PathBuf> {
    let project = paths.map(|paths| (paths.folder(), paths.database()));
    let home = app.env.home().map(|home| (home.clone(), Directory::file(&home)));
    let all = |(folder, database): (PathBuf, PathBuf)| {
        let beside = |ending: &str| {
            let mut path = database.clone().into_os_string();
            path.push(ending);
            PathBuf::from(path)
        };
        let locks = ["gate.lock", "queue.lock", "open.lock"].map(|ending| database.with_extension(ending));
        ["", "-wal", "-shm"].map(beside).into_iter().chain(locks).chain([folder])
    };
    project.into_iter().chain(home).flat_map(all).filter(|path| path.exists()).collect()
}

pub(super) fn examine(app: &App<'_>, paths: Option<&ProjectPaths>, found: &mut Examination) {
    let before = found.findings.len();
    for path in private(app, paths) {
        let Ok(meta) = path.metadata() else { continue };
        let shown = quote(&path.to_string_lossy());
        let path = path.display();
        if let Some((owner, _)) = sys::other_owner(&meta) {
            let sentence = format!("{path} belongs to another user (uid {owner})");
            found.findings.push(Finding::problem("permissions", sentence, hints::take_ownership(shown)));
        } else if let Some(mode) = sys::shared_mode(&meta) {
            let sentence = format!("{path} is accessible to other users (mode {mode:o})");
            let finding = Finding::warning("permissions", sentence, hints::close_to_others(shown));
            found.findings.push(finding.fixable());
        } else if !sys::is_writable(&meta) {
            let sentence = format!("{path} is not writable");
            found.findings.push(Finding::problem("permissions", sentence, hints::make_writable(shown)));
        }
    }
    if found.findings.len() == before {
        found.checks.push(("permissions", "the files are accessible to you only".to_owned()));
    }
    for folder in
        paths.map(ProjectPaths::folder).into_iter().chain(app.env.home()).filter(|folder| folder.exists())
    {
        disk(&folder, found);
    }
    let dead = store::sweep_doorbells(app.env, false);
    if dead > 0 {
        let sentence = if dead == 1 {
            "1 socket of a killed process is left over".to_owned()
        } else {
            format!("{dead} sockets of killed processes are left over")
        };
        found.findings.push(Finding::fixable_warning("sockets", sentence));
    }
}

/// `80 MB`, and from ten gigabytes on `76 GB`.
fn size(bytes: u64) -> String {
    let megabytes = bytes / 1024 / 1024;
    if megabytes < 10 * 1024 { format!("{megabytes} MB") } else { format!("{} GB", megabytes / 1024) }
}

fn disk(folder: &Path, found: &mut Examination) {
    let Some(free) = sys::free_space(folder) else { return };
    let shown = quote(&folder.to_string_lossy());
    let sentence = format!("{} free at {}", size(free), folder.display());
    match free {
        ..DISK_ALMOST_FULL => {
            found.findings.push(Finding::problem("disk", sentence, hints::show_free_space(shown)));
        }
        DISK_ALMOST_FULL..DISK_LOW => {
            found.findings.push(Finding::warning("disk", sentence, hints::show_free_space(shown)));
        }
        _ => found.checks.push(("disk", sentence)),
    }
}

pub(super) fn fix(app: &App<'_>, paths: Option<&ProjectPaths>) {
    for path in private(app, paths) {
        // A failure is reported by the second examination.
        sys::close_to_others(&path);
    }
    store::sweep_doorbells(app.env, true);
}
