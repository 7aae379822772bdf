//! Resolves the program that a configuration names.
//!
//! A name with a slash is a path relative to the project's root; any other name is searched on `PATH`. Never a shell.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::sys;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    #[error("no program is named")]
    Empty,
    #[error("{name} was not found on PATH")]
    NotOnPath { name: String },
    #[error("there is no {}", path.display())]
    Missing { path: PathBuf },
    #[error("{} is not an executable file", path.display())]
    NotExecutable { path: PathBuf },
}

pub(crate) fn find(name: &str, root: &Path, path: Option<&OsStr>) -> Result<PathBuf, ProgramError> {
    if name.is_empty() {
        return Err(ProgramError::Empty);
    }
    if name.contains('/') {
        let path = root.join(name);
        return match (path.exists(), is_program(&path)) {
            (_, true) => Ok(path),
            (true, false) => Err(ProgramError::NotExecutable { path }),
            (false, false) => Err(ProgramError::Missing { path }),
        };
    }
    let folders = path.map(std::env::split_paths).into_iter().flatten();
    // A shell treats an empty entry as the current directory, which here would depend on the caller.
    folders
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|path| is_program(path))
        .ok_or_else(|| ProgramError::NotOnPath { name: name.to_owned() })
}

fn is_program(path: &Path) -> bool {
    path.is_file() && sys::is_executable(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_slash_means_the_project_and_a_plain_name_means_path() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let bin = root.join("bin");
        std::fs::create_dir(&bin).unwrap();
        for (name, mode) in [("tool", 0o755), ("data", 0o644)] {
            std::fs::write(bin.join(name), "").unwrap();
            std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = std::env::join_paths([Path::new(""), Path::new("bin"), &bin]).unwrap();

        assert_eq!(find("./bin/tool", root, None).unwrap(), root.join("./bin/tool"));
        assert_eq!(find("tool", root, Some(&path)).unwrap(), bin.join("tool"));
        assert_eq!(find("tool", root, None), Err(ProgramError::NotOnPath { name: "tool".into() }));
        assert!(matches!(find("data", root, Some(&path)), Err(ProgramError::NotOnPath { .. })));
        assert!(matches!(find("bin/data", root, None), Err(ProgramError::NotExecutable { .. })));
        assert!(matches!(find("bin/none", root, None), Err(ProgramError::Missing { .. })));
        assert!(matches!(find("./bin", root, None), Err(ProgramError::NotExecutable { .. })));
        assert_eq!(find("", root, None), Err(ProgramError::Empty));
    }
}
