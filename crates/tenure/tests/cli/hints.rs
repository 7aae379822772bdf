//! Hints work where they are given. Every hint in the sources has a scenario here, which runs the suggested command in the place
//! where it was suggested, or a reason why that cannot be done in a test of this kind. A hint without either fails.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::TestEnv;

/// Where a hint is given and its words; commands before it; the command that gives it; the exit code of the hint.
type Scenario = (&'static str, &'static str, &'static [&'static str], &'static str, i32);

const F001: &str = "tasks add One --id F001";
const HELD: &str = "tasks claim F001 --agent ann";

#[rustfmt::skip]
const SCENARIOS: &[Scenario] = &[
    ("commands/agents/leave.rs", "see ready tasks", &[F001, HELD], "agents leave ann", 0),
    ("commands/exclusive/mod.rs", "remove it", &[], "exclusive acquire --holder me", 0),
    ("commands/hooks/test.rs", "see all hooks", &[], "hooks test nothing", 0),
    ("commands/msg/filter.rs", "register an agent", &[], "msg list --mine", 0),
    ("commands/projects/registry.rs", "see all projects", &[], "projects disable nowhere", 0),
    ("commands/runners/stop.rs", "see all runners", &[], "runners stop 12345678", 0),
    ("commands/runners/logs.rs", "see all runners", &[], "runners logs 12345678", 0),
    ("commands/status.rs", "add a task", &[], "status", 0),
    ("commands/tasks/claim.rs", "wait for it", &[F001, HELD, "config set locking.waitTimeout 1s"], "tasks claim F001 --agent bob", 9),
    ("commands/tasks/grant.rs", "renew before it expires", &[F001], HELD, 0),
    ("commands/tasks/grant.rs", "mark it done", &[F001], HELD, 0),
    ("commands/tasks/grant.rs", "if you cannot finish it", &[F001], HELD, 0),
    ("commands/tasks/next.rs", "claim it", &[F001], "tasks next", 0),
    ("commands/tasks/next.rs", "claim one", &[F001], "tasks next --wait 1s", 0),
    ("commands/tasks/run.rs", "see whether you could claim it", &[F001], "tasks run F001 --dry-run -- true", 0),
    ("commands/tasks/show.rs", "claim it", &[F001], "tasks show F001", 0),
    ("commands/tasks/show.rs", "open it again", &[F001, "tasks update F001 --status failed"], "tasks show F001", 0),
    ("commands/tasks/list.rs", "register an agent", &[], "tasks list --mine", 0),
    ("why/project.rs", "add one", &[], "why", 0),
    ("why/project.rs", "claim it", &[F001], "why", 0),
    ("why/task.rs", "claim it", &[F001], "why F001", 0),
    ("why/task.rs", "reopen it", &[F001, "tasks skip F001"], "why F001", 0),
    ("why/task.rs", "reopen it", &[F001, "tasks update F001 --status failed"], "why F001", 0),
    ("why/task.rs", "approve it", &[F001, "tasks update F001 --status review"], "why F001", 0),
    ("why/project.rs", "for example", &[F001, "tasks update F001 --status failed"], "why", 0),
    ("why/task.rs", "take it over", &[F001, "tasks claim F001 --agent ann --ttl 1s"], "why F001", 0),
    ("why/project.rs", "see why", &[F001, "tasks add Two --id F002 --depends-on F001", "tasks update F001 --status failed"], "why", 0),
    ("why/task.rs", "see why", &[F001, "tasks add Two --id F002 --depends-on F001"], "why F002", 0),
    ("why/task.rs", "see its tasks", &["sections add A", "sections add B", "tasks add One --id F001 --section A", "tasks add Two --id F002 --section B", "sections depend B --on A"], "why F002", 0),
    ("why/project.rs", "let several work in it", &["sections add A", "tasks add One --id F001 --section A", "tasks add Two --id F002 --section A", HELD], "why --agent bob", 0),
    ("commands/why.rs", "see the holder", &["exclusive acquire --holder me --pid 1"], "why", 0),
    ("identity.rs", "see who holds it", &[F001, HELD], "tasks done F001", 0),
    ("report.rs", "see all tasks", &[], "tasks show nothing", 0),
    ("report.rs", "see all agents", &[], "agents leave nobody", 0),
    ("report.rs", "see all jobs", &[], "jobs show 12345678", 0),
    ("report.rs", "see all sessions", &[], "sessions show 12345678", 0),
    ("report.rs", "see all sections", &[], "sections show Nothing", 0),
    ("report.rs", "did you mean", &["sections add Backend"], "sections show Bakend", 0),
    ("report.rs", "see why", &[F001, "tasks add Two --id F002 --depends-on F001"], "tasks claim F002 --agent bob", 0),
    ("report.rs", "see why", &[], "tasks next --claim --agent bob", 0),
    ("report.rs", "see its state", &[F001, HELD], "tasks done F001 --agent bob", 0),
    // A completed task is opened again by what both refusals suggest.
    ("report.rs", "try", &[F001, "tasks update F001 --status completed"], "tasks retry F001", 0),
    ("report.rs", "try", &[F001, "tasks update F001 --status completed"], HELD, 0),
    ("report.rs", "try", &[F001, "tasks update F001 --status failed"], HELD, 0),
];

/// Hints that are not run here, and why. Their commands are parsed by `bad_text.rs` and the snapshots.
#[rustfmt::skip]
const NOT_RUN: &[(&str, &[&str])] = &[
    ("it sets a variable of the shell", &["choose a folder", "use it", "unset it"]),
    ("it opens an editor, a demo, a benchmark or help", &["fix it", "name one", "run it", "get a rough result", "watch a demo", "watch agents being killed", "see all commands", "inspect the project"]),
    ("it asks a person at a terminal; `trust.rs` has it", &["see them and decide", "see it and decide", "see what its settings would run and reach", "see what it would run and reach, and its hash", "see what it would run and reach, and decide", "see what an untrusted project would run and reach", "withdraw it"]),
    ("it starts, stops or needs a runner, an agent or a timer; the suites `runners` and `wakeup` have it", &["start a runner", "start one", "to try it now, start a runner", "see its log", "stop it", "choose an available one", "define one under presets", "see whether it fires", "install a timer", "enable it", "keep it running while you are logged out", "what it would do now", "use a shorter PATH", "see what its agent did", "see how long logs are kept", "resume with the new definition", "see the failed tasks", "register it for wake-up", "unregister a missing project"]),
    ("it needs a job or a session; the suite `resume` has it", &["resume it", "resume with the new items", "see its results", "see the job", "resume it unchanged", "or cancel it first", "retry the dead letters", "see the remaining items", "see its progress"]),
    ("it needs a store that was copied, moved or damaged", &["make it a project of its own", "restore it", "see store.url", "use the new store", "save a copy in another file", "apply it once the store answers", "if it is yours, stop tracking it", "use another folder"]),
    ("it installs another tool, for `bench --against`", &["install it"]),
    ("it writes the files of a client; `setup.rs` has it", &["check it later", "set it up", "check that it works", "write AGENTS.md", "or use MCP"]),
    ("it is given outside of a project; `init.rs` and `discovery.rs` have it", &["create one", "create one here", "rename it", "add a task", "claim the next task"]),
    ("it waits or serves", &["wait for it", "let the system choose a port", "print a line whenever it changes", "when you are done", "see whether the project is locked", "see the configuration files", "set it there", "see its keys", "see its subcommands", "see all", "see the holder", "see what an update would change", "see all hooks", "see all tasks", "see all locks", "check it", "fix what can be fixed", "for example"]),
];

#[test]
fn a_hint_works_where_it_is_given() {
    let mut wrong = Vec::new();
    for (file, why, before, line, exit) in SCENARIOS {
        let env = TestEnv::project();
        for step in *before {
            env.ok(&step.split(' ').collect::<Vec<_>>());
        }
        if *why == "take it over" {
            env.later(std::time::Duration::from_mins(1));
        }
        if *why == "remove it" {
            env.write("work/.tenure/.exclusive-lock", "{");
        }
        let answer = env.json(&line.split(' ').collect::<Vec<_>>()).envelope();
        let hints = answer["hints"].as_array().cloned().unwrap_or_default();
        let Some(hint) = hints.iter().find(|hint| hint["why"] == *why) else {
            wrong.push(format!("{file}: `{line}` does not suggest {why:?}: {answer}"));
            continue;
        };
        let command = hint["command"].as_str().unwrap();
        // As the shell would split it: a hint's only quoted argument is a title.
        let mut words: Vec<String> = Vec::new();
        for (number, part) in command.split('\'').enumerate() {
            if number % 2 == 1 {
                words.push(part.to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        // The limit of a wait is shortened; the suggested command is otherwise run as it is.
        words.retain(|word| word != "30m");
        assert_eq!(words.remove(0), "tenure", "{command}");
        let pasted = env.run(&words);
        if pasted.code != *exit {
            wrong.push(format!("{file}: `{line}` suggests `{command}`, which does not work: {pasted}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The words of every hint below `folder`, with its file.
fn hints_in(root: &Path, folder: &Path, found: &mut BTreeSet<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            hints_in(root, &path, found);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let file = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        for start in [".hint(", "Hint::new("] {
            for rest in text.split(start).skip(1) {
                let Some(rest) = rest.trim_start().strip_prefix('"') else { continue };
                found.insert((file.clone(), rest.split('"').next().unwrap().to_owned()));
            }
        }
    }
}

#[test]
fn every_hint_in_the_sources_has_a_scenario_or_a_reason() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeSet::new();
    for (root, folder) in [("tenure/src", ""), ("tenure-core/src", "why")] {
        let root = crates.join(root);
        hints_in(&root, &root.join(folder), &mut found);
    }
    assert!(found.len() > 80, "only {} hints were found", found.len());
    let is_run =
        |file: &str, why: &str| SCENARIOS.iter().any(|scenario| scenario.0 == file && scenario.1 == why);
    let is_excused = |why: &str| NOT_RUN.iter().any(|(_, all)| all.contains(&why));
    found.retain(|(file, why)| !is_run(file, why) && !is_excused(why));
    assert!(found.is_empty(), "hints without a scenario in tests/cli/hints.rs: {found:#?}");
}
