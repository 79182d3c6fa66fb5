"""Adjoints are nodes like all others: asked for one by one or together, early or late."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from tests.autodiff.functions import Exp, SinCos
from tests.laws.random_program import Code, same_bits

CODES = st.integers(0, (1 << 40) - 1)


def _product_and_sum(g: Any, ans: Any, a: Any, b: Any) -> tuple[Any, Any]:
    product, total = (0.0 * ans[0] if one is None else one for one in g)
    return product * b + total, product * a + total


def _product_and_sum_jvp(ts: Any, ans: Any, a: Any, b: Any) -> tuple[Any, Any]:
    ta, tb = (0.0 * a if one is None else one for one in ts)
    return ta * b + a * tb, ta + tb


product_and_sum = rg.lift(
    lambda a, b: (a * b, a + b), outputs=2, vjp=_product_and_sum, jvp=_product_and_sum_jvp
)
OPS = [
    lambda a, b: a * b,
    lambda a, b: a + b,
    lambda a, b: rg.sign(a) * b,
    lambda a, b: rg.where(a > b, a, b),
    lambda a, b: rg.maximum(a, b),
    lambda a, b: rg.floor(a) + rg.tanh(b),
    lambda a, b: a.detach() * b,
    lambda a, b: rg.stack([a, b])[1] + a[::-1],
    lambda a, b: rg.concatenate(rg.split(a, [1])[::-1]) * b,
    lambda a, b: rg.stack(rg.unbind(a)[::-1]) + b,
    lambda a, b: SinCos.apply(a)[1] * b,
    lambda a, b: product_and_sum(a, b)[0] + product_and_sum(b, a)[1],
    lambda a, b: Exp.apply(rg.tanh(a)) - b,
]


def build(codes: list[int]) -> tuple[rg.Graph, list[rg.Var]]:
    graph = rg.Graph()
    made = [graph.param(np.array([1.0, -2.0, 0.5]) * (i + 1)) for i in range(3)]
    for number in codes:
        code = Code(number)
        made.append(OPS[code.pick(len(OPS))](code.among(made), code.among(made)))
    return graph, made


@given(nodes=st.lists(CODES, min_size=1, max_size=10), questions=st.lists(CODES, max_size=12))
def test_every_question_for_a_gradient_gives_what_a_new_graph_gives(
    nodes: list[int], questions: list[int]
) -> None:
    """Also after other nodes were built and dropped, and slots were used again."""
    graph, made = build(nodes)
    y = made[-1].sum()
    held = []
    for number in questions:
        code = Code(number)
        xs = [made[code.pick(len(made))] for _ in range(1 + code.pick(3))]
        found = rg.grad(y, xs, allow_unused=True)
        _, twins = build(nodes)
        twin_y = twins[-1].sum()
        for x, gradient in zip(xs, found, strict=True):
            (index,) = [i for i, var in enumerate(made) if var is x]
            wanted = rg.grad(twin_y, twins[index], allow_unused=True)
            assert (gradient is None) == (wanted is None)
            if gradient is not None and wanted is not None:
                assert same_bits(gradient.value, wanted.value)
                assert rg.grad(y, x) is gradient
                held.append((gradient, np.array(gradient.value)))
        # Slots of what is dropped are used by something else.
        junk = [made[0] * float(i) + 1.0 for i in range(code.pick(4))]
        graph.forward(*junk)
        if code.pick(2):
            y.backward(retain_graph=bool(code.pick(2)))
        graph.check_invariants()
    for gradient, value in held:
        assert same_bits(gradient.value, value)


def test_a_gradient_that_is_zero_everywhere_beside_one_that_is_not() -> None:
    graph = rg.Graph()
    flat, steep = graph.param([1.0, 2.0]), graph.param([3.0, 4.0])
    y = (rg.sign(flat) * steep).sum()
    y.backward()
    assert flat.grad.tolist() == [0.0, 0.0]
    assert steep.grad.tolist() == [1.0, 1.0]


def test_an_intermediate_gradient_that_led_nowhere_can_be_asked_for_later() -> None:
    """Nothing used it, so its slot was free for another node; the answer must not be that one."""
    graph = rg.Graph()
    w, v = graph.param([1.0, 2.0]), graph.param([3.0, 4.0])
    middle = rg.sign(w * 2.0)
    y = (middle * v).sum()
    assert rg.grad(y, v).value.tolist() == [1.0, 1.0]
    assert rg.grad(y, w).value.tolist() == [0.0, 0.0]
    others = [v + float(i) for i in range(4)]
    graph.forward(*others)
    assert rg.grad(y, middle).value.tolist() == [3.0, 4.0]
    for _ in range(3):
        y.backward(retain_graph=True)
        assert middle.grad.tolist() == [3.0, 4.0]


def test_a_second_backward_builds_nothing_and_shows_the_same() -> None:
    graph = rg.Graph()
    w, v = graph.param([1.0, 2.0]), graph.param([3.0, 4.0])
    middle = rg.sign(w * 2.0)
    y = (middle * v).sum()
    sizes = []
    for _ in range(3):
        y.backward(retain_graph=True)
        assert middle.grad.tolist() == [3.0, 4.0]
        sizes.append((len(graph), graph._scheduler.topology.next_serial))
    assert sizes[1] == sizes[2]
    assert v.grad.tolist() == [3.0, 3.0]


def test_showing_all_gradients_passes_by_what_can_have_none() -> None:
    """Comparisons and integers lie between an output and its params, and have no gradient."""
    graph = rg.Graph()
    w, count = graph.param([1.0, -2.0]), graph.input([3, 4])
    positive, more = w > 0.0, count + 1
    chosen = rg.where(positive, w * more, 0.0)
    y = chosen.sum()
    for _ in range(2):
        y.backward(retain_graph=True)
        assert chosen.grad.tolist() == [1.0, 1.0]
        assert (positive.grad, more.grad) == (None, None)
    assert w.grad.tolist() == [8.0, 0.0]
