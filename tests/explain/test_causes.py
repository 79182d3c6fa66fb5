"""All causes of ``g.why`` come first, each with one shortest path to the node."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

import reactgrad as rg
from reactgrad.explain._why import Why
from tests.reactive.steps import inverse


def model(g: rg.Graph) -> tuple[rg.Var, ...]:
    """Two leaves, a product of both, and a total that also uses one of them directly."""
    spot, rate, other = [
        g.input(v, name=n) for v, n in ((2.0, "spot"), (3.0, "rate"), (5.0, "other"))
    ]
    product = spot * rate
    product.name = "product"
    total = product + rate
    total.name = "total"
    total.value
    return spot, rate, other, product, total


def found(why: Why) -> list[tuple[str, str]]:
    return [(cause.kind, cause.node) for cause in why.causes]


@pytest.mark.parametrize("where", ["graph", "fork", "what-if"])
@pytest.mark.parametrize("edit_first", [False, True])
def test_an_edit_and_a_set_are_both_named(edit_first: bool, where: str, g: rg.Graph) -> None:
    known = model(g)
    h = g if where == "graph" else g.fork()
    spot, _, other, product, total = known if h is g else [h[var] for var in known]
    changes: list[Callable[[], object]] = [
        lambda: spot.set(7.0),
        lambda: product.replace_parent(1, other),
        lambda: other.set(9.0),
    ]
    for change in reversed(changes) if edit_first else changes:
        change()
    why = h.why(total)
    assert sorted(found(why)) == [("edit", "product"), ("set", "other"), ("set", "spot")]
    assert {cause.node: cause.path for cause in why.causes} == {
        "product": ("product", "total"),
        "spot": ("spot", "product", "total"),
        "other": ("other", "product", "total"),
    }


def test_the_nearest_cause_comes_first_and_its_path_is_the_shortest(g: rg.Graph) -> None:
    spot, rate, _, _, total = model(g)
    spot.set(7.0)
    rate.set(4.0)
    assert str(g.why(total)).splitlines() == [
        "total is stale (version 1):",
        "  rate was set: version 1 -> 2",
        "    rate -> total",
        "  spot was set: version 1 -> 2",
        "    spot -> product -> total",
        "(g.events = True, before a change, keeps the line that made it)",
    ]


@pytest.mark.parametrize("logged", [False, True])
def test_after_the_run_the_edit_and_the_set_are_still_named(logged: bool, g: rg.Graph) -> None:
    spot, rate, other, product, total = model(g)
    g.events = logged
    product.replace_parent(1, other)
    spot.set(7.0)
    total.value
    assert found(g.why(product)) == [("edit", "product"), ("set", "spot")]
    assert found(g.why(total)) == [("edit", "product"), ("set", "spot")]
    rate.set(8.0)
    total.value
    assert found(g.why(total)) == [("set", "rate")]


@pytest.mark.parametrize("change", ["touch", "mutate", "pin", "rollback", "block"])
def test_any_change_is_named_beside_a_set(change: str, g: rg.Graph) -> None:
    spot, rate, other, product, total = model(g)
    if change == "touch":
        product.touch()
    elif change == "mutate":
        with rate.mutate() as value:
            value[...] = 4.0
    elif change == "pin":
        product.pin(1.0)
        rate.set(4.0)
    elif change == "rollback":
        with suppress(KeyError), g.transaction():
            rate.set(4.0)
            raise KeyError
    else:
        with g.edit():
            total.replace_parent(1, other)
    spot.set(7.0)
    expected = {
        "touch": {("touch", "product"), ("set", "spot")},
        "mutate": {("set", "rate"), ("set", "spot")},
        "pin": {("pin", "product"), ("set", "rate")},  # spot is behind the pin
        "rollback": {("rollback", "rate"), ("set", "spot")},
        "block": {("edit", "total"), ("set", "spot")},
    }
    assert set(found(g.why(total))) == expected[change]


def test_an_edit_above_a_failed_node_and_the_failure_are_named(g: rg.Graph) -> None:
    x, y = g.input(1.0, name="x"), g.input(2.0, name="y")
    broken = inverse(x)
    broken.name = "broken"
    total = broken + y
    total.name = "total"
    total.value
    x.set(0.0)
    total.rewire(broken, x)
    with pytest.raises(ZeroDivisionError):
        total.value
    assert set(found(g.why(total))) == {("failed", "broken"), ("set", "x"), ("edit", "total")}


def test_a_change_behind_a_cutoff_is_no_cause(g: rg.Graph) -> None:
    x, y = g.input(1.0, name="x"), g.input(2.0, name="y")
    sign = rg.lift(lambda v: v > 0, cutoff="equal")(x)
    total = rg.lift(lambda a, b: a + b)(sign, y)
    total.name = "total"
    total.value
    x.set(5.0)
    y.set(3.0)
    sign.value
    assert found(g.why(total)) == [("set", "y")]


def test_of_a_gradient_the_causes_are_those_of_its_model(g: rg.Graph) -> None:
    w, x, other = g.param(2.0, name="w"), g.input(3.0, name="x"), g.input(4.0, name="other")
    loss = w * w * x
    slope = rg.grad(loss, w)
    slope.name = "slope"
    slope.value
    w.set(5.0)
    x.set(6.0)
    why = g.why(slope)
    assert set(found(why)) == {("set", "w"), ("set", "x")}
    assert all((cause.path[0], cause.path[-1]) == (cause.node, "slope") for cause in why.causes)
    slope.value
    loss.replace_parent(1, other)
    other.set(7.0)
    assert ("set", "other") in found(g.why(slope))


def test_in_a_model_of_170_nodes_the_cause_is_in_the_first_lines(g: rg.Graph) -> None:
    spots = [g.input(1.0 + i, name=f"spot {i}") for i in range(10)]
    layer = spots
    for _ in range(16):
        layer = [layer[i] * 0.5 + layer[i - 1] for i in range(10)]
    total = rg.stack(layer).sum()
    total.name = "total"
    total.value
    spots[3].set(7.0)
    lines = str(g.why(total)).splitlines()
    assert len(lines) == 4
    assert lines[1] == "  spot 3 was set: version 1 -> 2"
    assert lines[2].startswith("    spot 3 -> ")
    assert lines[2].endswith(" -> total")


def test_a_long_path_shows_its_ends(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    y = x
    for _ in range(1_000):
        y = y + 1.0
    y.name = "y"
    y.value
    x.set(2.0)
    (cause,) = g.why(y).causes
    assert len(cause.path) == 11
    assert (cause.path[0], cause.path[5], cause.path[-1]) == ("x", "...", "y")


def test_reads_with_nothing_to_do_forget_no_cause(g: rg.Graph) -> None:
    a, b = g.input(1.0, name="a"), g.input(2.0, name="b")
    m, n = a * 2.0, a - b
    total = m + n
    for number in range(3):  # found plans are replayed from the second time on
        total.value
        a.set(a.value + 1.0)
        b.set(b.value + 1.0)
        m.replace_parent(0, (b, a, b)[number])
        b.value
        causes = {(c.kind, c.node) for c in g.why(total).causes}
        assert {("set", "a"), ("set", "b")} <= causes
        total.value
        causes = {(c.kind, c.node) for c in g.why(total).causes}
        assert {("set", "a"), ("set", "b")} <= causes
    total.value
    a.set(0.0)
    total.value
    assert {(c.kind, c.node) for c in g.why(total).causes} == {("set", "a")}
