//! The pager: shows output that is longer than the terminal, as git does.
//!
//! Guarantees: there is a pager only for a person at a terminal. Without one, or if it cannot be started, output is printed
//! directly.

use std::io::Write as _;
use std::process::{Child, Command, ExitStatus, Stdio};

use signal_hook::SigId;
use signal_hook::consts::SIGINT;

use crate::cli::Global;
use crate::env::Env;
use crate::supervised;

const DEFAULT: &str = "less";
/// Quit if the text fits on one screen, show colours, and leave the text on the screen.
const LESS_OPTIONS: &str = "FRX";
/// Formats a manual page from its input, and shows it in a pager of its own.
const MANUAL: &str = "man -l -";
/// The exit codes of a `man` that does not know the option, or that lacks what it needs.
const CANNOT_SHOW: [i32; 3] = [1, 2, 64];
/// A command that contains one of these is run by the shell.
const SHELL_CHARACTERS: &[char] =
    &['|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '"', '\'', '*', '?', '[', '#', '~', '='];

/// The command line of the pager.
#[derive(Debug, Clone)]
pub(crate) struct Pager {
    command: String,
    sets_less: bool,
    cwd: std::path::PathBuf,
}

impl Pager {
    /// The pager of the person who runs this command: `TENURE_PAGER`, else `PAGER`, else `less`. `None` for agents and
    /// programs, and if a variable is empty or `cat`.
    pub(crate) fn of(env: &Env, global: &Global) -> Option<Self> {
        let is_dumb = env.var("TERM").is_none_or(|terminal| terminal == "dumb");
        if global.no_pager || global.json || is_dumb || env.flag("CI") || is_agent(env) {
            return None;
        }
        let named = |name: &str| env.vars.get(std::ffi::OsStr::new(name)).and_then(|value| value.to_str());
        let command = named("TENURE_PAGER").or_else(|| named("PAGER")).unwrap_or(DEFAULT).trim();
        if command.is_empty() || command == "cat" {
            return None;
        }
        Some(Self { command: command.to_owned(), sets_less: env.var("LESS").is_none(), cwd: env.cwd.clone() })
    }

    /// Shows a manual page with `man`. `false` if it cannot be started or does not read pages from its input.
    pub(crate) fn show_manual(&self, page: &str) -> bool {
        let man = Self { command: MANUAL.to_owned(), sets_less: false, cwd: self.cwd.clone() };
        let Some(mut paging) = man.start() else { return false };
        paging.write(page);
        // A `man` that was left by a key or ended by a signal has shown the page.
        paging.end().is_none_or(|status| !status.code().is_some_and(|code| CANNOT_SHOW.contains(&code)))
    }

    /// Starts the pager, which then reads the text to show. `None` if it cannot be started.
    pub(crate) fn start(&self) -> Option<Paging> {
        let mut words = self.command.split_whitespace();
        let mut command = if self.command.contains(SHELL_CHARACTERS) {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(&self.command);
            shell
        } else {
            let mut direct = Command::new(words.next()?);
            direct.args(words);
            direct
        };
        if self.sets_less {
            command.env("LESS", LESS_OPTIONS);
        }
        // Ctrl+C belongs to the pager. Without a handler it would end this process and leave the terminal to both.
        let interrupts = signal_hook::flag::register(SIGINT, std::sync::Arc::default()).ok()?;
        match command.current_dir(&self.cwd).stdin(Stdio::piped()).spawn() {
            Ok(child) => Some(Paging { child, interrupts }),
            Err(_) => {
                signal_hook::low_level::unregister(interrupts);
                None
            }
        }
    }
}

/// Whether an agent runs this command. Nobody reads an agent's terminal.
fn is_agent(env: &Env) -> bool {
    supervised::role(env).is_some()
        || ["TENURE_AGENT", "TENURE_ATTEMPT"].into_iter().any(|name| env.var(name).is_some())
        || tenure_runner::preset::agent_session_variable(|name| env.var(name).is_some()).is_some()
}

/// A running pager. Dropping it waits until the user has quit it.
#[derive(Debug)]
pub(crate) struct Paging {
    child: Child,
    interrupts: SigId,
}

impl Paging {
    /// A failed write is ignored: the user has quit the pager.
    pub(crate) fn write(&mut self, text: &str) {
        if let Some(input) = &mut self.child.stdin
            && input.write_all(text.as_bytes()).is_err()
        {
            self.child.stdin = None;
        }
    }

    /// Waits until its user has left it.
    fn end(&mut self) -> Option<ExitStatus> {
        self.child.stdin = None;
        self.child.wait().ok()
    }
}

impl Drop for Paging {
    fn drop(&mut self) {
        self.end();
        signal_hook::low_level::unregister(self.interrupts);
    }
}
