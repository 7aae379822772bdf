//! Complete files of each format; unit tests of the rules are next to the code.

mod formats;
mod hostile;
mod markdown;
mod other_tools;

use super::*;

fn read(file_name: &str, text: &str) -> Import {
    parse(None, file_name, text).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(file_name: &str, text: &str) -> String {
    parse(None, file_name, text).unwrap_err().to_string()
}

fn task<'a>(import: &'a Import, title: &str) -> &'a ImportedTask {
    import.tasks.iter().find(|task| task.title == title).unwrap_or_else(|| panic!("{title:?} in {import:#?}"))
}

fn said<'a>(import: &'a Import, what: &str) -> &'a Unmapped {
    import
        .unmapped
        .iter()
        .find(|note| note.what.contains(what))
        .unwrap_or_else(|| panic!("{what:?} in {import:#?}"))
}
