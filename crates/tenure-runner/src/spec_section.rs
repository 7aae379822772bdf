//! The specification of a task: the section that `sourceFile#heading` refers to.
//!
//! Guarantees: only a regular file inside the project is read, regardless of `..` and symbolic links; at most
//! [`MAX_FILE`] bytes are read and [`MAX_TEXT`] returned, with a count of the rest. Not guaranteed: protection
//! against a process that replaces folders of the project by links during the read; it could edit the file as well.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tenure_core::import::markdown::{outline, section};
use tenure_lock::open_private;

/// The limit for the returned text, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;
/// The limit for the searched file, in bytes.
pub const MAX_FILE: u64 = 8 * 1024 * 1024;

/// The text of a specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecText {
    pub text: String,
    /// The number of bytes omitted at the end.
    pub cut: usize,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    #[error("there is no file {file}")]
    MissingFile { file: String },
    #[error("{file} is not inside the project")]
    Outside { file: String },
    #[error("{file} is not a regular file")]
    NotAFile { file: String },
    #[error("{file} is larger than {} MiB", MAX_FILE / 1024 / 1024)]
    TooLarge { file: String },
    #[error("{file} has no heading #{anchor}{}", meant(nearest.as_deref()))]
    MissingAnchor { file: String, anchor: String, nearest: Option<String> },
    #[error("cannot read {file}: {source}")]
    Unreadable { file: String, source: io::Error },
}

/// The section of a Markdown file, or the whole file if no anchor is given.
pub fn spec_text(root: &Path, source_file: &str) -> Result<SpecText, SpecError> {
    let (file, anchor) = split(root, source_file);
    let path = inside(root, file)?;
    let text = read(&path, file)?;
    let Some(anchor) = anchor else { return Ok(cut(&text)) };
    match section(&text, anchor) {
        Some(found) => Ok(cut(found)),
        None => Err(SpecError::MissingAnchor {
            file: file.to_owned(),
            anchor: anchor.to_owned(),
            nearest: nearest(&text, anchor),
        }),
    }
}

/// A file name may contain `#`; an existing file takes precedence.
fn split<'s>(root: &Path, source_file: &'s str) -> (&'s str, Option<&'s str>) {
    match source_file.rsplit_once('#') {
        Some((file, anchor)) if !root.join(source_file).is_file() => {
            (file, (!anchor.is_empty()).then_some(anchor))
        }
        _ => (source_file, None),
    }
}

fn inside(root: &Path, file: &str) -> Result<PathBuf, SpecError> {
    let wrong = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            SpecError::MissingFile { file: file.to_owned() }
        }
        _ => SpecError::Unreadable { file: file.to_owned(), source },
    };
    let root = root.canonicalize().map_err(wrong)?;
    let path = root.join(file).canonicalize().map_err(wrong)?;
    if path.starts_with(&root) { Ok(path) } else { Err(SpecError::Outside { file: file.to_owned() }) }
}

fn read(path: &Path, file: &str) -> Result<String, SpecError> {
    let unreadable = |source: io::Error| SpecError::Unreadable { file: file.to_owned(), source };
    let opened = open_private(path, File::options().read(true)).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => SpecError::NotAFile { file: file.to_owned() },
        _ => unreadable(error),
    })?;
    let mut bytes = Vec::new();
    opened.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_FILE {
        return Err(SpecError::TooLarge { file: file.to_owned() });
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn cut(text: &str) -> SpecText {
    let end = text.floor_char_boundary(MAX_TEXT);
    SpecText { text: text[..end].to_owned(), cut: text.len() - end }
}

fn nearest(text: &str, anchor: &str) -> Option<String> {
    let score = |other: &String| strsim::jaro_winkler(anchor, other);
    let headings = outline(text).into_iter().filter_map(|heading| heading.anchor);
    let best = headings.max_by(|a, b| score(a).total_cmp(&score(b)))?;
    (score(&best) >= 0.7).then_some(best)
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map(|anchor| format!("; did you mean #{anchor}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn project() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("project/docs")).unwrap();
        std::fs::write(folder.path().join("secret.md"), "# Secret\nx\n").unwrap();
        let plan = "# Plan\n\n## Log in\n\nUse keys.\n\n## Log out\n\nForget them.\n";
        std::fs::write(folder.path().join("project/docs/SPEC.md"), plan).unwrap();
        folder
    }

    fn message(folder: &tempfile::TempDir, source: &str) -> String {
        spec_text(&folder.path().join("project"), source).unwrap_err().to_string()
    }

    #[test]
    fn an_anchor_selects_its_section_and_no_anchor_the_whole_file() {
        let folder = project();
        let root = folder.path().join("project");
        let found = |source| spec_text(&root, source).unwrap().text;
        assert_eq!(found("docs/SPEC.md#log-in"), "## Log in\n\nUse keys.\n\n");
        assert!(found("docs/SPEC.md").starts_with("# Plan"));
        assert_eq!(found("docs/SPEC.md#"), found("docs/SPEC.md"));
        let absolute = root.join("docs/SPEC.md");
        assert_eq!(found(absolute.to_str().unwrap()), found("docs/SPEC.md"));
        std::fs::write(root.join("C#.md"), "sharp").unwrap();
        assert_eq!(found("C#.md"), "sharp");
    }

    #[test]
    fn a_missing_heading_is_reported_with_the_nearest_one() {
        let folder = project();
        assert_eq!(message(&folder, "docs/NONE.md#a"), "there is no file docs/NONE.md");
        assert_eq!(
            message(&folder, "docs/SPEC.md#login"),
            "docs/SPEC.md has no heading #login; did you mean #log-in?"
        );
        assert_eq!(message(&folder, "docs/SPEC.md#zzz"), "docs/SPEC.md has no heading #zzz");
        assert_eq!(message(&folder, "docs#a"), "docs is not a regular file");
    }

    #[test]
    fn nothing_outside_of_the_project_is_read() {
        let folder = project();
        let root = folder.path().join("project");
        symlink(folder.path().join("secret.md"), root.join("link.md")).unwrap();
        symlink(folder.path(), root.join("up")).unwrap();
        let outside = folder.path().join("secret.md");
        for source in [
            "../secret.md",
            "docs/../../secret.md#secret",
            "link.md",
            "up/secret.md",
            outside.to_str().unwrap(),
        ] {
            let error = spec_text(&root, source).unwrap_err();
            assert!(matches!(error, SpecError::Outside { .. }), "{source}: {error}");
        }
        symlink(root.join("docs/SPEC.md"), root.join("inner.md")).unwrap();
        assert!(spec_text(&root, "inner.md#plan").is_ok());
    }

    #[test]
    fn long_text_is_truncated_between_characters_with_a_count() {
        let folder = project();
        let root = folder.path().join("project");
        std::fs::write(root.join("long.md"), format!("# A\n{}", "ü".repeat(MAX_TEXT))).unwrap();
        let found = spec_text(&root, "long.md#a").unwrap();
        assert!(found.text.len() <= MAX_TEXT && found.text.len() + found.cut == 4 + 2 * MAX_TEXT);
        let huge = File::create(root.join("huge.md")).unwrap();
        huge.set_len(MAX_FILE + 1).unwrap();
        assert_eq!(message(&folder, "huge.md"), "huge.md is larger than 8 MiB");
    }

    #[test]
    fn invalid_utf_8_and_pipes_are_handled() {
        let folder = project();
        let root = folder.path().join("project");
        std::fs::write(root.join("odd.md"), b"# A\n\xff\xfe\n").unwrap();
        assert_eq!(spec_text(&root, "odd.md#a").unwrap().text, "# A\n\u{fffd}\u{fffd}\n");
        let made = std::process::Command::new("mkfifo").arg(root.join("pipe.md")).status();
        assert!(made.unwrap().success());
        assert_eq!(message(&folder, "pipe.md"), "pipe.md is not a regular file");
    }
}
