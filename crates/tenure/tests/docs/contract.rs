//! What other programs rely on: every command of the contract exists, takes its flags, has a description and an example, and
//! appears in the guide.

use std::collections::BTreeSet;

use clap::Command;

use crate::page;

/// Each command with its flags. A flag with two names is listed under both.
const CONTRACT: &[(&str, &[&str])] = &[
    ("init", &["--name"]),
    ("demo", &["--keep"]),
    ("self-check", &[]),
    ("status", &["--watch"]),
    ("board", &[]),
    ("whoami", &[]),
    ("why", &[]),
    (
        "tasks add",
        &["--id", "--key", "--section", "--source", "-d", "--priority", "--depends-on", "--label", "--after"],
    ),
    ("tasks import", &["--update", "--from"]),
    ("tasks export", &["--format", "--status", "--section"]),
    ("tasks tree", &["--status", "--section"]),
    (
        "tasks list",
        &[
            "-s",
            "--section",
            "--search",
            "--ready",
            "--mine",
            "--global",
            "--sort",
            "--reverse",
            "--limit",
            "--offset",
            "--total",
        ],
    ),
    ("tasks show", &["--history"]),
    ("tasks audit", &[]),
    ("tasks logs", &["--follow", "--raw", "--attempt"]),
    ("tasks update", &["--status", "--title", "--section", "--lease"]),
    ("tasks next", &["--claim", "--wait", "--lease"]),
    ("tasks claim", &["--agent", "--lease", "--fence", "--ttl", "--wait", "--while-pid"]),
    ("tasks renew", &["--agent", "--lease", "--fence", "--ttl"]),
    ("tasks release", &["--agent", "--lease", "--fence", "-m", "--message", "--text", "--notes", "--reason"]),
    ("tasks done", &["--agent", "--lease", "--fence", "-m", "--message", "--text", "--notes", "--reason"]),
    ("tasks fail", &["--agent", "--lease", "--fence", "-m", "--message", "--text", "--notes", "--reason"]),
    ("tasks run", &["--ttl", "--lease"]),
    ("tasks check", &["--agent", "--lease", "--fence"]),
    ("tasks approve", &["--force", "--lease"]),
    ("tasks reject", &["-m", "--message", "--text", "--notes", "--reason", "--force", "--lease"]),
    ("tasks skip", &["-m", "--message", "--text", "--notes", "--reason", "--force", "--lease"]),
    ("tasks retry", &["--force", "--lease"]),
    ("tasks reopen", &["--lease"]),
    ("tasks delete", &["--force", "--lease"]),
    ("tasks depend", &["--on", "--not-on"]),
    ("sections add", &["--parallel", "--priority"]),
    ("sections list", &[]),
    ("sections show", &[]),
    ("sections update", &[]),
    ("sections depend", &[]),
    ("sections delete", &[]),
    ("locks list", &["--type"]),
    ("locks show", &["--history"]),
    ("locks release", &["--force"]),
    ("locks cleanup", &[]),
    ("agents join", &["--name", "--capability"]),
    ("agents list", &[]),
    ("agents leave", &[]),
    ("msg send", &["--task", "--from", "--to", "-m", "--message", "--text", "--notes", "--reason"]),
    ("msg list", &[]),
    ("msg ack", &[]),
    ("msg wait", &[]),
    (
        "runners start",
        &[
            "--project",
            "--task",
            "--section",
            "--preset",
            "--ttl",
            "--foreground",
            "--once",
            "--idle-timeout",
        ],
    ),
    ("runners list", &[]),
    ("runners stop", &["--all", "--force"]),
    ("usage", &["--by", "--since"]),
    ("runners logs", &["--follow", "--all", "--limit"]),
    ("runners wakeup", &["--dry-run", "--quiet"]),
    ("runners cron install", &["--with"]),
    ("runners cron uninstall", &["--with"]),
    ("runners cron status", &["--with"]),
    ("projects list", &[]),
    ("projects add", &[]),
    ("projects remove", &[]),
    ("projects enable", &[]),
    ("projects disable", &[]),
    ("exclusive acquire", &["--holder", "--pid", "--wait", "--drain"]),
    ("exclusive release", &["--force"]),
    ("exclusive status", &[]),
    ("exclusive run", &["--holder", "--wait", "--drain"]),
    ("sessions list", &[]),
    ("sessions show", &[]),
    (
        "jobs start",
        &[
            "--items",
            "--path",
            "--filter",
            "--max-items",
            "--parallel",
            "--retries",
            "--backoff",
            "--item-timeout",
            "--on-failure",
        ],
    ),
    ("jobs work", &[]),
    ("jobs list", &[]),
    ("jobs show", &[]),
    ("jobs cancel", &[]),
    ("jobs retry", &[]),
    ("resume", &["--force", "--retry-failed", "--accept-changes", "--detach"]),
    ("hooks list", &[]),
    ("hooks test", &[]),
    ("hooks run", &[]),
    ("events", &["--follow", "--since", "--task"]),
    ("config show", &[]),
    ("config get", &[]),
    ("config set", &[]),
    ("config unset", &["--user"]),
    ("config path", &[]),
    ("config validate", &[]),
    ("config edit", &[]),
    ("doctor", &["--fix"]),
    ("trust", &["--yes", "--show"]),
    ("trust list", &[]),
    ("untrust", &[]),
    ("mcp", &["--http"]),
    ("web", &["--http", "--open", "--read-only"]),
    ("store adopt", &[]),
    ("store copy", &["--to"]),
    ("store backup", &["--force"]),
    ("store restore", &["--force"]),
    ("bench", &["--against"]),
    ("prime", &[]),
    ("setup", &["--mcp", "--check", "--remove"]),
    ("completions", &[]),
    ("man", &["--to"]),
    ("help", &[]),
    ("version", &[]),
];

/// Aliases: two names for the same command.
const ALIASES: &[(&str, &str)] = &[
    ("task", "tasks"),
    ("section", "sections"),
    ("runner", "runners"),
    ("lock", "locks"),
    ("agent", "agents"),
    ("messages", "msg"),
    ("tasks verify", "tasks approve"),
];

/// What each command group does without a subcommand.
const DEFAULTS: &[&str] = &[
    "tasks list",
    "sections list",
    "locks list",
    "agents list",
    "msg list",
    "runners list",
    "projects list",
    "sessions list",
    "jobs list",
    "hooks list",
    "exclusive status",
    "config show",
];

const GLOBAL: &[&str] = &[
    "-j",
    "--json",
    "-q",
    "--quiet",
    "-v",
    "--verbose",
    "--no-color",
    "--config",
    "--dry-run",
    "--timeout",
    "--no-hooks",
    "--no-wait",
    "-C",
    "--project",
];

fn parser() -> Command {
    let mut parser = tenure::command();
    parser.build();
    parser
}

/// The longest command that these words begin with, under its canonical name.
fn resolve(parser: &Command, words: &[&str]) -> String {
    let (mut at, mut path) = (parser, Vec::new());
    while let Some(found) = words.get(path.len()).and_then(|word| at.find_subcommand(word)) {
        path.push(found.get_name());
        at = found;
    }
    path.join(" ")
}

fn find<'p>(parser: &'p Command, path: &str) -> &'p Command {
    path.split(' ').fold(parser, |at, word| at.find_subcommand(word).unwrap_or_else(|| panic!("no {path}")))
}

/// All names of the flags.
fn flags(command: &Command) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for arg in command.get_arguments() {
        found.extend(
            arg.get_short_and_visible_aliases().into_iter().flatten().map(|short| format!("-{short}")),
        );
        found.extend(arg.get_long().map(|long| format!("--{long}")));
        found.extend(arg.get_all_aliases().into_iter().flatten().map(|long| format!("--{long}")));
    }
    found
}

/// Commands that do something by themselves, under their full names.
fn leaves(command: &Command, prefix: &str) -> Vec<String> {
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let found = shown.flat_map(|sub| {
        let path = format!("{prefix}{}", sub.get_name());
        let below = leaves(sub, &format!("{path} "));
        match below.is_empty() {
            true => vec![path],
            // `trust` also works without a verb.
            false if path == "trust" => [vec![path], below].concat(),
            false => below,
        }
    });
    found.collect()
}

#[test]
fn the_contract_lists_exactly_the_existing_commands() {
    let there: BTreeSet<String> = leaves(&parser(), "").into_iter().collect();
    let promised: BTreeSet<String> = CONTRACT.iter().map(|(path, _)| (*path).to_owned()).collect();
    let missing: Vec<_> = promised.difference(&there).collect();
    assert!(missing.is_empty(), "in the contract but missing: {missing:?}");
    let unknown: Vec<_> = there.difference(&promised).collect();
    assert!(unknown.is_empty(), "not in the contract: {unknown:?}");
}

#[test]
fn every_command_of_the_contract_accepts_its_flags() {
    let parser = parser();
    for (path, promised) in CONTRACT {
        let there = flags(find(&parser, path));
        for flag in promised.iter().chain(GLOBAL) {
            assert!(there.contains(*flag), "{path} does not take {flag}, only {there:?}");
        }
    }
}

#[test]
fn aliases_resolve_to_the_same_command() {
    let parser = parser();
    for (one, other) in ALIASES {
        let words: Vec<&str> = one.split(' ').collect();
        assert_eq!(resolve(&parser, &words), *other);
    }
    for path in DEFAULTS {
        let family = path.split(' ').next().unwrap();
        assert!(tenure::command().try_get_matches_from(["tenure", family]).is_ok(), "{family} alone");
    }
}

#[test]
fn every_command_of_the_contract_is_in_the_guide() {
    let parser = parser();
    let mut named = BTreeSet::new();
    for path in crate::documents().iter().filter(|path| crate::is_guide(path)) {
        for line in page::code(&std::fs::read_to_string(path).unwrap()) {
            let words = page::words(&line);
            let words: Vec<&str> =
                words.iter().map(String::as_str).skip_while(|word| *word == "tenure").collect();
            named.insert(resolve(&parser, &words));
        }
    }
    let families: Vec<&str> =
        DEFAULTS.iter().copied().filter(|path| named.contains(path.split(' ').next().unwrap())).collect();
    named.extend(families.into_iter().map(str::to_owned));
    let missing: Vec<_> =
        CONTRACT.iter().map(|(path, _)| *path).filter(|path| !named.contains(*path)).collect();
    assert!(missing.is_empty(), "no guide page shows {missing:?}");
}
