"""Which of a test's many cases run by default: the first of every so many; the slow run has the others.

What is listed here asks one question of many alike, or takes long for what it adds to its neighbours. All else runs by default.
"""

from __future__ import annotations

from collections import Counter

import pytest

ONE = 10**9  # only the first case

# file::test -> the first of every so many
THINNED: dict[str, int] = {
    "analysis/test_ranges.py::test_ranges": 3,
    "audit/test_given.py::test_what_only_one_value_shows_is_found_in_data_that_has_it": ONE,
    "audit/test_mechanisms.py::test_less_noise_is_found_out": ONE,
    "engines/test_closed.py::test_nothing_is_reached_from_what_we_open": 4,
    "engines/test_closed.py::test_settings_of_the_owner_are_the_same_before_and_after": 4,
    "meaning/test_pairs.py::test_the_same_cells_are_measured": 3,
    "meaning/test_pairs.py::test_these_do_not_mean_the_same": 3,
    "meaning/test_pairs.py::test_these_mean_the_same": 3,
    "noise/test_edges.py::test_the_strips_of_a_gaussian_have_the_right_width": 7,
    "noise/test_gaussian.py::test_deciding_each_one_by_exact_arithmetic_changes_nothing": 4,
    "noise/test_gaussian.py::test_the_right_scale_passes_and_others_fail": 4,
    "noise/test_key_release.py::test_gaussian_thresholds_are_private_however_the_changed_keys_are_shared": 5,
    "noise/test_key_release.py::test_truncated_noise_is_private_outcome_by_outcome": 3,
    "noise/test_order.py::test_bins_leave_the_law_as_it_is": ONE,
    "noise/test_order.py::test_frequencies_are_the_law": 5,
    "noise/test_order.py::test_neighbours_are_hard_to_tell_apart": 3,
    "noise/test_samplers.py::test_the_right_rate_passes_and_others_fail": 3,
    "noise/test_selection.py::test_frequencies_are_the_exact_probabilities": ONE,
    "planning/test_bins.py::test_value_by_value_near_the_ranks_and_in_bins_elsewhere": 4,
    "planning/test_edges.py::test_spreads_of_two_columns_either_way_round": 3,
    "planning/test_outliers.py::test_the_numbers_are_those_of_clamping": ONE,
    "planning/test_explanations.py::test_explanations": 6,
    "prepare/test_by_key.py::test_the_numbers_and_bounds_are_those_without": 5,
    "prepare/test_joins.py::test_no_neighbour_passes_a_bound": ONE,
    "prepare/test_noise.py::test_no_noisier_than_without_it": 13,
    "prepare/test_own_rows.py::test_no_neighbour_passes_a_bound": ONE,
    "prepare/test_signs.py::test_a_write_is_noticed_whatever_it_wrote": ONE,
    "prepare/test_totals.py::test_the_numbers_and_bounds_are_those_of_the_copy": ONE,
    "test_accountants.py::TestDistributions::test_many_are_as_many_compositions": 3,
    "test_answer_file.py::test_a_damaged_file_is_as_if_it_were_not_there": 2,
    "test_answer_file.py::test_a_forged_answer_is_none": 10,
    "test_answer_file.py::test_a_later_session_gets_the_same_answer_for_nothing": 7,
    "test_answer_file.py::test_numbers_of_any_kind_are_kept": ONE,
    "test_bad_input.py::test_odd_column_names_are_harmless": 18,
    "test_bad_input.py::test_texts_in_constants_stay_constants": 3,
    "test_cases.py::test_answers_agree_with_duckdb": 30,
    "test_cases.py::test_case": 6,
    "test_choice.py::test_no_neighbour_makes_a_price_likelier_than_allowed": ONE,
    "test_choice.py::test_scores": 3,
    "test_choice.py::test_scores_of_a_chain_move_one_way": 3,
    "test_choice.py::test_scores_that_can_move_both_ways_are_not_taken_for_a_chain": 3,
    "test_cli.py::test_a_question_from_standard_input": ONE,
    "test_cli.py::test_errors": 3,
    "test_demo.py::test_the_questions_of_the_notes_are_answered": ONE,
    "test_derived.py::test_it_does_not_follow": 3,
    "test_derived.py::test_it_follows_and_is_right_and_reads_no_data": 10,
    "test_docs.py::test_examples_run": ONE,
    "test_domains.py::test_disjoint_is_never_claimed_wrongly": ONE,
    "test_domains.py::test_domains_hold_every_value_that_occurs": 5,
    "test_domains.py::test_weighted_half_widths_against_simulation_and_integration": 7,
    "test_doors.py::test_settings_of_the_caller_do_not_change_what_is_meant": 3,
    "test_fuzz.py::test_the_neutral_form_tells_apart_what_differs": 4,
    "test_intervals.py::test_counts_sums_and_averages": 3,
    "test_intervals.py::test_formulas": 10,
    "test_late_failures.py::test_a_malformed_pattern_is_refused_whoever_is_there": 4,
    "test_late_failures.py::test_constants_that_are_accepted_fail_on_no_row": 8,
    "test_levels.py::test_margins_agree_exactly": 3,
    "test_levels.py::test_never_worse_than_separate_answers": ONE,
    "test_mechanisms.py::test_above_threshold_is_private": ONE,
    "test_mechanisms.py::test_intervals_cover": 3,
    "test_mechanisms.py::test_winners_win_as_often_as_they_should": ONE,
    "test_noise_end_to_end.py::test_a_choice_is_as_uncertain_as_the_plan_says": ONE,
    "test_notes.py::test_the_constants": 3,
    "test_notes.py::test_winners_win_as_often_as_they_should": 3,
    "test_order.py::test_a_quantile_is_near_its_rank": 4,
    "test_order.py::test_the_ends_alone_have_the_same_rows": 13,
    "test_own_names.py::test_a_table_with_such_a_column_is_refused": 3,
    "test_own_names.py::test_every_place_where_an_analyst_names_something": ONE,
    "test_policy_init.py::test_a_draft_loads_and_its_placeholders_make_sums_work": ONE,
    "test_policy_init.py::test_errors": 3,
    "test_policy_init.py::test_guesses": 3,
    "test_precision_attacks.py::test_a_value_that_is_no_number_shows_in_the_naive_sum_and_not_in_privsql": ONE,
    "test_precision_attacks.py::test_prices_from_tiny_to_huge_give_whole_finite_noise": ONE,
    "test_pricing.py::test_the_parts_make_up_the_whole": 5,
    "test_projections.py::test_relations_hold_and_the_numbers_are_the_nearest": 4,
    "test_public_rows.py::test_the_whole_table_and_nothing_that_may_be_missing": 4,
    "test_review.py::test_a_decimal_that_is_no_number_is_not_written_as_a_name": 3,
    "test_review.py::test_duckdb_plans_the_same_whatever_the_statistics_are": ONE,
    "test_review.py::test_what_cannot_be_read_is_refused_with_an_error_of_our_own": 3,
    "test_review3.py::test_answers_mean_what_the_sql_says_or_are_refused": 3,
    "test_review3.py::test_reading_keys_that_nobody_declared_fails_on_no_row": 5,
    "test_review5.py::test_a_pattern_fails_before_the_charge_or_never": 4,
    "test_soundness.py::test_what_once_failed_on_some_rows": 4,
    "test_spread.py::test_intervals_cover": 8,
    "test_spread.py::test_nothing_impossible_comes_out": ONE,
    "test_spread.py::test_without_noise_it_is_what_duckdb_says": 5,
    "test_stored.py::test_the_same_meaning_is_free": 4,
    "test_tightness.py::test_a_pair_attains_the_bound": 6,
    "test_tpch.py::test_answers_are_those_of_plain_duckdb": 7,
    "test_tpch.py::test_answers_have_noise": 7,
    "test_unit_pairs.py::test_no_state_of_a_person_passes_the_bound": 18,
    "test_units.py::test_a_declared_bound_on_matches_is_enforced": ONE,
    "test_units.py::test_limits_can_be_lowered_only": 3,
    "test_unknown_keys.py::test_mechanism_forces_the_noise_of_keys": 3,
    "test_unknown_keys.py::test_the_noise_of_shown_counts_has_its_scale": ONE,
    "test_unnest.py::test_no_list_of_one_person_passes_the_bound": 7,
    "test_unnest.py::test_the_constants": 3,
    "test_unnest.py::test_what_has_no_bound_is_refused": 3,
    "test_weighted_sums.py::test_laplace_against_the_exact_distribution": 10,
}


def thin_out(items: list[pytest.Item]) -> None:
    """Mark as slow what is not the first of so many."""
    seen = Counter[str]()
    for item in items:
        name = item.nodeid.removeprefix("tests/").split("[")[0]
        if name in THINNED:
            if seen[name] % THINNED[name]:
                item.add_marker(pytest.mark.slow)
                item.add_marker(pytest.mark.thinned)
            seen[name] += 1
