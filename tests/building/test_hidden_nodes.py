"""A node that hides in a container is no value: not where values enter, and not in what functions return."""

from __future__ import annotations

from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable
from dataclasses import make_dataclass
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

Pair = namedtuple("Pair", "first second")
Record = make_dataclass("Record", ["field"])


def _array_of_objects(v: Any) -> Any:
    found = np.empty(2, object)
    found[1] = v
    return found


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "list": lambda v: [1.0, v],
    "tuple": lambda v: ("a", v),
    "dict": lambda v: {"a": v},
    "key": lambda v: {v: 1.0},
    "nested": lambda v: {"a": [(1, {"b": v})]},
    "set": lambda v: {v},
    "frozenset": lambda v: frozenset([v]),
    "named tuple": lambda v: Pair(1, v),
    "dataclass": lambda v: Record([v]),
    "array of objects": _array_of_objects,
    "deque": lambda v: deque([v]),
    "namespace": lambda v: SimpleNamespace(a=v),
    "view": lambda v: MappingProxyType({"a": v}),
    "values": lambda v: {"a": v}.values(),
    "items": lambda v: {"a": v}.items(),
    "ordered": lambda v: OrderedDict(a=v),
    "detached": lambda v: {"a": v.detach()},
}


def _outputs(g: rg.Graph, x: Any, held: Any) -> object:
    return rg.lift(lambda v: (1, held), outputs=2)(x)[1].value


def _threads(g: rg.Graph, x: Any, held: Any) -> object:
    g.executor = rg.Threads(2)
    return rg.lift(lambda v: held)(x).value


def _of_function(g: rg.Graph, x: Any, held: Any) -> object:
    class Hiding(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return held

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    return Hiding.apply(x).value


ROUTES: dict[str, Callable[[rg.Graph, Any, Any], object]] = {
    "returned": lambda g, x, held: rg.lift(lambda v: held)(x).value,
    "one of several": _outputs,
    "in a thread": _threads,
    "of a function with a rule": _of_function,
    "after a change": lambda g, x, held: (
        y := rg.lift(lambda v: held if v > 5 else None)(x),
        y.value,
        x.set(9.0),
        y.value,
    ),
    "checkpoint": lambda g, x, held: rg.checkpoint(lambda v: rg.lift(lambda w: held)(v), x).value,
    "fork": lambda g, x, held: (y := rg.lift(lambda v: held)(x), g.fork()[y].value),
    "input": lambda g, x, held: g.input(held),
    "const": lambda g, x, held: g.const(held),
    "set": lambda g, x, held: g.input({"a": 1}).set(held),
    "what-if": lambda g, x, held: g.whatif({g.input({"a": 1}): held}).__enter__(),
    "pin": lambda g, x, held: rg.lift(lambda v: {"a": v})(x).pin(held),
    "fixed argument": lambda g, x, held: rg.lift(lambda v, w: v)(x, held),
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("holder", HOLDERS)
def test_a_node_in_a_container_is_refused(route: str, holder: str) -> None:
    g = rg.Graph()
    x, hidden = g.input(2.0, name="x"), g.param([1.0, 2.0], name="hidden")
    with pytest.raises(rg.ReactgradError) as caught:
        ROUTES[route](g, x, HOLDERS[holder](hidden))
    if route in ("returned", "one of several", "in a thread", "after a change", "checkpoint"):
        assert isinstance(caught.value, rg.ImplicitValueError)
        assert "the Var 'hidden', which is not a value" in str(caught.value)


def test_what_is_said_of_a_result(g: rg.Graph) -> None:
    x = g.input(2.0, name="x")
    y = rg.lift(lambda v: {"price": x})(x * 1.0)
    words = r"^function 'lambda' returned a dict that holds the Var 'x', which is not a value: what it computes would"
    with pytest.raises(rg.ImplicitValueError, match=words):
        y.value


def test_what_is_said_of_a_value(g: rg.Graph) -> None:
    x = g.input(2.0, name="x")
    words = r"^this input was given a dict that holds the Var 'x', whose value it would not follow. Put its .value"
    with pytest.raises(rg.ImplicitValueError, match=words):
        g.input({"a": [x]})


class Anything:
    """It has every attribute that it is asked for."""

    def __getattr__(self, name: str) -> object:
        return name


def test_what_only_looks_like_a_node_is_a_value(g: rg.Graph) -> None:
    one = Anything()
    assert rg.lift(lambda v: [one, {"a": one}])(g.input(1.0)).value[0] is one


def test_long_plain_results_are_not_walked(g: rg.Graph) -> None:
    inside: list[Any] = [1.0] * 1000
    inside.append(inside)  # and a container may hold itself
    assert len(rg.lift(lambda v: inside)(g.input(1.0)).value) == 1001
