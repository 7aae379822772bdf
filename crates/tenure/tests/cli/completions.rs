use std::process::Command;

use crate::support::TestEnv;
use crate::walk::commands;

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
            echo \"${COMPREPLY[@]}\"
        done";
    let output = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", ask])
        .arg(script)
        .args(lines)
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

#[test]
fn bash_completes_every_command_and_every_flag() {
    let env = TestEnv::new();
    let mut asked: Vec<(String, String)> = Vec::new();
    for (path, command) in commands() {
        let (before, last) = path
            .rsplit_once(' ')
            .map_or((String::new(), path.as_str()), |(before, last)| (format!("{before} "), last));
        let beginning: String = last.chars().take(2).collect();
        asked.push((format!("tenure {before}{beginning}"), last.to_owned()));
        let flags = command.get_arguments().filter(|argument| !argument.is_hide_set());
        for long in flags.filter_map(clap::Arg::get_long) {
            asked.push((format!("tenure {path} --{}", &long[..1]), format!("--{long}")));
        }
    }
    let lines: Vec<String> = asked.iter().map(|(line, _)| line.clone()).collect();
    for ((line, expected), offers) in asked.iter().zip(offered(&env, &lines)) {
        assert!(offers.contains(expected), "{line} offers {offers:?}, not {expected}");
    }
}

#[test]
fn bash_offers_values_and_nothing_that_tenure_calls_itself() {
    let env = TestEnv::new();
    let lines = ["tenure ", "tenure completions ", "tenure jobs start --on-failure "].map(str::to_owned);
    let [commands, shells, ends] = offered(&env, &lines).try_into().unwrap();
    assert!(commands.contains(&"tasks".to_owned()), "{commands:?}");
    for hidden in ["keep-lease", "start-attempt", "start-exclusive"] {
        assert!(!commands.contains(&hidden.to_owned()), "{commands:?}");
    }
    assert!(shells.contains(&"fish".to_owned()), "{shells:?}");
    assert!(ends.contains(&"dlq".to_owned()), "{ends:?}");
}

/// Whether the generated script offers the subcommand `name` after `parents`.
fn script_offers(shell: &str, script: &str, parents: &[&str], name: &str) -> bool {
    let path =
        |separator: &str| parents.iter().fold("tenure".to_owned(), |path, word| path + separator + word);
    let block = |start: String, end: &str| {
        script.split_once(&start).and_then(|(_, rest)| rest.split(end).next()).unwrap_or_default()
    };
    match shell {
        "bash" => {
            let start = format!("\n        {})\n            opts=\"", path("__subcmd__"));
            block(start, "\"").split(' ').any(|word| word == name)
        }
        "zsh" => {
            let start = format!("\n_{}_commands() {{", path("__subcmd__"));
            block(start, "\n}").contains(&format!("\n'{name}:"))
        }
        "fish" => {
            let condition = match parents {
                [] => "__fish_tenure_needs_command\"".to_owned(),
                [one] => format!("__fish_tenure_using_subcommand {one}; and not"),
                [one, two, ..] => {
                    format!("__fish_tenure_using_subcommand {one}; and __fish_seen_subcommand_from {two}\"")
                }
            };
            let offer = format!("-a \"{name}\"");
            script.lines().any(|line| line.contains(&condition) && line.contains(&offer))
        }
        "elvish" => {
            let start = format!("&'{}'= {{", path(";"));
            block(start, "\n        }").contains(&format!("\n            cand {name} '"))
        }
        _ => {
            let start = format!("'{}' {{", path(";"));
            block(start, "\n        }").contains(&format!("::new('{name}', "))
        }
    }
}

#[test]
fn every_shell_has_every_command() {
    let env = TestEnv::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = env.ok(&["completions", shell]);
        for (path, _) in commands() {
            let words: Vec<&str> = path.split(' ').collect();
            let (name, parents) = words.split_last().unwrap();
            assert!(script_offers(shell, &ran.out, parents, name), "{shell} does not offer {path}");
        }
        assert!(
            !script_offers(shell, &ran.out, &["sections"], "claim"),
            "{shell} offers a verb of another command"
        );
        assert_eq!(env.json(&["completions", shell]).data()["script"], ran.out.as_str());
    }
    insta::assert_snapshot!("unknown_shell", env.run(&["completions", "tcsh"]));
}
