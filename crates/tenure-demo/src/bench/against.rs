//! Races and claims, alternating with another tool, so that a comparison can be repeated on any machine.
//!
//! Exactly one claim should win each race, whatever the tool. A tool is run as its documentation describes, in a temporary
//! folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::Value;
use tenure_core::holder::Incarnation;
use tenure_core::id::TaskId;
use tenure_core::kernel::{self, Terms, Verdict};
use tenure_core::reference;
use tenure_core::store::{Durability, Store};

use super::child::{ChildProcess, run_time};
use super::fixture::{Fixture, agent, claim, claimable_keys, context, task_key, tasks_for};
use super::raw_claims::RawClaims;
use super::statistics::median;
use super::{Bench, to_float};
use crate::temp_project::TempProject;
use crate::{Error, Result};

/// How many claims take part in a race.
const RACERS: usize = 8;
/// How long to wait until at most one `flock` process is left.
const FLOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// What to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    Lodestar,
    Beads,
    Flock,
    /// The rows of a claim, written with SQLite alone.
    RawSqlite,
}

impl Rival {
    fn name(self) -> &'static str {
        match self {
            Self::Lodestar => "lodestar",
            Self::Beads => "bd",
            Self::Flock => "flock",
            Self::RawSqlite => "raw SQLite",
        }
    }

    fn install(self) -> &'static str {
        match self {
            Self::Lodestar => "pip install lodestar-cli",
            Self::Beads => "npm install --global @beads/bd",
            Self::Flock => "sudo apt-get install util-linux",
            Self::RawSqlite => "",
        }
    }
}

impl Bench<'_> {
    /// Races for one task, and the time of one claim: tenure against `rival`. Fails if the rival is not installed.
    pub fn against(&mut self, rival: Rival) -> Result<()> {
        let races = self.rounds(30);
        let count = 2 * races;
        let (fixture, folder) = (self.fixture(tasks_for(count))?, TempProject::new(self.program, "bench")?);
        let keys: Vec<String> = claimable_keys().take(count).collect();
        let ours: Box<dyn Contender + '_> = match rival {
            Rival::RawSqlite => Box::new(InProcess { fixture: &fixture, keys, store: fixture.store()? }),
            _ => Box::new(Processes {
                folder: &fixture.project,
                claim: |folder, key, name| folder.command(&["task", "claim", key, "--agent", name]),
                tasks: keys,
                agents: agents(),
            }),
        };
        let theirs = contender(rival, &folder, count)?;
        let both = [("tenure", ours.as_ref()), (rival.name(), theirs.as_ref())];
        let (mut fair, mut times) = ([0_u64; 2], [Vec::new(), Vec::new()]);
        for number in 0..count {
            for (at, (_, contender)) in both.iter().enumerate() {
                if number < races {
                    fair[at] += u64::from(contender.race(number)? == 1);
                } else {
                    times[at].push(contender.claim(number)?);
                }
            }
            self.check_interrupts()?;
        }
        let races_run = to_float(u64::try_from(races).unwrap_or(u64::MAX));
        for ((name, _), fair) in both.iter().zip(fair) {
            let what = format!("races of {RACERS} with one winner, {name}");
            match *name {
                "tenure" => self.results.at_least(what, to_float(fair) / races_run, "×", 1.0),
                _ => self.results.add(what, to_float(fair) / races_run, "×"),
            }
        }
        let [ours, theirs] = times.each_mut().map(|times| median(times));
        let kind = if rival == Rival::RawSqlite { "in this process" } else { "whole process" };
        self.results.add(format!("one claim, {kind}, tenure"), ours * 1000.0, "ms");
        self.results.add(format!("one claim, {kind}, {}", rival.name()), theirs * 1000.0, "ms");
        self.results.add(format!("one claim, {} ÷ tenure", rival.name()), theirs / ours, "×");
        Ok(())
    }
}

/// A tool with enough tasks.
trait Contender {
    /// Claims a task several times at once, and returns how many of the claims succeeded.
    fn race(&self, task: usize) -> Result<usize>;
    /// The time of one claim, which succeeds.
    fn claim(&self, task: usize) -> Result<Duration>;
}

fn contender(rival: Rival, folder: &TempProject, count: usize) -> Result<Box<dyn Contender + '_>> {
    if rival == Rival::RawSqlite {
        let path = folder.root().join("raw.db");
        return Ok(Box::new(RawSqlite { claims: RawClaims::create(&path, count)?, path }));
    }
    let program = installed(rival, folder)?;
    let run = |args: &[&str]| -> Result<String> {
        let mut command = folder.other_command(&program);
        let output = command.args(args).stdout(Stdio::piped()).output().map_err(Error::Spawn)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(Error::bench(format!("{} {} ended with {}", rival.name(), args.join(" "), output.status)))
    };
    let (mut tasks, mut agents) = (Vec::new(), agents());
    match rival {
        Rival::Flock => {
            tasks.extend((1..=count).map(task_key));
            return Ok(Box::new(Flock { folder, program, files: tasks }));
        }
        Rival::Lodestar => {
            run(&["init"])?;
            for name in &mut agents {
                let joined: Value = serde_json::from_str(&run(&["agent", "join", "--name", name, "--json"])?)
                    .map_err(Error::bench)?;
                let id = joined["data"]["agent_id"].as_str().or(joined["data"]["id"].as_str());
                id.ok_or_else(|| Error::bench("lodestar agent join printed no id"))?.clone_into(name);
            }
            for number in 1..=count {
                let key = task_key(number);
                run(&["task", "create", "--id", &key, "--title", &key, "--status", "ready"])?;
                tasks.push(key);
            }
        }
        Rival::Beads | Rival::RawSqlite => {
            // beads keeps its issues beside a git repository.
            let _ = folder.other_command(Path::new("git")).args(["init", "--quiet"]).status();
            run(&["init", "--prefix", "race"])?;
            for number in 1..=count {
                let created: Value = serde_json::from_str(&run(&["create", &task_key(number), "--json"])?)
                    .map_err(Error::bench)?;
                // bd 2 wraps the issue in an envelope, bd 1 does so on request.
                let id = created["data"]["id"].as_str().or(created["id"].as_str());
                let id = id.ok_or_else(|| Error::bench("bd create printed no id"))?;
                tasks.push(id.to_owned());
            }
        }
    }
    let claim: ClaimCommand = match rival {
        Rival::Lodestar => |folder, id, name| {
            let mut command = folder.other_command(Path::new("lodestar"));
            command.args(["task", "claim", id, "--agent", name]);
            command
        },
        _ => |folder, id, name| {
            let mut command = folder.other_command(Path::new("bd"));
            command.args(["update", id, "--claim", "--actor", name]);
            command
        },
    };
    Ok(Box::new(Processes { folder, claim, tasks, agents }))
}

/// The path of the tool's program.
fn installed(rival: Rival, folder: &TempProject) -> Result<PathBuf> {
    let path = folder.var("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let found =
        std::env::split_paths(&path).map(|entry| entry.join(rival.name())).find(|file| file.is_file());
    found.ok_or(Error::NotInstalled { tool: rival.name(), install: rival.install() })
}

fn agents() -> Vec<String> {
    (1..=RACERS).map(|number| format!("racer{number}")).collect()
}

/// The command that claims a task for an agent.
type ClaimCommand = fn(&TempProject, &str, &str) -> Command;

/// Claims by processes that end after the claim. A claim that succeeds exits with zero.
struct Processes<'a> {
    folder: &'a TempProject,
    claim: ClaimCommand,
    tasks: Vec<String>,
    agents: Vec<String>,
}

impl Contender for Processes<'_> {
    fn race(&self, task: usize) -> Result<usize> {
        let start =
            |agent: &String| ChildProcess::start(&mut (self.claim)(self.folder, &self.tasks[task], agent));
        let mut racers: Vec<ChildProcess> = self.agents.iter().map(start).collect::<Result<_>>()?;
        let mut won = 0;
        for racer in &mut racers {
            won += usize::from(racer.0.wait().map_err(Error::Spawn)?.success());
        }
        Ok(won)
    }

    fn claim(&self, task: usize) -> Result<Duration> {
        run_time((self.claim)(self.folder, &self.tasks[task], &self.agents[0])).map(|(wall, _)| wall)
    }
}

/// The lock of `flock(1)` ends with its process, so the winner of a race is the process that has not ended.
struct Flock<'a> {
    folder: &'a TempProject,
    program: PathBuf,
    files: Vec<String>,
}

impl Flock<'_> {
    fn command(&self, task: usize, held: &str) -> Command {
        let mut command = self.folder.other_command(&self.program);
        command.args(["--nonblock", &self.files[task], held]);
        command
    }
}

impl Contender for Flock<'_> {
    fn race(&self, task: usize) -> Result<usize> {
        let start = |_| ChildProcess::start(self.command(task, "cat").stdin(Stdio::piped()));
        let mut racers: Vec<ChildProcess> = (0..RACERS).map(start).collect::<Result<_>>()?;
        let deadline = Instant::now() + FLOCK_TIMEOUT;
        loop {
            let mut held = 0;
            for racer in &mut racers {
                held += usize::from(racer.0.try_wait().map_err(Error::Spawn)?.is_none());
            }
            if held <= 1 || Instant::now() > deadline {
                return Ok(held);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn claim(&self, task: usize) -> Result<Duration> {
        run_time(self.command(task, "/bin/true")).map(|(wall, _)| wall)
    }
}

/// Claims with SQLite alone, by threads of this process.
struct RawSqlite {
    claims: RawClaims,
    path: PathBuf,
}

impl Contender for RawSqlite {
    fn race(&self, task: usize) -> Result<usize> {
        let path = &self.path;
        race_in_threads(|_| {
            let take = || -> rusqlite::Result<bool> {
                let connection = Connection::open(path)?;
                connection.busy_timeout(Duration::from_secs(10))?;
                let sql = "UPDATE tasks SET status = 'in_progress' WHERE key = ?1 AND status = 'pending'";
                Ok(connection.execute(sql, [task_key(task + 1)])? == 1)
            };
            take().map_err(Error::bench)
        })
    }

    fn claim(&self, task: usize) -> Result<Duration> {
        let begun = Instant::now();
        self.claims.claim(&task_key(task + 1), task)?;
        Ok(begun.elapsed())
    }
}

/// tenure's transaction, by threads of this process.
struct InProcess<'a> {
    fixture: &'a Fixture,
    keys: Vec<String>,
    store: Box<dyn Store>,
}

impl Contender for InProcess<'_> {
    fn race(&self, task: usize) -> Result<usize> {
        let (fixture, key) = (self.fixture, &self.keys[task]);
        race_in_threads(|racer| {
            let store = fixture.store()?;
            let caller = agent(&format!("racer{racer}")).with_process(Incarnation::current());
            let verdict = store.write(Durability::Power, |tx| {
                let id = TaskId::new(reference::task(tx, key)?.id);
                kernel::acquire_task(tx, &context(), &caller, &id, &Terms::new(Duration::from_mins(15)))
            })?;
            Ok(matches!(verdict, Verdict::Granted(_)))
        })
    }

    fn claim(&self, task: usize) -> Result<Duration> {
        let begun = Instant::now();
        claim(self.store.as_ref(), &agent("racer"), &self.keys[task])?;
        Ok(begun.elapsed())
    }
}

/// How many threads succeed in `take`, which all call at once.
fn race_in_threads(take: impl Fn(usize) -> Result<bool> + Sync) -> Result<usize> {
    let barrier = std::sync::Barrier::new(RACERS);
    let results: Vec<Result<bool>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..RACERS)
            .map(|racer| {
                let (barrier, take) = (&barrier, &take);
                scope.spawn(move || {
                    barrier.wait();
                    take(racer)
                })
            })
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<bool>>| {
            thread.join().unwrap_or_else(|_| Err(Error::bench("a thread of a race has ended early")))
        };
        threads.into_iter().map(join).collect()
    });
    let won: Vec<bool> = results.into_iter().collect::<Result<_>>()?;
    Ok(won.into_iter().filter(|won| *won).count())
}
