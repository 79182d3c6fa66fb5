"""The laws of every op on arrays, for ops that move elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

from ..case import LAWS, Case, Law, of_case, of_law, tuple_of

A, B, C = (3, 4), (3, 4), (2, 3, 4)


def same(name: str, shapes: Any, *args: Any, **options: Any) -> Case:
    """Return the case of a function that NumPy has under the same name, with the same arguments."""
    given = options.pop("given", {})

    def call(package: Any) -> Callable[..., Any]:
        function = getattr(package, name, None) or getattr(np.lib.stride_tricks, name)
        return lambda *xs: function(*xs, *args, **given)

    return Case(f"{name}{args or ''}{given or ''}", call(rg), call(np), shapes, **options)


def joined(name: str, shapes: Any, **options: Any) -> Case:
    """Return the case of a function that takes its operands in a list."""
    given = options.pop("given", {})

    def call(package: Any) -> Callable[..., Any]:
        return lambda *xs: getattr(package, name)(list(xs), **given)

    return Case(f"{name}{given or ''}{list(shapes)}", call(rg), call(np), shapes, **options)


def both(name: str, call: Callable[..., Any], shapes: Any, **options: Any) -> Case:
    """Return the case of ``call(package, *operands)``, which is right for NumPy, too."""
    return Case(name, partial(call, rg), partial(call, np), shapes, **options)


def pads(mode: str, width: Any, shape: Any, **options: Any) -> Case:
    given = options.pop("given", {})
    return same("pad", [shape], width, mode, given=given, **options)


def changed(name: str, index: Any, how: str, part: Any, shape: Any = A, **options: Any) -> Case:
    """Return the case of ``x.at[index].how(v)``; the oracle writes into a copy."""
    ufuncs = {"min": "minimum", "max": "maximum"}

    def oracle(x: Any, v: Any) -> Any:
        out = x.copy()
        if how == "set":
            out[index] = v
        else:
            getattr(np, ufuncs.get(how, how)).at(out, index, v.astype(x.dtype))
        return out

    return Case(
        f"at[{name}].{how}",
        lambda x, v: getattr(x.at[index], how)(v),
        oracle,
        [shape, part],
        **options,
    )


def positive(rng: np.random.Generator, shape: Any) -> Any:
    return rng.uniform(0.5, 2.0, shape)


REPEATED = np.array([2, 0, 2, -1])
CASES = [
    same("flip", [A], empty=[(0, 4)]),
    same("flip", [C], 1),
    same("flip", [C], (0, -1)),
    same("fliplr", [A]),
    same("flipud", [A]),
    same("rot90", [A], unknown=True),
    same("rot90", [C], 3, (2, 0)),
    same("rot90", [A], 2),
    same("rot90", [A], 4),
    same("moveaxis", [C], 0, -1),
    same("moveaxis", [C], (0, 1), (2, 0)),
    same("swapaxes", [C], 0, 2),
    same("rollaxis", [C], 2, 1),
    same("rollaxis", [C], 0, 3),
    same("permute_dims", [C], (2, 0, 1)),
    same("roll", [A], 2, empty=[(0, 4)]),
    same("roll", [A], -3, 1),
    same("roll", [C], (1, 5, -2), (0, 1, -1)),
    same("roll", [A], 2, (0, 1)),
    same("roll", [A], (1, 1), 0),
    same("tile", [A], 2, empty=[(0, 4)]),
    same("tile", [A], (2, 1, 3)),
    same("tile", [C], (3, 1)),
    same("tile", [A], (2, 0)),
    same("repeat", [A], 2, unknown=False, empty=[(0, 4)]),
    same("repeat", [A], 3, 0),
    same("repeat", [C], 2, -1),
    same("repeat", [A], [1, 0, 2, 3], 1),
    same("resize", [A], (2, 3), unknown=False),
    same("resize", [A], (5, 7), unknown=False, empty=[(0, 4)]),
    same("ravel", [A], "F", empty=[(0, 4)]),
    same("ravel", [C]),
    same("reshape", [C], (4, -1), "F", unknown=False),
    same("atleast_1d", [()]),
    same("atleast_2d", [(3,)]),
    same("atleast_3d", [(3,)]),
    same("atleast_3d", [A]),
    same("copy", [A]),
    Case("flatten", lambda x: rg.flatten(x, 1), lambda x: x.reshape(len(x), -1), [C]),
    Case("flatten first", lambda x: rg.flatten(x, 0, 1), lambda x: x.reshape(-1, 4), [C]),
    Case("unflatten", lambda x: rg.unflatten(x, 1, (2, -1)), lambda x: x.reshape(-1, 2, 2), [A]),
    joined("hstack", [A, (3, 2)], unknown=False),
    joined("hstack", [(3,), (2,)]),
    joined("hstack", [(), ()]),
    joined("vstack", [A, A]),
    joined("vstack", [(4,), (4,)], unknown=False),
    joined("vstack", [A, (4,)], unknown=False),
    joined("dstack", [A, A], unknown=False),
    joined("dstack", [(3,), (3,)], unknown=False),
    joined("column_stack", [(3,), A], unknown=False),
    joined("column_stack", [(3,), (3,)], unknown=False),
    joined("concat", [A, A], given={"axis": 1}, unknown=False),
    joined("concatenate", [A, (2, 2)], given={"axis": None}),
    joined("concatenate", [A, A], given={"axis": 0, "dtype": np.float64}, dtypes="dfe"),
    both("block", lambda n, x, y: n.block([[x, y], [y, x]]), [A, A], unknown=False),
    both("block of three levels", lambda n, x, y: n.block([[[x, y]], [[y, x]]]), [C, C], unknown=False),
    both("block of widths", lambda n, x, y: n.block([[x, y[:, :2]], [y[:1], x[:1, 1:3]]]), [A, A], unknown=False),
    both("block with numbers", lambda n, x, y: n.block([[x, 2.0], [1.0, y]]), [(1, 1)] * 2, dtypes="d", unknown=False,
         fixed="the numbers beside the operands have one element"),
    both("block of rows", lambda n, x, y: n.block([x, y]), [(3,), (3,)]),
    same("append", [A, (2,)]),
    same("append", [A, A], 1, unknown=False),
    same("array_split", [A], 3, 1),
    same("array_split", [(3, 5)], [1, 3], 1),
    same("hsplit", [A], 2),
    same("vsplit", [A], 3),
    same("dsplit", [C], [1]),
    both("unstack", lambda n, x: n.unstack(x, axis=1), [A], fixed="as many results as the axis is long"),
    Case("narrow", lambda x: rg.narrow(x, 1, 1, 2), lambda x: x[:, 1:3], [A]),
    Case("narrow from the end", lambda x: rg.narrow(x, 1, -2, 2), lambda x: x[:, -2:], [A]),
    same("delete", [A], 1, unknown=False),
    same("delete", [A], -2, 1),
    same("delete", [A], -1, 0),
    same("delete", [A], [0, 2, 0], 1),
    same("delete", [A], slice(0, 4, 2), 1),
    same("delete", [A], np.array([True, False, False, True]), 1),
    both("insert a number", lambda n, x, v: n.insert(x, 1, v, 1), [A, ()], unknown=False),
    both("insert a column", lambda n, x, v: n.insert(x, 4, v, 1), [A, (3,)], unknown=False),
    both("insert several", lambda n, x, v: n.insert(x, [1, 1, 0], v, 1), [A, (3, 3)], unknown=False),
    both("insert in a row", lambda n, x, v: n.insert(x, [2, -1], v), [A, (2,)], unknown=False),
    both("trim_zeros", lambda n, x: n.trim_zeros(n.maximum(x, 0.5) - 0.5), [(9,)], dtypes="df", unknown=False),
    same("broadcast_arrays", [A, (4,)], unknown=False),
    same("broadcast_arrays", [A, (1, 4)], unknown=False),
    same("meshgrid", [(3,), (2,), (4,)]),
    same("meshgrid", [(3,), (2,)], given={"indexing": "ij"}),
    same("meshgrid", [(3,), (2,)], given={"sparse": True}),
    same("sliding_window_view", [(7,)], 3),
    same("sliding_window_view", [(5, 6)], (2, 3), unknown=False),
    same("sliding_window_view", [(5, 6)], (4, 5), (1, 0), unknown=False),
    same("sliding_window_view", [(5, 6)], (2, 2), (0, 0), unknown=False),
    pads("constant", 2, A, empty=[(0, 4)]),
    pads("constant", ((1, 2), (0, 3)), A, given={"constant_values": ((1, 2), (3, 4))}),
    pads("edge", ((1, 2), (3, 0)), A),
    pads("wrap", ((1, 2), (5, 9)), A, unknown=False),
    pads("reflect", ((1, 2), (7, 9)), A, unknown=False),
    pads("reflect", ((1, 2), (7, 9)), A, given={"reflect_type": "odd"}, unknown=False),
    pads("reflect", 1, A, given={"reflect_type": "odd"}, dtypes="?iD", order=0, unknown=False),
    pads("linear_ramp", 3, A, given={"end_values": 2}, dtypes="?eiD", order=0),
    pads("reflect", 2, (1, 3), unknown=False),
    pads("symmetric", ((1, 2), (7, 9)), A, unknown=False),
    pads("symmetric", ((5, 2), (3, 9)), A, given={"reflect_type": "odd"}, unknown=False),
    pads("linear_ramp", ((1, 2), (3, 0)), A),
    pads("linear_ramp", (2, 3), (5,), given={"end_values": (4, -2)}),
    pads("mean", ((1, 2), (3, 0)), A, dtypes="dfi"),
    pads("mean", 2, A, given={"stat_length": 2}, dtypes="dfi"),
    pads("median", ((1, 2), (3, 0)), A, dtypes="dfi", unknown=False),
    pads("median", 2, A, given={"stat_length": 3}, dtypes="dfi", unknown=False),
    pads("maximum", ((1, 2), (3, 0)), A),
    pads("minimum", 1, A, given={"stat_length": ((1, 2), (3, 2))}),
    Case(
        "pad with constants that are nodes",
        lambda x, v: rg.pad(x, 1, constant_values=v),
        lambda x, v: np.pad(x, 1, constant_values=v),
        [A, ()],
        unknown=False,
    ),
    changed("1", 1, "set", (4,)),
    changed("1, 2", (1, 2), "set", ()),
    changed("..., 1:3", (..., slice(1, 3)), "set", (3, 2), unknown=False),
    changed("None", None, "set", (4,)),
    changed("array", np.array([2, 0]), "set", (2, 4), unknown=False),
    changed("repeated", REPEATED, "set", (4, 4), unknown=False),
    changed("rows and columns", ([0, 2], [1, 3]), "set", (2,), unknown=False),
    changed("mask", np.array([[True, False, True, True]] * 3), "set", (), unknown=False,
            fixed="the mask has one shape"),
    changed("::2", slice(None, None, 2), "add", (4,)),
    changed("repeated", REPEATED, "add", (4, 4), unknown=False),
    changed("repeated pairs", (REPEATED, [0, 1, 0, 3]), "add", (4,), unknown=False),
    changed("repeated", REPEATED, "divide", (4, 4), draw=positive, dtypes="dfe", unknown=False),
    changed("repeated", REPEATED, "max", (4, 4), unknown=False),
    changed("repeated", REPEATED, "min", (4, 4), unknown=False),
    changed("array", np.array([2, 0]), "multiply", (2, 4), unknown=False),
    changed("array", np.array([2, 0]), "power", (4,), draw=positive, dtypes="df", unknown=False),
    changed("1:", slice(1, None), "multiply", (4,)),
    changed("1:", slice(1, None), "divide", (4,), draw=positive, dtypes="dfe"),
    changed("1:", slice(1, None), "power", (4,), draw=positive, dtypes="df"),
    changed("1:", slice(1, None), "max", (4,)),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)


# How many results `unstack` has shows only in the value.
@pytest.mark.parametrize("case", [one for one in CASES if one.name != "unstack"], ids=of_case)
def test_results_of_functions_as_operands(case: Case) -> None:
    """Shapes that show only when a Python function has run: the same values and gradients."""
    copied = rg.lift(np.array, vjp=lambda g, ans, a: (g,))
    operands, found = case.operands(3, "d"), []
    for through in (copied, lambda x: x):
        g = rg.Graph()
        leaves = [g.input(one) for one in operands]
        results = tuple_of(case.call(*map(through, leaves)))
        total = (results[0] * results[0]).sum()
        # Beside a shape that shows only later, a gradient may be zeros instead of none.
        slopes = rg.grad(total, leaves[:1])
        found.append([one.value for one in (*results, *slopes)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
