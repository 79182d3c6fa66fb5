"""Reductions, scans and statistics on a device that refuses every implicit copy to the host."""

from __future__ import annotations

import numpy as np
import pytest

import reactgrad as rg
from tests.ops.case import TOLERANCE, Case, of_case
from tests.ops.reductions import test_laws, test_statistics

from .stand_in import Array
from .test_op_tables import DEVICE, results

# The length of these results shows only in the values; such a value is an array of the device.
BY_VALUE = ("histogram rule", "bincount")
CASES = [one for one in (*test_laws.CASES, *test_statistics.CASES) if one.name not in BY_VALUE]


@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_values_and_gradients_are_those_of_the_host(case: Case) -> None:
    dtype = case.dtypes[0]
    wanted, found = results(case, "cpu", dtype), results(case, DEVICE, dtype)
    rtol = case.tolerance.get(dtype, TOLERANCE.get(dtype, 1e-12)) * 10
    for one, other in zip(found, wanted, strict=True):
        assert isinstance(one[2], Array)
        assert one[1] == other[1]
        np.testing.assert_allclose(one[2].get(), other[2], rtol=rtol, atol=rtol)


def test_a_value_whose_length_shows_late_is_an_array_of_its_device() -> None:
    g = rg.Graph(device=DEVICE)
    counts = rg.bincount(g.input(np.array([1, 2, 2])))
    assert isinstance(counts.value, Array)
    assert counts.numpy().tolist() == counts.tolist() == [0, 1, 2]
