"""Objects as values: what enters is copied, labels are not dropped, and one-shot objects are refused."""

from __future__ import annotations

import collections
import csv
import datetime
import decimal
import fractions
import functools
import io
import itertools
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

import reactgrad as rg


class Labelled:
    """A table with labels: NumPy takes it for an array, as it does a DataFrame."""

    def __init__(self) -> None:
        self.labels, self.data = ["a", "b"], np.array([1.0, 2.0])

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.data.astype(dtype or float)

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> float:
        return self.data[i]


class Point(NamedTuple):
    x: float
    y: float


@dataclass
class Book:
    rows: list[int] = field(default_factory=lambda: [1])
    data: Any = field(default_factory=lambda: np.zeros(2))


class Cursor:
    """An async iterator."""

    def __aiter__(self) -> Cursor:
        return self

    async def __anext__(self) -> int:
        raise StopAsyncIteration


async def coroutine() -> int:
    return 1


async def async_generator() -> Any:
    yield 1


ONE_SHOT: dict[str, Callable[[], Any]] = {
    "generator": lambda: (i for i in range(3)),
    "iterator": lambda: iter([1, 2]),
    "map": lambda: map(str, [1]),
    "zip": lambda: zip([1], [2], strict=True),
    "filter": lambda: filter(None, [1]),
    "enumerate": lambda: enumerate([1]),
    "reversed": lambda: reversed([1]),
    "count": lambda: itertools.count(),
    "flat": lambda: np.zeros(3).flat,
    "file": lambda: io.StringIO("a"),
    "reader": lambda: csv.reader(["a,b"]),
    "coroutine": coroutine,
    "async generator": async_generator,
    "async iterator": Cursor,
    "wrapped file": tempfile.NamedTemporaryFile,
    "in a list": lambda: [iter([1])],
    "in a dict": lambda: {"rows": {"all": iter([1])}},
    "in a tuple": lambda: (1, (2, map(int, "1"))),
    "in a deque": lambda: collections.deque([iter([1])]),
    "in a dataclass": lambda: Table(iter([1])),
}


@dataclass
class Table:
    rows: Any


class Apply(rg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, other: Any) -> Any:
        return x


def pinned(g: rg.Graph, value: Any) -> None:
    rg.lift(lambda v: v)(g.input(1.0)).pin(value)


def in_transaction(g: rg.Graph, value: Any) -> None:
    with g.transaction():
        g.input(None).set(value)


def what_if(g: rg.Graph, value: Any) -> None:
    with g.whatif({g.input(None, name="w"): value}):
        raise AssertionError("the block was entered")


ENTRANCES: dict[str, Callable[[rg.Graph, Any], Any]] = {
    "input": lambda g, v: g.input(v),
    "param": lambda g, v: g.param(v),
    "const": lambda g, v: g.const(v),
    "set": lambda g, v: g.input(None).set(v),
    "set of a number": lambda g, v: g.input(1.0).set(v),
    "set of an array": lambda g, v: g.input([1.0]).set(v),
    "set without a copy": lambda g, v: g.input(None).set(v, copy=False),
    "set with a cutoff": lambda g, v: g.input(None, cutoff="equal").set(v),
    "set together": lambda g, v: g.set({g.input(None): v}),
    "transaction": in_transaction,
    "what-if": what_if,
    "pin": pinned,
    "operand": lambda g, v: g.input(1.0) + v,
    "lifted argument": lambda g, v: rg.lift(lambda *a: a)(g.input(1.0), v),
    "lifted keyword": lambda g, v: rg.lift(lambda a, k: a)(g.input(1.0), k=v),
    "Function": lambda g, v: Apply.apply(g.input(1.0), v),
    "subgraph": lambda g, v: rg.subgraph(lambda a, b: a + 1.0)(g.input([1.0]), v),
    "switch": lambda g, v: rg.switch(g.input(True), v, 1.0),
}


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("kind", ONE_SHOT)
def test_what_can_be_read_only_once_is_refused_wherever_values_enter(
    kind: str, entrance: str, g: rg.Graph
) -> None:
    value = ONE_SHOT[kind]()
    with pytest.raises(TypeError, match=r"to its first reader alone, and a value may have many"):
        ENTRANCES[entrance](g, value)
    g.check_invariants()


def test_what_can_be_read_only_once_is_refused_in_an_array_of_objects(g: rg.Graph) -> None:
    value = np.empty(1, object)
    value[0] = iter([1])
    x = g.input(1.0)
    for enter in (rg.lift(lambda v: v)(x).pin, lambda v: rg.lift(lambda *a: a)(x, v)):
        with pytest.raises(TypeError, match=r"given a ndarray that holds a list_iterator"):
            enter(value)


def test_a_refusal_says_what_to_write(g: rg.Graph) -> None:
    x = g.input(None, name="x")
    for value, words in (
        ((i for i in range(3)), r"input 'x' was given a generator.*Pass list\(\.\.\.\) of it"),
        ({"a": [iter("a")]}, r"a dict that holds a str_\w*iterator"),
        (io.StringIO("a"), r"Pass what file\.read\(\) returns"),
        (async_generator(), r"def instead of async def"),
    ):
        with pytest.raises(TypeError, match=words):
            x.set(value)
    assert (x.value, x.value_version) == (None, 1)


MUTABLE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "dict": (lambda: {"a": 1}, lambda v: v.update(a=2)),
    "nested dict": (lambda: {"a": {"b": [1]}}, lambda v: v["a"]["b"].append(2)),
    "list in a tuple": (lambda: {"a": ("a", [1])}, lambda v: v["a"][1].append(2)),
    "set": (lambda: {1, 2}, lambda v: v.add(3)),
    "deque": (lambda: collections.deque([1]), lambda v: v.append(2)),
    "bytearray": (lambda: bytearray(b"a"), lambda v: v.extend(b"b")),
    "default dict": (lambda: collections.defaultdict(list, a=[1]), lambda v: v["a"].append(2)),
    "named tuple": (lambda: Point([1.0], 2.0), lambda v: v.x.append(3.0)),  # type: ignore[arg-type]
    "dataclass": (Book, lambda v: v.rows.append(2)),
    "array in a dict": (lambda: {"a": np.zeros(2)}, lambda v: v["a"].__setitem__(0, 1.0)),
    "labelled": (Labelled, lambda v: v.data.__setitem__(0, 9.0)),
    "no copy": (lambda: {"lock": threading.Lock(), "a": 1}, lambda v: v.update(a=2)),
}


def plain(value: Any) -> str:
    return repr(vars(value) if hasattr(value, "__dict__") else value)


@pytest.mark.parametrize("cutoff", ["equal", None, lambda old, new: plain(old) == plain(new)])
@pytest.mark.parametrize("kind", MUTABLE)
def test_the_same_object_changed_in_place_is_a_change(kind: str, cutoff: Any, g: rg.Graph) -> None:
    make, change = MUTABLE[kind]
    value = make()
    x = g.input(value, cutoff=cutoff)
    seen = rg.lift(plain)(x)
    before = seen.value
    change(value)
    if kind != "no copy":
        assert plain(x.value) == before  # a copy of its own
    x.set(value)
    assert x.value_version == 2
    assert seen.value == plain(value)


@pytest.mark.parametrize("entrance", ["input", "set", "const", "together", "what-if", "pin"])
def test_what_enters_is_copied_with_its_arrays_read_only(entrance: str, g: rg.Graph) -> None:
    value = {"a": np.zeros(2), "rows": [1]}
    h, x = g, g.input(None, name="x")
    if entrance == "input":
        x = g.input(value)
    elif entrance == "const":
        x = g.const(value)
    elif entrance == "set":
        x.set(value)
    elif entrance == "together":
        g.set({"x": value})
    elif entrance == "what-if":
        h = g.whatif({"x": value}).__enter__()
    else:
        x = rg.lift(lambda v: v)(x)
        x.pin(value)
    value["rows"].append(2)
    value["a"][0] = 1.0
    held = h[x].value if h is not g else x.value
    assert held["rows"] == [1]
    assert held["a"].tolist() == [0.0, 0.0]
    assert held is (h[x].value if h is not g else x.value)
    with pytest.raises(ValueError, match="read-only"):
        held["a"][0] = 1.0


def test_an_object_is_adopted_where_the_caller_says_so(g: rg.Graph) -> None:
    book = Book()
    x = g.input(None, cutoff="equal")
    x.set(book, copy=False)
    assert x.value is book
    x.set(book, copy=False)
    assert x.value_version == 3


def test_functions_and_other_callables_are_not_copied(g: rg.Graph) -> None:
    for value in (len, plain, Book().rows.append, functools.partial(plain, 1), Book, object()):
        assert g.input(value).value is value


STAYS = [
    Point(1.0, 2.0),
    datetime.datetime(2026, 1, 1),
    datetime.date(2026, 1, 1),
    datetime.timedelta(1),
    decimal.Decimal("1.10"),
    fractions.Fraction(1, 3),
    "text",
    b"bytes",
    range(3),
    {1: 2},
    frozenset([1]),
    collections.deque([1.0, 2.0]),
    collections.OrderedDict(a=1),
    None,
    1 + 2j,
    10**40,
]


@pytest.mark.parametrize("value", STAYS, ids=repr)
def test_objects_stay_what_they_are(value: Any, g: rg.Graph) -> None:
    x, c = g.input(value), g.const(value)
    both = rg.lift(lambda a, b: (a, b))(x, c)
    for graph in (g, g.fork()):
        for one in graph[both].value:
            assert type(one) is type(value)
            assert one == value


def test_labels_are_never_dropped_in_silence(g: rg.Graph) -> None:
    table, matrix = Labelled(), np.ones((1, 1)).view(np.matrix)
    x = g.input(table)
    assert type(rg.lift(lambda t: t)(x).value) is Labelled
    for act in (
        lambda: g.input([table, table]),
        lambda: g.input([Point(1.0, 2.0)]),
        lambda: g.input([1.0]).set(table),
        lambda: g.param(table),
        lambda: (x * 2.0).value,
        lambda: (rg.lift(lambda v: table)(x) * 2.0).value,
        lambda: g.input(matrix),
        lambda: g.input([matrix]),
        lambda: g.input([np.ma.array([1.0], mask=[True])]),
        lambda: g.input([1.0]) * matrix,
    ):
        with pytest.raises(TypeError, match=r"asarray|filled|no number or array|params are arrays"):
            act()


def test_beside_a_node_an_object_with_labels_gives_its_elements_by_position(g: rg.Graph) -> None:
    table = Labelled()
    k = g.param(np.full(np.shape(np.asarray(table)), 2.0))
    y = k * table
    np.testing.assert_array_equal(y.value, 2.0 * np.asarray(table))
    np.testing.assert_array_equal(rg.grad(y.sum(), k).value, np.asarray(table))


def test_tables_of_pandas_stay_tables(g: rg.Graph) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}, index=["p", "q"])
    x = g.input(frame, cutoff="equal")
    total = rg.lift(lambda f: f["a"].sum())(x)
    assert total.value == 3.0
    frame.loc["p", "a"] = 5.0
    assert total.value == 3.0
    x.set(frame)
    assert total.value == 7.0
    assert list(g.input(frame["a"]).value.index) == ["p", "q"]
    with pytest.raises(TypeError, match="asarray"):
        g.input([frame["a"]])


def test_a_coroutine_that_is_refused_is_closed(g: rg.Graph) -> None:
    one = coroutine()
    with pytest.raises(TypeError):
        g.input(one)
    with pytest.raises(RuntimeError, match="cannot reuse already awaited"):
        one.send(None)


def test_a_tolerance_takes_what_may_have_changed_in_place_for_a_change(g: rg.Graph) -> None:
    rows = collections.deque([1.0])
    k = g.input(0)
    table = rg.lift(lambda i: rows, cutoff=rg.tolerance(atol=0.1))(k)
    total = rg.lift(sum)(table)
    assert total.value == 1.0
    rows.append(2.0)
    k.set(1)
    assert total.value == 3.0


def test_views_show_what_was_there_when_they_entered(g: rg.Graph) -> None:
    """A view of a dict or of memory has no copy of its own, and showed what its owner changed later."""
    table, memory = {"a": 1.0}, bytearray(b"abc")
    views = {
        "proxy": MappingProxyType(table),
        "keys": table.keys(),
        "values": table.values(),
        "items": table.items(),
        "memory": memoryview(memory),
        "square": memoryview(memory[:2] * 2).cast("B", (2, 2)),
    }
    leaves = {name: g.input(view, cutoff="equal") for name, view in views.items()}
    table["a"], table["b"], memory[0] = 2.0, 3.0, 120
    held = {name: leaf.value for name, leaf in leaves.items()}
    assert [type(one) for one in held.values()] == [type(view) for view in views.values()]
    assert dict(held["proxy"]) == {"a": 1.0}
    assert [list(held[name]) for name in ("keys", "values", "items")] == [
        ["a"],
        [1.0],
        [("a", 1.0)],
    ]
    assert (held["memory"].tobytes(), held["memory"].readonly) == (b"abc", True)
    assert held["square"].tolist() == [[97, 98], [97, 98]]
    for name, leaf in leaves.items():
        leaf.set(views[name])
    assert dict(leaves["proxy"].value) == table
    assert leaves["memory"].value.tobytes() == b"xbc"
