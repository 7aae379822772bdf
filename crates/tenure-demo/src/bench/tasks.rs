//! The cost of commands in a large project compared with a small one, in processor time, which other work on the
//! machine does not affect.

use super::Bench;
use super::child::run_time;
use super::statistics::median;
use crate::Result;

const FEW: usize = 100;

impl Bench<'_> {
    /// Commands with many tasks against the same commands with few.
    pub fn tasks(&mut self) -> Result<()> {
        let (count, shown) = if self.quick { (10_000, "10,000") } else { (1_000_000, "1,000,000") };
        let (few, many) = (self.fixture(FEW)?, self.fixture(count)?);
        for (what, args, budget) in [
            ("tasks next", &["tasks", "next"][..], Some(1.5)),
            ("tasks show", &["tasks", "show", "F50"], Some(1.5)),
            ("task next --claim", &["task", "next", "--claim", "--agent", "a"], Some(1.5)),
            ("tasks list, first page", &["tasks", "list", "--limit", "50"], Some(1.5)),
            ("status", &["status"], Some(1.5)),
            ("sections list", &["sections", "list"], Some(1.5)),
            ("locks list", &["locks", "list"], Some(1.5)),
            ("tasks add", &["tasks", "add", "one more"], None),
        ] {
            let rounds = self.rounds(if budget.is_some() { 60 } else { 15 });
            let (mut at_few, mut at_many) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                at_few.extend(run_time(few.project.command(args))?.1);
                at_many.extend(run_time(many.project.command(args))?.1);
                self.check_interrupts()?;
            }
            if at_few.is_empty() {
                // This system has no processor times.
                continue;
            }
            let what = format!("{what}: with {shown} tasks ÷ with {FEW}");
            let ratio = median(&mut at_many) / median(&mut at_few);
            match budget {
                Some(budget) => self.results.at_most(what, ratio, "×", budget),
                None => self.results.add(what, ratio, "×"),
            }
        }
        Ok(())
    }
}
