//! Runs a document's command lines in a shell, in an empty folder with an empty home.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tenure_testkit::postgres::Cluster;

use crate::page::Step;

/// A command that runs longer has hung.
const HANG: Duration = Duration::from_mins(1);
/// A `crontab` that keeps its table in the page's home.
const CRONTAB: &str = r#"#!/bin/sh
case $1 in
-l) [ -e "$HOME/crontab" ] || { echo "no crontab for $LOGNAME" >&2; exit 1; }; cat "$HOME/crontab" ;;
-r) rm -f "$HOME/crontab" ;;
*) cat "$@" > "$HOME/crontab" ;;
esac
"#;
/// Replaced by the URL of a test server.
const SERVER: &str = "postgres://tenure@db.example/tenure";
/// How long a command with `--follow` runs.
const FOLLOW_TIME: Duration = Duration::from_secs(2);

pub(crate) fn play(page: &str, steps: &[Step]) {
    let folder = tempfile::Builder::new().prefix("tdoc").tempdir().unwrap();
    let at = folder.path().canonicalize().unwrap();
    for name in ["work", "home", "run", "bin"] {
        std::fs::create_dir(at.join(name)).unwrap();
    }
    // A page must not change the timers of the user that runs the tests.
    for (name, script) in [("crontab", CRONTAB), ("systemctl", "#!/bin/sh\nexit 1\n")] {
        std::fs::write(at.join("bin").join(name), script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(at.join("bin").join(name), mode).unwrap();
    }
    let server = std::cell::LazyCell::new(|| {
        let cluster = Cluster::shared();
        cluster.url_of(&cluster.new_database())
    });
    for step in steps {
        let asks_server = step.command.contains(SERVER);
        let command = if asks_server { step.command.replace(SERVER, &server) } else { step.command.clone() };
        let follows = step.command.contains("--follow");
        let (code, seen) = run(&at, &command, follows, page != "trust.md");
        if follows {
            assert_eq!(code, None, "{page}: $ {}\nshould have gone on:\n{seen}", step.command);
            continue;
        }
        assert_eq!(code, Some(step.exit), "{page}: $ {}\n{seen}", step.command);
        if !step.seen.is_empty() {
            let seen: Vec<String> = seen.trim_end().lines().map(normalised).collect();
            let shown: Vec<String> = step.seen.iter().map(|line| normalised(line)).collect();
            assert_eq!(seen, shown, "{page}: $ {}", step.command);
        }
    }
    // Stop the runners that a page has started.
    run(&at, "tenure runners stop --all", false, true);
}

/// The exit code, `None` if the command had to be killed, and its output. With `trusts`, the command runs as for a reader
/// who trusts the project.
fn run(at: &Path, line: &str, follows: bool, trusts: bool) -> (Option<i32>, String) {
    let binary = Path::new(env!("CARGO_BIN_EXE_tenure"));
    let (own, others) = (at.join("bin"), std::env::var("PATH").unwrap());
    let path = format!("{}:{}:{others}", own.display(), binary.parent().unwrap().display());
    let log = at.join("printed");
    let out = std::fs::File::create(&log).unwrap();
    let mut child = Command::new("sh")
        .args(["-c", line])
        .env_clear()
        .env("PATH", path)
        .env("HOME", at.join("home"))
        .env("XDG_RUNTIME_DIR", at.join("run"))
        .env("TERM", "dumb")
        .env("TZ", "UTC")
        .env("TENURE_TRUST", if trusts { "1" } else { "" })
        .env("LOGNAME", "ann")
        .current_dir(at.join("work"))
        .stdin(Stdio::null())
        .stdout(out.try_clone().unwrap())
        .stderr(out)
        .process_group(0)
        .spawn()
        .unwrap();
    let code = wait(&mut child, if follows { FOLLOW_TIME } else { HANG });
    let mut printed = String::new();
    std::fs::File::open(&log).unwrap().read_to_string(&mut printed).unwrap();
    (code, printed)
}

fn wait(child: &mut Child, limit: Duration) -> Option<i32> {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status.code().unwrap_or(-1));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let group = Pid::from_child(child);
    let _ = kill_process_group(group, Signal::KILL);
    child.wait().unwrap();
    None
}

/// A line without what differs between runs: ids, times, durations, paths and the spacing of columns.
fn normalised(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let core = word.trim_matches(|c: char| ",.;:()".contains(c));
        let hex = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit());
        let is_lease = core.len() == 9 && core.starts_with(['L', 'A']) && hex(&core[1..]);
        let is_uuid = core.len() == 36 && core.split('-').all(hex);
        let is_time = core.len() >= 20 && core.ends_with('Z') && core.contains('T') && core.contains(':');
        let is_span = core.ends_with(['s', 'm', 'h', 'd'])
            && core.starts_with(|c: char| c.is_ascii_digit())
            && core.chars().all(|c| c.is_ascii_digit() || "smhd.".contains(c));
        let kind = match () {
            () if is_lease => "<id>",
            () if is_uuid => "<uuid>",
            () if is_time => "<time>",
            () if is_span => "<span>",
            () if core.starts_with('/') => "<path>",
            () if core == env!("CARGO_PKG_VERSION") => "<version>",
            () if core.starts_with("PATH=/") => "PATH=<path>",
            () => return word.to_owned(),
        };
        word.replace(core, kind)
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn differences_between_runs_are_ignored() {
    let one = "  Lease: L3F2D7C4A   Fence: 1, since 2026-01-15T11:30:00Z (2m ago)";
    let two = "Lease: LFFB91B30 Fence: 1, since 2027-11-15T23:32:24Z (14m59s ago)";
    assert_eq!(normalised(one), normalised(two));
    assert_ne!(normalised("Fence: 1"), normalised("Fence: 2"));
    assert_ne!(normalised("claimed"), normalised("done"));
}
