//! docs/guarantees.md defines every rule that the code cites, and each of its tests exists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::{root, rust_files};

const IDS: &[&str] = &[
    "L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8", "L9", "L10", "L11", "Q1", "T1", "T2", "R1", "R2", "R3",
    "R4", "F1", "F2", "F3", "F4", "F5", "F6",
];

/// The tests listed under each `### ID: title`.
fn tests_by_id(page: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut id = None;
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            let (name, _) = heading.split_once(": ").unwrap_or_else(|| panic!("no id in {heading:?}"));
            let twice = found.insert(name.to_owned(), Vec::new());
            assert!(twice.is_none(), "{name} is defined twice");
            id = Some(name.to_owned());
        } else if line.starts_with("## ") {
            id = None;
        } else if let Some(test) = line.strip_prefix("- `").and_then(|rest| rest.strip_suffix('`')) {
            let id = id.as_ref().unwrap_or_else(|| panic!("{test} is under no id"));
            found.get_mut(id).unwrap().push(test.to_owned());
        }
    }
    found
}

/// The file that should have the test, and the name of its function.
fn location(test: &str) -> (String, &str) {
    let (place, name) = test.rsplit_once("::").unwrap_or_else(|| panic!("{test:?} names no function"));
    match place.strip_prefix("conformance::") {
        Some(module) => (format!("tenure-testkit/src/conformance/{module}.rs"), name),
        None => (place.to_owned(), name),
    }
}

/// Why a test of the page cannot be run, if it cannot.
fn missing(crates: &Path, test: &str) -> Option<String> {
    let (file, name) = location(test);
    let Ok(source) = std::fs::read_to_string(crates.join(&file)) else {
        return Some(format!("{test}: there is no file crates/{file}"));
    };
    let defined = source.lines().any(|line| {
        let line = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
        line.strip_prefix("fn ")
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with('('))
    });
    if !defined {
        return Some(format!("{test}: crates/{file} has no function {name}"));
    }
    if test.starts_with("conformance::") {
        let list = std::fs::read_to_string(crates.join("tenure-testkit/src/conformance/mod.rs")).unwrap();
        let listed = list.lines().any(|line| line.trim() == format!("{name},"));
        return (!listed).then(|| format!("{test}: it is not in the list of cases"));
    }
    None
}

/// Ids at the beginning of a parenthesis in a comment, such as `(L8)` or `(L3, L5)`.
fn cited(source: &str) -> BTreeSet<&str> {
    let comments = source.lines().filter_map(|line| line.split_once("//")).map(|(_, comment)| comment);
    let inside =
        comments.flat_map(|comment| comment.split('(').skip(1)).filter_map(|rest| rest.split(')').next());
    inside.flat_map(|text| text.split(", ").take_while(|word| is_id(word))).collect()
}

/// Keys of tasks in examples (`F001`) are longer.
fn is_id(word: &str) -> bool {
    let number = word.strip_prefix(['L', 'Q', 'T', 'R', 'F']).unwrap_or_default();
    (1..=2).contains(&number.len()) && number.chars().all(|c| c.is_ascii_digit())
}

#[test]
fn every_guarantee_has_tests_and_every_named_test_exists() {
    let page = std::fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let found = tests_by_id(&page);
    let defined: BTreeSet<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(defined, IDS.iter().copied().collect(), "the ids of docs/guarantees.md");
    let untested: Vec<_> = found.iter().filter(|(_, tests)| tests.is_empty()).map(|(id, _)| id).collect();
    assert!(untested.is_empty(), "no tests are named for {untested:?}");
    let crates = root().join("crates");
    let missing: Vec<String> = found.values().flatten().filter_map(|test| missing(&crates, test)).collect();
    assert!(missing.is_empty(), "docs/guarantees.md names tests that do not exist:\n{}", missing.join("\n"));
}

#[test]
fn every_guarantee_that_the_code_cites_is_defined() {
    let mut undefined = Vec::new();
    let mut count = 0;
    for path in rust_files(&root().join("crates")) {
        let source = std::fs::read_to_string(&path).unwrap();
        let ids = cited(&source);
        count += ids.len();
        undefined.extend(
            ids.into_iter().filter(|id| !IDS.contains(id)).map(|id| format!("{id} in {}", path.display())),
        );
    }
    assert!(count >= 20, "only {count} citations were found");
    assert!(undefined.is_empty(), "docs/guarantees.md does not define {undefined:?}");
}

#[test]
fn names_on_the_page_are_found_where_they_say() {
    let page =
        "## Leases\n\n### L1: one\n\n- `a/tests/b.rs::c`\n- `conformance::d::e`\n\n### L2: two\n\nText.\n";
    let found = tests_by_id(page);
    assert_eq!(found["L1"], ["a/tests/b.rs::c", "conformance::d::e"]);
    assert!(found["L2"].is_empty());
    assert_eq!(location("a/tests/b.rs::c"), ("a/tests/b.rs".to_owned(), "c"));
    assert_eq!(location("conformance::d::e"), ("tenure-testkit/src/conformance/d.rs".to_owned(), "e"));
    assert_eq!(
        cited("let a; // holds (L3, L5), as (T1) says, not (Linux) or (F001)"),
        BTreeSet::from(["L3", "L5", "T1"])
    );
}
