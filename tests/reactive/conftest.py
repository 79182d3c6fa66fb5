"""What the push side and dynamic reads do not do yet: each test with its reason.

These tests say what will hold; they are expected to fail until it does. Remove a line with the
change that makes its test pass.
"""

from __future__ import annotations

import pytest

OPEN = {
    "test_a_first_read_through_too_many_readers": "functions that read functions nest Python frames",
    "test_both_of_two_functions_that_read_each_other": "a refused read is no dependency of the error",
    "test_of_two_overlapping_cycles_of_reads": "a refused read is no dependency of the error",
    "test_two_functions_that_read_each_other": "the path of a cycle of reads may miss a node",
    "test_a_function_reads_nodes_from_executor_threads": "a waiting function holds the graph's lock",
    "test_runs_are_cancelled_at_any_moment": "a cancelled read inside of a node is not yet clean",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the tests of what is open to fail; some of their variants pass already."""
    for item in items:
        if "tests/reactive" not in item.nodeid:
            continue
        for name, reason in OPEN.items():
            if item.name.startswith(name):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=False))
