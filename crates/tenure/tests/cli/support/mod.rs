//! A separate environment for every test: an empty HOME in a temporary folder, a clock and ids that the test controls, no
//! terminal, a fixed host and user.
//!
//! [`TestEnv::run`] calls the program in this process, so that its output is the same on every run and machine.
//! [`TestEnv::process`] starts the real binary, for what only a process can show.

mod ran;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tenure::{Env, Output};
use tenure_core::holder::ThisMachine;

pub(crate) use ran::{Ran, Sink};
use tenure_testkit::{CountingIds, ManualClock};

#[derive(Debug)]
pub(crate) struct TestEnv {
    /// Removed with everything in it when the test ends.
    _folder: TempDir,
    /// Without symbolic links, as the program shows it.
    root: PathBuf,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) env: Env,
    pub(crate) on_terminal: bool,
    /// Columns of the simulated terminal.
    pub(crate) width: usize,
}

impl TestEnv {
    /// An empty folder `work`, which is not a project, beside an empty HOME.
    pub(crate) fn new() -> Self {
        let folder = temporary_folder();
        let root = folder.path().canonicalize().unwrap();
        for name in ["home", "work", "run"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        let clock = Arc::new(ManualClock::default());
        let mut vars: BTreeMap<OsString, OsString> = [("HOME", "home"), ("XDG_RUNTIME_DIR", "run")]
            .map(|(name, below)| (OsString::from(name), root.join(below).into_os_string()))
            .into();
        // Tests edit configurations by hand, so they trust every project. Tests about trust remove this
        // variable.
        vars.insert("TENURE_TRUST".into(), "1".into());
        vars.insert("TZ".into(), "UTC".into());
        let env = Env {
            vars,
            cwd: root.join("work"),
            terminal: None,
            terminal_leader: None,
            input_is_terminal: false,
            user: "ann".to_owned(),
            hostname: "box".to_owned(),
            clock: clock.clone(),
            ids: Arc::new(CountingIds::default()),
            judge: Arc::new(ThisMachine),
        };
        Self { _folder: folder, root, clock, env, on_terminal: false, width: 100 }
    }

    /// With a project called `shop` in `work`.
    pub(crate) fn project() -> Self {
        let env = Self::new();
        env.ok(&["init", "--name", "shop"]);
        env
    }

    /// A path below the test's folder.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    pub(crate) fn write(&self, below: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The same environment, seen from another folder.
    pub(crate) fn cd(&mut self, below: &str) -> &mut Self {
        self.env.cwd = self.path(below);
        std::fs::create_dir_all(&self.env.cwd).unwrap();
        self
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) -> &mut Self {
        self.env.vars.insert(name.into(), value.into());
        self
    }

    pub(crate) fn unset(&mut self, name: &str) -> &mut Self {
        self.env.vars.remove(&OsString::from(name));
        self
    }

    pub(crate) fn later(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Runs one command line in this process.
    pub(crate) fn run<S: AsRef<str>>(&self, words: &[S]) -> Ran {
        let mut args = vec![OsString::from("tenure")];
        args.extend(words.iter().map(|word| OsString::from(word.as_ref())));
        self.run_os(&args)
    }

    pub(crate) fn run_os(&self, args: &[OsString]) -> Ran {
        let (out, err) = (Sink::default(), Sink::default());
        let mut output = Output {
            out: Box::new(out.clone()),
            err: Box::new(err.clone()),
            out_is_terminal: self.on_terminal,
            err_is_terminal: self.on_terminal,
            width: self.width,
            height: 24,
        };
        let code = tenure::run_with(args, &self.env, &mut output);
        self.ran(args, i32::from(code), &out.bytes(), &err.bytes())
    }

    /// Runs it with `--json`.
    pub(crate) fn json<S: AsRef<str>>(&self, words: &[S]) -> Ran {
        let mut args = vec!["--json"];
        args.extend(words.iter().map(AsRef::as_ref));
        self.run(&args)
    }

    /// Runs it and expects success.
    pub(crate) fn ok<S: AsRef<str>>(&self, words: &[S]) -> Ran {
        let ran = self.run(words);
        assert_eq!(ran.code, 0, "{ran}");
        ran
    }

    /// The real binary in this environment, with the machine's own clock and random ids.
    pub(crate) fn process<S: AsRef<str>>(&self, words: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.args(words.iter().map(AsRef::as_ref));
        command.env_clear().envs(&self.env.vars).current_dir(&self.env.cwd);
        command.stdin(std::process::Stdio::null());
        command
    }

    /// Runs the real binary to its end.
    pub(crate) fn finish(&self, mut command: Command) -> Ran {
        let output = command.output().unwrap();
        let args: Vec<OsString> = command.get_args().map(OsString::from).collect();
        self.ran(&args, output.status.code().unwrap_or(-1), &output.stdout, &output.stderr)
    }

    fn ran(&self, args: &[OsString], code: i32, out: &[u8], err: &[u8]) -> Ran {
        let words: Vec<_> = args.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Ran::new(words.join(" "), code, out, err, &self.root)
    }

    /// Everything below the test's folder by path: the bytes of each file, the target of each link. Leaves out SQLite's
    /// shared memory, which readers write as well.
    pub(crate) fn snapshot(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        collect(&self.root, &mut found);
        found
    }
}

/// In memory if possible: the tests commit thousands of times, and do not test the disk.
fn temporary_folder() -> TempDir {
    let mut builder = tempfile::Builder::new();
    builder.prefix("tenure-cli-");
    builder.tempdir_in("/dev/shm").or_else(|_| builder.tempdir()).unwrap()
}

fn collect(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_dir() {
            found.insert(path.clone(), Vec::new());
            collect(&path, found);
        } else if kind.is_symlink() {
            found.insert(
                path.clone(),
                std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
            );
        } else if kind.is_file() && !path.to_string_lossy().ends_with("-shm") {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
}
