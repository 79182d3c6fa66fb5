"""The same values on a device of the array API standard, where many of these functions run on the host."""

from __future__ import annotations

import array_api_strict as xp
import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.array_api._array_api import register_array_api
from tests.ops.case import Case, of_case, tuple_of

from . import test_functions, test_series, test_ufuncs

register_array_api(xp, "strict")

# The standard has no float16; an array of the host beside one of a device is refused.
LEFT_OUT = {"polyval in half", "polyint with", "polyint with one", "polyint of constants", "ldexp"}
CASES = [
    one
    for module in (test_functions, test_series, test_ufuncs)
    for one in module.CASES
    if one.name not in LEFT_OUT
]


QUICK = {"silu", "gammaln", "ndtri", "i0e", "round", "divmod", "convolve full 5 3", "isclose"}


@pytest.mark.parametrize("case", [one for one in CASES if one.name in QUICK], ids=of_case)
def test_values_and_gradients(case: Case) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_values_and_gradients_of_all(case: Case) -> None:
    check(case)


def check(case: Case) -> None:
    operands = case.operands(2, case.dtypes[0])
    found = []
    for convert in (xp.asarray, np.asarray):
        g = rg.Graph()
        leaves = [g.input(convert(one)) for one in operands]
        nodes = list(tuple_of(case.call(*leaves)))
        floats = [one for one in nodes if one.dtype.kind == "f"]
        if case.order and floats:
            slopes = rg.grad((floats[0] * floats[0]).sum(), leaves, allow_unused=True)
            nodes += [one for one in slopes if one is not None]
        found.append([one.numpy() for one in nodes])
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)
