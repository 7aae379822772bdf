//! `tenure bench`: the speed budgets, each as a ratio to the raw limit that is measured beside it in the same run, so that
//! whatever slows one side slows the other. Real processes of this binary, a real store, a temporary folder.

use clap::ValueEnum;

use crate::answer::Answer;
use crate::app::App;
use crate::interrupt::Interrupts;
use crate::report::{Outcome, Report};
use crate::text::Style;

mod claims;
mod ground;
mod locks;
#[cfg(feature = "serve")]
mod mcp;
mod processes;
mod runner;
mod table;
mod tasks;
mod waiting;
mod writers;

use ground::Ground;
use table::Table;

/// Measure the speed budgets on this machine, each against the raw limit in the same run
///
/// It takes a minute or two, in a temporary folder. Wall times are judged only where nothing else runs, and nothing is judged in
/// a build for debugging. Exits 1 if a budget is missed by more than twice.
///
/// Example: tenure bench --quick
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these
    #[arg(value_enum)]
    themes: Vec<Theme>,
    /// Fewer rounds and fewer tasks: an impression in some seconds
    #[arg(long)]
    quick: bool,
    /// Be one of the processes that write at once
    #[arg(long, hide = true, num_args = 3, value_names = ["DATABASE", "KEY", "MS"])]
    writer: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Theme {
    /// A command, from start to end, against /bin/true
    Processes,
    /// Claims per second, against the same rows written with SQLite alone
    Claims,
    /// Many processes that write at once: the slowest against the fastest
    Writers,
    /// From a release, and from the death of a holder, to the next in line
    Waiting,
    /// A million tasks against a hundred
    Tasks,
    /// File locks, against a bare flock
    Locks,
    /// What a runner uses that has nothing to do
    Runner,
    /// A claim over MCP, against the same transaction
    #[cfg(feature = "serve")]
    Mcp,
    /// The size of this program
    Binary,
}

impl Theme {
    fn measure(self, bench: &mut Bench<'_, '_>) -> Outcome<()> {
        match self {
            Self::Processes => processes::measure(bench),
            Self::Claims => claims::measure(bench),
            Self::Writers => writers::measure(bench),
            Self::Waiting => waiting::measure(bench),
            Self::Tasks => tasks::measure(bench),
            Self::Locks => locks::measure(bench),
            Self::Runner => runner::measure(bench),
            #[cfg(feature = "serve")]
            Self::Mcp => mcp::measure(bench),
            Self::Binary => size(bench),
        }
    }
}

pub(crate) fn run(app: &mut App<'_>, args: Args) -> Outcome<Answer> {
    if app.global.dry_run {
        return Err(Report::usage(
            "the bench writes, if only to a temporary folder; it goes without --dry-run",
        )
        .hint("get an impression", "tenure bench --quick"));
    }
    if let [database, key, time] = args.writer.as_slice() {
        return writers::write(app, database, key, time);
    }
    let is_wanted = |theme: &Theme| args.themes.is_empty() || args.themes.contains(theme);
    let interrupts = Interrupts::listen()?;
    let mut bench = Bench { app, interrupts, quick: args.quick, table: Table::here() };
    let mut themes = Theme::value_variants().iter().filter(|theme| is_wanted(theme));
    let measured = themes.try_for_each(|theme| {
        bench.begin(*theme);
        theme.measure(&mut bench)
    });
    bench.end_progress();
    // What was interrupted has failed for no other reason.
    bench.go_on()?;
    measured?;
    let table = bench.table;
    let mut text = table.to_text(app.printer.look());
    if args.themes.is_empty() {
        let elsewhere = "The same on a PostgreSQL server, from the source: cargo bench -p tenure-postgres";
        text.blank().styled(Style::Dim, elsewhere);
    }
    Ok(Answer::new(table.to_json(), text).exit(u8::from(table.is_broken())))
}

/// One run: what was measured so far, and how thoroughly to go on.
struct Bench<'b, 'a> {
    app: &'b mut App<'a>,
    interrupts: Interrupts,
    quick: bool,
    table: Table,
}

impl Bench<'_, '_> {
    /// A project with these tasks: see [`Ground::fill`].
    fn ground(&self, tasks: usize) -> Outcome<Ground> {
        let ground = Ground::new(self.app)?;
        ground.fill(tasks)?;
        Ok(ground)
    }

    /// So many, or a tenth.
    fn rounds(&self, all: usize) -> usize {
        if self.quick { all.div_ceil(10) } else { all }
    }

    /// To be asked in every loop: the bench ends when it is told to.
    fn go_on(&self) -> Outcome<()> {
        self.interrupts.caught().map_or(Ok(()), |code| Err(Report::interrupted(code)))
    }

    fn begin(&mut self, theme: Theme) {
        if self.has_progress() {
            let about = theme.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string));
            self.app.printer.draw(&format!("\r\x1b[K{} …", about.unwrap_or_default()));
        }
    }

    fn end_progress(&mut self) {
        if self.has_progress() {
            self.app.printer.draw("\r\x1b[K");
        }
    }

    fn has_progress(&self) -> bool {
        self.app.printer.err_is_terminal() && !self.app.printer.quiet && !self.app.env.flag("CI")
    }
}

fn size(bench: &mut Bench<'_, '_>) -> Outcome<()> {
    let path = crate::own_binary().map_err(failed)?;
    let bytes = std::fs::metadata(path).map_err(failed)?.len();
    let megabytes = float(bytes) / 1e6;
    if cfg!(feature = "serve") {
        bench.table.told("this program, with MCP (8 without)", megabytes, "MB");
    } else {
        bench.table.at_most("this program", megabytes, "MB", 8.0);
    }
    Ok(())
}

fn failed(why: impl std::fmt::Display) -> Report {
    Report::new(tenure_core::ErrorCode::General, format!("the bench cannot go on: {why}"))
}

#[expect(clippy::cast_precision_loss, reason = "counts that are divided")]
fn float(count: u64) -> f64 {
    count as f64
}
