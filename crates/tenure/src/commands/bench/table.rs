//! What was measured, beside what was promised.

use serde_json::{Value, json};

use crate::text::{Look, Style, Table as Columns, Text};

/// Above this many processes that want to run, for each processor, wall times say more about the others than about us.
const IDLE: f64 = 0.75;

#[derive(Debug)]
struct Row {
    what: String,
    value: f64,
    unit: &'static str,
    /// None: no promise, but good to know.
    budget: Option<(Bound, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    AtMost,
    AtLeast,
    /// Wall time, or a ratio of two. It is judged only where nothing else runs: other work makes it longer, and by another
    /// factor than what it is compared with.
    Wall,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Ok,
    /// By less than twice: that may be the machine.
    Over,
    Broken,
    NotJudged,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Over => "over",
            Self::Broken => "BROKEN",
            Self::NotJudged => "not judged",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Ok => Style::Good,
            Self::Over => Style::Warn,
            Self::Broken => Style::Bad,
            Self::NotJudged => Style::Dim,
        }
    }
}

#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Row>,
    /// How many processes wanted to run, for each processor, when the bench began.
    load: f64,
    is_release: bool,
}

impl Table {
    pub(super) fn here() -> Self {
        Self { rows: Vec::new(), load: load(), is_release: !cfg!(debug_assertions) }
    }

    pub(super) fn at_most(&mut self, what: impl Into<String>, value: f64, unit: &'static str, budget: f64) {
        self.rows.push(Row { what: what.into(), value, unit, budget: Some((Bound::AtMost, budget)) });
    }

    pub(super) fn at_least(&mut self, what: impl Into<String>, value: f64, unit: &'static str, budget: f64) {
        self.rows.push(Row { what: what.into(), value, unit, budget: Some((Bound::AtLeast, budget)) });
    }

    pub(super) fn wall(&mut self, what: impl Into<String>, value: f64, unit: &'static str, budget: f64) {
        self.rows.push(Row { what: what.into(), value, unit, budget: Some((Bound::Wall, budget)) });
    }

    pub(super) fn told(&mut self, what: impl Into<String>, value: f64, unit: &'static str) {
        self.rows.push(Row { what: what.into(), value, unit, budget: None });
    }

    fn is_busy(&self) -> bool {
        self.load > IDLE
    }

    fn verdict(&self, row: &Row) -> Option<Verdict> {
        let (bound, budget) = row.budget?;
        let excess = if bound == Bound::AtLeast { budget / row.value } else { row.value / budget };
        Some(match excess {
            _ if !self.is_release => Verdict::NotJudged,
            excess if excess <= 1.0 => Verdict::Ok,
            _ if bound == Bound::Wall && self.is_busy() => Verdict::NotJudged,
            excess if excess <= 2.0 => Verdict::Over,
            _ => Verdict::Broken,
        })
    }

    pub(super) fn is_broken(&self) -> bool {
        self.rows.iter().any(|row| self.verdict(row) == Some(Verdict::Broken))
    }

    pub(super) fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "what": row.what,
                "value": row.value,
                "unit": row.unit,
                "budget": row.budget.map(|(_, budget)| budget),
                "is": row.budget.map(|(bound, _)| if bound == Bound::AtLeast { "atLeast" } else { "atMost" }),
                "verdict": self.verdict(row).map(Verdict::word),
            })
        });
        let rows: Vec<Value> = rows.collect();
        json!({"release": self.is_release, "load": self.load, "total": rows.len(), "budgets": rows})
    }

    pub(super) fn to_text(&self, look: Look) -> Text {
        let mut columns = Columns::new(&["WHAT", "MEASURED", "BUDGET", "VERDICT"]);
        for row in &self.rows {
            let budget = row.budget.map(|(bound, budget)| {
                let sign = if bound == Bound::AtLeast { "≥" } else { "≤" };
                format!("{sign} {budget} {}", row.unit)
            });
            let verdict = self.verdict(row);
            columns.styled_row(vec![
                (Style::Plain, row.what.clone()),
                (Style::Plain, format!("{:>8} {}", short(row.value), row.unit)),
                (Style::Plain, budget.unwrap_or_default()),
                (
                    verdict.map_or(Style::Plain, Verdict::style),
                    verdict.map(Verdict::word).unwrap_or_default().to_owned(),
                ),
            ]);
        }
        let mut text = Text::new();
        text.table(&columns, look);
        if !self.is_release {
            text.styled(Style::Warn, "A build for debugging: nothing is judged. cargo build --release");
        } else if self.is_busy() {
            let line = format!("Load {:.1} per processor: wall times are shown and not judged.", self.load);
            text.styled(Style::Warn, line);
        }
        text
    }
}

/// As many digits as mean something.
fn short(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 0.1 => format!("{v:.2}"),
        v => format!("{v:.4}"),
    }
}

/// The last minute's load for each processor.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    load / super::float(processors as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(load: f64, is_release: bool) -> (Vec<&'static str>, bool) {
        let mut table = Table { rows: Vec::new(), load, is_release };
        table.at_most("within", 1.0, "×", 1.5);
        table.at_most("a little over", 2.0, "×", 1.5);
        table.at_most("far over", 4.0, "×", 1.5);
        table.at_least("above the floor", 0.6, "×", 0.6);
        table.at_least("far below the floor", 0.2, "×", 0.6);
        table.wall("slow", 20.0, "ms", 5.0);
        table.wall("quick", 4.0, "ms", 5.0);
        table.told("no promise", 1e9, "/s");
        let words = table.rows.iter().map(|row| table.verdict(row).map_or("", Verdict::word)).collect();
        (words, table.is_broken())
    }

    #[test]
    fn a_budget_missed_by_more_than_twice_is_broken() {
        let words = ["ok", "over", "BROKEN", "ok", "BROKEN", "BROKEN", "ok", ""];
        assert_eq!(verdicts(0.1, true), (words.to_vec(), true));
    }

    #[test]
    fn a_wall_time_is_judged_only_where_nothing_else_runs() {
        let (words, _) = verdicts(2.0, true);
        assert_eq!(words[5..7], ["not judged", "ok"]);
        assert_eq!(words[2], "BROKEN");
    }

    #[test]
    fn a_build_for_debugging_is_not_judged() {
        let (words, broken) = verdicts(0.1, false);
        assert!(!broken && words[..7].iter().all(|word| *word == "not judged"), "{words:?}");
    }
}
