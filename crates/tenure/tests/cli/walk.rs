//! Walks over every command of the parser's tree: none may be missing from the table of examples.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::examples::{EXAMPLES, Example, prepare, run};
use crate::support::{Ran, TestEnv};

/// The path of every visible command: `tasks`, `tasks add`, and so on. Hidden ones are called only by tenure itself.
pub(crate) fn commands() -> Vec<(String, clap::Command)> {
    fn walk(prefix: &str, command: &clap::Command, found: &mut Vec<(String, clap::Command)>) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let path = format!("{prefix}{}", sub.get_name());
            found.push((path.clone(), sub.clone()));
            walk(&format!("{path} "), sub, found);
        }
    }
    let mut found = Vec::new();
    walk("", &tenure::command(), &mut found);
    found
}

/// `command` and `subcommand` as the envelope must have them. A command group by itself does what its default verb does.
fn names(path: &str) -> (String, Option<String>) {
    let mut words = path.split(' ').map(str::to_owned);
    let command = words.next().unwrap();
    let default_verb = match command.as_str() {
        "tasks" | "sections" | "locks" | "agents" | "msg" | "projects" | "hooks" | "runners" | "jobs"
        | "sessions" => Some("list".to_owned()),
        "exclusive" => Some("status".to_owned()),
        "config" => Some("show".to_owned()),
        // It has no default verb; its example is this one.
        "store" => Some("copy".to_owned()),
        _ => None,
    };
    (command, words.next().or(default_verb))
}

fn check_envelope(example: &Example, ran: &Ran, success: bool) {
    assert_eq!(ran.out.lines().count(), 1, "one object on one line: {ran}");
    let envelope = ran.envelope();
    let keys: BTreeSet<&str> = envelope.as_object().unwrap().keys().map(String::as_str).collect();
    let always = BTreeSet::from(["schemaVersion", "success", "command", "subcommand", "data", "error"]);
    assert!(always.is_subset(&keys), "{ran}");
    assert!(keys.iter().all(|key| always.contains(key) || ["hints", "dryRun"].contains(key)), "{ran}");
    assert_eq!(envelope["schemaVersion"], 1, "{ran}");
    assert_eq!(envelope["success"], success, "{ran}");
    let (command, subcommand) = names(example.path);
    assert_eq!(envelope["command"], command.as_str(), "{ran}");
    // If the flags of a command group are wrong, no subcommand is known yet.
    if success || example.path.contains(' ') {
        assert_eq!(envelope["subcommand"].as_str(), subcommand.as_deref(), "{ran}");
    }
    let (filled, null) = if success { ("data", "error") } else { ("error", "data") };
    assert!(envelope[filled].is_object(), "{ran}");
    assert_eq!(envelope[null], Value::Null, "{ran}");
    if !success {
        assert!(envelope["error"]["code"].is_string() && envelope["error"]["message"].is_string(), "{ran}");
        assert!(envelope["error"].as_object().unwrap().contains_key("details"), "{ran}");
    }
    check_names(&envelope["data"], ran);
    check_names(&envelope["error"]["details"], ran);
    for hint in envelope["hints"].as_array().into_iter().flatten() {
        let command = hint["command"].as_str().unwrap();
        assert!(!command.contains("--force"), "agents follow hints: {ran}");
        if command.starts_with("tenure ") {
            let parsed = tenure::command().try_get_matches_from(shell_words(command));
            // Help is not an error.
            let works = parsed.err().is_none_or(|e| !e.use_stderr());
            assert!(works, "a hint works when pasted: {ran}");
        }
    }
}

/// camelCase, times that end in `Z`, durations that end in `Ms`; except inside what the user has named.
fn check_names(value: &Value, ran: &Ran) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let users_own = key.contains('.');
                // Statuses keep their names, even as keys of an object.
                assert!(users_own || key == "in_progress" || !key.contains(['_', '-', ' ']), "{key}: {ran}");
                if key.ends_with("At") && !value.is_null() {
                    assert!(value.as_str().unwrap().ends_with('Z'), "{key}: {ran}");
                }
                if key.ends_with("Ms") {
                    assert!(value.is_u64(), "{key}: {ran}");
                }
                check_names(value, ran);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| check_names(item, ran)),
        _ => {}
    }
}

#[test]
fn the_table_of_examples_covers_every_command() {
    let there: BTreeSet<String> = commands().into_iter().map(|(path, _)| path).collect();
    let covered: BTreeSet<String> = EXAMPLES.iter().map(|example| example.path.to_owned()).collect();
    assert_eq!(
        there.difference(&covered).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "commands without examples"
    );
    assert_eq!(
        covered.difference(&there).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "examples without a command"
    );
}

#[test]
fn every_command_reports_success_with_an_envelope_and_exit_code_0() {
    // `mcp` answers in its own protocol, `web` serves, `tasks logs` prints one object per line, and `board` needs a terminal.
    let other = ["mcp", "web", "tasks logs", "board"];
    for example in EXAMPLES.iter().filter(|example| !other.contains(&example.path)) {
        let mut words = example.good.to_vec();
        let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        words.insert(end, "--json");
        let ran = run(&mut prepare(), &words);
        assert_eq!(ran.code, 0, "{ran}");
        check_envelope(example, &ran, true);
        assert!(ran.err.is_empty(), "nothing else is said: {ran}");
    }
}

#[test]
fn every_command_reports_failure_with_an_envelope_and_its_exit_code() {
    let mut env = prepare();
    for example in EXAMPLES {
        let mut words = example.bad.to_vec();
        words.insert(usize::from(words[0] == "outside"), "--json");
        let ran = run(&mut env, &words);
        assert_eq!((ran.code, ran.error_code().as_str()), (example.exit, example.code), "{ran}");
        check_envelope(example, &ran, false);
    }
}

#[test]
fn every_failure_as_text_is_one_error_on_standard_error_and_nothing_else() {
    let mut env = prepare();
    for example in EXAMPLES {
        let ran = run(&mut env, example.bad);
        assert_eq!(ran.code, example.exit, "{ran}");
        assert!(ran.out.is_empty(), "{ran}");
        // A command that needs a subcommand prints its help instead.
        let is_help = ran.err.contains("\nUsage: ") && ran.err.contains("\nCommands:\n");
        assert!(ran.err.starts_with("Error: ") || is_help, "{ran}");
        assert_eq!(ran.err.matches("Error:").count(), usize::from(!is_help), "{ran}");
        assert!(!ran.err.contains("--force") && !ran.err.contains("os error"), "{ran}");
    }
}

#[test]
fn every_command_has_help_with_an_example_that_names_it() {
    let env = TestEnv::new();
    for (path, command) in commands() {
        let mut words: Vec<&str> = path.split(' ').collect();
        words.push("--help");
        let ran = env.ok(&words);
        let example = ran.out.lines().find_map(|line| line.strip_prefix("Example: "));
        let example = example.unwrap_or_else(|| panic!("no example: {ran}"));
        let family = path.split(' ').next().unwrap();
        assert!(example.contains("tenure") && example.contains(family), "{path}: {example}");
        for argument in command.get_arguments().filter(|argument| argument.get_id() != "help") {
            assert!(argument.get_help().is_some(), "{path}: {} has no help", argument.get_id());
        }
        assert!(env.json(&words).data()["help"].is_string());
    }
}

#[test]
fn the_parser_accepts_the_example_in_the_help_of_every_command() {
    let env = TestEnv::new();
    for (path, _) in commands() {
        let mut words: Vec<&str> = path.split(' ').collect();
        words.push("--help");
        let help = env.ok(&words).out;
        let example = help.lines().find_map(|line| line.strip_prefix("Example: ")).unwrap();
        let (_, from) = example.split_once("tenure ").unwrap();
        let line = from.split([')', '|', '>', '&']).next().unwrap();
        let mut args = vec!["tenure".to_owned()];
        args.extend(shell_words(line));
        tenure::command().try_get_matches_from(&args).unwrap_or_else(|e| panic!("{example}: {e}"));
    }
}

/// Splits words as a shell does, as far as the examples need it.
fn shell_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in text.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}
