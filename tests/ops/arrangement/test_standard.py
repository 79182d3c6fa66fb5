"""The same values and gradients on a device of the array API standard, some of whose kernels run on the host."""

from __future__ import annotations

import array_api_strict as xp
import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.array_api._array_api import register_array_api
from tests.ops.case import Case, of_case, tuple_of

from .test_laws import CASES

register_array_api(xp, "strict")


@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_values_and_gradients(case: Case) -> None:
    operands = case.operands(2, "d")
    found = []
    for convert in (xp.asarray, np.asarray):
        g = rg.Graph()
        leaves = [g.input(convert(one)) for one in operands]
        nodes = list(tuple_of(case.call(*leaves)))
        slopes = rg.grad((nodes[0] * nodes[0]).sum(), leaves, allow_unused=True)
        nodes += [one for one in slopes if one is not None]
        found.append([one.numpy() for one in nodes])
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def test_forward_mode_and_second_order() -> None:
    for how in ("set", "add", "multiply", "divide", "max"):
        found = []
        for convert in (xp.asarray, np.asarray):
            g = rg.Graph()
            x, v = g.input(convert(np.arange(1.0, 5.0))), g.input(convert(np.array([3.0, 2.0])))
            y = getattr(x.at[np.array([2, 0])], how)(v)
            first = rg.grad((y * y).sum(), [x, v])
            second = rg.grad((first[0] * first[0]).sum() + (first[1] * first[1]).sum(), [x, v])
            tangent = rg.jvp(y, [x, v], [convert(np.ones(4)), convert(np.ones(2))])
            found.append([one.numpy() for one in (y, *first, *second, tangent)])
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)


def test_factories_and_ranges() -> None:
    g = rg.Graph()
    x = g.input(xp.asarray([1.0, 2.0]))
    for node in (rg.zeros_like(x), rg.full_like(x, 3.0), rg.linspace(x[0], x[1], 4)):
        assert node.device == "strict"
    np.testing.assert_allclose(rg.linspace(x[0], x[1], 4).numpy(), np.linspace(1, 2, 4))
    with g:
        assert rg.ones(2, device="strict").numpy().tolist() == [1.0, 1.0]
