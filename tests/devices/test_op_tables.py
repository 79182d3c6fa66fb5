"""The tables of all families of ops, on a device that refuses every implicit copy to the host."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
import tests.ops
from tests.api.test_second_backend import MODELS, V, W, X
from tests.ops.case import TOLERANCE, Case, tuple_of

from .stand_in import Array, counts

DEVICE = "fake:1"
# Cases that do not run there, and why.
_DIVIDE_AT = "CuPy has no divide.at, for places that stand twice in an index"
_ROOTS = "CuPy has no eigenvalues of general matrices"
_HOST = "an array that the case gives lies on the host, and nothing is moved in silence"
GAPS = {
    "arrangement.test_laws-at[repeated].divide": _DIVIDE_AT,
    "arrangement.test_standard-at[repeated].divide": _DIVIDE_AT,
    "neural.test_losses-with logits": _HOST,
    "special.test_series-polyint with one": _HOST,
    "special.test_series-roots": _ROOTS,
    "special.test_standard-roots": _ROOTS,
}
# Cases whose functions read values while they build.
READERS = {"gradient at", "gradient evenly"}


def tables() -> Iterator[Any]:
    """Yield the cases of every module of ``tests.ops`` that has a table of them."""
    for found in pkgutil.walk_packages(tests.ops.__path__, "tests.ops."):
        if found.ispkg or not found.name.rpartition(".")[2].startswith("test_"):
            continue
        try:
            module = importlib.import_module(found.name)
        except pytest.skip.Exception:  # a module for which something is not installed
            continue
        place = found.name.removeprefix("tests.ops.")
        tables = [one for one in vars(module).values() if isinstance(one, list | tuple)]
        seen = {id(one): one for table in tables for one in table if isinstance(one, Case)}
        for one in seen.values():
            if one.name not in READERS:
                name = f"{place}-{one.name}"
                gap = GAPS.get(name)
                # Strict: a case that has come to run there has to leave the table.
                marks = () if gap is None else pytest.mark.xfail(reason=gap, strict=True)
                yield pytest.param(one, id=name, marks=marks)


def _square(x: Any) -> Any:
    return rg.real((x * x).sum())


def results(case: Case, device: str, dtype: str) -> list[Any]:
    """Return values and gradients, as arrays of the device, and their dtypes."""
    operands = case.operands(11, dtype)
    g = rg.Graph(device=device)
    leaves = [g.input(one) for one in operands]
    nodes = list(tuple_of(case.call(*leaves)))
    if case.order and "reverse" in case.modes:
        floats = [one for one in nodes if one.dtype.kind in "fc"]
        slopes = [] if not floats else rg.grad(_square(floats[0]), leaves, allow_unused=True)
        nodes += [one for one in slopes if one is not None]
    g.forward(*nodes)
    assert {one.device for one in nodes} == {device}
    return [(one.shape, one.dtype, one.value) for one in nodes]


@pytest.mark.slow
@pytest.mark.parametrize("case", list(tables()))
def test_values_and_gradients_are_those_of_the_host(case: Case) -> None:
    dtype = (case.dtypes or "d")[0]
    wanted = results(case, "cpu", dtype)
    found = results(case, DEVICE, dtype)
    rtol = case.tolerance.get(dtype, TOLERANCE.get(dtype, 1e-12)) * 10
    for one, other in zip(found, wanted, strict=True):
        assert isinstance(one[2], Array)
        assert one[1] == other[1]
        np.testing.assert_allclose(one[2].get(), other[2], rtol=rtol, atol=rtol)
    assert counts.devices <= {1}


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    def values(device: str) -> list[Any]:
        g = rg.Graph(device=device)
        leaves = [g.param(a) for a in (X, W, V)]
        y = MODELS[name](*leaves)
        total = (y * y).sum()
        nodes = [y, total, *rg.grad(total, leaves, allow_unused=True)]
        nodes.append(rg.jvp(y, leaves, [X, W, V], allow_unused=True))
        nodes = [one for one in nodes if one is not None]
        found = []
        for _ in range(2):
            g.forward(*nodes)
            assert counts.syncs == 0
            found += [one.numpy() for one in nodes]
            if found[len(nodes) :]:
                assert counts.uploads <= 3  # the new values of the leaves
            counts.clear()
            g.set({leaf: a * 1.01 for leaf, a in zip(leaves, (X, W, V), strict=True)})
        g.check_invariants()
        return found

    for ours, hosts in zip(values(DEVICE), values("cpu"), strict=True):
        np.testing.assert_allclose(ours, hosts, rtol=1e-12, atol=1e-13)
