//! The board in a real browser: Chromium, driven by playwright-core, and checked by axe-core.
//!
//! Both packages are installed once, below the target folder; the test fails if that is not possible. Without a Chromium the tests are
//! skipped. With `TENURE_TEST_SCREENS`, the pictures that the last test takes are left in that folder.
//!
//! Pictures differ between machines because fonts do, so they are not compared. What is compared with `looks/` is the text of each page as a
//! screen reader reads it, where its parts are, and the colours in both schemes. The same test finds text that overlaps or leaves
//! the page. `TENURE_UPDATE_LOOKS=1` stores what the pages look like now.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tenure_testkit::cli::{PATIENT, Project, Sandbox, skip};

use crate::SUITE;

/// Pinned to the versions that these tests were written for.
const PACKAGES: [&str; 2] = ["playwright-core@1.65.1", "axe-core@4.14.0"];
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The folder with the packages.
fn packages() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGES.join("-").replace('@', "-"));
    std::fs::create_dir_all(&folder).unwrap();
    // Tests run concurrently, as threads or as processes.
    let lock = std::fs::File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let ready = folder.join("ready");
    if !ready.is_file() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
            .arg(&folder)
            .args(PACKAGES);
        let output = npm.stdin(Stdio::null()).output().expect("npm is needed to test in a browser");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "cannot install the driver of the browser: {said}");
        std::fs::write(ready, "").unwrap();
    }
    folder
}

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    BROWSERS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
}

/// Plays one scene of `browser.mjs` in a new project with the pretend agent.
fn play(scene: &str) {
    let Some(chromium) = browser() else {
        return skip(&format!("the scene {scene} of the web board needs Chromium"));
    };
    let project = Project::with_agent(SUITE, PATIENT);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web/browser.mjs");
    let mut command = Command::new("node");
    project.surround(&mut command);
    command
        .arg(script)
        .arg(scene)
        .arg(env!("CARGO_BIN_EXE_tenure"))
        .arg(project.root())
        .arg(packages())
        .arg(chromium);
    command.arg(std::env::var_os("TENURE_TEST_SCREENS").unwrap_or_else(|| screens(&project)));
    if let Some(update) = std::env::var_os("TENURE_UPDATE_LOOKS") {
        command.env("TENURE_UPDATE_LOOKS", update);
    }
    // The folder that programs are found in; the sandbox has a path of its own.
    command.env("PATH", std::env::var_os("PATH").unwrap());
    let output = command.output().expect("node is needed to test in a browser");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("the scene is over"), "{scene}: {said}\n{errors}");
}

fn screens(project: &Sandbox) -> std::ffi::OsString {
    let folder = project.path("screens");
    std::fs::create_dir_all(&folder).unwrap();
    folder.into_os_string()
}

#[test]
fn a_change_of_another_process_appears_and_what_is_typed_stays() {
    play("live");
}

#[test]
fn pages_of_another_port_and_a_rebound_name_reach_nothing() {
    play("strangers");
}

#[test]
fn every_verb_works_by_mouse_and_by_keyboard() {
    play("verbs");
}

#[test]
fn eight_tabs_agree_with_a_reload_and_go_on_after_a_restart_of_the_server() {
    play("tabs");
}

#[test]
fn every_page_is_accessible_and_nothing_overflows_with_hostile_content() {
    play("looks");
}
