//! Finding projects below the folders of `runners.wakeup.projectPaths`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::sys::real_path;

/// The maximum depth of a project below a configured folder.
const DEPTH: usize = 3;
/// The maximum number of entries read per folder; a larger folder holds data, not projects.
const MOST: usize = 10_000;

/// Every project at or below `base`. Unreadable folders are skipped.
pub fn below(base: &Path, is_project: &dyn Fn(&Path) -> bool) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let Ok(base) = real_path(base) else { return found };
    let mut open = vec![(base, 0)];
    while let Some((folder, depth)) = open.pop() {
        if is_project(&folder) {
            found.insert(folder.clone());
        }
        if depth == DEPTH {
            continue;
        }
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten().take(MOST) {
            // A path that is not UTF-8 cannot be that of a project.
            let hidden = entry.file_name().to_str().is_none_or(|name| name.starts_with('.'));
            // Links are not followed: their target is found at its own path, or is excluded on purpose.
            if !hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

/// Expands `~` and `~/…` to the user's home; relative paths are relative to it as well.
pub fn expand(path: &str, user_home: Option<&Path>) -> Option<PathBuf> {
    let rest = match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest.trim_start_matches('/'),
        _ => path,
    };
    if Path::new(rest).is_absolute() { Some(PathBuf::from(rest)) } else { Some(user_home?.join(rest)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_are_found_three_levels_deep_and_links_and_hidden_folders_are_skipped() {
        let base = tempfile::tempdir().unwrap();
        for folder in ["a", "b/c/d", "b/c/d/e", ".hidden/x", "elsewhere/y"] {
            std::fs::create_dir_all(base.path().join(folder)).unwrap();
            std::fs::write(base.path().join(folder).join("mark"), "").unwrap();
        }
        std::os::unix::fs::symlink("..", base.path().join("a/loop")).unwrap();
        let found = below(base.path(), &|folder| folder.join("mark").exists());
        let root = base.path().canonicalize().unwrap();
        let names: Vec<_> = found.iter().map(|p| p.strip_prefix(&root).unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a", "b/c/d", "elsewhere/y"]);
        assert!(below(&base.path().join("nowhere"), &|_| true).is_empty());
    }

    #[test]
    fn a_tilde_is_the_users_home() {
        let home = Path::new("/home/ann");
        for (given, expected) in [
            ("~", "/home/ann/"),
            ("~/src", "/home/ann/src"),
            ("/srv", "/srv"),
            ("src", "/home/ann/src"),
            ("~bob/src", "/home/ann/~bob/src"),
        ] {
            assert_eq!(expand(given, Some(home)), Some(PathBuf::from(expected)), "{given}");
        }
        assert_eq!(expand("~/src", None), None);
        assert_eq!(expand("/srv", None), Some(PathBuf::from("/srv")));
    }
}
