"""A DataArray that holds a Var stays live: ``sum``, ``mean``, ``concat``, ``where`` and what is built on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

xr = pytest.importorskip("xarray")

VALUES = np.arange(12.0).reshape(3, 4)

CALLS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda a: a.sum(),
    "sum of one dimension": lambda a: a.sum("t"),
    "mean": lambda a: a.mean("t"),
    "mean of all": lambda a: a.mean(),
    "concat": lambda a: xr.concat([a, a * 2.0], dim="t"),
    "concat with plain numbers": lambda a: xr.concat([a, a.copy(data=VALUES)], dim="t"),
    "where": lambda a: a.where(a > 3.0),
    "where with another value": lambda a: a.where(a > 3.0, 0.0),
    "where of xarray": lambda a: xr.where(a > 3.0, a, -1.0),
    "where with another array": lambda a: a.where(a > 3.0, a * 2.0),
    "fillna": lambda a: a.fillna(0.0),
    "std": lambda a: a.std("t"),
    "max": lambda a: a.max("s"),
    "cumsum": lambda a: a.cumsum("t"),
    "dot": lambda a: xr.dot(a, a, dim="t"),
    "groups": lambda a: a.groupby("t").sum(),
    "weighted": lambda a: a.weighted(xr.DataArray([1.0, 2.0, 3.0], dims="t")).mean("t"),
    "diff and shift": lambda a: a.diff("t") + a.shift(t=1).isel(t=slice(1, None)),
    "selection": lambda a: a.sel(s=["a", "d"]) * 3.0,
    "a function of NumPy": lambda a: np.exp(a / 10.0),
}


def labelled(data: Any) -> Any:
    return xr.DataArray(data, dims=("t", "s"), coords={"t": [1, 2, 3], "s": list("abcd")})


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_a_call_is_live_and_keeps_labels(name: str) -> None:
    g = rg.Graph()
    x = g.input(VALUES, name="x")
    found, plain = CALLS[name](labelled(x)), CALLS[name](labelled(VALUES))
    assert isinstance(found.data, rg.Var)
    assert found.dims == plain.dims
    for coordinate in plain.coords:
        np.testing.assert_array_equal(found.coords[coordinate], plain.coords[coordinate])
    np.testing.assert_allclose(found.data.value, plain.data)
    moved = VALUES[::-1] * 1.5
    x.set(moved)
    np.testing.assert_allclose(found.data.value, CALLS[name](labelled(moved)).data)


def test_gradients_pass() -> None:
    g = rg.Graph()
    x = g.input(VALUES, name="x")
    total = labelled(x).where(labelled(x) > 3.0, 0.0).mean("t").sum()
    np.testing.assert_allclose(rg.grad(total.data, x).value, (VALUES > 3.0) / 3.0)
