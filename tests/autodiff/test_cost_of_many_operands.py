"""The work of derivatives grows with the number of operands, not with its square."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import reactgrad as rg
from tests.bytecodes import bytecodes

Act = Callable[[], object]
PROGRAMS: dict[str, Callable[[int], Act]] = {}


def program(make: Callable[[int], Act]) -> Callable[[int], Act]:
    PROGRAMS[make.__name__] = make
    return make


def params(g: rg.Graph, n: int) -> list[rg.Var]:
    return [g.param(np.full(2, float(i % 5))) for i in range(n)]


@program
def gradients_of_a_concatenation(n: int) -> Act:
    xs = params(rg.Graph(), n)
    y = (rg.concatenate(xs) ** 3).sum()
    return lambda: rg.grad(y, xs)


@program
def second_gradients_of_a_concatenation(n: int) -> Act:
    xs = params(rg.Graph(), n)
    first = rg.grad((rg.concatenate(xs) ** 3).sum(), xs)
    total = (rg.concatenate(first) ** 2).sum()
    return lambda: rg.grad(total, xs)


@program
def gradients_of_a_concatenation_of_unknown_lengths(n: int) -> Act:
    g = rg.Graph()
    xs = [g.input(shape=(None,), dtype="f8") for _ in range(n)]
    y = rg.concatenate(xs).sum()
    return lambda: rg.grad(y, xs)


@program
def tangents_of_a_concatenation(n: int) -> Act:
    xs = params(rg.Graph(), n)
    y = rg.concatenate(xs) ** 2
    return lambda: rg.jvp(y, xs, [np.ones(2)] * n)


@program
def tangents_of_a_stack(n: int) -> Act:
    xs = params(rg.Graph(), n)
    y = rg.stack(xs) ** 2
    return lambda: rg.jvp(y, xs, [np.ones(2)] * n)


@program
def hessian_products_for_all_operands(n: int) -> Act:
    xs = params(rg.Graph(), n)
    y = (rg.concatenate(xs) ** 3).sum()
    return lambda: rg.hvp(y, xs, [np.ones(2)] * n)


@program
def one_operand_of_a_concatenation_replaced(n: int) -> Act:
    g = rg.Graph()
    xs = params(g, n)
    y = rg.concatenate(xs)
    gradients = rg.grad((y * y).sum(), xs)
    g.forward(*gradients)
    other = g.param([7.0, 8.0])
    return lambda: (y.replace_parent(n // 2, other), g.forward(*gradients))


@program
def all_operands_of_a_concatenation_replaced(n: int) -> Act:
    g = rg.Graph()
    xs, others = params(g, n), params(g, n)
    y = rg.concatenate(xs)
    gradients = rg.grad((y * y).sum(), xs)

    def act() -> None:
        with g.edit():
            for i, other in enumerate(others):
                y.replace_parent(i, other)
        g.forward(*gradients)

    return act


@program
def gradients_through_many_gathers(n: int) -> Act:
    g = rg.Graph()
    x, at = g.param(np.ones(4)), g.input([0, 3])
    y = rg.grad(rg.stack([x[at] ** 3 for _ in range(n)]).sum(), x).sum()
    return lambda: rg.grad(y, x)


@program
def gradients_through_parts_of_a_split(n: int) -> Act:
    x = rg.Graph().param(np.ones(n))
    parts = rg.split(x, range(1, n))
    y = rg.stack([part[0] * 2.0 for part in parts]).sum()
    return lambda: rg.grad(y, x)


def late_rows(n: int) -> tuple[rg.Var, rg.Var]:
    """Return a param and a part of it whose shape only its value shows."""
    x = rg.Graph().param(np.ones(n))
    return x, x[x > 0.0]


LATE: dict[str, Callable[[rg.Var, int], object]] = {
    "split": lambda y, n: rg.split(y, n),
    "split_at_places": lambda y, n: rg.split(y, range(1, n)),
    "array_split": lambda y, n: rg.array_split(y, n),
    "array_split_at_places": lambda y, n: rg.array_split(y, range(1, n)),
    "hsplit": lambda y, n: rg.hsplit(y, n),
    "hsplit_at_places": lambda y, n: rg.hsplit(y, range(1, n)),
    "vsplit": lambda y, n: rg.vsplit(rg.reshape(y, (-1, 1)), n),
    "atleast_1d": lambda y, n: rg.atleast_1d(*[y[i:] for i in range(n)]),
}


def _late_programs(name: str, part: Callable[[rg.Var, int], object]) -> None:
    def read(n: int) -> Act:
        x, y = late_rows(n)
        parts: list[rg.Var] = list(part(y, n))  # type: ignore[call-overload]
        return lambda: x._graph.forward(*parts)

    def gradient(n: int) -> Act:
        x, y = late_rows(n)
        total = rg.stack([one.sum() for one in part(y, n)]).sum()  # type: ignore[attr-defined]
        total.value
        return lambda: rg.grad(total, x).value

    PROGRAMS[f"parts_by_{name}_of_unknown_shape"] = read
    PROGRAMS[f"gradients_of_parts_by_{name}_of_unknown_shape"] = gradient


for _name, _part in LATE.items():
    _late_programs(_name, _part)


@program
def outputs_of_a_function(n: int) -> Act:
    x = rg.Graph().param(1.0)
    f = rg.lift(lambda v: (v,) * n, outputs=n)
    return lambda: f(x)


@program
def outputs_built_again_in_a_reuse_block(n: int) -> Act:
    g = rg.Graph()
    x, f = g.param(1.0), rg.lift(lambda v: (v,) * n, outputs=n)

    def act() -> None:
        for _ in range(2):
            with g.reuse():
                f(x)

    return act


def many_outputs(n: int, **rule: Callable[..., object]) -> tuple[rg.Var, rg.Var]:
    x = rg.Graph().param(1.0)
    outputs = rg.lift(lambda v: (v,) * n, outputs=n, **rule)(x)
    return x, rg.stack(outputs)


@program
def gradients_of_outputs(n: int) -> Act:
    x, y = many_outputs(n, vjp=lambda gs, ans, v: gs[0])
    total = y.sum()
    return lambda: rg.grad(total, x)


@program
def tangents_of_outputs(n: int) -> Act:
    x, y = many_outputs(n, jvp=lambda ts, ans, v: (ts[0],) * n)
    return lambda: rg.jvp(y, x, 1.0)


@program
def blocks_of_numbers(n: int) -> Act:
    g = rg.Graph()
    p = g.param(1.0)

    def act() -> None:
        with g:
            rg.block([[0.0, 1.0]] * n), rg.block([[0.0, p]] * n)

    return act


@program
def joins_of_numbers_beside_a_node(n: int) -> Act:
    p = rg.Graph().param([1.0])
    return lambda: (rg.hstack([[1.0]] * n + [p]), rg.vstack([[1.0]] * n + [p]))


@program
def parts_of_an_unknown_shape(n: int) -> Act:
    late = rg.lift(lambda v: v)(rg.Graph().param(np.ones(n)))
    return lambda: rg.array_split(late, n)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_twice_the_operands_cost_twice_the_work(name: str) -> None:
    make = PROGRAMS[name]
    make(5)()
    one, two = bytecodes(make(100)), bytecodes(make(200))
    assert two < 2.3 * one, f"{two / one:.2f} times the work"


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("counts", [(1, 2, 3), (0, 2, 0, 1), (4,)])
def test_parts_of_a_concatenation_get_their_derivatives(axis: int, counts: tuple[int, ...]) -> None:
    g = rg.Graph()
    xs = [g.param(np.ones((n, 2) if axis == 0 else (2, n)) * (n + 1)) for n in counts]
    weight = np.arange(2.0 * sum(counts)).reshape((-1, 2) if axis == 0 else (2, -1))
    y = rg.concatenate(xs, axis=axis)
    gradients = rg.grad((y**2 * weight).sum(), xs)
    whole = np.concatenate([gradient.value for gradient in gradients], axis)
    assert np.array_equal(whole, 2 * y.value * weight)
    directions = [np.ones(x.shape) for x in xs]
    assert np.array_equal(rg.jvp(y, xs, directions).value, np.ones(y.shape))


def test_a_split_knows_only_its_own_cuts() -> None:
    g = rg.Graph()
    x = g.param(np.arange(6.0))
    cuts = (-4, 3, 3, 1, 9)
    parts = rg.split(x, cuts)
    for got, want in zip(parts, np.split(x.value, cuts), strict=True):
        assert np.array_equal(got.value, want)
    assert {len(g._host.attrs[part._slot][0]) for part in parts} <= {1, 2}
