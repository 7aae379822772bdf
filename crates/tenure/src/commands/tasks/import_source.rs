//! Reads what is to be imported: a file, standard input, or a folder of another tool.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use tenure_core::ErrorCode;

use crate::report::{CommandResult, Report};

/// The largest import, in bytes. A hundred thousand tasks with their descriptions fit.
const MAX_BYTES: usize = 64 * 1024 * 1024;

pub(super) struct ImportSource {
    /// For messages.
    pub(super) name: String,
    /// Names and contents, in the order of the names.
    pub(super) files: Vec<(String, String)>,
}

pub(super) fn read(cwd: &Path, file: &Path) -> CommandResult<ImportSource> {
    let name = if file.as_os_str() == "-" { "stdin".to_owned() } else { file.to_string_lossy().into_owned() };
    let path = cwd.join(file);
    if file.as_os_str() != "-" && path.is_dir() {
        return Ok(ImportSource { files: read_folder(&path, file, &name)?, name });
    }
    let read = if file.as_os_str() == "-" {
        read_bounded(std::io::stdin())
    } else {
        File::open(&path).and_then(read_bounded)
    };
    let text = text_of(&name, read.map_err(|e| unreadable(file, &e))?)?;
    Ok(ImportSource { files: vec![(name.clone(), text)], name })
}

/// The Markdown files of Backlog.md, from `tasks` and `completed` or from the folder itself, or vibe-kanban's CSV files.
fn read_folder(path: &Path, shown: &Path, name: &str) -> CommandResult<Vec<(String, String)>> {
    let inner: Vec<&str> = ["tasks", "completed"].into_iter().filter(|sub| path.join(sub).is_dir()).collect();
    let folders = if inner.is_empty() { vec![""] } else { inner };
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(path.join(folder)).map_err(|e| unreadable(shown, &e))?;
        for entry in entries {
            let entry = entry.map_err(|e| unreadable(shown, &e))?.path();
            let extension = entry.extension().and_then(|end| end.to_str()).unwrap_or_default();
            if entry.is_file() && matches!(extension, "md" | "csv") {
                found.push(entry);
            }
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(Report::usage(format!("{name} is a folder without Markdown or CSV files")));
    }
    let mut files = Vec::with_capacity(found.len());
    let mut total = 0;
    for file in found {
        let inside = file.strip_prefix(path).unwrap_or(&file);
        let shown = shown.join(inside).to_string_lossy().into_owned();
        let content = File::open(&file).and_then(read_bounded).map_err(|e| unreadable(&file, &e))?;
        total += content.len();
        if total > MAX_BYTES {
            return Err(too_large(name));
        }
        let text = text_of(&shown, content)?;
        files.push((shown, text));
    }
    Ok(files)
}

fn text_of(name: &str, content: Vec<u8>) -> CommandResult<String> {
    if content.len() > MAX_BYTES {
        return Err(too_large(name));
    }
    String::from_utf8(content).map_err(|_| Report::usage(format!("{name} is not UTF-8 text")))
}

fn too_large(name: &str) -> Report {
    let limit = MAX_BYTES / 1024 / 1024;
    Report::usage(format!("{name} is larger than {limit} MiB; split it into several files"))
}

/// Reads at most one byte more than an import may have.
fn read_bounded(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    from.take(MAX_BYTES as u64 + 1).read_to_end(&mut content)?;
    Ok(content)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Report {
    match error.kind() {
        std::io::ErrorKind::NotFound => Report::usage(format!("there is no file {}", path.display())),
        _ => Report::io(error, ErrorCode::InvalidArguments, "read", path),
    }
}
