//! What every store must do, as a list of cases: each gets a way to make fresh fixtures and panics if it is not served.

mod attempts;
mod coordinating;
mod counters;
mod events;
mod evicting;
mod finishing;
mod grants;
mod invariants;
mod jobs;
mod keeping;
mod readiness;
mod ready_queue;
mod renewing;
mod rows;
mod sections;
mod sessions;
mod waiting;

pub use events::{check_the_feed, statuses_told};

use crate::fixture::Fixture;

pub type Case = fn(&dyn Fn() -> Fixture);

macro_rules! list {
    ($($module:ident { $($case:ident,)* })*) => {
        vec![$($((concat!(stringify!($module), "::", stringify!($case)), $module::$case as Case),)*)*]
    };
}

/// Names and functions, in reading order.
pub fn cases() -> Vec<(&'static str, Case)> {
    list! {
        grants {
            a_claim_gives_a_lease_and_sets_in_progress,
            the_dead_are_looked_up_once_in_a_transaction,
            a_second_holder_is_refused_and_told_who_and_until_when,
            two_open_leases_on_one_resource_are_impossible_in_the_store_itself,
            an_id_that_was_drawn_before_is_drawn_again,
            what_a_claim_says_that_it_wants_is_only_a_hint,
            fences_rise_with_every_grant_and_are_unique_in_the_store,
            a_lease_blocks_until_the_last_millisecond_and_not_at_its_expiry,
            a_task_left_in_progress_by_an_expired_lease_is_offered_by_next,
            a_takeover_closes_the_old_lease_with_its_reason_in_the_same_step,
            of_many_takers_of_a_lapsed_lease_exactly_one_wins,
            a_dead_holder_is_replaced_at_once_and_a_living_one_is_not,
            a_reboot_is_a_death,
            a_process_about_which_nothing_is_known_counts_as_alive_until_expiry,
            acquiring_again_gives_the_same_lease_and_the_same_fence,
            acquiring_again_after_expiry_is_a_new_grant,
            who_is_the_same_holder_follows_from_name_process_and_fence,
            another_window_with_the_same_name_is_refused,
            a_process_that_takes_up_what_its_name_had_claimed_is_recorded,
            a_finished_task_is_not_claimed,
            an_agent_is_registered_at_its_first_claim,
            a_slot_is_held_by_one_and_taken_over_from_the_dead,
            an_unknown_task_cannot_be_claimed,
            an_id_or_a_key_is_resolved_in_the_transaction_of_the_claim,
        }
        renewing {
            renewal_moves_expiry_and_heartbeat_together_from_now,
            a_new_ttl_counts_from_its_renewal_on,
            nobody_but_the_holder_renews,
            the_verb_renew_needs_an_unexpired_lease,
            a_supervisor_revives_its_own_expired_lease,
            a_supervisor_revives_it_also_after_a_cleanup_has_closed_it,
            nothing_is_revived_once_it_was_granted_to_another,
            nothing_is_revived_once_somebody_has_moved_the_task,
            what_was_given_up_or_taken_away_is_not_revived,
            check_answers_only_for_a_live_lease,
            a_fence_counts_only_for_its_own_task,
            a_slot_is_renewed_revived_and_lost_like_a_task,
        }
        finishing {
            each_word_leads_to_its_status_and_ends_the_lease,
            done_leads_to_review_where_review_is_on,
            a_rejection_sends_a_review_back_and_fails_it_when_there_were_enough,
            a_rejection_of_what_was_not_given_for_review_is_a_failure,
            a_stranger_finishes_nothing,
            a_late_finish_counts_while_nobody_was_given_the_task,
            a_late_finish_without_a_fence_counts_by_name,
            a_late_finish_is_refused_once_another_was_given_the_task,
            a_late_finish_is_refused_once_somebody_has_moved_the_task,
            a_forced_lease_finishes_nothing,
            the_death_of_the_holder_ends_its_word_whether_or_not_a_cleanup_ran,
            a_repeated_finish_succeeds_and_writes_nothing,
            a_repeated_finish_succeeds_also_when_a_person_has_moved_the_task_on,
            what_agents_give_back_again_and_again_fails_in_the_end,
            a_second_different_word_is_refused,
            a_repeated_finish_is_refused_once_another_was_given_the_task,
            an_interrupted_attempt_puts_the_task_back_where_it_was_claimed_from,
            finishing_acknowledges_what_was_left_for_the_holder,
        }
        evicting {
            force_ends_the_lease_that_was_shown_and_says_who_did_it,
            force_is_refused_if_the_lease_has_changed_since_it_was_shown,
            force_rings_the_old_holder,
            forcing_a_lapsed_lease_keeps_its_true_reason,
            cleanup_closes_what_has_lapsed_and_nothing_else,
            a_status_is_not_changed_over_anothers_live_lease,
            with_force_the_other_lease_ends_and_its_holder_is_rung,
            the_holder_itself_may_change_the_status_and_so_gives_the_lease_up,
            a_lapsed_lease_does_not_stand_in_the_way_of_a_change,
            in_progress_is_reached_by_a_claim_only,
        }
        sections {
            claiming_in_a_serial_section_takes_the_section_for_the_same_holder,
            one_holder_works_in_a_serial_section_at_a_time,
            a_refused_section_leaves_nothing_held,
            many_work_in_a_parallel_section_and_nobody_holds_it,
            a_task_without_a_section_is_in_none,
            the_section_expires_no_earlier_than_the_tasks_in_it,
            the_section_is_renewed_with_its_tasks,
            the_section_ends_with_the_last_of_its_holders_tasks,
            a_lapsed_task_does_not_keep_the_section,
            a_runner_keeps_the_section_from_task_to_task,
            forcing_the_section_away_ends_its_holders_tasks_too,
            the_section_of_a_dead_holder_is_free_with_its_tasks,
            the_death_of_one_process_does_not_free_a_section_that_its_name_still_holds,
            a_lapsed_lease_of_the_same_name_does_not_keep_the_section_from_the_next,
            a_clock_that_steps_back_does_not_bring_a_second_holder_into_the_section,
            two_windows_that_share_a_name_do_not_share_a_section,
            a_revived_task_brings_its_section_back,
            nothing_is_revived_in_a_section_that_another_works_in,
            a_revival_does_not_overtake_those_who_wait_for_the_section,
            a_late_finish_leaves_anothers_section_alone,
            forcing_one_task_away_ends_the_section_only_if_it_was_the_last,
            every_grant_of_a_section_is_told,
            sections_wait_for_the_sections_they_depend_on,
        }
        waiting {
            whoever_keeps_its_place_sees_who_is_before_it,
            a_refusal_says_how_many_wait_before_the_caller,
            a_release_rings_the_next_waiter_and_nobody_else,
            every_way_to_free_a_resource_rings_the_next_waiter,
            nothing_is_rung_for_a_transaction_that_failed,
            a_newcomer_never_overtakes_a_live_ticket,
            whoever_is_granted_leaves_the_line,
            a_dead_or_silent_waiter_loses_its_place,
            a_waiter_that_has_lost_its_place_is_a_newcomer,
            a_waiter_of_another_machine_is_alive_while_it_refreshes,
            whoever_leaves_the_line_wakes_the_next,
            a_waiter_holds_one_ticket_and_keeps_its_place_by_asking_again,
            who_gets_something_else_leaves_its_line_and_wakes_the_next,
            waiting_before_counts_live_tickets_only,
            the_line_before_a_section_is_served_in_order_too,
            two_waiters_in_two_lines_for_one_task_do_not_block_each_other,
            those_who_want_any_task_are_served_in_order,
            who_holds_a_section_goes_on_in_it_past_those_who_want_anything,
            runners_hear_of_new_work,
            a_freed_slot_rings_who_waits_for_it,
        }
        ready_queue {
            a_waiter_for_an_empty_section_keeps_nothing_from_anybody,
            each_waiter_gets_the_first_task_that_no_earlier_one_gets,
            an_earlier_waiter_for_a_section_comes_before_a_later_one_for_anything,
            the_first_task_of_a_serial_section_reserves_all_of_it,
            work_that_is_left_over_wakes_the_waiter_that_gets_it_now,
            a_waiter_that_takes_something_else_leaves_its_task_to_the_next,
            nothing_is_reserved_for_a_dead_or_silent_waiter,
            the_holder_of_a_serial_section_that_waits_hears_of_work_in_it,
            asking_what_is_in_the_way_changes_nothing,
        }
        readiness {
            pending_tasks_with_finished_dependencies_are_ready,
            only_pending_or_left_behind_tasks_are_ready,
            the_order_is_section_priority_and_position_then_the_tasks,
            a_left_behind_task_keeps_its_place_in_the_order,
            a_serial_section_is_ready_only_for_its_holder,
            a_section_that_was_granted_for_longer_than_its_tasks_ends_with_them,
            a_live_ticket_makes_it_ready_only_for_who_has_it,
            the_dead_block_nobody_and_the_unknown_do,
            next_hands_out_every_task_once,
            what_was_left_in_progress_goes_back_to_pending_when_its_new_holder_lets_go,
            next_takes_what_the_listing_has_first_however_busy_the_project_is,
        }
        attempts {
            an_attempt_is_recorded_and_its_pid_noted,
            the_end_of_a_lease_turns_its_attempt_into_an_ending_one,
            a_grant_brings_the_attempts_that_are_still_ending,
            an_attempt_is_ended_once_and_keeps_the_reason_of_the_takeover,
            only_a_supervisor_that_died_in_this_boot_charges_the_task,
            a_holder_that_died_without_an_attempt_is_not_charged,
            at_max_attempts_the_task_has_failed_and_says_why,
            noting_the_pid_does_not_undo_what_a_takeover_has_marked,
            a_start_that_failed_is_known_by_its_reason_while_the_attempt_runs,
            what_broke_off_goes_back_charged_and_fails_at_the_limit,
            what_broke_off_after_a_takeover_is_refused,
            a_claim_that_finds_the_last_attempt_dead_fails_the_task_for_good,
            next_passes_over_a_task_that_has_just_failed_for_good,
        }
        keeping {
            changing_the_mode_of_a_section_is_refused_while_anything_in_it_is_leased,
            a_held_task_is_not_moved_not_even_by_its_holder,
            moving_a_task_ends_the_lease_that_has_lapsed_on_it,
            a_held_task_and_a_held_section_are_not_deleted,
            letting_go_of_a_section_gives_its_tasks_back,
            one_reconcile_restores_what_a_crash_has_left,
            runners_and_presets_are_read_as_they_were_written,
            dependents_tickets_and_events_are_found,
        }
        jobs {
            a_job_is_read_as_it_was_written_and_its_items_are_counted,
            jobs_are_found_by_name_and_by_the_beginning_of_their_id,
            a_job_is_none_before_all_of_its_items_are_there,
            an_unfinished_job_has_its_name_to_itself,
            items_are_taken_in_order_by_one_worker_each,
            a_success_is_written_once_and_only_under_the_latest_grant,
            a_late_success_counts_while_nobody_was_given_the_item,
            a_worker_that_slept_takes_its_item_up_again_unless_another_has_it,
            the_items_of_a_dead_worker_are_pending_again_and_its_attempt_is_ending,
            a_failure_is_tried_again_when_it_is_due_and_then_given_up,
            what_would_fail_the_same_way_again_is_not_tried_again,
            what_becomes_of_a_failure_is_the_jobs_choice,
            an_interrupted_item_is_the_next_one_and_not_counted,
        }
        coordinating {
            one_at_a_time_coordinates_a_job_and_the_dead_do_not,
            force_takes_it_from_a_holder_that_cannot_be_judged_and_never_from_a_living_one,
            finished_work_is_not_taken_up_and_the_dead_letters_are_when_asked_for,
            a_stopped_job_goes_on_with_what_it_had_left,
            a_cancelled_job_takes_its_items_from_the_workers,
            whoever_lost_the_job_writes_nothing_in_its_name,
        }
        sessions {
            a_session_is_read_as_its_checkpoints_were_written,
            an_interrupted_task_stays_the_one_to_go_on_with,
            a_checkpoint_under_a_stale_fence_is_refused,
            a_refused_session_says_who_has_it_and_since_when,
        }
        events {
            every_change_of_status_has_exactly_one_event,
            a_status_event_says_who_when_from_to_why_and_under_which_fence,
            what_is_refused_tells_nothing,
            the_feed_is_read_forward_from_a_number_and_back_from_the_end,
            closed_leases_stay_as_the_audit_trail,
        }
        rows {
            a_body_that_fails_leaves_nothing_behind,
            a_task_is_read_as_it_was_written_and_edited,
            a_key_is_given_once,
            tasks_are_found_by_id_key_prefix_and_title,
            listings_filter_count_and_page,
            dependencies_are_edges_that_can_be_walked_added_and_removed,
            positions_have_a_last_a_next_and_can_be_spread,
            a_section_is_read_as_it_was_written_edited_and_deleted,
            a_lease_is_read_as_it_was_granted_moved_and_ended,
            leases_are_listed_by_kind_resource_holder_and_age,
            agents_and_messages_are_read_as_they_were_written,
        }
        invariants {
            what_only_rules_have_written_is_sound_at_every_step,
            what_a_crash_leaves_is_found_and_gone_after_one_reconcile,
            what_no_rule_could_have_written_is_found_and_mended,
        }
        counters {
            open_dependencies_and_open_tasks_survive_random_edits,
        }
    }
}
