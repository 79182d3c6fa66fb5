"""No value leaves in silence (DESIGN V1), wherever in a program a node is met."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.reading.test_implicit_values import ROUTES, Model

Attempt = Callable[[Model], Any]


def of(m: Model, f: Callable[[Any], Any]) -> Model:
    """Return the model with nodes of its nodes."""
    m.spot, m.rate, m.k, m.n = f(m.spot), f(m.rate), f(m.k), f(m.n)
    return m


@contextmanager
def entered(block: Any, m: Model) -> Iterator[Model]:
    with block:
        yield m


@contextmanager
def what_if(m: Model) -> Iterator[Model]:
    with m.k.graph.whatif({"spot": 96.0}) as w:
        yield of(m, lambda v: w[v])


@contextmanager
def transaction(m: Model) -> Iterator[Model]:
    with m.k.graph.transaction():
        m.spot.set(96.0)
        yield m


def lifted(v: Any) -> Any:
    return rg.lift(np.asarray)(v)


def loaded(m: Model) -> Model:
    h = rg.from_bytes(m.k.graph.to_bytes())
    m.spot, m.rate, m.k, m.n = h["spot"], h["rate"], h["k"], h["n"]
    return m


def gradients(m: Model) -> Model:
    m.spot, m.rate = (rg.grad(v * v * 0.5, v) for v in (m.spot, m.rate))
    m.k = rg.grad((m.k * m.k * 0.5).sum(), m.k)
    return m


def pinned(m: Model) -> Model:
    of(m, lambda v: v * 1)
    m.spot.pin(95.0), m.k.pin(np.array([1.0, 2.0]))
    return m


# From a model to the block in which it is tried.
VIEWS: dict[str, Callable[[Model], Any]] = {
    "what-if": what_if,
    "transaction": transaction,
    "edit": lambda m: entered(m.k.graph.edit(), m),
    "reuse": lambda m: entered(m.k.graph.reuse(), of(m, lambda v: v * 1)),
    "no_grad": lambda m: entered(rg.no_grad(), of(m, lambda v: v * 1)),
    "inference": lambda m: entered(rg.inference(), of(m, lambda v: v * 1)),
    "current": lambda m: entered(m.k.graph, m),
    "lifted": lambda m: entered(rg.enable_grad(), of(m, lifted)),
    "switch": lambda m: entered(rg.enable_grad(), of(m, lambda v: rg.switch(m.rate > 0.0, v, v))),
    "loaded": lambda m: entered(rg.enable_grad(), loaded(m)),
    "gradients": lambda m: entered(rg.enable_grad(), gradients(m)),
    "pinned": lambda m: entered(rg.enable_grad(), pinned(m)),
    "an array of no axes": lambda m: entered(rg.enable_grad(), of(m, lambda v: v.reshape(v.shape))),
}
# Options of a graph.
GRAPHS: dict[str, dict[str, Any]] = {
    "jit": {"jit": True},
    "threads": {"executor": rg.Threads(2)},
    "budget": {"max_bytes": 0},
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("view", VIEWS)
def test_no_value_leaves_in_this_view(view: str, route: str) -> None:
    with VIEWS[view](Model(rg.Graph())) as m, pytest.raises(rg.ImplicitValueError):
        ROUTES[route](m)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("graph", GRAPHS)
def test_no_value_leaves_a_graph_with_these_options(graph: str, route: str) -> None:
    with pytest.raises(rg.ImplicitValueError):
        ROUTES[route](Model(rg.Graph(**GRAPHS[graph])))


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("route", ROUTES)
def test_no_value_leaves_while_a_function_runs(route: str, threads: bool) -> None:
    """A function may build and read nodes; what it takes without a name raises in it, and so at the read."""
    m = Model(rg.Graph(executor=rg.Threads(2)) if threads else rg.Graph())
    y = rg.lift(lambda v: ROUTES[route](m))(m.rate)
    with pytest.raises(rg.ImplicitValueError):
        y.value


@pytest.mark.parametrize("route", ROUTES)
def test_no_value_leaves_in_an_observer(route: str) -> None:
    m, caught = Model(rg.Graph()), []

    def look(new: Any, old: Any) -> None:
        with pytest.raises(rg.ImplicitValueError) as error:
            ROUTES[route](m)
        caught.append(error)

    y = m.rate + 1.0
    y.value
    observation = y.observe(look)
    m.rate.set(0.03)
    y.value
    observation.cancel()
    assert len(caught) == 1


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("wrap", [rg.subgraph, lambda f: lambda *a: rg.checkpoint(f, *a)])
def test_no_value_leaves_in_a_function_of_nodes(route: str, wrap: Any) -> None:
    m = Model(rg.Graph())

    def inside(spot: Any, rate: Any, k: Any) -> Any:
        m.spot, m.rate, m.k = spot, rate, k
        return ROUTES[route](m)

    with pytest.raises(rg.ImplicitValueError):
        y = wrap(inside)(m.spot, m.rate, m.k)
        y.value


# --- nodes whose rows are none, or not known ------------------------------------------------------


@pytest.mark.parametrize(
    "take",
    [
        lambda x: sum(x),
        lambda x: [*x],
        lambda x: math.hypot(*x),
        lambda x: math.prod(x),
        lambda x: np.fromiter(x, float),
        lambda x: [2.0 * v for v in x],
        lambda x: statistics.fmean(x),
        lambda x: dict(zip("ab", x, strict=False)),
        list,
        set,
    ],
)
def test_a_node_without_rows_is_not_iterated_in_silence(take: Callable[[Any], Any]) -> None:
    """Nothing would be built that could notice the rows that come."""
    x = rg.Graph().input(np.zeros(0), name="x")
    with pytest.raises(
        rg.ImplicitValueError,
        match=r"iter\(x\), of a node without rows, takes .* Write an op along the axis, as rg\.sum\(x, axis=0\)",
    ):
        take(x)


def test_a_constant_without_rows_is_iterated() -> None:
    assert list(rg.Graph().const(np.zeros((0, 2)))) == []
    with rg.implicit_values("allow"):
        assert list(rg.Graph().input(np.zeros(0))) == []


def test_a_search_for_a_number_in_a_node_of_unknown_shape_ends() -> None:
    """f2py takes ``x[0]`` of a sequence until it meets a number; each such index built a node."""
    x = rg.lift(lambda v: v)(rg.Graph().input(2.0, name="x"))
    one = x
    for _ in range(64):
        one = one[0]
    with pytest.raises(
        rg.IndexingError, match=r"indexed 65 times by a number, .* rg\.lift\(function\)"
    ):
        one[0]
    blas = pytest.importorskip("scipy.linalg.blas", reason="SciPy is not installed")
    with pytest.raises(rg.IndexingError):
        blas.daxpy(np.zeros(2), np.zeros(2), a=x)


def test_what_a_function_does_not_take_is_refused_before_the_shape_is_known() -> None:
    g = rg.Graph()
    k, n = (rg.lift(lambda v: v)(g.input(value)) for value in ([1.0, 2.0], 2))
    with pytest.raises(TypeError, match="no argument 'out'"):
        np.dot(np.zeros(2), k, out=np.zeros(()))
    with pytest.raises(rg.ParameterError, match=r"\.value for the present number"):
        np.array_split(np.zeros(4), n)
    counts, _ = np.histogram(np.zeros(4), bins=n)
    with pytest.raises(rg.ParameterError, match="How many bins there are is the length"):
        counts.value


@pytest.mark.parametrize("executor", [None, rg.Threads(2)])
def test_a_function_that_runs_builds_constants(executor: Any) -> None:
    """NumPy's functions make some of the arrays beside a node, and so did not work in functions."""
    g = rg.Graph() if executor is None else rg.Graph(executor=executor)
    k = g.param([1.0, 2.0], name="k")
    y = rg.lift(lambda v: v * np.hstack([np.arange(2.0), k]).value.sum())(g.input(1.0))
    assert y.value == 4.0
    k.set([3.0, 4.0])
    assert y.value == 8.0
    g.const(2.0)
    for change in (lambda: g.input(1.0), lambda: g.const(1.0, name="c"), lambda: k.set([0.0, 0.0])):
        with pytest.raises(rg.BusyError, match="tried to change its own graph"):
            rg.lift(lambda v, change=change: change())(k).value
