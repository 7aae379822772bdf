//! Reads the command lines of a document.
//!
//! A `console` block is a session: lines that begin with `$ ` are commands, and the lines after one are its expected output, if
//! any is shown. A line `$ echo $?` with a number is the exit code of the command before it. `<!-- given: … -->` is run and not
//! shown.

#[derive(Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) seen: Vec<String>,
    pub(crate) exit: i32,
    pub(crate) shown: bool,
}

pub(crate) fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut in_session, mut asks_exit) = (false, false);
    for line in text.lines() {
        if let Some(given) = line.strip_prefix("<!-- given: ").and_then(|rest| rest.strip_suffix(" -->")) {
            steps.push(Step { command: given.to_owned(), seen: Vec::new(), exit: 0, shown: false });
        } else if line.starts_with("```") {
            in_session = line == "```console";
            asks_exit = false;
        } else if in_session && line == "$ echo $?" {
            asks_exit = true;
        } else if in_session && asks_exit {
            steps.last_mut().unwrap().exit = line.trim().parse().unwrap();
            asks_exit = false;
        } else if in_session {
            match line.strip_prefix("$ ") {
                Some(command) => {
                    steps.push(Step { command: command.to_owned(), seen: Vec::new(), exit: 0, shown: true });
                }
                None => steps.last_mut().unwrap().seen.push(line.to_owned()),
            }
        }
    }
    for step in &mut steps {
        while step.seen.last().is_some_and(|line| line.trim().is_empty()) {
            step.seen.pop();
        }
    }
    steps
}

/// Inline code, and the commands of `console` blocks.
pub(crate) fn code(text: &str) -> Vec<String> {
    let typed = steps(text).into_iter().filter(|step| step.shown).map(|step| step.command);
    typed.chain(spans(text)).collect()
}

/// Inline code that begins with `tenure `.
pub(crate) fn named_commands(text: &str) -> Vec<String> {
    spans(text).into_iter().filter(|span| span.starts_with("tenure ") && !span.contains('…')).collect()
}

/// Inline code.
fn spans(text: &str) -> Vec<String> {
    let mut in_block = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            prose.push_str(line);
            prose.push(' ');
        }
    }
    prose.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Words of the first command, as a shell would split them.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let end = words.iter().position(|word| ["&&", "||", "|", ";", ">", "&"].contains(&word.as_str()));
    words.truncate(end.unwrap_or(words.len()));
    words
}

#[test]
fn a_session_is_read_as_typed_and_seen() {
    let text = "Text with `tenure status` in it.\n\n<!-- given: tenure init -->\n```console\n$ tenure tasks\nNo open tasks.\n\n\
                $ tenure task done 'a b'\n$ echo $?\n2\n```\n```yaml\n$ not this\n```\n";
    let step = |command: &str, seen: &[&str], exit, shown| Step {
        command: command.to_owned(),
        seen: seen.iter().map(|line| (*line).to_owned()).collect(),
        exit,
        shown,
    };
    assert_eq!(
        steps(text),
        [
            step("tenure init", &[], 0, false),
            step("tenure tasks", &["No open tasks."], 0, true),
            step("tenure task done 'a b'", &[], 2, true),
        ]
    );
    assert_eq!(named_commands(text), ["tenure status"]);
    assert_eq!(words("tenure task done 'a b'"), ["tenure", "task", "done", "a b"]);
}
