"""Which tests run when: by default the first of every so many cases; in CI a slice of the slow ones; in `make slow` all.

What is listed here asks one query of many alike, or takes long for what it adds to its neighbours. All else runs by default.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import pytest

SLICES = 16  # of the slow tests: CI runs one of them, chosen by the commit
WHOLE = "tests/conformance/"  # its slow tests are in every slice
ONE = 10**9  # only the first case
MOST_ALIKE = 125  # cases of one test in the default run: of more, every n-th tells nearly as much

# file::test -> the first of every so many
THINNED: dict[str, int] = {
    "audit/test_given.py::test_a_fault_at_one_value_is_found_in_data_with_that_value": ONE,
    "audit/test_mechanism_epsilons.py::test_reduced_noise_is_detected": ONE,
    "conformance/engines/test_optimizer.py::test_the_optimizer_changes_no_comparison_of_a_cast": ONE,
    "analysis/test_distinct_constants.py::test_conditions_that_exclude_each_other_are_never_met_by_one_row": 3,
    "analysis/test_null_keys.py::test_bounds_hold_if_null_occurs_despite_nullable_false": 3,
    "conformance/doors/test_suggestions.py::test_suggestions_run": 4,
    "conformance/engines/test_beliefs.py::test_equal_numbers_give_equal_results": 3,
    "conformance/engines/test_types.py::test_aggregates_within_a_unit_have_the_believed_types": 4,
    "engines/test_file_statistics.py::test_conditions_mean_the_same_with_and_without_statistics": 2,
    "engines/test_file_statistics.py::test_one_row_does_not_decide_whether_nan_rows_count": 3,
    "engines/test_owners_settings.py::test_decimal_keys_next_to_a_declared_one_are_not_added_to_it": ONE,
    "engines/test_owners_settings.py::test_the_numbers_are_the_same_under_every_setting": 5,
    "planning/test_beside.py::test_no_row_moves_the_columns_further_than_claimed": 6,
    "planning/test_beside.py::test_no_unit_moves_the_columns_further_than_claimed": 8,
    "planning/test_beside.py::test_no_aggregate_is_noisier_than_separately": 4,
    "planning/test_beside.py::test_all_columns_of_a_unit_are_bounded_together": 4,
    "planning/test_beside.py::test_without_noise_the_numbers_are_those_of_duckdb": 3,
    "planning/test_exclusive_counts.py::test_a_wrong_belief_moves_no_count_beyond_its_bound": 4,
    "engines/test_closed.py::test_an_opened_database_reaches_nothing_else": 4,
    "engines/test_closed.py::test_settings_of_the_owner_are_restored": 4,
    "engines/test_worker.py::test_invalid_resource_limits_are_refused": 4,
    "equivalence/test_pairs.py::test_the_same_cells_are_measured": 6,
    "equivalence/test_pairs.py::test_different_queries_are_told_apart": 6,
    "equivalence/test_pairs.py::test_equivalent_queries_are_recognized": 6,
    "equivalence/test_same_cells.py::test_normal_forms_keep_values": ONE,
    "equivalence/test_same_cells.py::test_equivalent_queries_have_the_same_cells": ONE,
    "noise/test_calibration.py::test_variances_are_sufficient_and_tight": 4,
    "noise/test_noise_edges.py::test_the_strips_of_a_gaussian_have_the_right_width": 7,
    "noise/test_gaussian.py::test_exact_arithmetic_gives_the_same_samples": ONE,
    "noise/test_gaussian.py::test_the_right_scale_passes_and_others_fail": 4,
    "noise/test_gaussian.py::test_the_tables_bracket_the_law_of_the_strips": 4,
    "noise/test_key_release.py::test_gaussian_thresholds_are_private_however_the_changed_keys_are_shared": 5,
    "noise/test_key_release.py::test_released_counts_follow_the_proved_law": 3,
    "noise/test_key_release.py::test_truncated_noise_follows_its_law": 5,
    "noise/test_key_release.py::test_truncated_noise_is_private_outcome_by_outcome": 3,
    "noise/test_quantile_laws.py::test_bins_do_not_change_the_law": ONE,
    "noise/test_quantile_laws.py::test_frequencies_follow_the_law": 5,
    "noise/test_quantile_laws.py::test_quantiles_are_private_on_neighbours": 3,
    "noise/test_outcomes.py::test_a_step_that_does_not_split_the_rows": 4,
    "noise/test_outcomes.py::test_a_step_that_splits_the_rows": 4,
    "noise/test_runs.py::test_positions_follow_their_weights": 3,
    "noise/test_samplers.py::test_the_right_rate_passes_and_others_fail": ONE,
    "noise/test_selection.py::test_frequencies_are_the_exact_probabilities": ONE,
    "planning/test_bins.py::test_values_are_single_near_the_ranks_and_binned_elsewhere": 4,
    "planning/test_planning_edges.py::test_one_unit_moves_a_winners_lead_within_its_bound": 3,
    "planning/test_planning_edges.py::test_spreads_beside_other_numbers": 3,
    "planning/test_planning_edges.py::test_spreads_of_two_columns_either_way_round": 9,
    "planning/test_explanations.py::test_explanations": 12,
    "planning/test_fair_choices.py::test_a_bias_of_a_tenth_is_detected": ONE,
    "planning/test_fair_choices.py::test_distinct_values_of_a_unit": ONE,
    "planning/test_fair_choices.py::test_keys_of_a_composite_unit": ONE,
    "planning/test_fair_choices.py::test_keys_of_several_columns": ONE,
    "planning/test_outliers.py::test_corrected_sums_equal_clamped_sums": ONE,
    "prepare/test_by_key.py::test_answers_and_bounds_equal_those_without_a_copy": ONE,
    "prepare/test_copy_joins.py::test_no_neighbour_passes_a_bound": ONE,
    "prepare/test_copy_noise.py::test_no_noisier_than_without_it": ONE,
    "prepare/test_own_rows.py::test_no_neighbour_passes_a_bound": ONE,
    "prepare/test_stale_copies.py::test_a_source_without_a_fingerprint_cannot_be_prepared": 2,
    "prepare/test_stale_copies.py::test_every_write_is_noticed": ONE,
    "prepare/test_copy_totals.py::test_the_numbers_and_bounds_are_those_of_the_copy": ONE,
    "conformance/accountants/test_accountants.py::TestDistributions::test_a_multiplicity_equals_that_many_compositions": 3,
    "budget/test_event_prices.py::test_plans_and_accountants_name_one_price": 3,
    "answers/test_answer_file.py::test_a_damaged_answer_file_is_ignored": 2,
    "answers/test_answer_file.py::test_a_forged_answer_is_ignored": 10,
    "answers/test_answer_file.py::test_a_later_session_gets_the_same_answer_for_nothing": 7,
    "answers/test_answer_file.py::test_all_number_types_are_stored_exactly": ONE,
    "planning/test_auto_ranges.py::test_the_found_range_covers_the_values_tightly": 2,
    "planning/test_auto_ranges.py::test_decimals_may_end_within_a_bucket": 4,
    "planning/test_auto_ranges.py::test_every_end_that_may_be_found_can_be_declared": 5,
    "doors/test_bad_input.py::test_frames_that_cannot_be_named_in_sql": 4,
    "doors/test_bad_input.py::test_odd_column_names_are_harmless": ONE,
    "doors/test_bad_input.py::test_invalid_policies_are_refused": 3,
    "doors/test_bad_input.py::test_unanswerable_sql_raises_a_privsql_error": 3,
    "doors/test_bad_input.py::test_text_constants_cannot_inject_sql": 3,
    "answers/test_batch.py::test_shares_never_exceed_the_total_even_at_the_least_epsilon": ONE,
    "cases/test_cases.py::test_answers_agree_with_duckdb": 90,
    "cases/test_cases.py::test_case": 14,
    "planning/test_choice.py::test_selection_of_a_price_is_private_on_neighbours": ONE,
    "planning/test_choice.py::test_scores": ONE,
    "planning/test_choice.py::test_scores_of_a_chain_move_one_way": ONE,
    "planning/test_choice.py::test_scores_that_move_both_ways_are_not_a_chain": 3,
    "cli/test_command_line.py::test_a_query_from_standard_input": ONE,
    "cli/test_command_line.py::test_errors": 6,
    "cli/test_command_line.py::test_the_table_is_named_after_the_file": ONE,
    "cli/test_demo.py::test_the_queries_of_the_notes_are_answered": ONE,
    "answers/test_derived.py::test_other_queries_are_not_derived": 6,
    "answers/test_derived.py::test_a_derived_answer_is_correct_and_reads_no_data": 20,
    "answers/test_derived.py::test_expressions_that_distinguish_equal_keys_are_not_derived": 3,
    "house/test_docs.py::test_examples_run": ONE,
    "analysis/test_domains.py::test_disjointness_is_never_claimed_wrongly": ONE,
    "analysis/test_domains.py::test_domains_contain_every_value_that_occurs": ONE,
    "analysis/test_domains.py::test_grids_cover_their_range_in_few_steps": 4,
    "analysis/test_domains.py::test_weighted_half_widths_against_simulation_and_integration": 21,
    "doors/test_sources.py::test_settings_of_the_caller_do_not_change_answers": 3,
    "fuzz/test_fuzz.py::test_the_neutral_form_distinguishes_different_queries": 4,
    "planning/test_grid.py::test_whole_numbers": 4,
    "results/test_intervals.py::test_stated_accuracy_matches_simulation": 4,
    "results/test_intervals.py::test_counts_sums_and_averages": 3,
    "results/test_intervals.py::test_formulas": 25,
    "engines/test_late_failures.py::test_a_malformed_pattern_is_refused_whatever_the_data": 4,
    "engines/test_late_failures.py::test_accepted_constants_fail_on_no_row": ONE,
    "planning/test_levels.py::test_margins_agree_exactly": 3,
    "planning/test_levels.py::test_never_worse_than_separate_answers": ONE,
    "planning/test_measurement.py::test_a_measurement_that_does_not_cover_its_sensitivity_cannot_be_made": 3,
    "mechanisms/test_mechanisms.py::test_above_threshold_is_private": ONE,
    "mechanisms/test_mechanisms.py::test_intervals_cover": 3,
    "mechanisms/test_mechanisms.py::test_permute_and_flip_of_many": ONE,
    "mechanisms/test_mechanisms.py::test_winners_follow_their_distribution": ONE,
    "noise/test_noise_end_to_end.py::test_a_selection_errs_as_often_as_the_plan_says": ONE,
    "noise/test_noise_end_to_end.py::test_intervals_have_their_stated_coverage": ONE,
    "planning/test_lecture_notes.py::test_the_constants": 3,
    "planning/test_lecture_notes.py::test_winners_have_their_exact_probabilities": ONE,
    "planning/test_quantiles.py::test_a_quantile_is_near_its_rank": 4,
    "planning/test_quantiles.py::test_a_unit_has_no_more_rows_in_the_histogram_than_allowed": ONE,
    "planning/test_quantiles.py::test_binned_extremes_have_the_same_rows": ONE,
    "planning/test_quantiles.py::test_the_shorter_histogram_has_the_same_rows": ONE,
    "planning/test_quantiles.py::test_values_are_clamped_and_null_is_not_counted": 3,
    "sql/test_reserved_names.py::test_a_table_with_a_reserved_column_is_refused": 3,
    "sql/test_reserved_names.py::test_reserved_names_are_safe_in_every_clause": ONE,
    "doors/test_pandas.py::test_invalid_declarations_are_refused": 3,
    "drafting/test_policy_init.py::test_errors_of_policy_commands": 6,
    "drafting/test_policy_init.py::test_units_are_guessed_from_names": 6,
    "attacks/test_precision_attacks.py::test_nan_shows_in_the_naive_sum_and_not_in_privsql": ONE,
    "attacks/test_precision_attacks.py::test_every_epsilon_gives_finite_integer_noise": ONE,
    "planning/test_pricing.py::test_shares_sum_to_epsilon": 15,
    "results/test_undetermined.py::test_an_empty_cell_is_null": 5,
    "results/test_projections.py::test_relations_hold_and_the_numbers_are_the_nearest": 4,
    "planning/test_public_rows.py::test_the_public_row_count_applies_to_whole_tables": 4,
    "sql/test_reserved_names.py::test_an_analysts_column_is_never_read_as_a_helper_column": 3,
    "sql/test_constants.py::test_nan_decimal_is_not_rendered_as_a_column_name": 3,
    "engines/test_engine_beliefs.py::test_the_sql_runs_whatever_the_column_statistics_are": ONE,
    "sql/test_refused_texts.py::test_unreadable_sql_raises_a_privsql_error": 3,
    "analysis/test_joins.py::test_an_equality_within_one_side_does_not_bound_matches": 2,
    "sql/test_names.py::test_names_in_joins_and_subqueries_resolve_as_in_duckdb": 6,
    "engines/test_late_failures.py::test_not_in_fails_on_no_row": ONE,
    "engines/test_late_failures.py::test_reading_undeclared_keys_fails_on_no_row": ONE,
    "engines/test_twin.py::test_a_pattern_fails_before_the_charge_or_never": ONE,
    "engines/test_twin.py::test_duckdb_rejects_the_pattern_while_planning": 2,
    "planning/test_units.py::test_units_of_different_decimal_scales_are_not_merged": 2,
    "engines/test_calendar_ends.py::test_a_timestamp_before_the_calendar_casts_to_null_text": 4,
    "engines/test_late_failures.py::test_sums_over_public_tables_do_not_overflow": 3,
    "sql/test_constants.py::test_text_casts_to_a_constant_only_where_duckdb_casts_it": 6,
    "engines/test_row_order.py::test_nan_sign_does_not_depend_on_row_order": 7,
    "soundness/test_soundness.py::test_no_pair_exceeds_a_bound": ONE,
    "soundness/test_soundness.py::test_no_pair_of_units_exceeds_a_bound": ONE,
    "soundness/test_soundness.py::test_no_pair_exceeds_a_bound_of_a_join": ONE,
    "soundness/test_soundness.py::test_former_failures_on_some_rows_stay_fixed": 4,
    "planning/test_spread.py::test_intervals_cover": ONE,
    "planning/test_spread.py::test_spreads_are_never_impossible": ONE,
    "planning/test_spread.py::test_without_noise_spreads_match_duckdb": 5,
    "answers/test_stored.py::test_a_different_query_is_charged": 3,
    "answers/test_stored.py::test_an_equivalent_query_is_free": 4,
    "soundness/test_tightness.py::test_a_pair_attains_the_bound": 12,
    "tpch/test_tpch.py::test_answers_are_those_of_plain_duckdb": 21,
    "tpch/test_tpch.py::test_answers_have_noise": 21,
    "soundness/test_unit_pairs.py::test_no_state_of_a_person_exceeds_the_bound": 40,
    "within_unit/test_window_pairs.py::test_no_state_of_a_person_exceeds_the_bound_of_a_window": 4,
    "within_unit/test_window_pairs.py::test_every_window_is_partitioned_by_the_unit": 4,
    "within_unit/test_window_values.py::test_values_and_types_are_those_of_duckdb": 16,
    "within_unit/test_window_values.py::test_no_value_makes_a_window_fail": 8,
    "within_unit/test_window_queries.py::test_a_query_of_one_persons_rows_is_answered_like_plain_duckdb": 4,
    "composed/test_queries.py::test_a_query_without_noise_is_answered_like_plain_duckdb": 5,
    "dialects/test_everyday.py::test_an_everyday_query_means_in_every_dialect_what_it_means_in_duckdb": 16,
    "sql/test_boxes.py::test_whatever_the_cells_are_the_result_is_between_its_ends": 4,
    "planning/test_units.py::test_a_declared_bound_on_matches_is_enforced": ONE,
    "planning/test_units.py::test_declared_limits_can_only_be_lowered": 3,
    "planning/test_undeclared_keys.py::test_mechanism_forces_the_noise_of_keys": 3,
    "planning/test_undeclared_keys.py::test_no_fewer_keys_than_by_rows_where_people_have_up_to_max_rows": ONE,
    "planning/test_undeclared_keys.py::test_the_noise_of_shown_counts_has_its_scale": ONE,
    "planning/test_unnest.py::test_no_list_of_one_person_passes_the_bound": ONE,
    "planning/test_unnest.py::test_the_constants": 3,
    "planning/test_unnest.py::test_unbounded_lists_are_refused": 3,
    "privacy/test_weighted_sums.py::test_laplace_against_the_exact_distribution": 10,
}


def thin_out(items: list[pytest.Item]) -> None:
    """Mark as slow every case but the first of so many."""
    seen = Counter[str]()
    for item in items:
        name = item.nodeid.removeprefix("tests/").split("[")[0]
        if name in THINNED:
            if seen[name] % THINNED[name]:
                item.add_marker(pytest.mark.slow)
                item.add_marker(pytest.mark.thinned)
            seen[name] += 1


def slice_of_commit(commit: str | None = None) -> int:
    """The slice that is the commit's turn, HEAD if none is given: the same in every process."""
    if commit is None:
        git = ["git", "rev-parse", "HEAD"]
        done = subprocess.run(git, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
        if done.returncode:
            raise pytest.UsageError(
                f"no commit to choose a slice by: say which, --slow-slice=0 to {SLICES - 1}"
            )
        commit = done.stdout.strip()
    return int(commit, 16) % SLICES


def is_in_slice(nodeid: str, chosen: int) -> bool:
    return nodeid.startswith(WHOLE) or crc32(nodeid.encode()) % SLICES == chosen


def outside_slice(items: Sequence[pytest.Item], chosen: int) -> list[pytest.Item]:
    """The slow tests that another slice runs."""
    slow = (each for each in items if each.get_closest_marker("slow"))
    return [each for each in slow if not is_in_slice(each.nodeid, chosen)]
