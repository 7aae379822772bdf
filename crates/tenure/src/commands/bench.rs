//! `tenure bench`: runs `tenure_demo::bench` and prints its results.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde_json::{Value, json};
use tenure_core::error::TaskName;
use tenure_core::hints;
use tenure_core::holder::{Caller, Holder, Incarnation};
use tenure_core::kernel::{self, Finish, Terms};
use tenure_core::{ErrorCode, reference};
use tenure_demo::bench::{Bench, Bound, Measurement, Results, Rival, Verdict, claim_and_release};

use crate::answer::Answer;
use crate::app::App;
use crate::interrupt::Interrupts;
use crate::report::{CommandResult, Report};
use crate::table::{Table, cut, keep};
use crate::text::{RenderOptions, Style, Text};
use crate::waiting::{self, Claim, ClaimRequest, NamedTask};

/// Measure tenure's performance on this machine against its budgets
///
/// Takes a minute or two, in a temporary folder. Each figure is compared with a raw limit measured in the same run. Wall
/// times are judged only on an idle machine, and nothing is judged in a debug build. Exits 1 if a budget is missed by
/// more than a factor of two.
///
/// Example: tenure bench --quick
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Measure only these topics
    #[arg(value_enum, value_name = "THEMES")]
    topics: Vec<Topic>,
    /// Use fewer rounds and fewer tasks, for a rough result in a few seconds
    #[arg(long)]
    quick: bool,
    /// Compare races and claims with another tool that is installed, instead of the topics
    #[arg(long, value_enum, value_name = "TOOL", conflicts_with = "topics")]
    against: Vec<Against>,
    /// Run as one of the concurrent writers
    #[arg(long, hide = true, num_args = 3, value_names = ["DATABASE", "KEY", "MS"])]
    writer: Vec<String>,
    /// Run as one of the waiters that pass a task around
    #[arg(long, hide = true, num_args = 2, value_names = ["KEY", "MS"])]
    waiter: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Topic {
    /// One command from start to exit, compared with /bin/true
    Processes,
    /// Claims per second, compared with writing the same rows with plain SQLite
    Claims,
    /// Fairness among concurrent writers: the slowest compared with the fastest
    Writers,
    /// Handover time from a release, or from a holder's death, to the next waiter
    Waiting,
    /// A million tasks compared with a hundred
    Tasks,
    /// File locks, compared with a bare flock
    Locks,
    /// CPU and memory use of an idle runner
    Runner,
    /// A claim over MCP, compared with the bare transaction
    #[cfg(feature = "serve")]
    Mcp,
    /// Ten million events compared with a thousand; takes several minutes, so it runs only if named
    History,
    /// The size of this program
    Binary,
}

/// What to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Against {
    /// lodestar-cli from PyPI
    Lodestar,
    /// beads
    Bd,
    /// flock(1), which locks a file while a command runs
    Flock,
    /// The same rows, written with SQLite alone in this process
    Raw,
}

impl Against {
    fn rival(self) -> Rival {
        match self {
            Self::Lodestar => Rival::Lodestar,
            Self::Bd => Rival::Beads,
            Self::Flock => Rival::Flock,
            Self::Raw => Rival::RawSqlite,
        }
    }
}

impl Topic {
    fn measure(self, bench: &mut Bench<'_>) -> tenure_demo::Result<()> {
        match self {
            Self::Processes => bench.processes(),
            Self::Claims => bench.claims(),
            Self::Writers => bench.writers(),
            Self::Waiting => bench.waiting(),
            Self::Tasks => bench.tasks(),
            Self::Locks => bench.locks(),
            Self::Runner => bench.idle_runner(),
            #[cfg(feature = "serve")]
            Self::Mcp => bench.mcp(),
            Self::History => bench.history(),
            Self::Binary => bench.binary_size(cfg!(feature = "serve")),
        }
    }

    /// The topic's line in the help.
    fn about(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Answer> {
    if app.global.dry_run {
        return Err(Report::usage("bench does not support --dry-run; it writes only to a temporary folder")
            .hint(hints::quick_bench()));
    }
    if let [database, key, millis] = args.writer.as_slice() {
        return write(app, database, key, millis);
    }
    if let [key, millis] = args.waiter.as_slice() {
        return wait_and_pass(app, key, millis);
    }
    let has_progress = app.printer.err_is_terminal() && !app.printer.quiet && !app.env.flag("CI");
    let program = app.own_program()?;
    let interrupts = Interrupts::listen()?;
    let mut bench = Bench::new(&program, &interrupts, args.quick);
    let is_wanted = |topic: &&Topic| {
        if args.topics.is_empty() { **topic != Topic::History } else { args.topics.contains(topic) }
    };
    let measured = if args.against.is_empty() {
        Topic::value_variants().iter().filter(is_wanted).try_for_each(|topic| {
            if has_progress {
                app.printer.draw(&format!("\r\x1b[K{} …", topic.about()));
            }
            topic.measure(&mut bench)
        })
    } else {
        args.against.iter().try_for_each(|tool| bench.against(tool.rival()))
    };
    if has_progress {
        app.printer.draw("\r\x1b[K");
    }
    // Must come before `measured?`: a signal also ends the children, so the measurement fails, but the signal is the
    // cause to report.
    let results = bench.finish()?;
    measured?;
    let mut text = to_text(&results, app.printer.render_options());
    if args.topics.is_empty() && args.against.is_empty() {
        let elsewhere =
            "For the same on PostgreSQL, run from a source checkout: cargo bench -p tenure-postgres";
        text.blank().styled(Style::Dim, elsewhere);
    }
    Ok(Answer::new(to_json(&results), text).exit(u8::from(results.is_broken())))
}

/// One of the writers that `bench.writers()` starts.
fn write(app: &App<'_>, database: &str, key: &str, millis: &str) -> CommandResult<Answer> {
    let time = Duration::from_millis(millis.parse().map_err(tenure_demo::Error::bench)?);
    let rounds = claim_and_release(Path::new(database), app.store_options(), key, time)?;
    Ok(rounds_done(rounds))
}

/// One of the waiters that `bench.waiting()` starts: claims the task, waiting for it, and releases it, until the time is up.
fn wait_and_pass(app: &mut App<'_>, key: &str, millis: &str) -> CommandResult<Answer> {
    let time = Duration::from_millis(millis.parse().map_err(tenure_demo::Error::bench)?);
    let open = app.open()?;
    let me = Incarnation::current();
    let caller = Caller::new(Holder::agent(format!("w{}", me.process.pid))).with_process(me);
    let with_caller = |_: Option<&TaskName>| caller.clone();
    let request = ClaimRequest::Task(NamedTask::new(key));
    let claim = Claim::new(&request, &with_caller);
    std::io::stdin().read_line(&mut String::new()).map_err(tenure_demo::Error::bench)?;
    let end = Instant::now() + time;
    let mut rounds: u64 = 0;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        let terms = Terms::new(open.config.locking.lease_ttl);
        match waiting::acquire(app, &open, &claim, terms, Some(left)) {
            Err(report) if report.code == ErrorCode::WaitTimeout => break,
            granted => drop(granted?),
        }
        open.write(|tx| {
            let name = reference::task(tx, key)?;
            kernel::finish(tx, &open.context(), &caller, &name, Finish::Release(None), false)
        })?;
        rounds += 1;
    }
    Ok(rounds_done(rounds))
}

fn rounds_done(rounds: u64) -> Answer {
    let mut text = Text::new();
    text.line(rounds.to_string());
    Answer::new(json!({"rounds": rounds}), text)
}

fn to_json(results: &Results) -> Value {
    let row = |measurement: &Measurement| {
        let budget = measurement.budget;
        json!({
            "what": measurement.what,
            "value": measurement.value,
            "unit": measurement.unit,
            "budget": budget.map(|budget| budget.limit),
            "is": budget.map(|budget| if budget.bound == Bound::AtLeast { "atLeast" } else { "atMost" }),
            "verdict": results.verdict(measurement).map(Verdict::as_str),
        })
    };
    let rows: Vec<Value> = results.measurements.iter().map(row).collect();
    json!({"release": results.is_release, "load": results.load, "total": rows.len(), "budgets": rows})
}

fn to_text(results: &Results, options: RenderOptions) -> Text {
    let mut table = Table::new([cut("WHAT"), keep("MEASURED"), keep("BUDGET"), keep("VERDICT")]);
    for measurement in &results.measurements {
        let unit = measurement.unit;
        let budget = measurement.budget.map(|budget| {
            let sign = if budget.bound == Bound::AtLeast { "≥" } else { "≤" };
            format!("{sign} {} {unit}", budget.limit)
        });
        let verdict = results.verdict(measurement);
        table.styled_row(vec![
            (Style::Plain, measurement.what.clone()),
            (Style::Plain, format!("{:>8} {unit}", rounded(measurement.value))),
            (Style::Plain, budget.unwrap_or_default()),
            (
                verdict.map_or(Style::Plain, verdict_style),
                verdict.map(Verdict::as_str).unwrap_or_default().to_owned(),
            ),
        ]);
    }
    let mut text = Text::new();
    text.table(&table, options);
    if !results.is_release {
        text.styled(Style::Warn, "This is a debug build, so nothing is judged. Use: cargo build --release");
    } else if results.is_busy() {
        let line = format!("The load is {:.1} per processor, so wall times are not judged.", results.load);
        text.styled(Style::Warn, line);
    }
    text
}

fn verdict_style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Ok => Style::Good,
        Verdict::Over => Style::Warn,
        Verdict::Broken => Style::Bad,
        Verdict::NotJudged => Style::Dim,
    }
}

/// About three significant digits.
fn rounded(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 0.1 => format!("{v:.2}"),
        v => format!("{v:.4}"),
    }
}
