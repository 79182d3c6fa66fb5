"""Products and transforms on devices of the array API standard: the host's values and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.array_api._array_api import register_array_api
from tests.fft.test_laws import CASES as TRANSFORMS
from tests.ops.case import TOLERANCE, Case, of_case, tuple_of
from tests.ops.products.test_einsum import CASES as SUMS
from tests.ops.products.test_products import CASES as PRODUCTS

xp = pytest.importorskip("array_api_strict", reason="array-api-strict is in the dev extra")
register_array_api(xp, "strict")


def results(case: Case, make: Any) -> list[Any]:
    dtype = case.dtypes[0]
    g = rg.Graph()
    leaves = [g.input(make(one)) for one in case.operands(11, dtype)]
    nodes = list(tuple_of(case.call(*leaves)))
    if case.order:
        total = rg.real((nodes[0] * nodes[0]).sum())
        nodes += [one for one in rg.grad(total, leaves, allow_unused=True) if one is not None]
    return [(one.device, one.dtype, one.numpy()) for one in nodes]


@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
@pytest.mark.parametrize("case", [*TRANSFORMS, *SUMS, *PRODUCTS], ids=of_case)
def test_the_standard_computes_the_same(case: Case) -> None:
    rtol = 10 * TOLERANCE.get(case.dtypes[0], 1e-12)
    pairs = zip(results(case, xp.asarray), results(case, np.array), strict=True)
    for (device, dtype, value), (_, wanted_dtype, wanted) in pairs:
        assert device == "strict"
        assert dtype == wanted_dtype
        np.testing.assert_allclose(value, wanted, rtol=rtol, atol=rtol)
