//! `tenure runners logs`.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tenure_core::ErrorCode;
use tenure_core::hints;
use tenure_runner::LogReader;
use tenure_runner::daemon::log::NamedLog;
use tenure_runner::transcript::{Transcript, split_time};
use tenure_sqlite::{Directory, KnownRunner};

use crate::answer::Answer;
use crate::app::App;
use crate::interrupt::Interrupts;
use crate::report::{CommandResult, Report};
use crate::text::Text;

/// Show a runner's log
///
/// With --follow, also what its agents do, each line with the key of its task.
///
/// Example: tenure runners logs --follow
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The runner: its id, or a prefix of the id (default: this project's latest)
    id: Option<String>,
    /// Keep printing new lines
    #[arg(short, long)]
    follow: bool,
    /// Show the logs of all runners
    #[arg(long, conflicts_with_all = ["id", "follow"])]
    all: bool,
    /// Maximum number of lines
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of bytes read from the end of a log.
const MAX_LOG_BYTES: u64 = 4 * 1024 * 1024;

pub(super) fn run(app: &mut App<'_>, args: Args) -> CommandResult<Option<Answer>> {
    let chosen = choose(app, &args)?;
    let mut lines: Vec<(String, String)> = Vec::new();
    for known in &chosen {
        let short: String = known.runner.id.chars().take(8).collect();
        let path = known.runner.log_path.clone().map(PathBuf::from);
        let text = path
            .and_then(|path| File::open(path).ok())
            .map(|f| end_of(f, MAX_LOG_BYTES).0)
            .unwrap_or_default();
        lines.extend(text.lines().map(|line| (short.clone(), line.to_owned())));
    }
    if args.all {
        // Every line starts with its time. The sort is stable, so the lines of one runner keep their order.
        lines.sort_by(|(_, a), (_, b)| time_of(a).cmp(time_of(b)));
    }
    let skip = lines.len().saturating_sub(args.limit);
    let lines = lines.split_off(skip);
    if !args.follow {
        let mut text = Text::new();
        for (short, line) in &lines {
            text.line(if args.all { format!("{short}  {line}") } else { line.clone() });
        }
        let rows: Vec<_> = lines.iter().map(|(id, line)| json!({"runner": id, "line": line})).collect();
        return Ok(Some(Answer::new(json!({"lines": rows, "total": rows.len()}), text)));
    }
    for (short, line) in &lines {
        print_line(app, short, line);
    }
    let Some(known) = chosen.first() else { return Ok(None) };
    follow(app, known)
}

fn print_line(app: &mut App<'_>, short: &str, line: &str) {
    let mut text = Text::new();
    text.line(line);
    app.printer.stream(&json!({"runner": short, "line": line}), &text);
}

fn follow(app: &mut App<'_>, known: &KnownRunner) -> CommandResult<Option<Answer>> {
    let short: String = known.runner.id.chars().take(8).collect();
    let path = PathBuf::from(known.runner.log_path.clone().unwrap_or_default());
    let interrupts = Interrupts::listen().map_err(Report::from)?;
    let (text, mut at) = File::open(&path).map(|file| end_of(file, MAX_LOG_BYTES)).unwrap_or_default();
    let mut agent = text.lines().rev().find_map(named_log).and_then(|named| FollowedAgent::open(named, true));
    let begun = std::time::Instant::now();
    loop {
        if app.global.timeout.is_some_and(|limit| begun.elapsed() >= limit) {
            return Ok(None);
        }
        interrupts.wait(POLL_INTERVAL);
        if let Some(code) = interrupts.caught() {
            return Err(Report::interrupted(code).silent());
        }
        let new = new_lines(&path, &mut at);
        // Read after the runner's lines: what an agent printed is in its log before the runner reports its end.
        if let Some(agent) = &mut agent {
            agent.print(app, &short);
        }
        for line in new.lines() {
            print_line(app, &short, line);
            if let Some(named) = named_log(line) {
                agent = FollowedAgent::open(named, false);
            }
            if let Some(agent) = &mut agent {
                agent.print(app, &short);
            }
        }
    }
}

/// The complete lines after `at`; the rest is read in the next poll.
fn new_lines(path: &Path, at: &mut u64) -> String {
    let mut new = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::Start(*at))?;
        file.take(MAX_LOG_BYTES).read_to_end(&mut new)
    });
    let whole = new.iter().rposition(|b| *b == b'\n').filter(|_| read.is_ok()).map_or(0, |last| last + 1);
    *at += whole as u64;
    String::from_utf8_lossy(&new[..whole]).into_owned()
}

/// The log of an attempt that the line of a runner's log names.
fn named_log(line: &str) -> Option<NamedLog> {
    NamedLog::parse(split_time(line).1)
}

/// The agent whose output is printed along with the log of its runner.
struct FollowedAgent {
    task: String,
    reader: LogReader,
    transcript: Transcript,
}

impl FollowedAgent {
    fn open(named: NamedLog, at_end: bool) -> Option<Self> {
        let open = if at_end { LogReader::open_at_end } else { LogReader::open };
        let reader = open(&named.path).ok()?;
        Some(Self { task: named.task, reader, transcript: Transcript::new(Some(&named.agent)) })
    }

    /// Prints what is new.
    fn print(&mut self, app: &mut App<'_>, short: &str) {
        while let Ok(Some(line)) = self.reader.next_line() {
            for entry in self.transcript.read(&line) {
                let time = entry.at.map(|at| format!("[{at}] ")).unwrap_or_default();
                for line in entry.lines() {
                    print_line(app, short, &format!("{time}{}  {line}", self.task));
                }
            }
        }
    }
}

pub(crate) fn end_of(mut file: File, most: u64) -> (String, u64) {
    let size = file.metadata().map_or(0, |m| m.len());
    let _ = file.seek(SeekFrom::Start(size.saturating_sub(most)));
    let mut bytes = Vec::new();
    let _ = file.read_to_end(&mut bytes);
    (String::from_utf8_lossy(&bytes).into_owned(), size)
}

/// The time at the beginning of a line.
fn time_of(line: &str) -> &str {
    line.split_once(']').map_or(line, |(time, _)| time)
}

fn choose(app: &App<'_>, args: &Args) -> CommandResult<Vec<KnownRunner>> {
    let home = app.home()?;
    let all = match Directory::open_existing(&home, app.env.clock.clone())? {
        Some(directory) => super::list::known(app, &directory)?,
        None => Vec::new(),
    };
    if args.all {
        return Ok(all);
    }
    let nothing = || Report::new(ErrorCode::RunnerNotFound, "no such runner").hint(hints::list_runners());
    let mut matching = match &args.id {
        Some(id) => all.into_iter().filter(|k| k.runner.id.starts_with(id.as_str())).collect::<Vec<_>>(),
        None => {
            let here = app.find()?.paths.root.to_string_lossy().into_owned();
            all.into_iter().filter(|k| k.runner.project_path == here).collect()
        }
    };
    if matching.is_empty() && args.id.is_none() {
        return Err(Report::new(ErrorCode::RunnerNotFound, "no runner has run in this project")
            .hint(hints::start_runner()));
    }
    if matching.is_empty() {
        return Err(nothing());
    }
    matching.truncate(1);
    Ok(matching)
}
