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
#![cfg(target_os = "linux")]

mod churn;
mod exclusive;
mod forks;
mod kills;
mod outsiders;
mod races;
#[path = "../rivals/mod.rs"]
mod rivals;
mod roles;
mod worker;

use libtest_mimic::{Arguments, Trial};

macro_rules! trials {
    ($($module:ident :: $name:ident),* $(,)?) => {
        vec![$(Trial::test(concat!(stringify!($module), "::", stringify!($name)), || {
            $module::$name();
            Ok(())
        })),*]
    };
}

fn main() {
    if let Ok(role) = std::env::var("TENURE_LOCK_ROLE") {
        roles::play(&role);
        return;
    }
    let trials = trials![
        races::eight_processes_on_a_stale_lock_have_one_winner_each_round,
        races::eight_processes_on_a_fresh_name_have_one_winner_each_round,
        races::the_harness_detects_the_create_new_algorithm_on_a_stale_lock,
        churn::short_lived_processes_never_hold_the_lock_at_the_same_time,
        churn::the_harness_detects_a_lock_that_does_not_compare_the_inode,
        kills::a_kill_at_any_instant_needs_no_manual_cleanup,
        kills::a_kill_at_every_system_call_needs_no_manual_cleanup,
        kills::the_harness_detects_the_empty_file_of_the_create_new_algorithm,
        forks::a_forked_child_does_not_keep_the_lock_alive,
        forks::the_harness_sees_that_a_plain_forked_child_would,
        forks::a_started_program_does_not_keep_the_lock_alive,
        forks::a_child_that_is_lent_the_lock_keeps_it,
        forks::a_child_that_adopts_the_lock_keeps_it_after_the_parent_releases,
        forks::dropping_the_guard_in_a_forked_child_releases_nothing,
        forks::forks_of_other_threads_do_not_keep_a_lock_that_is_just_being_taken,
        outsiders::a_zombie_is_dead,
        outsiders::another_users_process_is_alive,
        outsiders::a_process_that_procfs_hides_is_alive,
        outsiders::a_holder_in_another_pid_namespace_is_unknown_but_its_death_frees_the_lock,
        outsiders::a_procfs_of_another_namespace_does_not_mislead,
        outsiders::a_remote_looking_holder_is_refused_while_it_lives_and_afterwards,
        outsiders::a_read_only_directory_is_an_error_and_not_a_lock,
        outsiders::a_full_or_read_only_disk_is_an_error_and_leaves_nothing_that_blocks,
        exclusive::eight_processes_on_a_stale_exclusive_lock_have_one_winner_each_round,
        exclusive::a_tool_that_overwrites_a_stale_lock_keeps_it_while_daemons_remove_stale_locks,
        exclusive::the_harness_detects_a_removal_by_name,
        exclusive::a_kill_at_every_system_call_of_a_removal_loses_no_lock,
        exclusive::a_killed_holder_leaves_a_stale_lock_that_the_next_process_takes,
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
