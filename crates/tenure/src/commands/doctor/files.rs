//! Permissions, disk space, and the sockets of dead processes.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tenure_sqlite::Directory;

use super::Examination;
use super::finding::{FIX, Finding};
use crate::app::App;
use crate::project::ProjectPaths;
use crate::shell_quote::quote;
use crate::store;

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
        let locks = ["gate.lock", "queue.lock"].map(|ending| database.with_extension(ending));
        ["", "-wal", "-shm"].map(beside).into_iter().chain(locks).chain([folder])
    };
    project.into_iter().chain(home).flat_map(all).filter(|path| path.exists()).collect()
}

pub(super) fn examine(app: &App<'_>, paths: Option<&ProjectPaths>, found: &mut Examination) {
    let before = found.findings.len();
    for path in private(app, paths) {
        let Ok(meta) = path.metadata() else { continue };
        let shown = quote(&path.to_string_lossy());
        if meta.uid() != rustix::process::geteuid().as_raw() {
            let sentence = format!("{} belongs to another user (uid {})", path.display(), meta.uid());
            found.findings.push(Finding::problem(
                "permissions",
                sentence,
                format!("sudo chown \"$(id -u)\" {shown}"),
            ));
        } else if meta.mode() & 0o077 != 0 {
            let sentence =
                format!("{} is accessible to other users (mode {:o})", path.display(), meta.mode() & 0o777);
            found
                .findings
                .push(Finding::warning("permissions", sentence, format!("chmod go-rwx {shown}")).fixable());
        } else if meta.mode() & 0o200 == 0 {
            let sentence = format!("{} is not writable", path.display());
            found.findings.push(Finding::problem("permissions", sentence, format!("chmod u+w {shown}")));
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
    let dead = tenure_sqlite::sweep_doorbells(&store::doorbells(app.env), false);
    if dead > 0 {
        let sentence = format!("{dead} sockets of killed processes are left over");
        found.findings.push(Finding::warning("sockets", sentence, FIX).fixable());
    }
}

fn disk(folder: &Path, found: &mut Examination) {
    let Ok(space) = rustix::fs::statvfs(folder) else { return };
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let shown = quote(&folder.to_string_lossy());
    let sentence = format!("{} MB free at {}", free / 1024 / 1024, folder.display());
    match free {
        ..DISK_ALMOST_FULL => {
            found.findings.push(Finding::problem("disk", sentence, format!("df -h {shown}")));
        }
        DISK_ALMOST_FULL..DISK_LOW => {
            found.findings.push(Finding::warning("disk", sentence, format!("df -h {shown}")));
        }
        _ => found.checks.push(("disk", sentence)),
    }
}

pub(super) fn fix(app: &App<'_>, paths: Option<&ProjectPaths>) {
    for path in private(app, paths) {
        // A failure is reported by the second examination.
        if let Ok(meta) = path.metadata()
            && meta.mode() & 0o077 != 0
        {
            let _ = std::fs::set_permissions(&path, Permissions::from_mode(meta.mode() & 0o700));
        }
    }
    tenure_sqlite::sweep_doorbells(&store::doorbells(app.env), true);
}
