//! The prompt template: `runners.promptTemplate`, or the built-in one.

use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::template::{Piece, pieces};

/// Far larger than any template, and small enough if a wrong file is named.
const MAX_TEMPLATE: u64 = 256 * 1024;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    #[error(
        "runners.promptTemplate is neither a file ({} does not exist) nor text with a placeholder such as {{{{task.title}}}}",
        path.display()
    )]
    Missing { path: PathBuf },
    #[error("runners.promptTemplate: {} is larger than 256 KiB", path.display())]
    TooLarge { path: PathBuf },
    #[error("runners.promptTemplate: {} is not inside the project", path.display())]
    Outside { path: PathBuf },
    #[error("runners.promptTemplate: cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
}

/// The configured template: the content of the file that the value names, else the value itself. `None` if the
/// built-in template should be used.
///
/// Text without a placeholder does not mention the task, so it is treated as the name of a missing file. With `confined`,
/// a file must be inside the project, regardless of `..` and symbolic links: a repository must not choose which of the
/// user's files goes to a model.
pub fn template(
    configured: Option<&str>,
    root: &Path,
    confined: bool,
) -> Result<Cow<'static, str>, TemplateError> {
    let Some(value) = configured else { return Ok(Cow::Borrowed(super::WORK)) };
    let path = root.join(value);
    if path.is_file() {
        if confined && !is_inside(root, &path) {
            return Err(TemplateError::Outside { path });
        }
        return read(path).map(Cow::Owned);
    }
    if pieces(value).iter().any(|piece| matches!(piece, Piece::Placeholder(_))) {
        return Ok(Cow::Owned(value.to_owned()));
    }
    Err(TemplateError::Missing { path })
}

fn is_inside(root: &Path, path: &Path) -> bool {
    match (root.canonicalize(), path.canonicalize()) {
        (Ok(root), Ok(path)) => path.starts_with(root),
        _ => false,
    }
}

fn read(path: PathBuf) -> Result<String, TemplateError> {
    let mut text = String::new();
    let read =
        std::fs::File::open(&path).and_then(|file| file.take(MAX_TEMPLATE + 1).read_to_string(&mut text));
    match read {
        Ok(bytes) if u64::try_from(bytes).is_ok_and(|bytes| bytes <= MAX_TEMPLATE) => Ok(text),
        Ok(_) => Err(TemplateError::TooLarge { path }),
        Err(source) => Err(TemplateError::Unreadable { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_names_a_file_is_read_and_any_other_is_the_template() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("prompt.md"), "Do {{task.key}}.").unwrap();
        let found =
            |value| template(value, folder.path(), true).map(Cow::into_owned).map_err(|e| e.to_string());
        assert_eq!(found(Some("prompt.md")).unwrap(), "Do {{task.key}}.");
        assert_eq!(found(Some("Just do {{task.title}}")).unwrap(), "Just do {{task.title}}");
        assert_eq!(found(None).unwrap(), super::super::WORK);
        assert!(found(Some("prompts.md")).unwrap_err().contains("prompts.md does not exist"));
        std::fs::File::create(folder.path().join("big.md")).unwrap().set_len(MAX_TEMPLATE + 1).unwrap();
        assert!(found(Some("big.md")).unwrap_err().contains("larger"));
    }

    #[test]
    fn a_template_of_a_project_is_inside_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        std::fs::create_dir(&root).unwrap();
        let secret = folder.path().join("secret.md");
        std::fs::write(&secret, "{{task.key}}").unwrap();
        std::os::unix::fs::symlink(&secret, root.join("link.md")).unwrap();
        for value in ["../secret.md", "link.md", secret.to_str().unwrap()] {
            let confined = template(Some(value), &root, true).unwrap_err();
            assert!(matches!(confined, TemplateError::Outside { .. }), "{value}: {confined}");
            assert!(template(Some(value), &root, false).is_ok(), "the user's own value: {value}");
        }
    }
}
