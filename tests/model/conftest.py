"""What random programs found and is not mended yet; see each test for its story.

Expected to fail until it is. Remove a line with the change that makes its test pass.
"""

from __future__ import annotations

import pytest

OPEN = (
    "test_a_change_reaches_who_caught_the_error_of_a_blocked_node",
    "test_a_fork_counts_errors_on",
    "test_a_function_that_read_a_blocked_node_breaks_no_invariant",
    "test_a_function_that_reads_what_an_error_further_up_has_blocked_raises_that_error",
    "test_a_rollback_is_not_stopped_by_what_a_function_read_inside",
    "test_a_rollback_of_an_edit_does_not_make_an_operand_of_what_was_read",
    "test_a_run_lists_a_failed_node_once",
    "test_a_stored_cycle_keeps_no_node_alive",
    "test_a_value_computed_in_a_failing_transaction_is_news_where_it_stays",
    "test_an_edit_that_gradients_refuse_changes_nothing",
    "test_an_error_that_another_one_further_up_has_replaced_is_not_seen_any_more",
    "test_an_observer_is_not_told_of_what_was_before_it",
    "test_an_operand_that_got_another_shape_while_a_node_was_pinned",
    "test_in_a_fork_a_function_reads_the_twins",
    "test_marks_forgotten_inside_a_function_make_no_target_look_failed",
    "test_observers_are_not_told_of_values_that_were_outdated_before_the_transaction_ended",
    "test_observers_are_told_of_a_pin_and_of_what_it_makes_stale",
    "test_observers_of_a_leaf_are_told_that_it_was_touched",
    "test_observers_of_staleness_are_told_of_every_kind_of_change",
    "test_retry_reaches_what_a_function_reads",
    "test_stabilize_raises_the_error_of_a_node_that_nobody_watches_for_errors",
    "test_what_a_function_read_is_no_operand_to_replace",
    "test_who_caught_an_error_is_as_clean_after_its_marks_were_forgotten",
    "test_who_caught_an_error_looks_again_when_it_was_retried",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the tests of what is open to fail; some of their variants pass already."""
    for item in items:
        if "tests/model" in item.nodeid and item.name.partition("[")[0] in OPEN:
            reason = "found by random programs, open: " + item.name.replace("_", " ")
            item.add_marker(pytest.mark.xfail(reason=reason, strict=False))
