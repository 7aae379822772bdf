//! What differs between operating systems is in the `sys/` folders: other code has no condition on the system.

use std::path::Path;

use crate::{root, rust_files};

/// Conditions outside of `sys/` that are neither on a module nor on a test.
const ALLOWED: [&str; 1] = [
    // A descriptor can be handed to a child on Unix only.
    "tenure-lock/src/lock_file.rs",
];

/// Whether the line has a condition on the system that is compiled in.
fn is_condition(line: &str) -> bool {
    let line = line.trim_start();
    let is_comment = line.starts_with("//");
    let asks = line.contains("cfg(") || line.contains("cfg!(") || line.contains("cfg_attr(");
    let system = ["target_os", "target_family", "unix", "windows"].iter().any(|word| line.contains(word));
    !is_comment && asks && system
}

/// The numbers of the lines with conditions in logic. One on a module selects a file, and one on a test leaves it out.
fn conditions_in_logic(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let selects =
        |line: &str| ["mod ", "pub mod ", "pub use ", "#[path"].iter().any(|start| line.starts_with(start));
    let allowed = |number: usize| {
        let next = lines.get(number + 1).copied().unwrap_or_default();
        lines[number].contains("test") || next == "#[test]" || selects(next)
    };
    (0..lines.len())
        .filter(|number| is_condition(lines[*number]) && !allowed(*number))
        .map(|n| n + 1)
        .collect()
}

#[test]
fn conditions_on_the_system_are_found() {
    let logic = "#[cfg(unix)]\nfn a() {}\nif cfg!(target_os = \"macos\") {}\n#[cfg(all(feature = \"x\", windows))]\nlet a = 1;\n";
    assert_eq!(conditions_in_logic(logic), [1, 3, 4]);
    let others = "#[cfg(unix)]\nmod a;\n#[cfg(unix)]\n#[test]\n#[cfg(all(test, unix))]\nmod tests {}\n// cfg(unix)\n\
                  #[cfg(feature = \"x\")]\nfn a() {}\n";
    assert_eq!(conditions_in_logic(others), [0; 0]);
}

#[test]
fn no_logic_depends_on_the_system() {
    let mut found = Vec::new();
    let mut doors = 0;
    for path in rust_files(&root().join("crates")) {
        let short = path.strip_prefix(root().join("crates")).unwrap();
        let is_source = short.components().nth(1).is_some_and(|part| part.as_os_str() == "src");
        // The harness of the tests may leave out what a system does not have.
        if !is_source
            || short.starts_with("tenure-testkit")
            || ALLOWED.iter().any(|allowed| short == Path::new(allowed))
        {
            continue;
        }
        if short.components().any(|part| part.as_os_str() == "sys") {
            doors += 1;
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        found
            .extend(conditions_in_logic(&text).into_iter().map(|line| format!("{}:{line}", short.display())));
    }
    assert!(found.is_empty(), "move it into a sys/ folder: {found:#?}");
    assert!(doors > 20, "only {doors} files in sys/ folders were found");
    for allowed in ALLOWED {
        let text = std::fs::read_to_string(root().join("crates").join(allowed)).unwrap();
        assert_ne!(conditions_in_logic(&text), [0; 0], "{allowed} needs no exception any more");
    }
}
