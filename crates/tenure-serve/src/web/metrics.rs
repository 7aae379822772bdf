//! The numbers of a project in Prometheus' text format.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The upper bounds of the hand-off histogram, in seconds.
pub const HANDOFF_BOUNDS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// How long it took from the end of one lease to the grant of the same resource to a waiter.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Histogram {
    /// The number of durations in each bucket of [`HANDOFF_BOUNDS`], not cumulative.
    pub counts: [u64; HANDOFF_BOUNDS.len()],
    pub total: u64,
    pub sum_seconds: f64,
}

impl Histogram {
    pub fn record(&mut self, seconds: f64) {
        self.total += 1;
        self.sum_seconds += seconds;
        if let Some(at) = HANDOFF_BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.counts[at] += 1;
        }
    }
}

/// The metrics of one project. Totals count the events since the project's first scrape.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics {
    pub project: String,
    /// Its name in URLs. Two projects may have the same name, and their series must differ.
    pub id: String,
    /// By status.
    pub tasks: BTreeMap<&'static str, u64>,
    /// Open leases by what is held, and by state: live or lapsed.
    pub leases: BTreeMap<(&'static str, &'static str), u64>,
    pub queue_length: u64,
    /// How long the waiters have waited so far: the longest, and all together.
    pub queue_oldest_seconds: f64,
    pub queue_wait_seconds: f64,
    pub takeovers: u64,
    pub rejected_writes: u64,
    /// By ending.
    pub attempts: BTreeMap<&'static str, u64>,
    pub agent_seconds: f64,
    pub tokens: BTreeMap<&'static str, u64>,
    pub dollars: f64,
    pub handoffs: Histogram,
}

/// Renders the numbers of several projects.
pub(crate) fn render(all: &[Metrics]) -> String {
    let mut text = String::new();
    let labelled = |map: &dyn Fn(&Metrics) -> Vec<(String, f64)>| -> Vec<(String, f64)> {
        all.iter()
            .flat_map(|one| {
                let (project, id) = (escape(&one.project), &one.id);
                map(one)
                    .into_iter()
                    .map(move |(labels, value)| (format!("project=\"{project}\",id=\"{id}\"{labels}"), value))
            })
            .collect()
    };
    let by = |name: &str, map: &BTreeMap<&'static str, u64>| -> Vec<(String, f64)> {
        map.iter().map(|(key, count)| (format!(",{name}=\"{key}\""), number(*count))).collect()
    };
    let one = |value: f64| vec![(String::new(), value)];
    let mut family = |name: &str, kind: &str, help: &str, values: Vec<(String, f64)>| {
        let _ = writeln!(text, "# HELP tenure_{name} {help}\n# TYPE tenure_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "tenure_{name}{{{labels}}} {value}");
        }
    };
    family("tasks", "gauge", "Tasks by status.", labelled(&|m| by("status", &m.tasks)));
    let leases = |m: &Metrics| {
        let of = |((kind, state), count): (&(&str, &str), &u64)| {
            (format!(",kind=\"{kind}\",state=\"{state}\""), number(*count))
        };
        m.leases.iter().map(of).collect()
    };
    family("leases", "gauge", "Open leases by what is held and by state.", labelled(&leases));
    family("queue_length", "gauge", "Live tickets.", labelled(&|m| one(number(m.queue_length))));
    family(
        "queue_oldest_wait_seconds",
        "gauge",
        "How long the first waiter has waited.",
        labelled(&|m| one(m.queue_oldest_seconds)),
    );
    family(
        "queue_wait_seconds",
        "gauge",
        "How long all waiters have waited so far, together.",
        labelled(&|m| one(m.queue_wait_seconds)),
    );
    family(
        "takeovers_total",
        "counter",
        "Leases granted in the place of one that had lapsed.",
        labelled(&|m| one(number(m.takeovers))),
    );
    family(
        "rejected_late_writes_total",
        "counter",
        "Writes under a lease that had been lost.",
        labelled(&|m| one(number(m.rejected_writes))),
    );
    family(
        "attempts_total",
        "counter",
        "Ended attempts by agents.",
        labelled(&|m| by("ending", &m.attempts)),
    );
    family(
        "agent_seconds_total",
        "counter",
        "How long agents have worked, in ended attempts.",
        labelled(&|m| one(m.agent_seconds)),
    );
    family(
        "tokens_total",
        "counter",
        "Tokens that agents have reported.",
        labelled(&|m| by("kind", &m.tokens)),
    );
    family(
        "dollars_total",
        "counter",
        "US dollars that agents have reported.",
        labelled(&|m| one(m.dollars)),
    );
    let _ = writeln!(
        text,
        "# HELP tenure_handoff_seconds From the end of a lease to the grant of its resource to a waiter.\n\
         # TYPE tenure_handoff_seconds histogram"
    );
    for one in all {
        let labels = format!("project=\"{}\",id=\"{}\"", escape(&one.project), one.id);
        let mut below = 0;
        for (bound, count) in HANDOFF_BOUNDS.iter().zip(one.handoffs.counts) {
            below += count;
            let _ = writeln!(text, "tenure_handoff_seconds_bucket{{{labels},le=\"{bound}\"}} {below}");
        }
        let Histogram { total, sum_seconds, .. } = &one.handoffs;
        let _ = writeln!(text, "tenure_handoff_seconds_bucket{{{labels},le=\"+Inf\"}} {total}");
        let _ = writeln!(text, "tenure_handoff_seconds_sum{{{labels}}} {sum_seconds}");
        let _ = writeln!(text, "tenure_handoff_seconds_count{{{labels}}} {total}");
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus has only floating-point numbers")]
fn number(count: u64) -> f64 {
    count as f64
}

/// The value of a label.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_stays_inside_its_label_and_buckets_are_cumulative() {
        let mut handoffs = Histogram::default();
        for seconds in [0.004, 0.03, 0.2, 60.0] {
            handoffs.record(seconds);
        }
        let project = "a\"} 1\nevil{x=\"\\".to_owned();
        let id = "ab12".to_owned();
        let metrics = Metrics { project, id, handoffs, tasks: [("pending", 3)].into(), ..Metrics::default() };
        let text = render(&[metrics]);
        let series = r#"tenure_tasks{project="a\"} 1\nevil{x=\"\\",id="ab12",status="pending"} 3"#;
        assert!(text.contains(series), "{text}");
        assert!(text.lines().all(|line| line.starts_with("tenure_") || line.starts_with("# ")), "{text}");
        let bucket = |le: &str| {
            let wanted = format!("le=\"{le}\"}} ");
            let line = text.lines().find(|line| line.contains(&wanted)).unwrap();
            line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
        };
        assert_eq!(
            (bucket("0.005"), bucket("0.05"), bucket("0.25"), bucket("30"), bucket("+Inf")),
            (1, 2, 3, 3, 4)
        );
    }
}
