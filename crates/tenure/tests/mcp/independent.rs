//! An independent client, the Python package `mcp`, lives the whole life of a task over every way there is.
//!
//! It is installed into a virtual environment below the target folder, once; if that is not possible, the test fails.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::http::Server;
use crate::shop::Shop;
use rustix::process::Signal;
use tenure_testkit::cli::processes;

/// As it was when these tests were written; another one is another test.
const PACKAGE: &str = "mcp==2.3.0";

fn python() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGE.replace("==", "-"));
    std::fs::create_dir_all(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // Tests run side by side, as threads or as processes.
    let lock = std::fs::File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let (python, ready) = (folder.join("bin/python"), folder.join("ready"));
    if !ready.is_file() {
        let run = |command: &mut Command| {
            let output = command
                .stdin(Stdio::null())
                .output()
                .expect("python3 is needed to test against another client");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "cannot install the client ({command:?}): {said}");
        };
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
        run(Command::new(&python).args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            PACKAGE,
        ]));
        std::fs::write(ready, "").unwrap();
    }
    python
}

fn live(shop: &Shop, way: &str, more: &[&str]) {
    let mut command = Command::new(python());
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/life.py"));
    command.arg(env!("CARGO_BIN_EXE_tenure")).arg(shop.root()).arg(way).args(more);
    shop.surround(&mut command);
    let output = command.output().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{way}: {said}\n{errors}");
    assert!(said.contains("the whole life of a task"), "{said}");
}

#[test]
fn the_whole_life_of_a_task_over_stdio_in_the_newest_protocol() {
    live(&Shop::new(), "stdio-modern", &[]);
}

#[test]
fn the_whole_life_of_a_task_over_stdio_with_a_handshake() {
    live(&Shop::new(), "stdio-legacy", &[]);
}

#[test]
fn the_whole_life_of_a_task_over_http() {
    let shop = Shop::new();
    let mut server = Server::start(&shop);
    live(&shop, "http", &[&format!("http://{}/mcp", server.address), &server.token]);
    processes::signal(server.child.id(), Signal::TERM);
    assert!(server.child.wait().unwrap().success());
    assert!(!shop.root().join(".tenure/mcp.json").exists());
}
