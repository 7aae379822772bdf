//! The documents match the code: every command line in them is run, every command, test, table and file that they name exists,
//! and the list of commands is generated from the parser.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is a failed test"
)]

mod commands;
mod contract;
mod guarantees;
mod names;
mod packages;
mod page;
mod play;
mod schema;
mod settings;
mod systems;

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The README and the guide, in order.
fn documents() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    found.push(root().join("README.md"));
    found.sort();
    found
}

/// A page of the guide: neither the README nor the generated list of commands.
fn is_guide(path: &Path) -> bool {
    !["README.md", "commands.md"].contains(&name(path).as_str())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn every_command_line_in_the_documents_prints_what_is_shown() {
    let mut lines = 0;
    for path in documents() {
        let steps = page::steps(&std::fs::read_to_string(&path).unwrap());
        lines += steps.iter().filter(|step| step.shown).count();
        play::play(&name(&path), &steps);
    }
    assert!(lines >= 30, "only {lines} command lines were found");
}

#[test]
fn every_command_named_in_the_documents_exists() {
    let mut named = 0;
    for path in documents() {
        for line in page::named_commands(&std::fs::read_to_string(&path).unwrap()) {
            named += 1;
            let words = page::words(&line);
            let parsed = tenure::command().try_get_matches_from(&words);
            // `--help` and the like are not mistakes, and a command may be named without its arguments.
            let fault = parsed.err().filter(clap::Error::use_stderr);
            let fault = fault.filter(|e| e.kind() != clap::error::ErrorKind::MissingRequiredArgument);
            assert!(fault.is_none(), "{}: `{line}`: {}", name(&path), fault.unwrap());
        }
    }
    assert!(named >= 20, "only {named} commands are named");
}

/// The documents for contributors: they have no command lines to run.
fn for_contributors() -> Vec<PathBuf> {
    let decisions = std::fs::read_dir(root().join("docs/decisions")).unwrap();
    let mut found: Vec<PathBuf> = decisions.map(|entry| entry.unwrap().path()).collect();
    found.extend(["ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    found.sort();
    found
}

/// Every Rust source file below `folder`.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_file_that_the_contributors_documents_name_exists() {
    let mut named = 0;
    for path in for_contributors() {
        for span in page::code(&std::fs::read_to_string(&path).unwrap()) {
            // A word in capitals stands for a name that the reader chooses.
            let placeholder = span
                .split(['/', '.', '-'])
                .any(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase()));
            let is_path =
                span.starts_with("crates/") || span.starts_with("docs/") || span.starts_with("tenure-");
            if !is_path || placeholder || span.contains(' ') || !span.contains('/') {
                continue;
            }
            named += 1;
            let file = if span.starts_with("tenure-") { format!("crates/{span}") } else { span.clone() };
            assert!(root().join(file).exists(), "{}: there is no {span}", name(&path));
        }
    }
    assert!(named >= 20, "only {named} files are named");
}

#[test]
fn every_link_between_the_documents_has_a_target() {
    for path in documents().into_iter().chain(for_contributors()) {
        let text = std::fs::read_to_string(&path).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            assert!(path.parent().unwrap().join(target).exists(), "{}: {link}", name(&path));
        }
    }
}

#[test]
fn the_list_of_settings_matches_the_table_of_keys() {
    let path = root().join("docs/configuration.md");
    let there = std::fs::read_to_string(&path).unwrap();
    let made = settings::updated(&there);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap();
    assert!(
        there == made,
        "docs/configuration.md is not up to date: run `UPDATE_DOCS=1 cargo test -p tenure --test docs`"
    );
}

#[test]
fn the_list_of_commands_matches_the_parser() {
    for (file, made) in [
        ("docs/commands.md", commands::page(&tenure::command())),
        ("crates/tenure/src/help/overview.txt", tenure::overview()),
    ] {
        let path = root().join(file);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            there == made,
            "{file} is not up to date: run `UPDATE_DOCS=1 cargo test -p tenure --test docs`"
        );
    }
}

/// A name as the compiler mangles it: segments with their lengths, then the hash, which the list replaces by a star.
fn function_of_this_repository(pattern: &str) -> Option<&str> {
    let (mut rest, mut segments) = (pattern.strip_prefix(".text._ZN")?, Vec::new());
    while let Some(end) = rest.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0) {
        let (length, after) = rest.split_at(end);
        let Some((segment, left)) = after.split_at_checked(length.parse().ok()?) else { break };
        segments.push(segment);
        rest = left;
    }
    let ours = segments.first().is_some_and(|first| first.starts_with("tenure"));
    // Closures and instances have a `$` in their last segment.
    segments.last().copied().filter(|last| ours && last.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
}

#[test]
fn the_link_order_names_functions_that_exist() {
    let list = std::fs::read_to_string(root().join("crates/tenure/link-order.ld")).unwrap();
    let named: Vec<&str> = list.lines().filter_map(function_of_this_repository).collect();
    assert!(named.len() > 300, "only {} functions of this repository are in the list", named.len());
    let sources: String = rust_files(&root().join("crates"))
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let gone: Vec<_> = named.iter().filter(|name| !sources.contains(&format!("fn {name}"))).collect();
    // The list need not follow every change, but is of no use once most of it is out of date.
    assert!(gone.len() * 5 < named.len(), "scripts/link-order should be run again: {gone:?} are gone");
}
