//! A command as somebody waits for it, beside a process that does nothing.

use std::path::Path;
use std::time::Duration;

use super::Bench;
use super::ground::{claimable, median, tasks_for, times};
use crate::report::Outcome;

pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Outcome<()> {
    let rounds = bench.rounds(200);
    let (ground, small) = (bench.ground(tasks_for(rounds))?, bench.ground(20)?);
    let (mut walls, mut used): ([Vec<Duration>; 3], [Vec<Duration>; 3]) = Default::default();
    for key in claimable().take(rounds) {
        let truth = ground.scratch.silent(Path::new("/bin/true"));
        let list = small.scratch.command(&["tasks", "list"]);
        let claim = ground.scratch.command(&["task", "claim", &key, "--agent", "a"]);
        for (place, command) in [truth, list, claim].into_iter().enumerate() {
            let (wall, on_processor) = times(command)?;
            walls[place].push(wall);
            used[place].extend(on_processor);
        }
        bench.go_on()?;
    }
    let [truth, list, claim] = walls.each_mut().map(|times| median(times));
    let table = &mut bench.table;
    table.told("/bin/true, whole process, wall", truth * 1000.0, "ms");
    table.wall("tasks list ÷ /bin/true, wall", list / truth, "×", 4.0);
    table.wall("task claim ÷ /bin/true, wall", claim / truth, "×", 5.0);
    let [truth, list, claim] = used.each_mut().map(|times| median(times));
    if truth > 0.0 {
        table.told("/bin/true, processor time", truth * 1000.0, "ms");
        table.told("tasks list ÷ /bin/true, processor time", list / truth, "×");
        table.told("task claim ÷ /bin/true, processor time", claim / truth, "×");
    }
    Ok(())
}
