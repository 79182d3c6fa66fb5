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
# Cases that do not run there, by the beginning of their names, and why.
HOST_ONLY = {
    "at[repeated].divide": "CuPy has no divide.at",
    "trim_zeros": "its length is counted by NumPy",
    "unique": "lengths of sets are counted by NumPy",
    "median": "order statistics read their fractions as numbers of the host",
    "quantile": "as median",
    "percentile": "as median",
    "nanmedian": "as median",
    "nanquantile": "as median",
    "nanpercentile": "as median",
    "histogram": "CuPy has no histogram_bin_edges",
    "diff beside": "a Python number alone becomes an array of the host",
    "ediff1d": "as diff beside",
    "gradient": "reads its spacings as numbers of the host",
}
# Ops without a kernel there; reading one raises an error that names op and device.
NO_KERNEL = {
    *("bessel_i", "bessel_ie", "beta", "betainc", "betaln", "elu"),
    *("erfcinv", "erfinv", "gammaln", "gelu", "gelu_tanh", "hardshrink"),
    *("hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "log_ndtr", "log_sigmoid"),
    *("logit", "mish", "ndtri", "polygamma", "prelu", "rsqrt"),
    *("silu", "sinc", "softplus", "softshrink", "softsign", "tanhshrink"),
    *("threshold", "xlog1py", "xlogy"),
}


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
            if not one.name.startswith(tuple(HOST_ONLY)):
                yield pytest.param(one, id=f"{place}-{one.name}")


def ops_of(case: Case, dtype: str) -> set[str]:
    """Return the names of the ops that a case and its gradients are made of."""
    g = rg.Graph()
    nodes = list(tuple_of(case.call(*[g.input(one) for one in case.operands(11, dtype)])))
    return {g._host.ops[one._slot].name for one in g.nodes} | {one.name for one in nodes}


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


@pytest.mark.parametrize("case", list(tables()))
def test_values_and_gradients_are_those_of_the_host(case: Case) -> None:
    for dtype in case.dtypes[:1]:
        wanted = results(case, "cpu", dtype)
        missing = NO_KERNEL & ops_of(case, dtype)
        if missing:
            with pytest.raises(rg.DeviceError, match=f"{'|'.join(missing)}"):
                results(case, DEVICE, dtype)
            return
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
