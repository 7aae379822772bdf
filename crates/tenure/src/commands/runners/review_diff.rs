//! What has changed in the working tree since a task was claimed first, for its reviewer: commits, changes that are not committed,
//! and new files that git does not know yet.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenure_core::Timestamp;
use tenure_runner::processes::children;

/// Maximum number of bytes of a diff in a review prompt.
const MAX_BYTES: usize = 64 * 1024;

/// Maximum number of new files that are shown.
const MAX_NEW_FILES: usize = 100;

/// `None` if the folder is not in a git repository.
pub(super) fn since(folder: &Path, claimed_at: Timestamp) -> Option<String> {
    // Git counts in whole seconds. A commit of the claim's own second may be a part of the work.
    let second = claimed_at.before(Duration::from_secs(1));
    let before = format!("--before={}", second.to_seconds());
    let base = git(folder, &["rev-list", "-1", &before, "HEAD"]).filter(|base| !base.trim().is_empty());
    // Every commit is younger than the claim, or there is none: compared with the empty tree.
    let base = base.or_else(|| git(folder, &["hash-object", "-t", "tree", "/dev/null"]))?;
    let mut diff = git(folder, &["diff", "--no-color", "--no-ext-diff", base.trim()])?;
    let listed = git(folder, &["ls-files", "--others", "--exclude-standard", "-z"]).unwrap_or_default();
    let is_new = |file: &&str| !file.is_empty() && was_written_since(&folder.join(file), second);
    for file in listed.split('\0').filter(is_new).take(MAX_NEW_FILES) {
        if diff.len() > MAX_BYTES {
            break;
        }
        let args = ["diff", "--no-color", "--no-ext-diff", "--no-index", "--", "/dev/null", file];
        diff.push_str(&git(folder, &args).unwrap_or_default());
    }
    if diff.len() > MAX_BYTES {
        let mut end = MAX_BYTES;
        while !diff.is_char_boundary(end) {
            end -= 1;
        }
        diff.truncate(end);
        diff.push_str("\n[the rest is omitted]\n");
    }
    Some(diff)
}

/// A file that is older than the claim is somebody else's.
fn was_written_since(file: &Path, time: Timestamp) -> bool {
    let modified = file.symlink_metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let age = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    age >= u128::try_from(time.as_millis()).unwrap_or_default()
}

/// The output of a command that succeeds, or that finds differences (exit code 1).
fn git(folder: &Path, args: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(args);
    git.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let output = children::spawn(&mut git).ok()?.wait_with_output().ok()?;
    let is_answer = matches!(output.status.code(), Some(0 | 1));
    is_answer.then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
