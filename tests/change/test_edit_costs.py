"""What an edit costs does not depend on the size of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

# --- costs -----------------------------------------------------------------------------------------


class Counted(list[Any]):
    """A table that counts how often it is looked up."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        Counted.looks += 1
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Any]:
        Counted.looks += len(self)
        return super().__iter__()


def looks(g: rg.Graph, task: Callable[[], object]) -> int:
    """How many entries of the tables of the topology a task looks at."""
    topology = g._scheduler.topology
    for name in ("parents", "children", "rank", "serial"):
        setattr(topology, name, Counted(getattr(topology, name)))
    Counted.looks = 0
    task()
    return Counted.looks


def crowd(size: int, *, gradients: bool) -> tuple[rg.Graph, rg.Var, rg.Var, rg.Var]:
    """Many terms that make one sum; the graph, the middle of one of them, its operand, the sum."""
    g = rg.Graph()
    x = g.input([1.0, 2.0])
    ws = [g.param([0.1 * (i % 7), 0.3]) for i in range(size)]
    middle = [w * x for w in ws]
    y = rg.concatenate([rg.tanh(one) for one in middle]).sum()
    held = [g, *middle, y]
    g.keep(y)
    if gradients:
        held += rg.grad(y, ws[:5])
    g.forward(*held[1:])
    g._scheduler.versions.settle()  # what the read left to be written down is no cost of an edit
    return g, ws[size // 2], middle[size // 2], y


@pytest.mark.parametrize("gradients", [False, True])
def test_what_an_edit_costs_does_not_depend_on_the_size_of_the_graph(gradients: bool) -> None:
    found = []
    for size in (50, 2000):
        g, w, product, _y = crowd(size, gradients=gradients)
        scale, late = g.param(2.0), g.param([1.0, 1.0])

        def split(g: Any = g, w: Any = w, product: Any = product, scale: Any = scale) -> None:
            g.insert(w, product, lambda v: v * scale)

        counts = [looks(g, split)]
        counts.append(looks(g, lambda p=product, late=late: p.replace_parent(1, late)))  # type: ignore[misc]
        # An operand that was only just made, for a node that much depends on.
        counts.append(
            looks(g, lambda p=product, g=g: p.replace_parent(1, g.param([2.0, 3.0]) * 1.0))
        )  # type: ignore[misc]
        found.append(counts)
        g.check_invariants()
    assert found[0] == found[1]
    assert max(found[0]) < 400


def test_a_new_operand_moves_no_rank_but_its_own(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = x + 1.0
    end = y
    for _ in range(200):
        end = end + x
    g.forward(end)
    rank, slots = g._scheduler.topology.rank, g._scheduler.topology.slots()
    before = [rank[slot] for slot in slots]
    g.insert(x, y, lambda v: rg.tanh(v) * g.param(2.0))
    assert [rank[slot] for slot in slots] == before
    g.check_invariants()


def test_an_edit_of_one_gradient_asks_no_rule_of_another_part(g: rg.Graph) -> None:
    asked: list[str] = []

    def term(name: str) -> Callable[[rg.Var], rg.Var]:
        def rule(grad: Any, ans: Any, a: Any) -> Any:
            asked.append(name)
            return grad * 2.0

        return rg.lift(lambda a: a * 2.0, vjp=rule, shape=(2,))

    ws = [g.param([1.0, 2.0]) for _ in range(4)]
    doubled = [term(name)(w) for name, w in zip("abcd", ws, strict=True)]
    total = (doubled[0] * doubled[1] + doubled[2] * doubled[3]).sum()
    gradients = rg.grad(total, ws)
    assert sorted(asked) == ["a", "b", "c", "d"]
    asked.clear()
    doubled[1].replace_parent(0, ws[0])
    assert asked == ["b"]
    assert [one.value.tolist() for one in gradients] == [
        [8.0, 16.0],
        [0.0, 0.0],
        [4.0, 8.0],
        [4.0, 8.0],
    ]
    g.check_invariants()


@pytest.mark.parametrize(
    "value",
    [
        (1, 2.5),
        [1.0, 2.0],
        "word",
        {"a": 1},
        None,
        np.array(["a", "b"]),
        np.array([None, 1], dtype=object),
        np.ma.array([1.0, 2.0], mask=[False, True]),
        np.array([1.0, 2.0]),
        np.array(3.0),
        np.float64(3.0),
    ],
    ids=repr,
)
def test_a_pin_of_a_function_is_what_the_function_returns(g: rg.Graph, value: Any) -> None:
    y = rg.lift(lambda _: value)(g.input(1.0))
    z = rg.lift(lambda v: (type(v), repr(v)))(y)
    returned, computed = y.value, z.value
    y.pin(returned)
    assert type(y.value) is type(returned)
    assert z.value == computed == (type(value), repr(value))
    y.unpin()
    assert z.value == computed
    g.check_invariants()


def test_a_pinned_array_is_a_copy_that_nobody_can_change(g: rg.Graph) -> None:
    y = rg.lift(lambda v: v)(g.input(1.0))
    array = np.ones(2)
    y.pin(array)
    array[:] = 5.0
    assert y.value.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match=r"read-only|WRITEABLE"):
        y.value.flags.writeable = True


def test_a_function_of_several_outputs_is_pinned_to_as_many(g: rg.Graph) -> None:
    first, second = rg.lift(lambda v: (v, "a"), outputs=2)(g.input(1.0))
    both = first.parents[0]
    assert (first.value, second.value) == (1.0, "a")
    both.pin(("b", (1, 2)))
    assert (first.value, second.value) == ("b", (1, 2))
    with pytest.raises(rg.ShapeError, match="outputs=2"):
        both.pin((1, 2, 3))
