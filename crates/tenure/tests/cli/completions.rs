//! What a shell offers at the prompt.

use std::ffi::OsString;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::story::steps;
use crate::support::TestEnv;
use crate::walk::commands;
use crate::work_rows;

/// What bash offers after each of these lines, all in one shell. The last word is the one that is being typed.
fn offered(env: &TestEnv, lines: &[String]) -> Vec<Vec<String>> {
    let script = env.write("tenure.bash", env.ok(&["completions", "bash"]).out);
    let ask = "source \"$0\" || exit 9
        how=$(complete -p tenure) || exit 8
        how=${how##*-F } && how=${how%% *}
        for line in \"$@\"; do
            COMP_LINE=$line COMP_POINT=${#line} COMPREPLY=()
            read -ra COMP_WORDS <<< \"$line\"
            [[ $line == *' ' ]] && COMP_WORDS+=('')
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            \"$how\" tenure \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"
            (IFS=' '; echo \"${COMPREPLY[*]}\")
        done";
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", ask])
        .arg(script)
        .args(lines)
        .env_clear()
        .envs(&env.env.vars)
        .env("PATH", path)
        .current_dir(&env.env.cwd)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "{:?}: {said}", output.status);
    let printed = String::from_utf8(output.stdout).unwrap();
    let offers: Vec<Vec<String>> =
        printed.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
    assert_eq!(offers.len(), lines.len());
    offers
}

/// What is offered for the last word of the line, split at spaces.
fn words(env: &TestEnv, line: &str) -> Vec<String> {
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    tenure::complete(&words, &env.env)
}

fn shop() -> TestEnv {
    let env = TestEnv::project();
    steps(
        &env,
        &[
            "sections add Backend",
            "tasks add One --section Backend --id B1",
            "tasks add Two --id T2",
            "tasks claim B1 --agent bob",
        ],
    );
    work_rows::job(&env, "thumbnails", None, &[]);
    env
}

#[test]
fn every_command_and_every_flag_is_offered() {
    let env = TestEnv::new();
    for (path, command) in commands() {
        let (before, last) = path
            .rsplit_once(' ')
            .map_or((String::new(), path.as_str()), |(before, last)| (format!("{before} "), last));
        let beginning: String = last.chars().take(2).collect();
        let offers = words(&env, &format!("tenure {before}{beginning}"));
        assert!(offers.iter().any(|offer| offer == last), "{path}: {offers:?}");
        let flags = command.get_arguments().filter(|argument| !argument.is_hide_set());
        let longs: Vec<String> =
            flags.filter_map(clap::Arg::get_long).map(|long| format!("--{long}")).collect();
        let offers = words(&env, &format!("tenure {path} --"));
        for long in longs {
            assert!(offers.contains(&long), "{path} offers {offers:?}, not {long}");
        }
    }
}

#[test]
fn what_the_project_has_is_offered() {
    let env = shop();
    for (line, wanted) in [
        ("tenure tasks claim ", &["B1", "T2"][..]),
        ("tenure tasks claim b", &["B1"]),
        ("tenure why T", &["T2"]),
        ("tenure tasks list --section ", &["Backend"]),
        ("tenure sections show ", &["Backend"]),
        ("tenure tasks done T2 --agent ", &["bob"]),
        ("tenure jobs show ", &["thumbnails"]),
        ("tenure resume ", &["thumbnails"]),
        ("tenure locks show ", &["B1", "section:Backend"]),
        ("tenure runners start --preset c", &["claude", "codex"]),
    ] {
        let offers = words(&env, line);
        for value in wanted {
            assert!(offers.iter().any(|offer| offer == value), "{line}: {offers:?}, not {value}");
        }
    }
    assert!(words(&env, "tenure tasks show X").is_empty());
    assert_eq!(words(&env, "tenure ta"), ["tasks"]);
    assert_eq!(words(&env, "tenure task claim B"), ["B1"]);
}

#[test]
fn values_of_settings_and_options_are_offered_and_no_files() {
    let env = TestEnv::project();
    env.write("work/a-file", "");
    for (line, wanted) in [
        ("tenure config get runners.wakeup.", &["runners.wakeup.enabled", "runners.wakeup.projectPaths"][..]),
        ("tenure config set review.enabled ", &["true", "false"]),
        ("tenure config set runners.permissions ", &["edit", "work", "full"]),
        ("tenure tasks list --status ", &["pending", "failed", "active", "all"]),
        ("tenure tasks --status ", &["pending"]),
        ("tenure tasks update T1 --status ", &["completed"]),
        ("tenure events --kind task.", &["task.status"]),
        ("tenure usage --by ", &["task", "agent", "day"]),
        ("tenure locks list --type ", &["section"]),
        ("tenure completions ", &["fish"]),
    ] {
        let offers = words(&env, line);
        for value in wanted {
            assert!(offers.iter().any(|offer| offer == value), "{line}: {offers:?}, not {value}");
        }
        assert!(!offers.iter().any(|offer| offer.contains("a-file")), "{line}: {offers:?}");
    }
    let offers = words(&env, "tenure tasks update T1 --status ");
    assert!(!offers.iter().any(|offer| offer == "active"), "{offers:?}");
}

#[test]
fn nothing_is_written_and_the_answer_is_quick() {
    let env = shop();
    let before = env.snapshot();
    let begun = Instant::now();
    assert!(!words(&env, "tenure tasks claim ").is_empty());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    words(&env, "tenure locks show ");
    words(&env, "tenure config set runners.preset ");
    assert_eq!(env.snapshot(), before);
}

#[test]
fn an_untrusted_or_unreachable_store_offers_nothing_and_takes_no_time() {
    // Accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let url = format!("postgres://ann@{}/shop", silent.local_addr().unwrap());
    let mut env = TestEnv::new();
    let id = "11111111-1111-4111-8111-111111111111";
    env.write("work/.tenure/config.yaml", format!("project:\n  id: {id}\nstore:\n  url: {url}\n"));
    env.unset("TENURE_TRUST");
    let has_keys =
        |env: &TestEnv| words(env, "tenure tasks claim ").iter().any(|word| !word.starts_with('-'));
    assert!(!has_keys(&env));
    assert!(silent.accept().is_err(), "an untrusted store is not connected to");
    env.set("TENURE_TRUST", "1");
    let begun = Instant::now();
    assert!(!has_keys(&env));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn bash_offers_commands_keys_and_values_and_nothing_that_tenure_calls_itself() {
    let env = shop();
    let lines = [
        "tenure ",
        "tenure completions ",
        "tenure jobs start --on-failure ",
        "tenure tasks claim ",
        "tenure tasks list --status pen",
    ]
    .map(str::to_owned);
    let [commands, shells, ends, keys, statuses] = offered(&env, &lines).try_into().unwrap();
    assert!(commands.contains(&"tasks".to_owned()), "{commands:?}");
    for hidden in ["keep-lease", "start-attempt", "start-exclusive"] {
        assert!(!commands.contains(&hidden.to_owned()), "{commands:?}");
    }
    assert!(shells.contains(&"fish".to_owned()), "{shells:?}");
    assert!(ends.contains(&"dlq".to_owned()), "{ends:?}");
    assert_eq!(keys, ["T2", "B1"]);
    assert_eq!(statuses, ["pending"]);
}

#[test]
fn every_shell_has_a_script_that_asks_tenure() {
    let env = TestEnv::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = env.ok(&["completions", shell]);
        assert!(ran.out.contains("TENURE_COMPLETE"), "{ran}");
        assert_eq!(env.json(&["completions", shell]).data()["script"], ran.out.as_str());
    }
    insta::assert_snapshot!("unknown_shell", env.run(&["completions", "tcsh"]));
}
