//! The exclusive lock, as those see it who have to step aside.

use std::path::Path;

use tenure_lock::should_skip_database;

/// Looks at our own lock file, and at that of beads where the project has one: a tool may hold either.
///
/// True if the project is to be left alone. `say` hears what there is to log, and whether it is a reason to.
pub(crate) fn is_locked_out(root: &Path, mut say: impl FnMut(bool, String)) -> bool {
    let beads = root.join(".beads");
    let mut folders = vec![root.join(".tenure")];
    if beads.is_dir() {
        folders.push(beads);
    }
    let mut skip = false;
    for folder in folders {
        let decision = should_skip_database(&folder);
        if let Some(line) = decision.log_line() {
            say(decision.skip, line);
        }
        skip |= decision.skip;
    }
    skip
}
