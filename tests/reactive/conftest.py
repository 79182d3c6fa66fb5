"""What the push side and dynamic reads do not do yet: each test with its reason.

These tests say what will hold; they are expected to fail until it does. Remove a line with the
change that makes its test pass.
"""

from __future__ import annotations

import pytest

OPEN = {
    "test_a_failed_transaction_inside_an_observer": "queued sets outlive a rollback inside an observer",
    "test_a_pin_and_a_touch_are_told": "only sets and runs tell observers of a change",
    "test_a_read_inside_an_observer_tells": "what a read inside an observer ran is told at the next run",
    "test_a_set_does_not_ask_after_observers": "each set looks at all observers of staleness",
    "test_a_set_inside_an_observer_that_does_not_fit": "one queued set that does not fit drops all",
    "test_after_stabilize_nothing_observed_is_stale": "an edit inside an observer makes no other pass",
    "test_an_error_is_told_again": "an error healed behind a cutoff is not told again",
    "test_an_error_that_no_observer_of_errors_sees": "one observer of errors hides those of other nodes",
    "test_attaching_along_a_chain": "attaching walks the ancestors of a node that was never read",
    "test_observers_that_set_each_other_off": "the error does not name the nodes",
    "test_of_several_sets_inside_observers": "a queued set is held against the cutoff too early",
    "test_turning_stale_is_told_once": "only sets tell observers of staleness",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the tests of what is open to fail; some of their variants pass already."""
    for item in items:
        if "tests/reactive" not in item.nodeid:
            continue
        for name, reason in OPEN.items():
            if item.name.startswith(name):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=False))
