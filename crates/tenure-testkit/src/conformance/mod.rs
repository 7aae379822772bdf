//! The conformance suite: a list of cases that every store must pass. Each case creates fixtures and panics on a
//! violation.

mod approving;
mod attempts;
mod backlog;
mod board;
mod charging;
mod coordinating;
mod counters;
mod credentials;
mod events;
mod evicting;
mod finishing;
mod grants;
mod invariants;
mod jobs;
mod keeping;
mod kept;
mod listing;
mod notes;
mod parking;
mod pruning;
mod readiness;
mod ready_queue;
mod renewing;
mod rows;
mod sections;
mod seen;
mod sessions;
mod usage;
mod waiting;

pub use events::{check_feed, replayed_statuses};

use crate::fixture::Fixture;

pub type Case = fn(&dyn Fn() -> Fixture);

macro_rules! list {
    ($($module:ident { $($case:ident,)* })*) => {
        vec![$($((concat!(stringify!($module), "::", stringify!($case)), $module::$case as Case),)*)*]
    };
}

/// The names and functions of all cases.
pub fn cases() -> Vec<(&'static str, Case)> {
    list! {
        approving {
            the_agent_that_worked_last_never_approves,
            the_agent_of_an_attempt_never_approves_under_another_name,
            a_worker_does_not_complete_its_task_past_the_review,
            a_person_approves_what_the_person_did,
        }
        board {
            a_board_shows_holders_waiters_and_what_waits_for_a_person,
            the_groups_of_a_board_are_sections_or_statuses_in_pages,
        }
        seen {
            a_task_that_has_changed_since_it_was_shown_is_recognised,
        }
        usage {
            usage_is_summed_by_task_agent_and_day,
        }
        charging {
            a_return_from_within_an_attempt_is_charged_once_whatever_the_verb,
            a_person_and_the_supervisor_return_a_task_without_a_charge,
            three_quick_returns_in_a_row_are_charged,
        }
        backlog {
            an_update_applies_what_differs_once,
            a_finished_or_failed_task_is_reopened,
        }
        listing {
            listings_are_sorted,
            computed_states_are_listed_beside_statuses,
        }
        kept {
            a_kept_outcome_is_applied_by_whatever_closes_the_lease,
            each_kept_result_leads_to_where_its_report_would_have,
            an_outcome_that_the_supervisor_did_not_keep_is_ignored,
            a_live_lease_is_not_ended_by_a_kept_outcome,
            a_supervisor_that_reports_after_its_outcome_was_applied_changes_nothing,
            a_kept_success_of_an_item_is_not_run_again,
        }
        parking {
            the_pause_depends_on_the_ending_and_doubles,
            a_known_reset_decides_when_a_limit_is_tried_again,
            one_task_is_tried_at_a_time,
            other_accounts_and_presets_are_not_affected,
            a_wrong_configuration_is_tried_again_when_it_changes_or_on_request,
            three_endings_without_a_result_park_the_preset_only_at_different_tasks,
        }
        pruning {
            the_last_lease_and_the_last_status_event_of_each_task_stay,
            what_was_kept_is_removed_when_something_newer_is_old,
            an_open_lease_and_an_unfinished_attempt_are_never_pruned,
            ended_sessions_jobs_runners_and_unseen_agents_are_removed,
            an_unread_message_for_an_unfinished_task_stays,
            a_late_write_is_rejected_although_its_lease_was_pruned,
        }
        grants {
            a_claim_grants_a_lease_and_sets_in_progress,
            a_refusal_names_the_holder_and_the_expiry,
            the_dead_are_looked_up_once_in_a_transaction,
            two_open_leases_on_one_resource_are_impossible_in_the_store_itself,
            an_id_that_is_in_use_is_generated_again,
            a_claim_hint_does_not_change_the_result,
            fences_rise_with_every_grant_and_are_unique_in_the_store,
            a_lease_blocks_until_the_last_millisecond_and_not_at_its_expiry,
            a_task_left_in_progress_by_an_expired_lease_is_offered_by_next,
            a_takeover_closes_the_old_lease_with_its_reason_in_the_same_transaction,
            of_many_takers_of_a_lapsed_lease_exactly_one_wins,
            a_dead_holder_is_replaced_at_once_and_a_live_one_is_not,
            a_reboot_ends_every_process,
            an_unknown_process_counts_as_alive_until_expiry,
            acquiring_again_returns_the_same_lease_and_fence,
            acquiring_again_after_expiry_is_a_new_grant,
            the_same_holder_is_recognised_by_name_process_and_credential,
            another_process_with_the_same_name_is_refused,
            a_process_that_resumes_a_plain_claim_of_its_name_is_recorded,
            a_finished_task_is_not_claimed,
            an_agent_is_registered_at_its_first_claim,
            a_slot_has_one_holder_and_is_taken_over_from_a_dead_one,
            an_unknown_task_cannot_be_claimed,
            an_id_or_a_key_is_resolved_in_the_transaction_of_the_claim,
        }
        credentials {
            the_key_proves_the_holder_alone,
            a_fence_counts_only_under_the_holders_name,
            a_credential_that_does_not_match_is_refused_under_any_name,
            a_credential_of_a_replaced_store_is_refused,
            a_supervisors_lease_of_a_replaced_store_is_lost,
            an_items_lease_of_a_replaced_store_is_lost,
            the_key_comes_with_the_grant_and_is_stored_as_a_hash,
        }
        renewing {
            renewal_moves_expiry_and_heartbeat_together_from_now,
            a_new_ttl_counts_from_the_renewal,
            only_the_holder_renews,
            the_verb_renew_needs_an_unexpired_lease,
            a_supervisor_revives_its_own_expired_lease,
            a_supervisor_revives_its_lease_after_a_cleanup_has_closed_it,
            nothing_is_revived_after_a_takeover,
            nothing_is_revived_after_the_status_was_changed,
            a_released_or_evicted_lease_is_not_revived,
            a_lease_without_a_process_is_renewed_after_a_cleanup_unless_a_waiter_comes_first,
            check_succeeds_only_for_a_live_lease,
            a_fence_counts_only_for_its_own_task,
            a_slot_is_renewed_revived_and_lost_like_a_task,
        }
        finishing {
            each_finish_sets_its_status_and_ends_the_lease,
            done_leads_to_review_if_review_is_enabled,
            a_rejection_returns_the_task_and_fails_it_at_the_limit,
            a_rejection_outside_of_a_review_is_a_failure,
            only_the_holder_can_finish,
            a_late_finish_counts_unless_the_task_was_taken_over,
            a_late_finish_without_a_fence_counts_by_name,
            a_late_finish_is_refused_after_a_takeover,
            a_late_finish_is_refused_after_the_status_was_changed,
            a_late_finish_is_refused_after_a_decision_even_if_the_status_is_as_before,
            an_edit_of_the_text_is_no_decision_and_a_late_finish_counts,
            an_evicted_holder_cannot_finish,
            a_dead_holder_cannot_finish_whether_or_not_a_cleanup_ran,
            a_repeated_finish_succeeds_and_writes_nothing,
            a_repeated_finish_succeeds_after_a_later_status_change,
            a_task_that_agents_release_repeatedly_fails,
            a_second_different_finish_is_refused,
            a_repeated_finish_is_refused_after_a_takeover,
            an_interrupted_attempt_restores_the_status_before_the_claim,
        }
        notes {
            finishing_acknowledges_the_messages_that_the_holder_was_shown,
            a_holder_that_claims_again_is_shown_what_came_since,
            a_holder_that_is_shown_nothing_acknowledges_nothing,
            only_the_messages_that_fit_are_shown_and_acknowledged,
            a_claim_has_the_last_remark_but_not_how_a_lease_lapsed,
        }
        evicting {
            force_ends_the_given_lease_and_records_the_actor,
            force_is_refused_if_the_lease_has_changed_since_it_was_read,
            force_rings_the_old_holder,
            forcing_a_lapsed_lease_records_why_it_lapsed,
            cleanup_closes_lapsed_leases_only,
            a_status_change_is_refused_under_another_holders_live_lease,
            with_force_the_other_lease_ends_and_its_holder_is_rung,
            a_status_change_by_the_holder_releases_the_lease,
            a_lapsed_lease_does_not_block_a_status_change,
            only_a_claim_sets_in_progress,
        }
        sections {
            claiming_in_a_serial_section_takes_the_section_for_the_same_holder,
            one_holder_works_in_a_serial_section_at_a_time,
            a_refused_section_leaves_nothing_held,
            a_parallel_section_admits_many_holders_and_has_no_lease,
            a_task_without_a_section_holds_none,
            the_section_expires_no_earlier_than_the_tasks_in_it,
            the_section_is_renewed_with_its_tasks,
            the_section_ends_with_the_last_of_its_holders_tasks,
            a_lapsed_task_does_not_keep_the_section,
            a_runner_keeps_the_section_from_task_to_task,
            evicting_the_holder_of_a_section_ends_its_tasks_too,
            the_section_of_a_dead_holder_is_freed_with_its_tasks,
            the_death_of_one_process_does_not_free_a_section_that_its_name_still_holds,
            a_lapsed_lease_of_the_same_name_does_not_keep_the_section_from_the_next,
            a_clock_that_steps_back_does_not_bring_a_second_holder_into_the_section,
            two_processes_with_the_same_name_do_not_share_a_section,
            a_revived_task_brings_its_section_back,
            nothing_is_revived_in_a_section_that_another_holder_has,
            a_revival_does_not_overtake_waiters_for_the_section,
            a_late_finish_does_not_end_another_holders_section,
            evicting_one_task_ends_the_section_only_if_it_was_the_last,
            every_grant_of_a_section_has_an_event,
            sections_are_blocked_by_the_sections_they_depend_on,
        }
        waiting {
            a_refreshed_ticket_reports_the_lease_before_it,
            a_refusal_reports_the_number_of_earlier_waiters,
            a_release_rings_only_the_next_waiter,
            everything_that_frees_a_resource_rings_the_next_waiter,
            a_failed_transaction_rings_nothing,
            a_newcomer_never_overtakes_a_live_ticket,
            a_grant_removes_the_ticket,
            the_ticket_of_a_dead_or_silent_waiter_expires,
            a_waiter_whose_ticket_expired_is_a_newcomer,
            a_waiter_of_another_machine_is_alive_while_it_refreshes,
            leaving_the_queue_wakes_the_next_waiter,
            a_waiter_has_one_ticket_and_asking_again_refreshes_it,
            a_grant_of_another_resource_removes_the_ticket_and_wakes_the_next_waiter,
            waiting_before_counts_live_tickets_only,
            the_queue_for_a_section_is_served_in_order,
            waiters_for_any_task_are_served_in_order,
            the_holder_of_a_section_claims_its_next_task_before_waiters_for_any_task,
            new_work_rings_waiting_runners,
            new_work_rings_no_lapsed_runner,
            a_doorbell_that_cannot_be_rung_fails_no_change,
            a_freed_slot_rings_its_waiter,
        }
        ready_queue {
            a_waiter_for_an_empty_section_blocks_no_other_claim,
            each_waiter_gets_the_first_task_not_reserved_for_an_earlier_one,
            an_earlier_waiter_for_a_section_precedes_a_later_one_for_any_task,
            the_first_task_of_a_serial_section_reserves_the_whole_section,
            unclaimed_work_wakes_the_waiter_that_gets_it_next,
            a_waiter_that_claims_another_task_leaves_its_reserved_one_to_the_next,
            nothing_is_reserved_for_a_dead_or_silent_waiter,
            a_reconcile_that_removes_a_dead_waiter_rings_the_next_one,
            new_work_in_a_serial_section_rings_its_waiting_holder,
            querying_what_blocks_a_task_changes_nothing,
            a_named_task_goes_to_the_waiter_that_came_first,
            a_waiter_for_a_held_task_blocks_no_other_claim,
            a_waiter_for_a_task_reserves_its_serial_section,
            a_task_that_can_no_longer_be_started_rings_its_waiters,
            a_reviewer_takes_its_turn_among_all_waiters,
            the_life_of_a_ticket_is_what_its_waiter_decided,
            at_most_32_different_wishes_are_looked_up,
        }
        readiness {
            pending_tasks_with_finished_dependencies_are_ready,
            only_pending_and_lapsed_tasks_are_ready,
            ready_tasks_are_ordered_by_section_then_priority_then_position,
            a_lapsed_task_keeps_its_position_in_the_order,
            a_serial_section_is_ready_only_for_its_holder,
            a_section_with_a_longer_ttl_ends_with_its_tasks,
            work_that_is_reserved_for_a_waiter_is_ready,
            dead_holders_block_nothing_and_unknown_ones_do,
            next_hands_out_every_task_once,
            a_lapsed_task_returns_to_pending_when_its_new_holder_releases_it,
            next_claims_the_first_task_of_the_listing_in_any_situation,
            a_task_is_ready_exactly_when_the_kernel_would_grant_it,
        }
        attempts {
            an_attempt_is_recorded_and_its_leader_noted,
            a_row_that_the_store_refuses_does_not_spoil_the_next_transaction,
            the_end_of_a_lease_sets_its_attempt_to_ending,
            a_grant_brings_the_attempts_that_are_still_ending,
            an_attempt_is_ended_once_and_keeps_the_reason_of_the_takeover,
            only_a_supervisor_that_died_in_this_boot_charges_the_task,
            a_holder_that_died_without_an_attempt_is_not_charged,
            a_task_fails_at_max_attempts_with_a_reason,
            no_leader_is_recorded_for_an_attempt_that_is_ending,
            a_failed_start_is_recorded_while_the_attempt_runs,
            an_aborted_attempt_returns_the_task_with_a_charge_and_fails_it_at_the_limit,
            aborting_an_attempt_after_a_takeover_is_refused,
            a_claim_that_finds_the_last_allowed_attempt_dead_fails_the_task,
            next_skips_a_task_that_has_just_failed,
        }
        keeping {
            a_section_in_which_anything_is_leased_is_not_made_serial,
            a_held_section_is_made_parallel_and_its_holder_goes_on,
            a_held_task_is_not_moved_not_even_by_its_holder,
            moving_a_task_ends_the_lease_that_has_lapsed_on_it,
            a_held_task_and_a_held_section_are_not_deleted,
            releasing_a_section_returns_its_tasks,
            one_reconcile_repairs_what_a_crash_left,
            runners_and_presets_are_read_as_they_were_written,
            dependents_tickets_and_events_are_listed,
        }
        jobs {
            a_job_is_read_as_it_was_written_and_its_items_are_counted,
            jobs_are_found_by_name_and_by_the_beginning_of_their_id,
            a_job_is_invisible_until_all_of_its_items_are_written,
            the_name_of_an_unfinished_job_is_unique,
            items_are_taken_in_order_by_one_worker_each,
            a_success_is_written_once_and_only_under_the_latest_grant,
            a_late_success_counts_unless_the_item_was_taken_over,
            a_suspended_worker_resumes_its_item_unless_it_was_taken_over,
            the_items_of_a_dead_worker_are_pending_again_and_its_attempt_is_ending,
            a_failed_item_is_retried_when_due_up_to_the_limit,
            a_permanent_failure_is_not_retried,
            a_failure_is_handled_by_the_jobs_policy,
            an_interrupted_item_comes_next_and_counts_no_failure,
        }
        coordinating {
            a_job_has_one_live_coordinator,
            force_takes_a_job_from_an_unknown_holder_and_never_from_a_live_one,
            a_finished_job_is_not_resumed_unless_failed_items_are_retried,
            a_stopped_job_resumes_with_its_remaining_items,
            a_cancelled_job_takes_its_items_from_the_workers,
            a_coordinator_that_lost_the_job_writes_nothing,
        }
        sessions {
            a_session_is_read_as_its_checkpoints_were_written,
            an_interrupted_task_stays_current,
            a_checkpoint_under_a_stale_fence_is_refused,
            a_refused_session_names_its_holder_and_since_when,
        }
        events {
            an_event_of_every_kind_can_be_stored,
            every_change_of_status_has_exactly_one_event,
            a_status_event_records_actor_time_change_reason_and_fence,
            a_refused_change_writes_no_event,
            the_feed_is_read_forward_from_a_number_and_backward_from_the_end,
            the_feed_is_filtered_by_kind_actor_and_time,
            closed_leases_stay_as_the_audit_trail,
        }
        rows {
            every_store_has_an_id_of_its_own,
            a_failed_transaction_changes_nothing,
            a_task_is_read_as_it_was_written_and_edited,
            a_key_is_unique,
            a_key_in_another_case_names_a_task_if_only_one_has_it,
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
            the_rules_keep_every_invariant_at_every_step,
            what_a_crash_leaves_is_found_and_repaired_by_one_reconcile,
            a_lease_that_its_runner_does_not_work_on_is_found_and_returned,
            rows_that_no_rule_writes_are_found_and_repaired,
        }
        counters {
            every_change_of_a_transaction_is_counted,
            open_dependencies_and_open_tasks_survive_random_edits,
        }
    }
}
