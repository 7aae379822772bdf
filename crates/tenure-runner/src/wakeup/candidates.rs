//! Finding projects below the folders of `runners.wakeup.projectPaths`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How deep below a configured folder a project may be.
const DEPTH: usize = 3;
/// A folder with more than this in it holds data, not projects.
const MOST: usize = 10_000;

/// Every project at or below `base`. What cannot be read is passed over: it cannot be worked in either.
pub fn below(base: &Path, is_project: &dyn Fn(&Path) -> bool) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let Ok(base) = base.canonicalize() else { return found };
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
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            // A link is not followed: what it leads to is found where it is, or is outside on purpose.
            if !hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

/// `~` and `~/…` are the user's; anything relative is meant from there, too.
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
    fn projects_are_found_three_deep_and_links_and_hidden_folders_are_left_alone() {
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
