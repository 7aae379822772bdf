//! A crate has no two types of the same name, so that a name leads to one definition.

use std::collections::BTreeMap;
use std::path::Path;

use crate::{root, rust_files};

/// Names that every command has: the arguments of a verb, and the verbs of a command.
const PER_COMMAND: [&str; 2] = ["Args", "Verb"];

/// The names of the types that are declared at the beginning of a line. Types inside a function or a test module are indented.
fn declared(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| {
            let line = line.strip_prefix("pub").map_or(line, |rest| {
                rest.split_once(") ")
                    .filter(|_| rest.starts_with('('))
                    .map_or(rest.trim_start(), |(_, rest)| rest)
            });
            let (keyword, rest) = line.split_once(' ')?;
            let name = rest.split(|c: char| !c.is_alphanumeric()).next()?;
            ["struct", "enum", "trait", "type"].contains(&keyword).then_some(name)
        })
        .collect()
}

#[test]
fn declarations_are_found() {
    let text = "pub(super) struct A<'a> {\n    type Target = B;\n}\npub enum C {}\ntrait D: E {}\ntype F = G;\nfn struct_h() {}\n";
    assert_eq!(declared(text), ["A", "C", "D", "F"]);
}

#[test]
fn no_type_name_occurs_twice_in_a_crate() {
    let crates = root().join("crates");
    let mut places: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for path in rust_files(&crates) {
        let short = path.strip_prefix(&crates).unwrap();
        let mut parts = short.components().map(|part| part.as_os_str().to_string_lossy());
        let package = parts.next().unwrap().into_owned();
        // In `sys/`, each system has its own definition.
        if parts.next().is_none_or(|part| part != "src")
            || short.components().any(|part| part.as_os_str() == "sys")
        {
            continue;
        }
        // The two files of SQLite's doorbell are alternatives, one for each kind of system.
        if short == Path::new("tenure-sqlite/src/no_doorbell.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for name in declared(&text).into_iter().filter(|name| !PER_COMMAND.contains(name)) {
            let key = (package.clone(), name.to_owned());
            places.entry(key).or_default().push(short.display().to_string());
        }
    }
    assert!(places.len() > 800, "only {} types were found", places.len());
    places.retain(|_, files| files.len() > 1);
    assert!(places.is_empty(), "rename all but one of each: {places:#?}");
}
