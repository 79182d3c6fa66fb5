"""What is built of several ops follows another shape, or refuses it; nothing keeps the places of the first one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

CALLS: dict[str, Callable[[Any], Any]] = {
    "array_split": lambda x: rg.array_split(x, 3),
    "array_split into more": lambda x: rg.array_split(x, 4, -1),
    "broadcast_arrays": lambda x: rg.broadcast_arrays(x, np.ones((2, 1, 1, 1)), x[:1]),
    "delete": lambda x: rg.delete(x, [0, -1], 0),
    "delete a slice": lambda x: rg.delete(x, slice(None, None, 2), 0),
    "delete one": lambda x: rg.delete(x, -2, 0),
    "dstack": rg.dstack,
    "geomspace": lambda x: rg.geomspace(1.0, x * x + 1.0, 4),
    "hstack": rg.hstack,
    "insert": lambda x: rg.insert(x, [1, 1], [7.0, 8.0]),
    "insert along": lambda x: rg.insert(x, [1, -1], 2.0, 0),
    "insert at the end": lambda x: rg.insert(x, 2, 9.0, 0),
    "insert from the end": lambda x: rg.insert(x, -1, x[0], 0),
    "linspace": lambda x: rg.linspace(x, 2.0 * x + 1.0, 4),
    "linspace at the end": lambda x: rg.linspace(0.0, x, 4, axis=-1),
    "logspace": lambda x: rg.logspace(x, 2.0, 3),
    "logspace of bases": lambda x: rg.logspace(1.0, 2.0, 3, base=x * x + 1.0),
    "meshgrid": lambda x: rg.meshgrid(x.ravel(), x.ravel()[:2]),
    "pad max": lambda x: rg.pad(x, 1, mode="maximum", stat_length=4),
    "pad mean": lambda x: rg.pad(x, 2, mode="mean", stat_length=4),
    "pad median": lambda x: rg.pad(x, 2, mode="median", stat_length=3),
    "pad node": lambda x: rg.pad(x, 1, constant_values=x.ravel()[0]),
    "repeat by a node": lambda x: rg.repeat(x, rg.argmax(x * 0.0) + 2, 0),
    "resize": lambda x: rg.resize(x, (3, 11)),
    "resize to less": lambda x: rg.resize(x, 2),
    "unique": lambda x: rg.unique(x, return_inverse=True),
    "unique_all": rg.unique_all,
    "unique_inverse": rg.unique_inverse,
    "vstack": rg.vstack,
}
OF_SQUARES: dict[str, Callable[[Any], Any]] = {
    "diag_indices_from": lambda x: x[rg.diag_indices_from(x)],
    "tril_indices_from": lambda x: x[rg.tril_indices_from(x)],
    "triu_indices_from": lambda x: x[rg.triu_indices_from(x, 1)],
}
# These need lengths, or values, when they are built.
OF_KNOWN = {"repeat by a node", "unique", "unique_all", "unique_inverse", *OF_SQUARES}
SHAPES = [((3, 4), (5, 4)), ((3, 4), (4, 7)), ((3,), (6,)), ((5,), (3,)), ((2, 3, 3), (4, 5, 5))]
TESTS = [(CALLS[name], a, b, name not in OF_KNOWN) for name in CALLS for a, b in SHAPES]
IDS = [f"{name}-{len(a)}-{i}" for name in CALLS for i, (a, _) in enumerate(SHAPES)]
for _name, _call in OF_SQUARES.items():
    TESTS += [(_call, (3, 3), (4, 4), False), (_call, (4, 4), (2, 2), False)]
    IDS += [f"{_name}-up", f"{_name}-down"]


def nodes(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple | list) else [result]


def total(parts: list[Any]) -> Any:
    return sum([(one * one).sum() for one in parts if one.dtype.kind == "f"])


def fresh(call: Any, a: Any) -> list[Any]:
    x = rg.Graph().param(a)
    found = nodes(call(x))
    return [one.value for one in (*found, rg.grad(total(found), x))]


@pytest.mark.slow
@pytest.mark.parametrize(("call", "first", "second", "unknown"), TESTS, ids=IDS)
@pytest.mark.parametrize("how", ["known", "lifted", "unknown"])
def test_another_shape_is_followed(
    call: Any, first: Any, second: Any, unknown: bool, how: str
) -> None:
    if how == "unknown" and not unknown:
        return
    a, b = (np.random.default_rng(i).standard_normal(s) for i, s in enumerate((first, second)))
    g = rg.Graph()
    x = g.input(shape=(None,) * a.ndim, dtype="d") if how == "unknown" else g.param(a)
    copied = rg.lift(np.copy, vjp=lambda g, ans, x: (g,))
    parts = nodes(call(copied(x) if how == "lifted" else x))
    parts.append(rg.grad(total(parts), x))
    for now in (a, b, a):
        x.set(now)
        for one, wanted in zip(parts, fresh(call, now), strict=True):
            assert np.shape(one.value) == np.shape(wanted)
            np.testing.assert_allclose(one.value, wanted, rtol=1e-12, atol=1e-14)


# What counts on a length says so when another one comes, and nothing changes.
REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "apply_along_axis": (lambda x: rg.apply_along_axis(rg.sum, 0, x), "apply_along_axis was built"),
    "delete by booleans": (lambda x: rg.delete(x, [True, False, True], 0), "delete by booleans"),
    "delete the last": (lambda x: rg.delete(x, 2, 0), "at least 3"),
    "insert at a slice": (lambda x: rg.insert(x, slice(0, 2), 1.0, 0), "insert at a slice"),
    "insert behind all": (lambda x: rg.insert(x, 3, 1.0, 0), "at least 3"),
    "linspace": (lambda x: rg.linspace(x[0], 2.0, 3), "number of axes"),
    "poly": (lambda x: rg.poly(x[:, 0]), "poly was built"),
    "polyval": (lambda x: rg.polyval(x, 2.0), "polyval of several polynomials was built"),
    "repeat": (lambda x: rg.repeat(x, [1, 2, 1], 0), "repeat by numbers for each element"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_another_length_is_refused(name: str) -> None:
    call, text = REFUSED[name]
    a = np.random.default_rng(0).standard_normal((3, 4))
    x = rg.Graph().input(a)
    y = call(x)
    before = y.value
    with pytest.raises(rg.ShapeError, match=text):
        x.set(np.ones((2, 5, 3) if name == "linspace" else (2, 3)))
    assert y.value is before
    np.testing.assert_array_equal(x.value, a)


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda x: rg.insert(x, [3, 0], 5.0), [5.0, 1.0, 2.0, 3.0, 5.0]),
        (lambda x: rg.delete(x, [2, 0]), [2.0]),
    ],
)
def test_places_outside_of_a_shorter_axis_are_refused(call: Any, wanted: Any) -> None:
    x = rg.Graph().input([1.0, 2.0, 3.0])
    y = call(x)
    assert y.tolist() == wanted
    with pytest.raises(rg.IndexingError, match="axis 0 has length 1"):
        x.set([1.0])
    assert y.tolist() == wanted


def test_a_resize_of_half_floats_adds_up_in_float64() -> None:
    x = rg.Graph().param(np.ones(3, np.float16))
    slope = rg.grad(rg.resize(x, 3 * 5000 + 1).sum(dtype="f4"), x)
    assert slope.tolist() == [5000.0, 5000.0, 5000.0]  # 5001 is no half float
    assert rg.resize(rg.Graph().input(np.zeros(0)), (2, 2)).tolist() == [[0.0, 0.0], [0.0, 0.0]]
