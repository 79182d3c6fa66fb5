"""Why a node has no gradient, and where on the way it got lost."""

from __future__ import annotations

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.explain._no_gradient import MOST_BLOCKS, NoGradient
from tests.explain.models import named, text_of


def reason(g: rg.Graph, var: object) -> str | None:
    gradient = g.why(var).gradient  # type: ignore[arg-type]
    return None if gradient is None else gradient.reason


def test_a_param_with_a_gradient_has_nothing_to_explain(g: rg.Graph) -> None:
    w = g.param(2.0)
    (w * w).backward()
    assert g.why(w).gradient is None
    assert "gradient" not in text_of(g.why(w))


def test_never_backwarded_and_zeroed(g: rg.Graph) -> None:
    w = g.param(2.0)
    loss = w * w
    assert reason(g, w) == "never_backwarded"
    loss.backward()
    g.zero_grad()
    assert reason(g, w) == "never_backwarded"
    assert "since zero_grad()" in str(g.why(w))


def test_rg_grad_fills_no_grad_of_leaves(g: rg.Graph) -> None:
    w = g.param(2.0)
    adjoint = rg.grad(w * w, w)
    assert adjoint.value == 4.0
    assert reason(g, w) == "never_backwarded"


def test_frozen(g: rg.Graph) -> None:
    w, v = g.param(2.0).freeze(), g.param(1.0)
    (w * v).backward()
    assert reason(g, w) == "frozen"
    assert "unfreeze()" in str(g.why(w))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda g: g.input(1.0), "input"),
        (lambda g: g.const(1.0), "const"),
        (lambda g: g.input(3), "not_float"),
        (lambda g: g.input([1, 2]), "not_float"),
        (lambda g: g.input(1.0) > 0.0, "not_float"),
        (lambda g: g.param(1.0), "unused"),
        (lambda g: g.input(1.0) * 2.0, "no_param"),
    ],
)
def test_kinds_of_nodes(g: rg.Graph, make: object, expected: str) -> None:
    assert reason(g, make(g)) == expected  # type: ignore[operator]


def test_detached_names_the_edge_and_its_line(g: rg.Graph) -> None:
    w = g.param(2.0, name="w")
    v = g.param(1.0)
    hidden = named(w.detach() * v, "hidden")
    (hidden * v).backward()
    gradient = g.why(w).gradient
    assert gradient is not None
    assert gradient.reason == "unreached"
    (block,) = gradient.blocks
    assert (block.kind, block.parent, block.node) == ("detached", "w", "hidden")
    assert "w.detach() * v" in block.line
    assert "hidden takes w detached" in str(g.why(w))


def test_no_grad_names_the_node_built_under_it(g: rg.Graph) -> None:
    w, v = g.param(2.0, name="w"), g.param(1.0)
    with rg.no_grad():
        half = named(w * 0.5, "half")
    (half * v).backward()
    gradient = g.why(w).gradient
    assert gradient is not None
    assert [(b.kind, b.parent, b.node) for b in gradient.blocks] == [("no_grad", "w", "half")]


def test_a_block_far_from_the_param_is_found(g: rg.Graph) -> None:
    w, v = g.param([2.0, 3.0], name="w"), g.param(1.0)
    deep = named(rg.tanh(w * 2.0), "deep")
    count = named((deep > 0.0).astype("float64").sum(), "count")
    (count * v).backward()  # nobody holds what was differentiated
    gradient = g.why(w).gradient
    assert gradient is not None
    assert gradient.reason == "unreached"
    assert [(b.kind, b.parent) for b in gradient.blocks] == [("not_float", "deep")]


def test_unreached_for_want_of_a_path(g: rg.Graph) -> None:
    w, v = g.param(2.0), g.param(1.0)
    other = w * 3.0
    loss = v * v
    loss.backward()
    assert g.why(w).gradient == NoGradient("unreached")
    other.backward()
    assert g.why(w).gradient is None


def test_only_blocks_on_the_way_to_what_was_differentiated_count(g: rg.Graph) -> None:
    w, v = g.param(2.0, name="w"), g.param(1.0)
    log = w.detach() * 1.0
    loss = v * v
    loss.backward()
    assert g.why(w).gradient == NoGradient("unreached")
    assert float(log.value) == 2.0


def test_pinned_on_the_way(g: rg.Graph) -> None:
    w, v = g.param(2.0, name="w"), g.param(1.0)
    middle = named(w * 3.0, "middle")
    loss = middle * v
    middle.pin(5.0)
    loss.backward()
    gradient = g.why(w).gradient
    assert gradient is not None
    assert [(b.kind, b.parent, b.node) for b in gradient.blocks] == [("pinned", "w", "middle")]


def test_a_computed_node_says_why_it_is_not_differentiable(g: rg.Graph) -> None:
    w = g.param(2.0, name="w")
    y = named(w.detach() * 3.0, "y")
    z = rg.tanh(y)
    assert not z.requires_grad
    gradient = g.why(z).gradient
    assert gradient is not None
    assert gradient.reason == "no_param"
    assert [(b.kind, b.parent, b.node) for b in gradient.blocks] == [("detached", "w", "y")]
    assert "y takes w detached" in str(g.why(z))
    assert g.why(w * 2.0).gradient is None


def test_where_gradients_do_not_matter_the_text_is_silent(g: rg.Graph) -> None:
    y = g.input(1.0) + 1.0
    assert "gradient" not in text_of(g.why(y))


def test_many_blocks_are_counted(g: rg.Graph) -> None:
    w = g.param(np.ones(3))
    parts = [w.detach() * float(i) for i in range(20)]
    total = rg.stack(parts).sum() * g.param(1.0)
    total.backward()
    gradient = g.why(w).gradient
    assert gradient is not None
    assert (len(gradient.blocks), gradient.more) == (MOST_BLOCKS, 20 - MOST_BLOCKS)
    assert "and 12 more such places" in str(gradient)


def test_asking_builds_and_runs_nothing(g: rg.Graph) -> None:
    w = g.param(2.0)
    loss = rg.tanh(w * w)
    before = len(g)
    assert reason(g, w) == "never_backwarded"
    assert len(g) == before
    assert loss.value_version == 0
