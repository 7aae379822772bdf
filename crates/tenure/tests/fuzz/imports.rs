//! Lists of tasks in every format that can be imported.

use tenure_core::import::{Format, parse};
use tenure_core::text::{check_task_key, check_title};

use crate::mutations::Corpus;

const WORDS: &[&str] = &[
    "- [ ] ",
    "- [x] ",
    "# ",
    "```\n",
    "(depends: T1)",
    "\"dependsOn\":",
    "\"id\":",
    "depends_on:",
    "&a",
    "*a",
    "../",
    "\\ud800",
    "null",
    "{}",
    "\t",
    "\u{202e}",
    "<!--",
    "-->",
    "---\n",
];

#[test]
fn an_import_has_valid_tasks_or_is_refused() {
    let folders = ["fuzz/corpus/import", "crates/tenure-core/tests/fixtures/import"];
    Corpus::of(&folders, WORDS).run("import", 2000, |text| {
        let Ok(text) = str::from_utf8(text) else { return };
        for format in Format::ALL.map(Some).into_iter().chain([None]) {
            let Ok(import) = parse(format, "tasks.md", text) else { continue };
            for task in &import.tasks {
                assert!(task.key.as_deref().is_none_or(|key| check_task_key(key).is_ok()), "{task:?}");
                assert!(check_title(&task.title).is_ok(), "{task:?}");
            }
        }
    });
}
