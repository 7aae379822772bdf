//! Many processes that write at once: does everybody get a turn?

use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_core::store::Store;
use tenure_sqlite::SqliteStore;

use super::ground::{Running, agent, claim, claimable, release, tasks_for};
use super::{Bench, failed, float};
use crate::answer::Answer;
use crate::app::App;
use crate::report::Outcome;
use crate::scratch::cannot_run;
use crate::text::Text;

pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Outcome<()> {
    for writers in [8, 32] {
        at_once(bench, writers)?;
    }
    Ok(())
}

fn at_once(bench: &mut Bench<'_, '_>, writers: usize) -> Outcome<()> {
    let time = Duration::from_millis(if bench.quick { 500 } else { 5000 });
    let ground = bench.ground(tasks_for(writers))?;
    let database = ground.scratch.database();
    let start = |key: String| {
        let words =
            ["bench", "--json", "--writer", &database.to_string_lossy(), &key, &time.as_millis().to_string()];
        let mut command = ground.scratch.command(&words);
        Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))
    };
    let mut all: Vec<Running> = claimable().take(writers).map(start).collect::<Outcome<_>>()?;
    for writer in &mut all {
        let mut input = writer.0.stdin.take().ok_or_else(|| failed("no pipe to a writer"))?;
        input.write_all(b"go\n").map_err(cannot_run)?;
    }
    let shares: Vec<u64> = all.iter_mut().map(share).collect::<Outcome<_>>()?;
    bench.go_on()?;
    let slowest = float(shares.iter().copied().min().unwrap_or(0));
    let fastest = float(shares.iter().copied().max().unwrap_or(0));
    let rate = 2.0 * float(shares.iter().sum()) / time.as_secs_f64();
    bench.table.told(format!("{writers} writers, transactions in all"), rate, "/s");
    bench.table.at_least(
        format!("{writers} writers, share of slowest ÷ fastest"),
        slowest / fastest,
        "×",
        0.25,
    );
    Ok(())
}

fn share(writer: &mut Running) -> Outcome<u64> {
    let mut said = String::new();
    if let Some(mut output) = writer.0.stdout.take() {
        output.read_to_string(&mut said).map_err(cannot_run)?;
    }
    writer.wait()?;
    let answer: Value = serde_json::from_str(&said).map_err(failed)?;
    answer["data"]["rounds"].as_u64().ok_or_else(|| failed(format!("a writer said {said}")))
}

/// Claims and releases until the time is up, then says how often.
pub(super) fn write(app: &mut App<'_>, database: &str, key: &str, time: &str) -> Outcome<Answer> {
    let store = SqliteStore::open(Path::new(database), app.store_options())?;
    let (store, caller): (Box<dyn Store>, _) = (Box::new(store), agent(key));
    let time = Duration::from_millis(time.parse().map_err(failed)?);
    // All begin at once: when the line on standard input comes.
    std::io::stdin().read_line(&mut String::new()).map_err(failed)?;
    let end = Instant::now() + time;
    let mut rounds = 0_u64;
    while Instant::now() < end {
        claim(store.as_ref(), &caller, key)?;
        release(store.as_ref(), &caller, key)?;
        rounds += 1;
    }
    let mut text = Text::new();
    text.line(rounds.to_string());
    Ok(Answer::new(json!({"rounds": rounds}), text))
}
