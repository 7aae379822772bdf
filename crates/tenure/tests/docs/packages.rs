//! The files for packages agree with the workspace: one version, one address of the repository.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::root;

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// A value of `[workspace.package]`.
fn workspace(key: &str) -> String {
    let manifest = read("Cargo.toml");
    let line = manifest.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
    line.split('"').nth(1).unwrap().to_owned()
}

fn owner() -> String {
    workspace("repository").rsplit('/').nth(1).unwrap().to_owned()
}

#[test]
fn the_mcp_registry_gets_this_version_and_this_repository() {
    let server: Value = serde_json::from_str(&read("server.json")).unwrap();
    assert_eq!(server["version"], workspace("version"));
    assert_eq!(server["packages"][0]["version"], workspace("version"));
    assert_eq!(server["repository"]["url"], workspace("repository"));
    let name = format!("io.github.{}/tenure", owner());
    assert_eq!(server["name"], name);
    // The registry's limit, and how it checks that the package belongs to the server.
    assert!(server["description"].as_str().unwrap().chars().count() <= 100);
    assert!(read("README.md").contains(&format!("mcp-name: {name}")));
}

#[test]
fn every_file_that_names_the_repository_names_the_one_of_the_workspace() {
    let files =
        Command::new("git").args(["grep", "-lF", "github.com/OWNER"]).current_dir(root()).output().unwrap();
    let files: BTreeSet<PathBuf> =
        String::from_utf8(files.stdout).unwrap().lines().map(PathBuf::from).collect();
    if owner() == "OWNER" {
        assert!(files.contains(&PathBuf::from("crates/tenure-lock/README.md")), "{files:?}");
    } else {
        // The placeholder was replaced in the workspace; these files still have it.
        let this = PathBuf::from("crates/tenure/tests/docs/packages.rs");
        assert_eq!(files.into_iter().filter(|file| *file != this).collect::<Vec<_>>(), Vec::<PathBuf>::new());
    }
    assert_eq!(workspace("homepage"), workspace("repository"));
    assert!(read("dist-workspace.toml").contains(&format!("tap = \"{}/homebrew-tap\"", owner())));
}

#[test]
fn every_published_crate_has_a_readme_and_inherits_the_repository() {
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        if manifest.contains("publish = false") {
            continue;
        }
        assert!(manifest.contains("repository.workspace = true"), "{}", folder.display());
        assert!(manifest.contains("[package.metadata.docs.rs]"), "{}", folder.display());
        let readme = manifest.contains("readme.workspace = true") || folder.join("README.md").is_file();
        assert!(readme, "{}", folder.display());
    }
}

/// Runs the script in an otherwise empty folder, so that a file that it does not create is missed here and
/// not in a package.
#[test]
fn a_package_gets_a_manual_page_for_every_command_and_completions_for_every_shell() {
    let room = tempfile::tempdir().unwrap();
    let tree = room.path();
    std::fs::create_dir(tree.join("scripts")).unwrap();
    std::fs::copy(root().join("scripts/package-files"), tree.join("scripts/package-files")).unwrap();
    let made =
        Command::new(tree.join("scripts/package-files")).arg(env!("CARGO_BIN_EXE_tenure")).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let files = tree.join("target/package-files");
    for page in ["tenure.1", "tenure-tasks.1", "tenure-tasks-claim.1", "tenure-self-check.1"] {
        assert!(std::fs::read_to_string(files.join("man").join(page)).unwrap().contains(".TH"), "{page}");
    }
    for hidden in ["tenure-start-attempt.1", "tenure-keep-lease.1"] {
        assert!(!files.join("man").join(hidden).exists(), "{hidden}");
    }
    for script in ["tenure.bash", "_tenure", "tenure.fish", "_tenure.ps1"] {
        assert!(std::fs::metadata(files.join("completions").join(script)).unwrap().len() > 0, "{script}");
    }
}

/// The build script links the C library statically, unless that is not wanted or the compiler does it. A small program stands for
/// it. It calls some functions of the standard library that are in the list of functions to be placed first.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn a_program_with_the_build_script_is_linked_statically_unless_that_is_not_wanted() {
    let found = Command::new("cc").arg("-print-file-name=libc.a").output().unwrap().stdout;
    if !found.starts_with(b"/") {
        return tenure_testkit::cli::skip("there is no static C library");
    }
    let room = tempfile::tempdir().unwrap();
    let tree = room.path();
    let manifest = "[package]\nname = \"small\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\n[workspace]\n";
    std::fs::write(tree.join("Cargo.toml"), manifest).unwrap();
    std::fs::create_dir(tree.join("src")).unwrap();
    std::fs::write(tree.join("src/main.rs"), "fn main() {\n    println!(\"it runs\");\n}\n").unwrap();
    for file in ["build.rs", "link-order.ld"] {
        std::fs::copy(root().join("crates/tenure").join(file), tree.join(file)).unwrap();
    }
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    // By the build script, by the system's library, and by the compiler.
    for (flags, dynamic) in [("", None), ("", Some("1")), ("-C target-feature=+crt-static", None)] {
        let what = format!("{flags:?}, {dynamic:?}");
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--release", "--offline", "--target", &target])
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("TENURE_DYNAMIC")
            .env("RUSTFLAGS", flags)
            .env("CARGO_TARGET_DIR", tree.join("target"))
            .current_dir(tree);
        let built = cargo.envs(dynamic.map(|value| ("TENURE_DYNAMIC", value))).output().unwrap();
        assert!(built.status.success(), "{what}: {built:?}");
        let program = tree.join("target").join(&target).join("release/small");
        let output = Command::new(&program).output().unwrap();
        assert_eq!(output.stdout, b"it runs\n", "{what}: {output:?}");
        let contains =
            |text: &[u8]| std::fs::read(&program).unwrap().windows(text.len()).any(|it| it == text);
        // A dynamic program names its loader.
        assert_eq!(contains(b"/ld-linux"), dynamic.is_some(), "{what}");
        let by_the_script = flags.is_empty();
        assert_eq!(contains(b".eh_frame\0"), !by_the_script, "{what}");
        let is_ordered = by_the_script && cfg!(target_arch = "x86_64");
        assert_eq!(contains(b".text.called\0"), is_ordered, "{what}");
    }
}
