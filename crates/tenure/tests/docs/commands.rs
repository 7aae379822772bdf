//! The reference page, generated from the parser: every command with its description, usage and example.

use std::fmt::Write;

pub(crate) fn page(command: &clap::Command) -> String {
    let mut page = String::from(
        "# Every command\n\nMade from the same definitions as `tenure --help`, the manual pages (`tenure man`) and the \
         completions; a test keeps it so.\n",
    );
    let mut whole = command.clone();
    whole.build();
    for sub in shown(&whole) {
        let _ = write!(page, "\n## {}\n\n", sub.get_name());
        entry(&mut page, sub.get_name(), sub);
        for verb in shown(sub) {
            entry(&mut page, &format!("{} {}", sub.get_name(), verb.get_name()), verb);
        }
    }
    page
}

fn shown(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set())
}

fn entry(page: &mut String, path: &str, command: &clap::Command) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let long = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    let example = long.lines().find_map(|line| line.strip_prefix("Example: ")).unwrap_or_default();
    let _ = writeln!(page, "- **`{path}`** {about}  \n  `{example}`");
}
