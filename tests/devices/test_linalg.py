"""Linear algebra on a device that refuses every implicit copy to the host."""

from __future__ import annotations

import numpy as np
import pytest

import reactgrad as rg
from tests.linalg.test_laws import CASES
from tests.ops.case import TOLERANCE, Case, of_case, tuple_of

from .stand_in import Array
from .test_op_tables import DEVICE, results


@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_values_and_gradients_are_those_of_the_host(case: Case) -> None:
    dtype = case.dtypes[0]
    wanted, found = results(case, "cpu", dtype), results(case, DEVICE, dtype)
    rtol = case.tolerance.get(dtype, TOLERANCE.get(dtype, 1e-12)) * 10
    for one, other in zip(found, wanted, strict=True):
        assert isinstance(one[2], Array)
        assert one[1] == other[1]
        np.testing.assert_allclose(one[2].get(), other[2], rtol=rtol, atol=rtol)


@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_a_device_of_the_array_api_has_the_values_of_the_host(case: Case) -> None:
    pytest.importorskip("array_api_strict", reason="array-api-strict is in the dev extra")
    from tests.api.test_second_backend import is_strict, strict

    operands = case.operands(11, case.dtypes[0])
    g, h = rg.Graph(), rg.Graph(device="strict")
    wanted = tuple_of(case.call(*[g.input(one) for one in operands]))
    found = tuple_of(case.call(*[h.input(strict(one)) for one in operands]))
    for one, other in zip(found, wanted, strict=True):
        assert is_strict(one.value)
        np.testing.assert_allclose(np.asarray(one.value), other.value, rtol=1e-12, atol=1e-12)
