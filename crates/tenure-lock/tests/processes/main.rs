//! Behaviour that needs several processes: races, kills, forks, namespaces, other users.
//!
//! This binary also serves as the worker: with `TENURE_LOCK_ROLE` set it plays that role instead of running tests.
//! `TENURE_TEST_FULL=1` runs the full counts, `TENURE_TEST_SEED` repeats a random run.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests"
)]

#[cfg(unix)]
mod churn;
mod exclusive;
#[cfg(unix)]
mod forks;
mod kills;
#[cfg(unix)]
mod outsiders;
mod races;
#[path = "../rivals/mod.rs"]
mod rivals;
mod roles;
#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
#[path = "no_unix.rs"]
mod unix;
mod worker;

use libtest_mimic::Arguments;

macro_rules! trials {
    ($($module:ident :: $name:ident),* $(,)?) => {
        vec![$(libtest_mimic::Trial::test(concat!(stringify!($module), "::", stringify!($name)), || {
            crate::$module::$name();
            Ok(())
        })),*]
    };
}
#[cfg(unix)]
pub(crate) use trials;

fn main() {
    if let Ok(role) = std::env::var("TENURE_LOCK_ROLE") {
        roles::play(&role);
        return;
    }
    let mut trials = trials![
        races::eight_processes_on_a_stale_lock_have_one_winner_each_round,
        races::eight_processes_on_a_fresh_name_have_one_winner_each_round,
        races::the_harness_detects_the_create_new_algorithm_on_a_stale_lock,
        kills::a_kill_at_any_instant_needs_no_manual_cleanup,
        kills::a_kill_at_every_system_call_needs_no_manual_cleanup,
        kills::a_process_reads_its_own_identity_from_procfs_only_once,
        kills::the_harness_detects_the_empty_file_of_the_create_new_algorithm,
        exclusive::eight_processes_on_a_stale_exclusive_lock_have_one_winner_each_round,
        exclusive::a_tool_that_overwrites_a_stale_lock_keeps_it_while_daemons_remove_stale_locks,
        exclusive::the_harness_detects_a_removal_by_name,
        exclusive::a_kill_at_every_system_call_of_a_removal_loses_no_lock,
        exclusive::a_killed_holder_leaves_a_stale_lock_that_the_next_process_takes,
    ];
    trials.extend(unix::trials());
    #[cfg(target_os = "linux")]
    trials.extend(trials![forks::a_child_never_has_the_identity_of_its_parent]);
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
