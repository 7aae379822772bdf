//! Runs a verb of the board as a command of this program, in a separate process, so that the board stays
//! responsive.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::fd::{AsFd, BorrowedFd};
use tenure_runner::{LocalStream, local_pair};

use super::state::Notice;
use super::verbs::typed;

/// The commands that were started, and their results.
#[derive(Debug)]
pub(super) struct Verbs {
    binary: PathBuf,
    root: PathBuf,
    config: Option<PathBuf>,
    bell: LocalStream,
    ring: LocalStream,
    sender: Sender<Notice>,
    results: Receiver<Notice>,
}

impl Verbs {
    pub(super) fn new(root: &Path, config: Option<PathBuf>) -> std::io::Result<Self> {
        let (bell, ring) = local_pair()?;
        bell.set_nonblocking(true)?;
        let (sender, results) = channel();
        let binary = crate::own_binary()?;
        Ok(Self { binary, root: root.to_owned(), config, bell, ring, sender, results })
    }

    /// Readable when a command has ended.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// The results since the last call.
    pub(super) fn results(&self) -> Vec<Notice> {
        let mut buffer = [0; 16];
        let _ = (&self.bell).read(&mut buffer);
        self.results.try_iter().collect()
    }

    /// Starts a command, which cannot write to the terminal. `input` is its standard input, and is removed if the command
    /// succeeds.
    pub(super) fn start(&self, args: Vec<String>, input: Option<PathBuf>) -> std::io::Result<()> {
        let mut command = Command::new(&self.binary);
        command.arg("-C").arg(&self.root);
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        let read = input.as_ref().map(File::open).transpose()?.map_or_else(Stdio::null, Stdio::from);
        command.args(&args).env_remove("TENURE_JSON").stdin(read);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let (sender, mut ring) = (self.sender.clone(), self.ring.try_clone()?);
        let wait = move || {
            let mut notice = match command.output() {
                Ok(output) => notice(&args, output.status.success(), &output.stdout, &output.stderr),
                Err(error) => Notice::bad(format!("cannot start tenure: {error}")),
            };
            match input {
                Some(file) if notice.is_good => drop(fs::remove_file(file)),
                Some(file) => notice.text = format!("your text is in {}: {}", file.display(), notice.text),
                None => {}
            }
            // If the board has ended, no one reads the result.
            let _ = sender.send(notice);
            let _ = ring.write_all(&[0]);
        };
        std::thread::Builder::new().name("verb".into()).spawn(wait).map(drop)
    }
}

/// The result in one line: the command as it would be typed, and the first line of what it printed.
fn notice(args: &[String], is_good: bool, out: &[u8], err: &[u8]) -> Notice {
    let printed = String::from_utf8_lossy(if is_good { out } else { err }).into_owned();
    let first = printed.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let text = format!("{first}   $ {}", typed(args));
    if is_good { Notice::good(text) } else { Notice::bad(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_the_first_line_and_the_command() {
        let args = ["tasks", "add", "--", "two words", "--if-fence=1"].map(str::to_owned);
        let good = notice(&args, true, b"\nAdded T1  two words\n  more\n", b"");
        assert_eq!(good, Notice::good("Added T1  two words   $ tenure tasks add '--' 'two words'"));
        let bad = notice(&args[..1], false, b"ignored", b"Error: no\n\nTry: x");
        assert_eq!(bad, Notice::bad("Error: no   $ tenure tasks"));
    }
}
