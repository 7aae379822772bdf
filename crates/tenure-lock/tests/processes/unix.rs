//! The tests and roles for systems with `fork`, users and namespaces.

use std::path::Path;

use libtest_mimic::Trial;

use super::{churn, forks, outsiders};

pub(crate) fn trials() -> Vec<Trial> {
    crate::trials![
        churn::short_lived_processes_never_hold_the_lock_at_the_same_time,
        churn::the_harness_detects_a_lock_that_does_not_compare_the_inode,
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
    ]
}

/// False if there is no such role.
pub(crate) fn play(role: &str, dir: &Path) -> bool {
    match role {
        "breed-ours" => churn::breeder(dir, true),
        "breed-unchecked" => churn::breeder(dir, false),
        "try" => outsiders::try_to_lock(dir),
        "file-systems" => outsiders::on_bad_file_systems(dir),
        "fork" => forks::hold_and_fork(dir, true),
        "fork-plain" => forks::hold_and_fork(dir, false),
        "spawn" => forks::hold_and_spawn(dir, false),
        "lend" => forks::hold_and_spawn(dir, true),
        "lend-to-heir" => forks::hold_and_bequeath(dir),
        "heir" => forks::inherit(dir),
        "drop-in-child" => forks::drop_in_child(dir),
        #[cfg(target_os = "linux")]
        "clone-itself" => forks::clone_itself(),
        "fork-storm" => forks::fork_storm(dir),
        _ => return false,
    }
    true
}
