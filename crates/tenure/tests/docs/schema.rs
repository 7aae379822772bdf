//! docs/schema.md describes exactly the tables and views that the stores create.

use std::collections::{BTreeMap, BTreeSet};

use crate::{page, root};

const FILES: [(&str, &str); 3] = [
    ("SQLite", "crates/tenure-sqlite/schema/001.sql"),
    ("PostgreSQL", "crates/tenure-postgres/schema/001.sql"),
    ("directory", "crates/tenure-sqlite/schema/directory-001.sql"),
];

/// What a schema file creates: tables with their columns, and views.
#[derive(Debug, Default)]
struct Created {
    tables: BTreeMap<String, BTreeSet<String>>,
    views: BTreeSet<String>,
}

fn created(sql: &str) -> Created {
    let mut found = Created::default();
    let mut table: Option<String> = None;
    let name_in = |rest: &str| {
        let name = rest.split([' ', '(']).next().unwrap();
        name.trim_start_matches("tenure.").to_owned()
    };
    for line in sql.lines() {
        if let Some(rest) = line.strip_prefix("CREATE TABLE ") {
            let name = name_in(rest);
            let columns = found.tables.entry(name.clone()).or_default();
            // A table on one line has one column.
            match rest.split_once('(') {
                Some((_, inside)) if line.trim_end().ends_with(';') => {
                    columns.extend(inside.split(' ').next().map(str::to_owned));
                }
                _ => table = Some(name),
            }
        } else if let Some(rest) = line.strip_prefix("CREATE VIEW ") {
            found.views.insert(name_in(rest));
        } else if line.starts_with(')') {
            table = None;
        } else if let Some(table) = &table
            && let Some(word) = line.strip_prefix("    ").and_then(|line| line.split(' ').next())
            && word.starts_with(|c: char| c.is_ascii_lowercase())
        {
            found.tables.get_mut(table).unwrap().insert(word.to_owned());
        }
    }
    found
}

/// The tables that the page has a heading for, by store. A heading without a store is for both.
fn described(page: &str) -> BTreeMap<&str, BTreeSet<String>> {
    let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut in_directory = false;
    for line in page.lines() {
        if let Some(chapter) = line.strip_prefix("## ") {
            in_directory = chapter == "The directory";
        }
        let Some(heading) = line.strip_prefix("### ") else { continue };
        let stores: &[&str] = match heading.split_once('(').map(|(_, store)| store.trim_end_matches(')')) {
            _ if in_directory => &["directory"],
            Some("SQLite") => &["SQLite"],
            Some("PostgreSQL") => &["PostgreSQL"],
            Some(other) => panic!("{other:?} is no store"),
            None => &["SQLite", "PostgreSQL"],
        };
        for store in stores {
            let names = heading.split('`').skip(1).step_by(2).map(str::to_owned);
            found.entry(*store).or_default().extend(names);
        }
    }
    found
}

/// The rows of the table of views: name, and where it is.
fn described_views(page: &str) -> BTreeSet<(String, &str)> {
    let chapter = page.split("\n## ").find(|chapter| chapter.starts_with("Views")).unwrap();
    let rows = chapter.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.flat_map(|row| {
        let mut cells = row.split('|').map(str::trim);
        let name = cells.next().unwrap().trim_end_matches('`').to_owned();
        let stores: &[&str] = match cells.next().unwrap() {
            "both stores" => &["SQLite", "PostgreSQL"],
            "directory" => &["directory"],
            other => panic!("{other:?} is no store"),
        };
        stores.iter().map(move |store| (name.clone(), *store))
    })
    .collect()
}

#[test]
fn the_page_describes_the_tables_and_views_that_there_are() {
    let page = std::fs::read_to_string(root().join("docs/schema.md")).unwrap();
    let (tables, views) = (described(&page), described_views(&page));
    let mut columns: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut all_views = BTreeSet::new();
    for (store, file) in FILES {
        let created = created(&std::fs::read_to_string(root().join(file)).unwrap());
        let names: BTreeSet<String> = created.tables.keys().cloned().collect();
        assert_eq!(tables[store], names, "the tables of docs/schema.md and of {file}");
        all_views.extend(created.views.into_iter().map(|view| (view, store)));
        for (table, its_columns) in created.tables {
            columns.entry(table).or_default().extend(its_columns);
        }
    }
    assert_eq!(views, all_views, "the views of docs/schema.md and of the schema files");

    let mut named = 0;
    for span in page::code(&page) {
        let Some((table, column)) = span.split_once('.') else { continue };
        let Some(known) = columns.get(table) else { continue };
        // `runners.logRetention` and the like are settings.
        if column.contains(|c: char| !c.is_ascii_lowercase() && c != '_') {
            continue;
        }
        named += 1;
        assert!(known.contains(column), "docs/schema.md: there is no column {span}");
    }
    assert!(named >= 20, "only {named} columns are named");
}

#[test]
fn tables_columns_and_views_are_read_from_sql() {
    let sql = "CREATE TABLE tenure.a (\n    -- Of b.\n    b text NOT NULL,\n    PRIMARY KEY (b)\n);\n\
               CREATE TABLE kinds (kind TEXT PRIMARY KEY) STRICT;\nCREATE VIEW v AS\nSELECT b FROM a;\n";
    let created = created(sql);
    assert_eq!(created.tables["a"], BTreeSet::from(["b".to_owned()]));
    assert_eq!(created.tables["kinds"], BTreeSet::from(["kind".to_owned()]));
    assert_eq!(created.views, BTreeSet::from(["v".to_owned()]));
    let page = "### `a`, `b`\n\n### `c` (SQLite)\n\n## The directory\n\n### `d`\n";
    let described = described(page);
    let names = |store: &str| described[store].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(
        (names("SQLite"), names("PostgreSQL"), names("directory")),
        (vec!["a", "b", "c"], vec!["a", "b"], vec!["d"])
    );
}
