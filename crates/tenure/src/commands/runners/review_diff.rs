//! The changes in the working tree since a task was first claimed, for its reviewer: commits, uncommitted changes, and
//! untracked files.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenure_core::Timestamp;
use tenure_runner::processes::children;

/// Maximum number of bytes of a diff in a review prompt.
const MAX_BYTES: usize = 64 * 1024;

/// Maximum number of new files that are shown.
const MAX_NEW_FILES: usize = 100;

/// Maximum number of bytes that are read from a git command. A list of files may be longer than the diff that is shown.
const MAX_READ: u64 = 1024 * 1024;

/// The beginning of every diff command. Without these options, git would run programs named by the repository's
/// configuration or by that of a submodule; the agent may have written both.
const DIFF: [&str; 6] = [
    "diff",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--submodule=short",
    "--ignore-submodules=dirty",
];

/// Settings that keep git from running other programs of the repository's configuration, and its hooks.
const SETTINGS: [(&str, &str); 2] = [("core.fsmonitor", "false"), ("core.hooksPath", "/dev/null")];

/// `None` if the folder is not in a git repository.
pub(super) fn since(folder: &Path, claimed_at: Timestamp) -> Option<String> {
    let git = Git { folder, settings: settings(folder)? };
    // Git counts in whole seconds, and a commit in the same second as the claim may be part of the work.
    let second = claimed_at.before(Duration::from_secs(1));
    let before = format!("--before={}", second.to_seconds());
    let base = git.run(&["rev-list", "-1", &before, "HEAD"]).filter(|base| !base.trim().is_empty());
    // If every commit is younger than the claim, or there is none, the diff is against the empty tree.
    let base = base.or_else(|| git.run(&["hash-object", "-t", "tree", "/dev/null"]))?;
    let mut diff = git.run(&[&DIFF[..], &[base.trim()]].concat())?;
    let listed = git.run(&["ls-files", "--others", "--exclude-standard", "-z"]).unwrap_or_default();
    let is_new = |file: &&str| !file.is_empty() && was_written_since(&folder.join(file), second);
    for (shown, file) in listed.split('\0').filter(is_new).enumerate() {
        if diff.len() > MAX_BYTES {
            break;
        }
        if shown == MAX_NEW_FILES {
            diff.push_str("\n[further new files are omitted]\n");
            break;
        }
        let args = [&DIFF[..], &["--no-index", "--", "/dev/null", file]].concat();
        diff.push_str(&git.run(&args).unwrap_or_default());
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

/// A file that is older than the claim does not belong to the work.
fn was_written_since(file: &Path, time: Timestamp) -> bool {
    let modified = file.symlink_metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let age = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    age >= u128::try_from(time.as_millis()).unwrap_or_default()
}

/// Runs git in a folder.
struct Git<'a> {
    folder: &'a Path,
    settings: Vec<(String, &'static str)>,
}

/// The settings for a diff of the working tree: filters that the repository itself configures do not run. Those of the user's
/// configuration, such as git-lfs, do.
fn settings(folder: &Path) -> Option<Vec<(String, &'static str)>> {
    let mut settings = Vec::from(SETTINGS.map(|(key, value)| (key.to_owned(), value)));
    let git = Git { folder, settings: settings.clone() };
    let found = git.run(&["config", "--show-scope", "--null", "--get-regexp", r"^filter\."])?;
    let mut fields = found.split('\0');
    while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
        let key = entry.split('\n').next().unwrap_or_default();
        if let ("local" | "worktree", Some((filter, _))) = (scope, key.rsplit_once('.')) {
            for (setting, value) in [("clean", ""), ("process", ""), ("required", "false")] {
                settings.push((format!("{filter}.{setting}"), value));
            }
        }
    }
    Some(settings)
}

impl Git<'_> {
    /// The output of a command that succeeds, or that finds nothing or differences (exit code 1). A longer output is cut off at
    /// `MAX_READ`.
    fn run(&self, args: &[&str]) -> Option<String> {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.folder).args(args);
        // Added after the settings that the user has passed in the same way. Not passed as arguments, because there
        // a key could not contain an equals sign.
        let given = std::env::var("GIT_CONFIG_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
        git.env("GIT_CONFIG_COUNT", (given + self.settings.len()).to_string());
        for (number, (key, value)) in (given..).zip(&self.settings) {
            git.env(format!("GIT_CONFIG_KEY_{number}"), key).env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        git.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = children::spawn(&mut git).ok()?;
        let mut output = Vec::new();
        // The pipe is closed after the read, so git ends even if it has more output.
        let read = child.stdout.take().map(|pipe| pipe.take(MAX_READ).read_to_end(&mut output));
        let status = child.wait().ok()?;
        let is_cut = matches!(read, Some(Ok(bytes)) if bytes as u64 == MAX_READ);
        let is_answer = is_cut || matches!(status.code(), Some(0 | 1));
        is_answer.then(|| String::from_utf8_lossy(&output).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tenure_core::{Clock, SystemClock};

    use super::*;

    fn git(folder: &Path, args: &[&str]) {
        let mut git = Command::new("git");
        git.arg("-C").arg(folder).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(args);
        assert!(git.output().unwrap().status.success(), "{args:?}");
    }

    #[test]
    fn a_diff_runs_no_program_that_the_repository_names() {
        let folder = tempfile::tempdir().unwrap();
        let (repository, ran) = (folder.path().join("repository"), folder.path().join("ran"));
        fs::create_dir(&repository).unwrap();
        git(&repository, &["init", "-q"]);
        fs::write(repository.join("file"), "before\n").unwrap();
        git(&repository, &["add", "."]);
        git(&repository, &["commit", "-qm", "first"]);
        let claimed_at = SystemClock.now().after(Duration::from_hours(1));
        let program = format!("touch {}; cat", ran.display());
        for (setting, value) in [
            ("filter.one.clean", program.as_str()),
            ("filter.a.b=c.process", &program),
            ("filter.a.b=c.required", "true"),
            ("core.fsmonitor", &program),
            ("diff.external", &program),
            ("diff.autoRefreshIndex", "true"),
        ] {
            git(&repository, &["config", setting, value]);
        }
        let hook = repository.join(".git/hooks/post-index-change");
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, format!("#!/bin/sh\n{program}\n")).unwrap();
        let mut mode = fs::metadata(&hook).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
        fs::set_permissions(&hook, mode).unwrap();
        fs::write(repository.join(".gitattributes"), "file filter=one\nother filter=a.b=c\n").unwrap();
        fs::write(repository.join("other"), "new\n").unwrap();
        git(&repository, &["-c", "filter.a.b=c.process=", "add", "--intent-to-add", "other"]);
        fs::write(repository.join("file"), "after\n").unwrap();
        let _ = fs::remove_file(&ran);
        let diff = since(&repository, claimed_at).unwrap();
        assert!(diff.contains("-before") && diff.contains("+after"), "{diff}");
        assert!(!ran.exists(), "a program of the repository was run");
    }
}
