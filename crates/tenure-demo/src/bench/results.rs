//! The measured values, and whether each is within its budget.

/// Above this load per processor, wall times depend more on other processes than on the program.
const IDLE: f64 = 0.75;

#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    pub what: String,
    pub value: f64,
    pub unit: &'static str,
    /// `None` if the value only serves as a reference.
    pub budget: Option<Budget>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    pub bound: Bound,
    pub limit: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    AtMost,
    AtLeast,
    /// An upper bound for a wall time or for a ratio of two. A miss is judged only on an idle machine: other work lengthens
    /// wall times, and not all by the same factor.
    Wall,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Ok,
    /// Missed by up to a factor of two, which the machine may cause.
    Over,
    Broken,
    NotJudged,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Over => "over",
            Self::Broken => "BROKEN",
            Self::NotJudged => "not judged",
        }
    }
}

#[derive(Debug)]
pub struct Results {
    pub measurements: Vec<Measurement>,
    /// The load per processor when the bench began.
    pub load: f64,
    /// Nothing is judged in a debug build.
    pub is_release: bool,
}

impl Results {
    /// An empty list. Reads the machine's load.
    pub(super) fn new() -> Self {
        Self { measurements: Vec::new(), load: load(), is_release: !cfg!(debug_assertions) }
    }

    pub(super) fn at_most(&mut self, what: impl Into<String>, value: f64, unit: &'static str, limit: f64) {
        self.push(what, value, unit, Some(Budget { bound: Bound::AtMost, limit }));
    }

    pub(super) fn at_least(&mut self, what: impl Into<String>, value: f64, unit: &'static str, limit: f64) {
        self.push(what, value, unit, Some(Budget { bound: Bound::AtLeast, limit }));
    }

    pub(super) fn wall(&mut self, what: impl Into<String>, value: f64, unit: &'static str, limit: f64) {
        self.push(what, value, unit, Some(Budget { bound: Bound::Wall, limit }));
    }

    /// Adds a value without a budget.
    pub(super) fn add(&mut self, what: impl Into<String>, value: f64, unit: &'static str) {
        self.push(what, value, unit, None);
    }

    fn push(&mut self, what: impl Into<String>, value: f64, unit: &'static str, budget: Option<Budget>) {
        self.measurements.push(Measurement { what: what.into(), value, unit, budget });
    }

    pub fn is_busy(&self) -> bool {
        self.load > IDLE
    }

    /// None without a budget.
    pub fn verdict(&self, measurement: &Measurement) -> Option<Verdict> {
        let Budget { bound, limit } = measurement.budget?;
        let excess =
            if bound == Bound::AtLeast { limit / measurement.value } else { measurement.value / limit };
        Some(match excess {
            _ if !self.is_release => Verdict::NotJudged,
            excess if excess <= 1.0 => Verdict::Ok,
            _ if bound == Bound::Wall && self.is_busy() => Verdict::NotJudged,
            excess if excess <= 2.0 => Verdict::Over,
            _ => Verdict::Broken,
        })
    }

    /// Whether any budget is missed by more than a factor of two.
    pub fn is_broken(&self) -> bool {
        self.measurements.iter().any(|measurement| self.verdict(measurement) == Some(Verdict::Broken))
    }
}

/// The load of the last minute, per processor.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    load / super::to_float(processors as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(load: f64, is_release: bool) -> (Vec<&'static str>, bool) {
        let mut results = Results { measurements: Vec::new(), load, is_release };
        results.at_most("within", 1.0, "×", 1.5);
        results.at_most("a little over", 2.0, "×", 1.5);
        results.at_most("far over", 4.0, "×", 1.5);
        results.at_least("above the floor", 0.6, "×", 0.6);
        results.at_least("far below the floor", 0.2, "×", 0.6);
        results.wall("slow", 20.0, "ms", 5.0);
        results.wall("quick", 4.0, "ms", 5.0);
        results.add("no promise", 1e9, "/s");
        let words = results
            .measurements
            .iter()
            .map(|measurement| results.verdict(measurement).map_or("", Verdict::as_str))
            .collect();
        (words, results.is_broken())
    }

    #[test]
    fn a_budget_missed_by_more_than_a_factor_of_two_is_broken() {
        let words = ["ok", "over", "BROKEN", "ok", "BROKEN", "BROKEN", "ok", ""];
        assert_eq!(verdicts(0.1, true), (words.to_vec(), true));
    }

    #[test]
    fn a_missed_wall_time_is_judged_only_on_an_idle_machine() {
        let (words, _) = verdicts(2.0, true);
        assert_eq!(words[5..7], ["not judged", "ok"]);
        assert_eq!(words[2], "BROKEN");
    }

    #[test]
    fn a_debug_build_is_not_judged() {
        let (words, broken) = verdicts(0.1, false);
        assert!(!broken && words[..7].iter().all(|word| *word == "not judged"), "{words:?}");
    }
}
