"""What random programs found and is not mended yet; see each test for its story.

Expected to fail until it is. Remove a line with the change that makes its test pass.
"""

from __future__ import annotations

import pytest

OPEN = (
    "test_observers_are_not_told_of_values_that_were_outdated_before_the_transaction_ended",
    "test_observers_are_told_of_a_pin_and_of_what_it_makes_stale",
    "test_observers_of_a_leaf_are_told_that_it_was_touched",
    "test_observers_of_staleness_are_told_of_every_kind_of_change",
    "test_releasing_values_spares_one_that_a_former_cutoff_kept",
    "test_stabilize_raises_the_error_of_a_node_that_nobody_watches_for_errors",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the tests of what is open to fail; some of their variants pass already."""
    for item in items:
        if "tests/model" in item.nodeid and item.name.partition("[")[0] in OPEN:
            reason = "found by random programs, open: " + item.name.replace("_", " ")
            item.add_marker(pytest.mark.xfail(reason=reason, strict=False))
