//! A user's program that takes a lock through the library: `examples/resume_lock.rs` of `tenure-lock`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Desk;
use crate::screens::{Screens, unspaced};

#[test]
fn a_program_of_ones_own_takes_a_lock_and_its_death_frees_it() {
    let desk = Desk::new();
    std::os::unix::fs::symlink(example(), desk.sandbox.path("bin/convert")).unwrap();
    let (ann, bob) = (desk.window("ann"), desk.window("bob"));
    let mut screens = Screens::of(&desk);
    ann.start("convert locks images");
    ann.wait_for("working on images");
    screens.play("bob is refused", &bob, &["convert locks images; echo exit $?", "ls locks/resume_locks"]);
    bob.start("convert locks videos");
    bob.wait_for("working on videos");
    bob.press(&["C-d"]);
    bob.wait_until_idle();
    screens.keep("bob does another job", &bob);
    bob.run("pkill -KILL -f '^convert locks images'");
    ann.wait_until_idle();
    screens.keep("ann was killed", &ann);
    bob.clear();
    bob.start("convert locks images");
    bob.wait_for("working on images");
    screens.look("bob has taken over", &bob);
    bob.press(&["C-d"]);
    bob.wait_until_idle();
    screens.play("nothing is left", &ann, &["ls locks/resume_locks", "convert"]);
    unspaced().bind(|| insta::assert_snapshot!(screens.into_text()));
}

/// The example, which is built with all targets of the workspace, and otherwise here.
fn example() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap().join("examples/resume_lock");
    if !program.exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let args = ["build", "--quiet", "--all-features", "-p", "tenure-lock", "--example", "resume_lock"];
        let built = Command::new(cargo).args(args).output().unwrap();
        assert!(built.status.success() && program.exists(), "{built:?}");
    }
    program
}
