"""Names and arguments of other libraries: the error says what is written here."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

NO_OP = ", ...), which calls NumPy on the values (without a gradient, or with vjp=)."
OF_A_VAR = {
    "conjugate": "There is no such op: write rg.lift(np.conjugate)(x" + NO_OP,
    "exp": "Ops are functions: write rg.exp(x, ...).",
    "data": "Write x.value.",
    "eval": "A read computes what it needs: write x.value.",
    "assign": "Write x.set(new), or g.set({x: new, ...}) for several leaves at once.",
    "requires_grad_": "Leaves to be trained are made with g.param; x.freeze() and x.unfreeze() take them out and in.",
    "unsqueeze": "Write rg.expand_dims(x, axis).",
    "clone": "Values are never written in place, so take x itself, or x.snapshot() for a const of the present value.",
}
OF_A_GRAPH = {
    "variable": "Write g.input(value), or g.param(value) for what is trained.",
    "run": "Write y.value, or g.forward(y, z) for several nodes.",
    "compute": "Write y.value, or g.forward(y, z) for several nodes.",
    "update": "Write x.set(new), or g.set({x: new, z: newer}) for several leaves.",
    "backward": "Write y.backward(), or rg.grad(y, x) for a live gradient.",
}
OF_THE_PACKAGE = {
    "busday_count": "There is no such op: write rg.lift(np.busday_count)(x" + NO_OP,
    "cat": "Write rg.concatenate([x, y], axis=...).",
    "tensor": "Write rg.input(value), rg.param(value) if it is trained, or rg.const(value) if it never changes.",
    "nograd": "Is it no_grad or grad?",
}


def says(act: Callable[[], object], kind: type[Exception]) -> str:
    with pytest.raises(kind) as caught:
        act()
    assert isinstance(caught.value, rg.ReactgradError)
    return str(caught.value)


def test_attributes_that_do_not_exist(g: rg.Graph) -> None:
    x = g.input(np.ones((2, 3)), name="x")
    things: list[tuple[Any, str, dict[str, str]]] = [
        (x, "a Var", OF_A_VAR),
        (g, "a Graph", OF_A_GRAPH),
        (rg, "module 'reactgrad'", OF_THE_PACKAGE),
    ]
    for thing, what, expected in things:
        for name, way in expected.items():
            assert not hasattr(thing, name)
            text = says(lambda: getattr(thing, name), AttributeError)  # noqa: B023 - called at once
            assert text == f"{what} has no attribute {name!r}. {way}"
    assert not hasattr(x.detach(), "conjugate")
    assert says(lambda: x.detach().conjugate, AttributeError).startswith("a Var has no attribute")  # type: ignore[attr-defined]
    assert "conjugate" not in dir(x)
    assert "run" not in dir(g)


def test_names_that_protocols_ask_for_are_refused_in_few_words(g: rg.Graph) -> None:
    for thing in (g, g.input(1.0)):
        with pytest.raises(AttributeError, match="^'(Var|Graph)' object has no attribute '_ipy'$"):
            thing._ipy  # type: ignore[attr-defined]


def test_a_removed_node_still_refuses_attributes(g: rg.Graph) -> None:
    x = g.input(1.0)
    g.remove(x)
    assert not hasattr(x, "conjugate")


def test_arguments_that_do_not_exist(g: rg.Graph) -> None:
    x = g.input(np.ones((2, 3)), name="x")
    y: Any = x.sum()
    calls: dict[str, Callable[[], object]] = {
        "rg.mean has no argument 'dim', as in dim=0. Write axis=0.": lambda: x.mean(dim=0),  # type: ignore[arg-type]
        "rg.max has no argument 'keepdim', as in keepdim=True. Write keepdims=True.": lambda: (
            rg.max(
                x,
                keepdim=True,  # type: ignore[arg-type]
            )
        ),
        "rg.softmax has no argument 'dim', as in dim=1. Write axis=1.": lambda: rg.softmax(
            x, dim=1
        ),  # type: ignore[arg-type]
        "rg.max has no argument 'dtype', as in dtype='f4'. Write .astype(dtype) behind.": (
            lambda: x.max(dtype="f4")  # type: ignore[arg-type]
        ),
        "rg.sum has no argument 'ddof', as in ddof=1. It is an argument of rg.var and rg.std.": (
            lambda: x.sum(ddof=1)  # type: ignore[arg-type]
        ),
        "axis=True: an axis is an integer, or several in a tuple; keepdims=True is another argument.": (
            lambda: rg.sum(x, axis=True)
        ),
        "backward has no argument 'retain', as in retain=True. Write retain_graph=True.": (
            lambda: y.backward(retain=True)
        ),
        "backward has no argument 'create_graph', as in create_graph=True. Gradients are nodes that can be "
        "differentiated again, so leave it out.": lambda: y.backward(create_graph=True),
        "rg.grad has no argument 'wrt', as in wrt=1. Write xs=1.": lambda: rg.grad(y, wrt=1),  # type: ignore[arg-type]
        "rg.Graph has no argument 'seed', as in seed=3. Write rng=3.": lambda: rg.Graph(seed=3),  # type: ignore[arg-type]
        "rg.Graph has no argument 'foo', as in foo=3. It takes rng, max_bytes, jit, executor, device.": (
            lambda: rg.Graph(foo=3)  # type: ignore[arg-type]
        ),
    }
    for text, call in calls.items():
        assert says(call, TypeError) == text


def test_new_values_that_are_no_mapping(g: rg.Graph) -> None:
    spot = g.input(95.0, name="spot")
    unclear: Any = g
    rule = "new values are one mapping from leaves. Write "
    assert says(lambda: unclear.set(spot=3), TypeError) == (
        f"g.set(spot=3): {rule}g.set({{spot: 3}}) with the Var, or g.set({{'spot': 3}}) with its name, or "
        "x.set(value) for one leaf."
    )
    assert says(lambda: unclear.whatif(spot=3), TypeError) == (
        f"g.whatif(spot=3): {rule}g.whatif({{spot: 3}}) with the Var, or g.whatif({{'spot': 3}}) with its name."
    )
    assert says(lambda: unclear.set(spot, 3), TypeError) == (
        f"g.set(spot, 3): {rule}g.set({{spot: 3}}), or x.set(value) for one leaf."
    )
    assert says(lambda: unclear.set([1]), TypeError) == (
        f"g.set(list): {rule}g.set({{x: 1.0, y: 2.0}}), or x.set(value) for one leaf."
    )
    assert spot.value == 95.0


def test_a_computed_node_may_be_pinned_in_a_what_if(g: rg.Graph) -> None:
    spot = g.input(95.0)
    total = spot * 2.0
    total.name = "total"
    text = says(lambda: g.whatif({total: 3.0}).__enter__(), TypeError)
    assert text.endswith(
        "Set one of the inputs it depends on, or let it have a given value with total.pin(value), in a "
        "what-if with w[total].pin(value)."
    )
    with g.whatif() as w:
        w[total].pin(3.0)
        assert w[total].value == 3.0


def test_a_list_of_vars_is_no_mapping(g: rg.Graph) -> None:
    y = g.input(1.0, name="total")
    nodes: Any = g.nodes
    assert says(lambda: nodes["total"], TypeError) == (
        "['total'] of a list of Vars: its elements are found by position. A node is found by its name in "
        "its graph, g['total']."
    )
    assert g.nodes[0] is y


def test_a_plan_is_a_sequence(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = rg.tanh(x * 2.0)
    plan = g.plan(y)
    assert [*plan] == [*plan.nodes] == [y.parents[0], y]
    assert plan[-1] is y
    assert plan[:1] == plan.nodes[:1]
    assert y.is_stale


def test_round_and_format(g: rg.Graph) -> None:
    y = g.input(2.345, name="y")
    x = g.input(np.ones((2, 3)), name="x")
    assert says(lambda: round(y, 2), TypeError).startswith(
        "round(y, 2) takes the present value out"
    )
    assert round(g.const(2.345), 2) == 2.35 or round(g.const(2.345), 2) == 2.34
    assert f"{y:.2f}" == "2.35" or f"{y:.2f}" == "2.34"
    assert says(lambda: f"{x:.2f}", TypeError) == (
        "the format '.2f' is for a number, and 'x' is an array of shape (2, 3). Write "
        "np.array2string(x.value, precision=2), or format one element, x[0]."
    )


def test_a_node_is_removed_by_name_with_remove(g: rg.Graph) -> None:
    g.input(1.0, name="spot")
    unclear: Any = g

    def delete() -> None:
        del unclear["spot"]

    assert says(delete, TypeError) == (
        "g['spot'] is a node, not a place: write g.remove(g['spot'])."
    )


class Local:
    """Something that only a frame holds."""


@pytest.mark.parametrize("attribute", ["value", "shape", "dtype", "ndim", "size", "device"])
def test_an_attribute_error_of_a_function_is_not_taken_for_a_missing_attribute(
    g: rg.Graph, attribute: str
) -> None:
    error = AttributeError("no such column")
    refs: list[weakref.ref[Local]] = []

    def function(value: float) -> float:
        local = Local()
        refs.append(weakref.ref(local))
        raise error

    y = rg.lift(function)(g.input(1.0))
    for one in (y, y.detach()):
        with pytest.raises(AttributeError) as caught:
            getattr(one, attribute)
        assert str(caught.value) == "no such column"
        assert one is not y or caught.value is error
    assert len(refs) == 1
    del caught
    error.__traceback__ = None
    gc.collect()
    assert refs[0]() is None


def test_a_detached_number_is_formatted_as_its_node_is(g: rg.Graph) -> None:
    x, v = g.input(1.234), g.input([1.0, 2.0], name="v")
    assert f"{x.detach():.2f}" == f"{x:.2f}" == "1.23"
    assert f"{x.detach()}" == str(x.detach())
    with pytest.raises(
        rg.DTypeError, match=r"^the format '.2f' is for a number, and 'v' is an array"
    ):
        f"{v.detach():.2f}"


def test_grad_is_no_method(g: rg.Graph) -> None:
    spot, w = g.input(1.0, name="spot"), g.param(2.0, name="w")
    total = spot * w
    for act in (lambda: total.grad(spot), lambda: w.grad()):
        text = says(act, TypeError)
        assert ".grad is an array that backward leaves, and no method." in text
        assert "write rg.grad(" in text
    assert total.grad is None
    assert getattr(total, "grad") is None  # noqa: B009 - looked up by compiled code
    total.backward()
    assert w.grad == 1.0
