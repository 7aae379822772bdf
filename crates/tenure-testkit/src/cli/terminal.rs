//! Real terminals of a fixed size, run by tmux: what a person sees, and the keys that a person types.
//!
//! Each terminal has its own tmux server, which is killed on drop, and a shell whose prompt is `$ `. The shell has the
//! variables of the sandbox and no configuration of the user.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Sandbox, until};

#[derive(Debug)]
pub struct Terminal {
    socket: String,
    /// The shell appends a character to it before each prompt.
    prompts: PathBuf,
}

impl Terminal {
    /// Opens a terminal in a folder. `name` is unique among the terminals of the sandbox.
    pub fn open(sandbox: &Sandbox, name: &str, folder: &Path, (columns, rows): (u16, u16)) -> Self {
        let socket = sandbox.path("run").join(format!("{name}.tmux")).to_str().unwrap().to_owned();
        let prompts = sandbox.path("run").join(format!("{name}.prompts"));
        let terminal = Self { socket, prompts };
        let mut command = Command::new("tmux");
        sandbox.surround(&mut command);
        command
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env("SHELL", "/bin/sh")
            .env("HISTFILE", "")
            .env("TZ", "UTC");
        let (columns, rows) = (columns.to_string(), rows.to_string());
        command.args(["-S", &terminal.socket, "-f", "/dev/null", "new-session", "-d"]);
        command.args(["-x", &columns, "-y", &rows, "-c"]).arg(folder);
        let count = format!("PROMPT_COMMAND=printf . >>'{}'", terminal.prompts.display());
        command.args(["env", "PS1=$ ", &count, "bash", "--norc", "--noprofile"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        // Without the status line the whole height belongs to the program.
        terminal.tmux(&["set", "-g", "status", "off"]);
        terminal.tmux(&["set", "-g", "escape-time", "0"]);
        until("the shell shows its prompt", || terminal.prompts_shown() == 1 && terminal.is_idle());
        terminal
    }

    /// Types a line and waits until the shell shows its prompt again.
    #[track_caller]
    pub fn run(&self, line: &str) {
        let before = self.prompts_shown();
        self.start(line);
        until(&format!("`{line}` has ended"), || self.prompts_shown() > before && self.is_idle());
    }

    /// Types a line and returns at once.
    pub fn start(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.tmux(&["send-keys", "Enter"]);
    }

    /// Waits for the prompt after a line that was started.
    #[track_caller]
    pub fn wait_until_idle(&self) {
        until("the prompt is back", || self.is_idle());
    }

    /// Whether the last line on the screen is an empty prompt.
    fn is_idle(&self) -> bool {
        let screen = self.screen();
        screen.lines().rev().find(|line| !line.trim().is_empty()).is_some_and(|line| line.trim_end() == "$")
    }

    fn prompts_shown(&self) -> u64 {
        std::fs::metadata(&self.prompts).map_or(0, |file| file.len())
    }

    /// Presses keys by tmux's names: `C-c`, `Enter`, `q`, `Up`.
    pub fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        until(&format!("the screen shows {text:?}; it shows\n{}", self.screen()), || {
            self.screen().contains(text)
        });
    }

    /// The characters on the screen.
    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The characters on the screen with their colours, as escape sequences.
    pub fn coloured_screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    pub fn resize(&self, (columns, rows): (u16, u16)) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// Clears the screen and the scrollback.
    pub fn clear(&self) {
        self.run("clear");
        self.tmux(&["clear-history"]);
    }

    fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux").args(["-S", &self.socket]).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
