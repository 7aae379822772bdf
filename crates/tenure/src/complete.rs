//! Shell completions: the words that may come next, including keys, names and ids of the project.
//!
//! A shell runs this program with the words of the line and the variable [`VARIABLE`]. Guarantees: nothing is written and
//! nothing is started. An untrusted store is not opened, and what a store does not answer within [`PATIENCE`] is not offered.

use std::ffi::{OsStr, OsString};
use std::sync::mpsc;
use std::time::Duration;

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;
use tenure_core::text::escape_line;

use crate::cli::Cli;
use crate::commands;
use crate::env::Env;
use crate::fast_parser::Definition;
use crate::verbs::Commands as _;

mod values;

use values::{Candidate, Values};

/// Names the shell that asks.
pub(crate) const VARIABLE: &str = "TENURE_COMPLETE";
/// How long a store may take.
const PATIENCE: Duration = Duration::from_millis(150);

/// A script in zsh's `fpath` is loaded by the first completion and must answer it as well.
const ZSH_AUTOLOAD: &str =
    "\nif [ \"$funcstack[1]\" = \"_tenure\" ]; then\n    _clap_dynamic_completer_tenure \"$@\"\nfi\n";

/// The script that makes a shell ask this program.
pub(crate) fn registration(shell: &str) -> std::io::Result<Vec<u8>> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let shell = shells.completer(shell).ok_or_else(|| std::io::Error::other("unknown shell"))?;
    shell.write_registration(VARIABLE, "tenure", "tenure", "tenure", &mut script)?;
    if shell.name() == "zsh" {
        script.extend(ZSH_AUTOLOAD.as_bytes());
    }
    Ok(script)
}

/// The answer to a shell, in its format. `None` if no shell asks.
pub(crate) fn answer(args: &[OsString], env: &Env) -> Option<Vec<u8>> {
    let shells = Shells::builtins();
    let shell = shells.completer(env.var(VARIABLE)?)?;
    let words: Vec<OsString> = args.iter().skip_while(|arg| *arg != "--").skip(1).cloned().collect();
    let mut answer = Vec::new();
    // Without an answer, the shell offers nothing.
    let index = env.var("_CLAP_COMPLETE_INDEX").and_then(|index| index.parse().ok());
    let index = index.unwrap_or(words.len().saturating_sub(1));
    let mut definition = definition(&words, index, env);
    let _ = shell.write_complete(&mut definition, words, Some(&env.cwd), &mut answer);
    Some(answer)
}

/// What is offered for the last of these words, of which the first is the name of the program.
pub fn complete(words: &[OsString], env: &Env) -> Vec<String> {
    let last = words.len().saturating_sub(1);
    let mut definition = definition(words, last, env);
    let candidates = clap_complete::engine::complete(&mut definition, words.to_vec(), last, Some(&env.cwd));
    let value = |candidate: CompletionCandidate| candidate.get_value().to_string_lossy().into_owned();
    candidates.unwrap_or_default().into_iter().map(value).collect()
}

/// All commands with the values of their arguments, for the completion of the word with this index.
fn definition(words: &[OsString], index: usize, env: &Env) -> Command {
    let wants_option = words.get(index).is_some_and(|word| word.as_encoded_bytes().starts_with(b"-"));
    let asked = Asked { words, wants_option, env };
    asked.prepare(Cli::command(), "", None, commands::Command::DEFINITIONS)
}

struct Asked<'a> {
    words: &'a [OsString],
    wants_option: bool,
    env: &'a Env,
}

impl Asked<'_> {
    fn prepare(
        &self,
        command: Command,
        path: &str,
        alias: Option<&'static str>,
        verbs: &[Definition],
    ) -> Command {
        // The engine offers one of a command's names, and hidden ones only if there is nothing else.
        let command = command.visible_alias(None).aliases(alias).disable_help_flag(!self.wants_option);
        let mut command = command.disable_version_flag(!self.wants_option).mut_args(|arg| {
            let is_option = arg.get_long().is_some();
            let arg = match Values::of(path, &arg, self.words) {
                Some(values) => completed(arg, values, self.words, self.env),
                None => arg,
            };
            // Options are offered only after a dash; otherwise the person is looking for a value.
            if is_option && !self.wants_option { arg.hide(true) } else { arg }
        });
        for verb in verbs {
            let path = if path.is_empty() { verb.name.to_owned() } else { format!("{path} {}", verb.name) };
            command =
                command.mut_subcommand(verb.name, |sub| self.prepare(sub, &path, verb.alias, verb.verbs));
        }
        command
    }
}

fn completed(arg: Arg, values: Values, words: &[OsString], env: &Env) -> Arg {
    let (words, env) = (words.to_vec(), env.clone());
    arg.add(ArgValueCompleter::new(move |current: &OsStr| {
        let Some(current) = current.to_str() else { return Vec::new() };
        let fits = |candidate: &Candidate| starts_with_ignoring_case(&candidate.value, current);
        let found = in_time(values, &words, &env);
        found.into_iter().filter(fits).map(shown).collect::<Vec<_>>()
    }))
}

/// Looks the values up on a thread, which ends with the process if it takes too long.
fn in_time(values: Values, words: &[OsString], env: &Env) -> Vec<Candidate> {
    if let Some(fixed) = values.fixed() {
        return fixed;
    }
    let (send, receive) = mpsc::channel();
    let (words, env) = (words.to_vec(), env.clone());
    std::thread::spawn(move || {
        // The receiver is gone if the lookup took too long.
        let _ = send.send(values.look_up(&words, &env, PATIENCE));
    });
    receive.recv_timeout(PATIENCE).ok().flatten().unwrap_or_default()
}

fn starts_with_ignoring_case(value: &str, start: &str) -> bool {
    value.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
}

/// Stored text may contain escape sequences, which must not reach the terminal.
fn shown(candidate: Candidate) -> CompletionCandidate {
    let help = candidate.help.map(|help| StyledStr::from(escape_line(&help).into_owned()));
    CompletionCandidate::new(candidate.value).help(help)
}
