//! The list of settings on the page about configuration, generated from the table of keys.

use std::fmt::Write;

use tenure_core::config::{Authority, KEYS};

const BEGIN: &str = "<!-- The list of settings, generated from the code: begin -->\n";
const END: &str = "<!-- end -->\n";

/// The page with the list as the code has it.
pub(crate) fn updated(page: &str) -> String {
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the list");
    let (_, after) = rest.split_once(END).expect("the list has an end");
    format!("{before}{BEGIN}{}{END}{after}", list())
}

fn list() -> String {
    let mut list = String::from("\n| setting | default | a project's file | meaning |\n|---|---|---|---|\n");
    for key in KEYS {
        let default = key.default.map_or_else(|| "not set".to_owned(), |default| format!("`{default}`"));
        let counts = match key.authority {
            Authority::Harmless => "applies",
            Authority::NeedsTrust => "if trusted",
            Authority::UserOnly => "has no effect",
        };
        let about = format!("{}: {}", key.about, key.kind.expected()).replace('|', "\\|");
        let name = key.name.replace('*', "NAME");
        let _ = writeln!(list, "| `{name}` | {default} | {counts} | {about} |");
    }
    list.push('\n');
    list
}
