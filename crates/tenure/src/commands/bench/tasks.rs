//! What a project costs that has grown. In processor time, which other work does not lengthen.

use std::time::Duration;

use super::Bench;
use super::ground::{median, times};
use crate::report::Outcome;

const FEW: usize = 100;

pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Outcome<()> {
    let (count, shown) = if bench.quick { (10_000, "10,000") } else { (1_000_000, "1,000,000") };
    let (few, many) = (bench.ground(FEW)?, bench.ground(count)?);
    for (what, words, budget) in [
        ("tasks next", &["tasks", "next"][..], Some(1.5)),
        ("tasks show", &["tasks", "show", "F50"], Some(1.5)),
        ("task next --claim", &["task", "next", "--claim", "--agent", "a"], Some(1.5)),
        ("tasks add", &["tasks", "add", "one more"], None),
        ("tasks list (first page)", &["tasks", "list"], None),
    ] {
        let rounds = bench.rounds(if budget.is_some() { 60 } else { 15 });
        let (mut at_few, mut at_many): (Vec<Duration>, Vec<Duration>) = Default::default();
        for _ in 0..rounds {
            at_few.extend(times(few.scratch.command(words))?.1);
            at_many.extend(times(many.scratch.command(words))?.1);
            bench.go_on()?;
        }
        if at_few.is_empty() {
            // No processor times here.
            continue;
        }
        let (what, ratio) =
            (format!("{what}: with {shown} tasks ÷ with {FEW}"), median(&mut at_many) / median(&mut at_few));
        match budget {
            Some(budget) => bench.table.at_most(what, ratio, "×", budget),
            None => bench.table.told(what, ratio, "×"),
        }
    }
    Ok(())
}
