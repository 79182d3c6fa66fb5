"""Values leave the graph by name only (DESIGN V1, V2): all other ways out build a node or raise."""

from __future__ import annotations

import array
import asyncio
import bisect
import cmath
import ctypes
import math
import random
import statistics
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg


class Model:
    """The nodes that the routes below take values out of."""

    def __init__(self, graph: rg.Graph) -> None:
        self.spot = graph.input(95.0, name="spot")
        self.rate = graph.input(0.02, name="rate")
        self.k = graph.param([1.0, 2.0], name="k")
        self.n = graph.input(2, name="n")
        self.buffer = np.zeros(2)


def assign(m: Model) -> None:
    m.buffer[:] = m.k


def add_in_place(m: Model) -> None:
    m.buffer += m.k


def loop(m: Model) -> None:
    while m.spot > 0:
        raise AssertionError("the condition was taken for true")


def chained(m: Model) -> Any:
    return 0 < m.spot < 100


def asserted(m: Model) -> None:
    assert m.spot == 95.0


# Each would give a number that never follows.
ROUTES: dict[str, Callable[[Model], Any]] = {
    "max": lambda m: max(m.spot - 100.0, 0.0),
    "min": lambda m: min(m.spot, m.rate),
    "if": lambda m: 1.0 if m.rate > 0.01 else 0.0,
    "bare if": lambda m: 1.0 if m.rate else 0.0,
    "not": lambda m: not m.spot,
    "and": lambda m: m.spot and 1.0,
    "chained": chained,
    "while": loop,
    "assert": asserted,
    "all": lambda m: all([m.spot > 1.0]),
    "in": lambda m: 95.0 in [m.spot, m.rate],
    "in var": lambda m: 1.0 in m.k,
    "sorted": lambda m: sorted([m.spot, m.rate]),
    "bisect": lambda m: bisect.bisect([1.0, 100.0], m.spot),
    "choices": lambda m: random.choices([1, 2], weights=[m.spot, m.rate]),
    "float": lambda m: float(m.spot),
    "int": lambda m: int(m.spot),
    "complex": lambda m: complex(m.spot),
    "math.exp": lambda m: math.exp(m.spot),
    "math.fsum": lambda m: math.fsum([m.spot, m.rate]),
    "math.isclose": lambda m: math.isclose(m.spot, 95.0),
    "cmath.exp": lambda m: cmath.exp(m.spot),
    "percent": lambda m: "%.2f" % m.spot,  # noqa: UP031
    "fmean": lambda m: statistics.fmean([m.spot, m.rate]),
    "mean": lambda m: statistics.mean([m.spot, m.rate]),
    "stdev": lambda m: statistics.stdev([m.spot, m.rate]),
    "array.array": lambda m: array.array("d", [m.spot]),
    "c_double": lambda m: ctypes.c_double(m.spot),
    "range": lambda m: range(m.n),
    "list index": lambda m: [1, 2, 3][m.n],
    "hex": lambda m: hex(m.n),
    "reshape": lambda m: m.k.reshape(m.n, 1),
    "broadcast_to": lambda m: rg.broadcast_to(m.spot, (m.n,)),
    "axis": lambda m: m.k.sum(axis=m.n - 2),
    "array index": lambda m: np.arange(5.0)[m.n],
    "array slice": lambda m: np.arange(5.0)[m.n :],
    "np.array": lambda m: np.array([m.spot, m.rate]).sum(),
    "np.asarray": lambda m: np.asarray(m.k),
    "nested lists": lambda m: np.array([[m.spot, 1.0], [2.0, m.rate]]),
    "np.mean": lambda m: np.mean([m.spot, m.rate]),
    "np.max": lambda m: np.max([m.spot, m.rate]),
    "np.sum": lambda m: np.sum([m.spot, m.rate]),
    "np.maximum": lambda m: np.maximum([m.spot, m.rate], 0.0),
    "np.dot": lambda m: np.dot([m.spot, m.rate], [1.0, 2.0]),
    "np.sort": lambda m: np.sort([m.spot, m.rate]),
    "norm": lambda m: np.linalg.norm([m.spot, m.rate]),
    "ndarray.dot": lambda m: np.arange(2.0).dot(m.k),
    "ndarray.repeat": lambda m: np.arange(2.0).repeat(m.n),
    "np.float64": lambda m: np.float64(m.spot),
    "np.full": lambda m: np.full(2, m.spot),
    "vectorize": lambda m: np.vectorize(lambda v: v)(m.k),
    "masked": lambda m: np.ma.array([1.0, 2.0]) * m.k,
    "random": lambda m: np.random.default_rng(0).normal(m.k),
    "testing": lambda m: np.testing.assert_allclose(m.k, [1.0, 2.0]),
    "assign": assign,
    "add in place": add_in_place,
}

# Each would give a leaf a number that never follows.
LEAVES: dict[str, Callable[[Model], Any]] = {
    "input of a list": lambda m: m.k.graph.input([m.spot, 1.0]),
    "input": lambda m: m.k.graph.input(m.spot),
    "const": lambda m: m.k.graph.const(m.spot),
    "set": lambda m: m.rate.set(m.spot),
    "set a list": lambda m: m.k.set([m.spot, m.rate]),
    "set many": lambda m: m.k.graph.set({m.rate: m.spot}),
    "pin": lambda m: (m.rate * 2.0).pin(m.spot),
}


def in_graph(m: Model) -> Any:
    return m


def in_fork(m: Model) -> Any:
    fork = m.k.graph.fork()
    twin = Model(rg.Graph())
    twin.spot, twin.rate, twin.k, twin.n = (fork[v] for v in (m.spot, m.rate, m.k, m.n))
    return twin


def computed(m: Model) -> Any:
    m.spot, m.rate, m.k, m.n = m.spot * 1.0, m.rate + 0.0, m.k * 1.0, m.n + 0
    return m


def detached(m: Model) -> Any:
    m.spot, m.k = m.spot.detach(), m.k.detach()
    return m


@pytest.mark.parametrize("seen", [in_graph, in_fork, computed, detached])
@pytest.mark.parametrize("route", ROUTES)
def test_no_value_leaves_by_this_route(route: str, seen: Callable[[Model], Any]) -> None:
    model = seen(Model(rg.Graph()))
    with pytest.raises(rg.ImplicitValueError):
        ROUTES[route](model)
    assert not model.buffer.any()


@pytest.mark.parametrize("route", LEAVES)
def test_no_leaf_takes_the_value_of_a_node(route: str) -> None:
    model = Model(rg.Graph())
    with pytest.raises(rg.ImplicitValueError, match="was given a (Var|list that holds Vars)"):
        LEAVES[route](model)
    assert (model.rate.value, model.k.value.tolist()) == (0.02, [1.0, 2.0])


# NumPy puts an error of its own in front, and names ours as its cause.
@pytest.mark.parametrize("fill", [lambda b, x: b.__setitem__(0, x), lambda b, x: b.fill(x)])
def test_no_value_leaves_to_an_element_of_an_array(fill: Callable[[Any, Any], Any]) -> None:
    buffer = np.zeros(2)
    with pytest.raises(ValueError, match="setting an array element") as caught:
        fill(buffer, rg.Graph().input(1.0))
    assert isinstance(caught.value.__cause__, rg.ImplicitValueError)
    assert not buffer.any()


@pytest.mark.parametrize(
    "place",
    [
        "subgraph",
        "checkpoint",
        "reuse",
        "transaction",
        "edit",
        "what-if",
        "no_grad",
        "observer",
        "jit",
    ],
)
def test_no_condition_is_frozen_in(place: str) -> None:
    g = rg.Graph(jit=True) if place == "jit" else rg.Graph()
    x = g.input(1.0)

    def choose(x: Any) -> Any:
        return max(x, 0.0)

    def attempt() -> None:
        match place:
            case "subgraph":
                rg.subgraph(choose)(x)
            case "checkpoint":
                rg.checkpoint(choose, x)
            case "reuse":
                with g.reuse():
                    choose(x)
            case "transaction":
                with g.transaction():
                    choose(x)
            case "edit":
                with g.edit():
                    choose(x)
            case "what-if":
                with g.whatif({x: 2.0}) as w:
                    choose(w[x])
            case "no_grad":
                with rg.no_grad():
                    choose(x)
            case "observer":
                caught: list[Any] = []

                def look(new: Any, old: Any) -> None:
                    try:
                        choose(x)
                    except rg.ImplicitValueError as error:
                        caught.append(error)

                y = x + 1.0
                y.observe(look)
                x.set(3.0)
                y.value
                raise caught[0]
            case _:
                choose(x)

    with pytest.raises(rg.ImplicitValueError):
        attempt()


def test_a_function_that_runs_reads_by_name_alone() -> None:
    g = rg.Graph()
    s, x = g.input(2.0), g.input(3.0)
    implicit = rg.lift(lambda v: v * float(s))(x)
    with pytest.raises(rg.ImplicitValueError):
        implicit.value
    named = rg.lift(lambda v: v * s.value)(x)
    assert named.value == 6.0
    s.set(4.0)
    assert named.value == 12.0


@pytest.mark.parametrize("compare", [np.array_equal, np.array_equiv])
def test_a_comparison_that_takes_errors_for_an_answer_warns(compare: Callable[..., bool]) -> None:
    """NumPy's function returns False where a list cannot be an array, whatever the reason."""
    x = rg.Graph().input(1.0, name="x")
    with pytest.warns(rg.ImplicitValueWarning, match=r"np\.asarray\(x\) takes the present value"):
        assert not compare([x], [1.0])


# --- where a node was meant, it is built --------------------------------------------------------


def test_operators_with_arrays_on_the_left_are_nodes() -> None:
    g = rg.Graph()
    k = g.param([1.0, 2.0])
    a = np.array([3.0, 4.0])
    for y, gradient in (
        (a * k, a),
        (a @ k, a),
        (np.dot(a, k), a),
        (np.float64(2.0) * k, [2.0, 2.0]),
        (np.array([0.5, 3.0]).clip(k, 4.0), [1.0, 0.0]),
        (np.float64(1.5).clip(k, 4.0), [0.0, 1.0]),
    ):
        assert rg.grad(y.sum(), k).value.tolist() == list(gradient)
    y = np.concatenate([k, [k[0]]])
    assert rg.grad(y.sum(), k).value.tolist() == [2.0, 1.0]


@pytest.mark.parametrize("computed", [False, True])
def test_an_iteration_does_not_freeze_the_length(computed: bool) -> None:
    g = rg.Graph()
    x = g.input(np.ones(3))
    y = rg.lift(lambda v: v[v > 0])(x) if computed else x * 1.0
    total = sum(v for v in y)
    assert total.value == 3.0
    x.set(np.full(3, 2.0))
    assert total.value == 6.0
    with pytest.raises(rg.ShapeError, match="Unbind it again"):
        x.set(np.ones(5))
        total.value
    x.set(np.zeros(3) + 4.0)
    assert total.value == 12.0


def test_floor_ceil_and_divmod_are_nodes() -> None:
    g = rg.Graph()
    x = g.input(7.5)
    parts = (math.floor(x), math.ceil(x), *divmod(x, 2.0), *divmod(20.0, x))
    assert [y.value for y in parts] == [7.0, 8.0, 3.0, 1.5, 2.0, 5.0]
    x.set(-7.5)
    assert [y.value for y in parts] == [-8.0, -7.0, -4.0, 0.5, -3.0, -2.5]


def test_pandas_leaves_its_operators_to_nodes() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    g = rg.Graph()
    spot, k = g.input(2.0), g.param([3.0, 4.0])
    series = pandas.Series([1.0, 2.0])
    y, z = series * spot, (series - k).sum()
    assert y.value.tolist() == [2.0, 4.0]
    assert rg.grad(z, k).value.tolist() == [-1.0, -1.0]
    spot.set(3.0)
    assert y.value.tolist() == [3.0, 6.0]
    with pytest.raises(rg.ImplicitValueError):
        pandas.DataFrame({"a": k})


def test_pandas_compares_priorities() -> None:
    # What pandas asks before its own operator, where it is not installed: a DataFrame has 4,000.
    assert rg.Var.__pandas_priority__ > 4_000


# --- what may be converted ----------------------------------------------------------------------


def test_constants_and_what_is_computed_of_them_convert() -> None:
    g = rg.Graph()
    c = g.const(3.0)
    y = rg.exp(c * 0.0) + g.const(1)
    assert (float(c), float(y), int(y), bool(y > 1.0), max(c, y)) == (3.0, 2.0, 2, True, c)
    assert np.array([c, y]).tolist() == [3.0, 2.0]
    assert np.mean([c, y]) == 2.5
    assert [10, 20, 30][g.const(1) + 1] == 30
    assert math.exp(c - 3.0) == 1.0
    assert statistics.stdev([c, y]) == math.sqrt(0.5)
    x = g.input(1.0)
    with pytest.raises(rg.ImplicitValueError):
        float(y + x)
    with pytest.raises(rg.ImplicitValueError):
        float(x.detach() * c)
    y.pin(5.0)  # a pin may be taken away
    with pytest.raises(rg.ImplicitValueError):
        float(y)


def test_what_a_function_reads_counts_before_its_first_run() -> None:
    g = rg.Graph()
    s, c = g.input(2.0), g.const(1.0)
    reads = rg.lift(lambda v: v * s.value)(c)
    through = rg.lift(lambda v: v + reads.value)(c) * 2.0
    branch = rg.switch(g.const(True), s, c)
    for node in (reads, through, branch):
        with pytest.raises(rg.ImplicitValueError):
            float(node)
    assert float(rg.switch(g.const(False), s, c)) == 1.0


def test_a_function_without_operands_is_no_constant() -> None:
    with rg.Graph():
        drawn = rg.lift(lambda: 1.0)()
    with pytest.raises(rg.ImplicitValueError):
        float(drawn)


@pytest.mark.parametrize("count", [np.zeros, np.ones, np.random.default_rng(0).random])
def test_no_count_leaves_where_numpy_has_an_error_of_its_own(count: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="expected a sequence of integers or a single integer"):
        count(rg.Graph().input(2))


def test_values_leave_by_name() -> None:
    g = rg.Graph()
    x, v = g.input(1.5), g.input([1.0, 2.0])
    assert (x.value, x.item(), float(x.value), f"{x:.2f}", v.tolist()) == (
        1.5,
        1.5,
        1.5,
        "1.50",
        [1.0, 2.0],
    )
    assert v.numpy().tolist() == np.from_dlpack(v).tolist() == [1.0, 2.0]
    assert "1.5" in str(x)
    assert "1.5" in repr(x)


# --- functions that are differentiated ------------------------------------------------------------


def test_a_condition_in_a_differentiated_function_follows() -> None:
    slope = rg.grad(lambda x: max(x, 0.0) * 2.0)
    assert (slope(3.0), slope(-3.0), slope(4.0)) == (2.0, 0.0, 2.0)


@pytest.mark.parametrize(
    "lost",
    [
        lambda x: x * float(x),
        lambda x: x * int(x),
        lambda x: x * math.exp(x),
        lambda x: x * np.asarray(x),
        lambda x: x + np.array([x, x]).sum(),
    ],
)
def test_no_gradient_is_lost_in_a_differentiated_function(lost: Callable[[Any], Any]) -> None:
    for transform in (rg.grad, rg.hessian, rg.jacobian):
        with pytest.raises(rg.ImplicitValueError):
            transform(lost)(3.0)
    with pytest.raises(rg.ImplicitValueError):
        rg.jvp(lost, (3.0,), (1.0,))


# --- the switch -----------------------------------------------------------------------------------


def test_the_switch_holds_for_a_block() -> None:
    x = rg.Graph().input(2.0)
    with rg.implicit_values("allow"):
        assert math.sqrt(x * 2.0) == 2.0
        with rg.implicit_values("raise"), pytest.raises(rg.ImplicitValueError):
            float(x)
        assert float(x) == 2.0
    with pytest.raises(rg.ImplicitValueError):
        float(x)


def test_the_switch_warns_at_the_line_that_converts() -> None:
    x = rg.Graph().input(2.0, name="x")
    with rg.implicit_values("warn"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert float(x) == 2.0
    assert [w.category for w in caught] == [rg.ImplicitValueWarning]
    assert caught[0].filename == __file__
    assert str(caught[0].message).startswith("float(x) takes the present value out of the graph")


def test_the_switch_decorates_a_function_that_calls_itself() -> None:
    @rg.implicit_values("allow")
    def total(x: Any, times: int) -> float:
        return float(x) + (total(x, times - 1) if times else 0.0)

    x = rg.Graph().input(2.0)
    assert total(x, 3) == 8.0
    with pytest.raises(rg.ImplicitValueError):
        float(x)


def test_the_switch_is_a_setting_of_the_process() -> None:
    x = rg.Graph().input(2.0)
    found: list[float] = []
    try:
        rg.implicit_values("allow")
        found.append(float(x))
        thread = threading.Thread(target=lambda: found.append(float(x)))
        thread.start()
        thread.join()
        with rg.implicit_values("raise"), pytest.raises(rg.ImplicitValueError):
            float(x)
        found.append(float(x))
    finally:
        rg.implicit_values("raise")
    assert found == [2.0, 2.0, 2.0]
    with pytest.raises(rg.ImplicitValueError):
        float(x)


def test_a_block_belongs_to_its_task() -> None:
    x = rg.Graph().input(2.0)

    async def allowed(opened: asyncio.Event, tried: asyncio.Event) -> float:
        with rg.implicit_values("allow"):
            opened.set()
            await tried.wait()
            return float(x)

    async def refused(opened: asyncio.Event, tried: asyncio.Event) -> None:
        await opened.wait()
        try:
            with pytest.raises(rg.ImplicitValueError):
                float(x)
        finally:
            tried.set()

    async def both() -> Any:
        opened, tried = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(allowed(opened, tried), refused(opened, tried))

    assert asyncio.run(both())[0] == 2.0


def test_the_switch_knows_three_words() -> None:
    with pytest.raises(
        rg.DTypeError, match=r"implicit_values\(True\): write 'raise', 'warn' or 'allow'"
    ):
        rg.implicit_values(True)  # type: ignore[arg-type]
    x = rg.Graph().input(1.0)
    with pytest.raises(rg.ImplicitValueError):
        float(x)


# --- the message ------------------------------------------------------------------------------------


def test_the_message_names_the_line_and_what_to_write() -> None:
    g = rg.Graph()
    spot = g.input(95.0, name="spot")
    with pytest.raises(TypeError) as caught:
        math.exp(spot)  # the line
    text = str(caught.value)
    assert text.startswith(
        "float(spot) takes the present value out of the graph: the result would not follow when spot "
        f"changes, and no gradient would pass. Line: {__file__}:"
    )
    assert (
        "math.exp(spot)  # the line. Write the op of that name, as rg.exp(spot) for math.exp(spot)"
        in text
    )
    assert text.endswith(
        "or spot.value (in text f'{spot.value}') where the present number is meant."
    )


@pytest.mark.parametrize(
    ("convert", "advice"),
    [
        (lambda x: bool(x), "rg.maximum and rg.minimum for max and min, rg.where(condition, a, b)"),
        (lambda x: [1][x], "g.const(array)[x] for array[x]"),
        (
            lambda x: np.array([x, x]),
            r"rg.stack([x, ...]) for a list of nodes, `a @ x` for a.dot(x)",
        ),
    ],
)
def test_the_message_gives_advice_that_fits(convert: Callable[[Any], Any], advice: str) -> None:
    with pytest.raises(rg.ImplicitValueError) as caught:
        convert(rg.Graph().input(1, name="x"))
    assert advice in str(caught.value)


def test_the_line_is_the_users_where_a_library_converts() -> None:
    x = rg.Graph().input(2.0)
    with pytest.raises(rg.ImplicitValueError) as caught:
        statistics.fmean([x])
    assert f"Line: {__file__}:" in str(caught.value)
