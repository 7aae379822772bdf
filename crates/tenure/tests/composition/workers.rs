//! Agents at the command line: they claim by name or take the next task, wait, renew, finish, release, evict, and run
//! commands under a lease.

use tenure_testkit::cli::Dice;

use crate::history::{Call, now};
use crate::storm::{EMPTY, PARALLEL, Request, SERIAL, Storm};

/// A worker's next command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Claim,
    ClaimWaiting,
    Next,
    NextWaiting,
    Reclaim,
    Renew,
    Release,
    Done,
    /// With the fence of a lease that has had time to expire.
    LateDone,
    Evict,
    CleanUp,
    Run,
}

/// The relative frequency of each command.
const ODDS: &[(Verb, usize)] = &[
    (Verb::Claim, 2),
    (Verb::ClaimWaiting, 6),
    (Verb::Next, 2),
    (Verb::NextWaiting, 5),
    (Verb::Reclaim, 1),
    (Verb::Renew, 2),
    (Verb::Release, 5),
    (Verb::Done, 3),
    (Verb::LateDone, 3),
    (Verb::Evict, 1),
    (Verb::CleanUp, 1),
    (Verb::Run, 5),
];

/// In milliseconds.
const LONGEST_TTL: i64 = 3000;

/// A lease that the worker believes it holds.
#[derive(Debug, Clone)]
struct Held {
    key: String,
    fence: i64,
    /// As `--lease` takes it. Unknown if the answer to the grant was lost.
    proof: Option<String>,
    since: i64,
}

#[derive(Debug)]
struct Worker<'a> {
    storm: &'a Storm,
    name: &'a str,
    dice: Dice,
    held: Vec<Held>,
}

pub(crate) fn work(storm: &Storm, name: &str) {
    let mut worker = Worker { storm, name, dice: storm.dice(name), held: Vec::new() };
    let verbs: Vec<Verb> = ODDS.iter().flat_map(|(verb, odds)| std::iter::repeat_n(*verb, *odds)).collect();
    while !storm.is_calm() {
        let verb = *worker.dice.pick(&verbs);
        worker.act(verb);
    }
    // This worker helps to complete the remaining tasks.
    while !storm.is_over() {
        if worker.held.is_empty() {
            worker.act(Verb::NextWaiting);
        } else {
            worker.act(Verb::Done);
        }
    }
}

impl Worker<'_> {
    fn act(&mut self, verb: Verb) {
        let needs_lease =
            matches!(verb, Verb::Reclaim | Verb::Renew | Verb::Release | Verb::Done | Verb::LateDone);
        let held = if needs_lease { self.one_held(verb) } else { None };
        if needs_lease && held.is_none() {
            return;
        }
        let Some(key) = held.as_ref().map_or_else(|| self.some_key(verb), |held| Some(held.key.clone()))
        else {
            return self.storm.pause(50);
        };
        let request = self.request(verb, &key, held.as_ref());
        let (mut call, answer) = self.storm.call(&request, &mut self.dice);
        if call.code == Some(0) {
            self.note_success(verb, held.as_ref(), &answer, &mut call);
        }
        self.storm.record(call);
    }

    /// The task of a claim. Most of those that wait are for the few tasks that other workers hold.
    fn some_key(&mut self, verb: Verb) -> Option<String> {
        let held = if verb == Verb::ClaimWaiting && !self.dice.one_in(4) {
            self.storm.some_held_key(&mut self.dice)
        } else {
            None
        };
        held.or_else(|| self.storm.some_key(&mut self.dice))
    }

    /// A lease to act on. Only a renewal and a second claim keep it.
    fn one_held(&mut self, verb: Verb) -> Option<Held> {
        let index = self.dice.below(self.held.len().max(1) as u64);
        let index = usize::try_from(index).unwrap();
        match verb {
            Verb::LateDone => {
                let index = self.held.iter().position(|held| held.since + LONGEST_TTL < now())?;
                Some(self.give_up(index))
            }
            Verb::Reclaim | Verb::Renew => self.held.get(index).cloned(),
            _ => (index < self.held.len()).then(|| self.give_up(index)),
        }
    }

    fn give_up(&mut self, index: usize) -> Held {
        let held = self.held.swap_remove(index);
        self.storm.note_given_up(&held.key);
        held
    }

    fn request(&mut self, verb: Verb, key: &str, held: Option<&Held>) -> Request {
        let ttl = format!("{}s", 1 + self.dice.below(3));
        let wait = format!("{}s", 1 + self.dice.below(3));
        let (name, words): (&'static str, Vec<&str>) = match verb {
            Verb::Claim | Verb::Reclaim => ("claim", vec!["tasks", "claim", key, "--ttl", &ttl]),
            Verb::ClaimWaiting => ("claim", vec!["tasks", "claim", key, "--ttl", &ttl, "--wait", &wait]),
            Verb::Next => ("next", vec!["tasks", "next", "--claim", "--ttl", &ttl]),
            Verb::NextWaiting => ("next", vec!["tasks", "next", "--claim", "--ttl", &ttl, "--wait", &wait]),
            Verb::Renew => ("renew", vec!["tasks", "renew", key]),
            Verb::Release => ("release", vec!["tasks", "release", key]),
            Verb::Done | Verb::LateDone => ("done", vec!["tasks", "done", key]),
            Verb::Evict => ("evict", vec!["locks", "release", key, "--force"]),
            Verb::CleanUp => ("cleanup", vec!["locks", "cleanup"]),
            Verb::Run => ("run", vec!["tasks", "run", key, "--ttl", &ttl]),
        };
        let mut request = Request::new(self.name, name, &[&["--json"], words.as_slice()].concat());
        request.presents =
            held.filter(|_| self.dice.one_in(2) || verb == Verb::LateDone).map(|held| held.fence);
        let presents = held.filter(|_| request.presents.is_some());
        let mut more = |words: &[&str]| request.words.extend(words.iter().map(|word| (*word).to_owned()));
        if let Some(held) = presents {
            match held.proof.as_ref().filter(|_| self.dice.one_in(2)) {
                Some(proof) => more(&["--lease", proof]),
                None => more(&["--fence", &held.fence.to_string()]),
            }
        }
        more(&["--agent", self.name]);
        if name == "run" {
            let tick = if self.dice.one_in(2) { "do: ticking\n" } else { "" };
            let seconds = format!("0.{}", self.dice.below(6));
            let steps = format!("do: journal begin\n{tick}do: sleep {seconds}\ndo: journal ok\n");
            let agent = self.storm.project.shared("pretend-agent.sh");
            let folder = format!("PRETEND={}", self.storm.project.path("agent").display());
            let script = "printf %s \"$1\" | \"$0\"";
            more(&["--", "env", &folder, "sh", "-c", script, &agent.display().to_string(), &steps]);
        }
        if name == "next" && !self.storm.is_calm() {
            request.section = *self.dice.pick(&[None, None, Some(SERIAL), Some(PARALLEL), Some(EMPTY)]);
            request
                .words
                .extend(request.section.iter().flat_map(|section| ["--section", section]).map(str::to_owned));
        }
        request
    }

    fn note_success(
        &mut self,
        verb: Verb,
        held: Option<&Held>,
        answer: &tenure_testkit::cli::Answer,
        call: &mut Call,
    ) {
        if verb == Verb::Run {
            return;
        }
        let data = &answer.json()["data"];
        match verb {
            Verb::Claim | Verb::ClaimWaiting | Verb::Next | Verb::NextWaiting => {
                let key = data["task"]["key"].as_str().unwrap().to_owned();
                let (fence, lease) = (call.granted.unwrap(), &data["lease"]);
                let index = self.held.iter().position(|held| held.key == key);
                let before = index.map(|index| self.give_up(index)).filter(|held| held.fence == fence);
                // The key of a lease that it held already is not repeated.
                let proof = match (lease["leaseId"].as_str(), lease["leaseKey"].as_str()) {
                    (Some(id), Some(key)) => Some(format!("{id}-{key}")),
                    _ => before.and_then(|held| held.proof),
                };
                self.storm.note_held(&key);
                self.held.push(Held { key, fence, proof, since: now() });
            }
            Verb::Done | Verb::LateDone => call.finished = data["changed"] == true,
            Verb::Reclaim => call.reacquired_from = held.map(|held| held.fence),
            _ => {}
        }
    }
}
