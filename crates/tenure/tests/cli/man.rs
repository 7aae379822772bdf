use std::process::{Command, Stdio};

use crate::support::TestEnv;
use crate::walk::commands;

/// The page as a reader sees it, and the complaints of the formatter.
fn render(page: &str) -> (String, String) {
    let mut groff = Command::new("groff")
        // UTF-8, which `man` uses as well.
        .args(["-Kutf8", "-ww", "-man", "-Tutf8", "-P-cbou", "-rLL=200n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("groff formats manual pages; ./test installs it");
    std::io::Write::write_all(&mut groff.stdin.take().unwrap(), page.as_bytes()).unwrap();
    let output = groff.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// The text in one line, without the hyphenation and spacing of the formatter.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_command_has_a_page_that_renders_with_its_example_and_its_flags() {
    let env = TestEnv::new();
    for (path, command) in commands() {
        let mut words = vec!["man"];
        words.extend(path.split(' '));
        let (page, complaints) = render(&env.ok(&words).out);
        assert!(complaints.is_empty(), "{path}: {complaints}");
        let page = flat(&page);
        let name = format!("tenure-{}", path.replace(' ', "-"));
        assert!(page.starts_with(&format!("{name}(1)")), "{path}: {page}");
        assert!(page.contains(concat!("tenure ", env!("CARGO_PKG_VERSION"))), "{path}: {page}");
        assert!(page.contains("Example: ") && page.contains("--json"), "{path}: {page}");
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            if let Some(long) = argument.get_long() {
                assert!(page.contains(&format!("--{long}")), "{path}: no --{long} in {page}");
            }
        }
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            assert!(page.contains(&format!("{name}-{}(1)", sub.get_name())), "{path}: {page}");
        }
    }
}

#[test]
fn the_page_of_the_program_has_every_command_and_the_exit_codes() {
    let env = TestEnv::new();
    let (page, complaints) = render(&env.ok(&["man"]).out);
    assert!(complaints.is_empty(), "{complaints}");
    let page = flat(&page);
    for (path, _) in commands().iter().filter(|(path, _)| !path.contains(' ')) {
        assert!(page.contains(&format!("tenure-{path}(1)")), "no {path} in {page}");
    }
    assert!(page.contains("8 lease lost"), "{page}");
    // Hidden commands, which only tenure itself calls, are not listed.
    assert!(
        ["keep-lease", "start-attempt", "start-exclusive"].iter().all(|verb| !page.contains(verb)),
        "{page}"
    );
}

#[test]
fn a_page_is_found_under_every_name_and_told_as_json() {
    let env = TestEnv::new();
    let page = env.ok(&["man", "tasks", "claim"]).out;
    assert_eq!(env.json(&["man", "task", "claim"]).data()["page"], page.as_str());
    insta::assert_snapshot!("unknown_page", env.run(&["man", "tasks", "steal"]));
}
