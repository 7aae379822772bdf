//! `tenure runners logs`.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tenure_core::ErrorCode;
use tenure_sqlite::{Directory, KnownRunner};

use crate::answer::Answer;
use crate::app::App;
use crate::interrupt::Interrupts;
use crate::report::{Outcome, Report};
use crate::text::Text;

/// Show what a runner has logged
///
/// Example: tenure runners logs --follow
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The runner, by its id or a beginning of it (default: this project's latest)
    id: Option<String>,
    /// Go on as it is written
    #[arg(short, long)]
    follow: bool,
    /// Of every runner
    #[arg(long, conflicts_with_all = ["id", "follow"])]
    all: bool,
    /// How many lines at most
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

const POLL: Duration = Duration::from_millis(200);
/// The maximum number of bytes read from the end of a log.
const MOST: u64 = 4 * 1024 * 1024;

pub(super) fn run(app: &mut App<'_>, args: Args) -> Outcome<Option<Answer>> {
    let chosen = choose(app, &args)?;
    let mut lines: Vec<(String, String)> = Vec::new();
    for known in &chosen {
        let short: String = known.runner.id.chars().take(8).collect();
        let path = known.runner.log_path.clone().map(PathBuf::from);
        let text = path.and_then(|path| File::open(path).ok()).map(|f| end_of(f, MOST).0).unwrap_or_default();
        lines.extend(text.lines().map(|line| (short.clone(), line.to_owned())));
    }
    if args.all {
        // Each line begins with its time, so this sorts by time.
        lines.sort_by(|a, b| a.1.cmp(&b.1));
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
        tell(app, short, line);
    }
    let Some(known) = chosen.first() else { return Ok(None) };
    follow(app, known)
}

fn tell(app: &mut App<'_>, short: &str, line: &str) {
    let mut text = Text::new();
    text.line(line);
    app.printer.stream(&json!({"runner": short, "line": line}), &text);
}

fn follow(app: &mut App<'_>, known: &KnownRunner) -> Outcome<Option<Answer>> {
    let short: String = known.runner.id.chars().take(8).collect();
    let path = PathBuf::from(known.runner.log_path.clone().unwrap_or_default());
    let interrupts = Interrupts::listen().map_err(Report::from)?;
    let mut at = File::open(&path).and_then(|f| f.metadata()).map_or(0, |m| m.len());
    let begun = std::time::Instant::now();
    loop {
        if app.global.timeout.is_some_and(|limit| begun.elapsed() >= limit) {
            return Ok(None);
        }
        interrupts.wait(POLL);
        if let Some(code) = interrupts.caught() {
            return Err(Report::interrupted(code).silent());
        }
        let Ok(mut file) = File::open(&path) else { continue };
        if file.seek(SeekFrom::Start(at)).is_err() {
            continue;
        }
        let mut new = Vec::new();
        if file.take(MOST).read_to_end(&mut new).is_err() {
            continue;
        }
        // Only whole lines; the rest follows with the next read.
        let whole = new.iter().rposition(|b| *b == b'\n').map_or(0, |last| last + 1);
        at += whole as u64;
        for line in String::from_utf8_lossy(&new[..whole]).lines() {
            tell(app, &short, line);
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

fn choose(app: &App<'_>, args: &Args) -> Outcome<Vec<KnownRunner>> {
    let home = app.home()?;
    let all = match Directory::open_existing(&home, app.env.clock.clone())? {
        Some(directory) => super::list::known(app, &directory)?,
        None => Vec::new(),
    };
    if args.all {
        return Ok(all);
    }
    let nothing = || {
        Report::new(ErrorCode::RunnerNotFound, "there is no such runner")
            .hint("see them all", "tenure runners list")
    };
    let mut fitting = match &args.id {
        Some(id) => all.into_iter().filter(|k| k.runner.id.starts_with(id.as_str())).collect::<Vec<_>>(),
        None => {
            let here = app.find()?.paths.root.to_string_lossy().into_owned();
            all.into_iter().filter(|k| k.runner.project_path == here).collect()
        }
    };
    if fitting.is_empty() {
        return Err(nothing());
    }
    fitting.truncate(1);
    Ok(fitting)
}
