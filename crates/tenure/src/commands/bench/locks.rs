//! The file locks, as `tenure_lock` measures itself.

use tenure_core::ErrorCode;
use tenure_lock::measure;

use super::Bench;
use crate::report::{Outcome, Report};
use crate::scratch::Scratch;

pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Outcome<()> {
    let scratch = Scratch::new(bench.app.env, "bench")?;
    let (folder, rounds) = (scratch.root(), bench.rounds(2000));
    let failed = |e: std::io::Error| Report::io(&e, ErrorCode::General, "lock a file in", &folder);
    let left = measure::left_by_another_tool("job");
    for (what, budget, times) in [
        ("take and release", 100.0, measure::acquire_and_release(&folder, rounds)),
        ("refuse", 20.0, measure::refuse(&folder, rounds)),
        ("take over from the dead", 50.0, measure::take_over(&folder, rounds, &left)),
    ] {
        let times = times.map_err(failed)?;
        let (ours, bare) = (times.ours.as_secs_f64(), times.bare.as_secs_f64());
        bench.table.wall(format!("file lock: {what}"), ours * 1e6, "µs", budget);
        bench.table.told(format!("file lock: {what} ÷ bare flock"), ours / bare, "×");
    }
    Ok(())
}
