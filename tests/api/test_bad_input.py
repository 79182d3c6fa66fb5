"""Bad input anywhere: a right result, or an error that says what was written, why not, what instead."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import reactgrad as rg


def graph() -> rg.Graph:
    return rg.Graph()


def x3() -> Any:
    return graph().input([1.0, 2.0, 3.0], name="x")


def c3() -> rg.Var:
    return graph().const([1.0, 2.0, 3.0], name="c")


Row = tuple[Callable[[], Any], type[Exception], str]

# what is written: (act, builtin error, essential words of the message)
LEAVES: dict[str, Row] = {
    "ragged list": (lambda: graph().input([[1, 2], [3]], name="x"), ValueError, r"'x'.*different lengths.*pad them"),
    "array of objects": (lambda: graph().input(np.array([None, 1])), TypeError, r"dtype object.*rg\.lift"),
    "list with None": (lambda: graph().const([None, 1]), TypeError, r"numbers only.*objects.*rg\.lift"),
    "list of strings": (lambda: graph().param(["a"]), TypeError, r"numbers only.*strings"),
    "list of huge integers": (lambda: graph().input([2**70]), TypeError, r"numbers only"),
    "dates": (lambda: graph().input(np.array(["2020-01-01"], "M8[D]")), TypeError, r"dates.*no kernels.*astype"),
    "date": (lambda: graph().input(np.datetime64("2020-01-01")), TypeError, r"dates"),
    "time difference": (lambda: graph().input(np.timedelta64(1, "D")), TypeError, r"time differences"),
    "string array": (lambda: graph().input(np.array(["a"])), TypeError, r"strings"),
    "record array": (lambda: graph().input(np.zeros(2, [("a", int)])), TypeError, r"records"),
    "masked array": (lambda: graph().input(np.ma.array([1, 2], mask=[0, 1])), TypeError, r"masked array.*filled"),
    "masked constant": (lambda: graph().input(np.ma.masked), TypeError, r"masked"),
    "a Var": (lambda: graph().input(x3()), TypeError, r"was given a Var.*snapshot\(\)"),
    "a list of Vars": (lambda: (lambda x: graph().input([x, x]))(x3()), TypeError, r"Var"),
    "param of integers": (lambda: graph().param([1, 2]), TypeError, r"int64.*3\.0 instead of 3.*g\.input"),
    "param of a Python integer": (lambda: graph().param(3), TypeError, r"Python int.*3\.0 instead of 3"),
    "param of complex numbers": (lambda: graph().param([1j]), TypeError, r"complex128"),
    "param of nothing": (lambda: graph().param(), TypeError, r"needs a value, or shape="),
    "param of None": (lambda: graph().param(None), TypeError, r"NoneType"),
    "param shape of integers": (lambda: graph().param(shape=2, dtype=int), TypeError, r"int64"),
    "negative length": (lambda: graph().input(shape=(-1,)), ValueError, r"shape=\(-1,\).*at least 0, or None"),
    "broken length": (lambda: graph().input(shape=(1.5,)), ValueError, r"integers of at least 0"),
    "length True": (lambda: graph().input(shape=(True,)), ValueError, r"integers of at least 0"),
    "shape of strings": (lambda: graph().input(shape="ab"), ValueError, r"integers of at least 0"),
    "dtype of strings": (lambda: graph().input(shape=2, dtype=str), TypeError, r"not numeric"),
    "dtype object": (lambda: graph().input([1], dtype=object), TypeError, r"not numeric"),
    "dtype nonsense": (lambda: graph().input(shape=2, dtype="nonsense"), TypeError, r"dtype='nonsense'"),
    "value of another shape": (lambda: graph().input([1.0], name="x", shape=3), ValueError, r"'x'.*\[3\].*Reshape"),
    "object for a shape": (lambda: graph().input({}, shape=(3,)), ValueError, r"declared"),
    "object for a dtype": (lambda: graph().input("1", dtype=float), TypeError, r"dtype"),
    "None for a dtype": (lambda: graph().input(None, dtype=float), TypeError, r"dtype"),
    "floats for an integer dtype": (lambda: graph().input([1.5], dtype=int), TypeError, r"float64.*int64.*astype"),
    "complex for a float dtype": (lambda: graph().input(1j, dtype=float), TypeError, r"complex128.*float64"),
    "too large for its dtype": (lambda: graph().input(300, dtype="i1"), (TypeError, OverflowError), r"300"),
    "list too large for its dtype": (lambda: graph().input([300], dtype="i1"), (TypeError, OverflowError), r"300|int8"),
    "cutoff of another name": (lambda: graph().input(1.0, cutoff="same"), TypeError, r"'same'.*'equal'.*rg\.tolerance"),
    "tolerance below 0": (lambda: rg.tolerance(-1), TypeError, r"rtol=-1.*at least 0"),
    "tolerance NaN": (lambda: rg.tolerance(atol=float("nan")), TypeError, r"atol=nan"),
    "tolerance of text": (lambda: rg.tolerance("a"), TypeError, r"rtol='a'"),
    "seed below 0": (lambda: rg.Graph(rng=-1), TypeError, r"rng=-1.*at least 0"),
    "seed None": (lambda: rg.Graph(rng=None), TypeError, r"rng=None"),
    "empty name": (lambda: graph().input(1.0, name=""), ValueError, r"non-empty string, not ''"),
    "name that is no string": (lambda: graph().input(1.0, name=5), ValueError, r"non-empty string, not 5"),
    "Var by hand": (lambda: rg.Var(), TypeError, r"g\.input"),
    "DetachedVar by hand": (lambda: rg.DetachedVar(), TypeError, r"detach\(\)"),
    "lift of no function": (lambda: rg.lift(3), TypeError, r"takes a function.*g\.input"),
    "lift with no rule": (lambda: rg.lift(abs, vjp=3), TypeError, r"vjp=3.*takes a function.*vjp\(g, ans"),
    "lift with no tangent": (lambda: rg.lift(abs, jvp="x"), TypeError, r"jvp=.x.*jvp\(ts, ans"),
    "lift of objects as dtype": (lambda: rg.lift(abs, dtype="O"), TypeError, r"dtype"),
    "lift with a negative length": (lambda: rg.lift(abs, shape=(-1,)), ValueError, r"shape"),
    "lift with a bad shape": (lambda: rg.lift(abs, shape="ab"), ValueError, r"shape"),
}  # fmt: skip

SETS: dict[str, Row] = {
    "constant": (lambda: graph().const(1.0, name="k").set(2.0), TypeError, r"'k' is a constant.*g\.input"),
    "computed node": (lambda: (x3() + 1).set(2.0), TypeError, r"computed by op 'add'.*Set one of the inputs"),
    "result of a function": (lambda: rg.lift(abs)(x3()).set(2.0), TypeError, r"computed by function 'abs'"),
    "detached view": (lambda: x3().detach().set(2.0), TypeError, r"detached"),
    "a Var": (lambda: (lambda x: x.set(x + 1))(x3()), TypeError, r"given a Var.*\.set\(v\.value\)"),
    "a list of Vars": (lambda: (lambda x: x.set([x[0], x[1], 1.0]))(x3()), TypeError, r"Var"),
    "None": (lambda: x3().set(None), TypeError, r"float64\[3\].*NoneType.*another input"),
    "string": (lambda: x3().set("1"), TypeError, r"str \('1'\)"),
    "strings": (lambda: x3().set(["1", "2", "3"]), TypeError, r"strings"),
    "ragged": (lambda: x3().set([[1.0], [2.0, 3.0]]), ValueError, r"different lengths"),
    "complex": (lambda: x3().set([1j, 2, 3]), TypeError, r"float64 and was given complex128.*astype"),
    "masked": (lambda: x3().set(np.ma.array([1.0, 2.0, 3.0], mask=[1, 0, 0])), TypeError, r"masked"),
    "dates": (lambda: x3().set(np.array(["2020-01-01"] * 3, "M8[D]")), TypeError, r"dates"),
    "floats for integers": (lambda: graph().input([1]).set([1.5]), TypeError, r"int64 and was given float64"),
    "integers for booleans": (lambda: graph().input([True]).set([1]), TypeError, r"bool and was given int64"),
    "negative for unsigned": (lambda: graph().input(np.uint8(1)).set(-1), TypeError, r"uint8"),
    "too large": (lambda: graph().input(np.int8(1)).set(300), (TypeError, OverflowError), r"300"),
    "too large, in a list": (lambda: graph().input(np.int8([1])).set([300]), (TypeError, OverflowError), r"300|int8"),
    "huge for a float": (lambda: graph().input(np.float32(1)).set(10**400), (TypeError, OverflowError), r"large|fit"),
    "two values": (lambda: graph().input(1.0, name="x").set(1.0, 2.0), TypeError, r"2\.0\): .*copy= is"),
    "shape in place of a weight": (lambda: rg.layer_norm(x3(), (3,)), TypeError, r"weight=\(3,\)\. .* axis="),
    "array in place": (lambda: exec("a += x", {"a": np.zeros(3), "x": x3()}), TypeError, r"`array \+= x`.*y = array"),
    "mapping with a string": (lambda: graph().set({"a": 2.0}), (TypeError, KeyError), r"'a'|str"),
    "no mapping": (lambda: graph().set(None), TypeError, r"g\.set"),
    "Var of another graph": (lambda: graph().set({x3(): 1.0}), ValueError, r"another graph: 'x'"),
    "+= on a leaf": (lambda: exec("x += 1", {"x": x3()}), TypeError, r"`x \+= .*x\.set\(x\.value \+"),
    "*= on a leaf": (lambda: exec("x *= 2", {"x": x3()}), TypeError, r"x\.set\(x\.value \*"),
    "-= on a leaf": (lambda: exec("x -= 2", {"x": x3()}), TypeError, r"\.set\("),
    "/= on a leaf": (lambda: exec("x /= 2", {"x": x3()}), TypeError, r"\.set\("),
    "**= on a leaf": (lambda: exec("x **= 2", {"x": x3()}), TypeError, r"\.set\("),
    "@= on a leaf": (lambda: exec("x @= x", {"x": x3()}), TypeError, r"\.set\("),
    "item of a leaf": (lambda: x3().__setitem__(0, 1.0), TypeError, r"version.*mutate\(\)"),
    "item of a computed node": (lambda: (x3() + 1).__setitem__(0, 1.0), TypeError, r"\.at\["),
    "touch of a constant": (lambda: graph().const(1.0).touch(), TypeError, r"constant"),
    "touch of an unset input": (lambda: graph().input(shape=2).touch(), TypeError, r"no value"),
    "mutate of a constant": (lambda: graph().const(1.0).mutate().__enter__(), TypeError, r"inputs and params"),
    "mutate of a computed node": (lambda: (x3() + 1).mutate().__enter__(), TypeError, r"inputs and params"),
    "mutate of an object": (lambda: graph().input({"a": 1}).mutate().__enter__(), TypeError, r"array"),
    "adopted number": (lambda: graph().input([0.0], shape=1).set(np.float64(1), copy=False), ValueError, r"declared"),
}  # fmt: skip

READS: dict[str, Row] = {
    "unset input": (lambda: graph().input(name="x").value, ValueError, r"no value yet.*\.set\(value\)"),
    "unset input downstream": (lambda: (graph().input(shape=2, name="x") + 1).value, ValueError, r"no value yet"),
    "shape of an unset input": (lambda: graph().input().shape, ValueError, r"no value yet"),
    "several as float": (lambda: float(c3()), (TypeError, ValueError), r"'c' has shape \(3,\).*single element"),
    "several as int": (lambda: int(c3()), (TypeError, ValueError), r"single element"),
    "several as bool": (lambda: bool(c3()), ValueError, r"shape \(3,\).*single element"),
    "comparison as bool": (lambda: 1 if c3() > 0 else 0, ValueError, r"single element"),
    "nothing as bool": (lambda: bool(graph().const(np.zeros(0))), ValueError, r"shape \(0,\)"),
    "several as item": (lambda: x3().item(), ValueError, r"Index or reduce"),
    "float as index": (lambda: [1, 2][graph().const(1.0)], TypeError, r"float64.*integers can"),
    "length of a number": (lambda: len(graph().input(1.0)), TypeError, r"no length"),
    "pickle of a lambda": (lambda: pickle.dumps(rg.lift(lambda v: v)(x3())), ValueError, r"it is a lambda"),
    "deep copy": (lambda: copy.deepcopy(x3()), TypeError, r"snapshot"),
    "no such name": (lambda: graph()["price"], KeyError, r"no node.*'price'.*keep"),
    "keep of a number": (lambda: graph().keep(3), TypeError, r"takes Vars.*int"),
    "forward of a number": (lambda: graph().forward(3), TypeError, r"takes Vars.*int"),
    "forward of another graph": (lambda: graph().forward(x3()), ValueError, r"another graph: 'x'"),
    "plan of another graph": (lambda: graph().plan(x3()), ValueError, r"another graph"),
    "item of a graph": (lambda: graph().__setitem__("x", 1.0), TypeError, r"g\['x'\]\.set\(1\.0\)"),
    "array as condition": (lambda: rg.switch(x3() > 0, 1.0, 2.0), ValueError, r"shape \(3,\).*rg\.where"),
    "another branch": (lambda: (lambda x: rg.switch(x[0], x, x).replace_parent(1, x))(x3()), ValueError, r"another"),
    "edit with a name that is none": (lambda: (x3() + 1).replace_parent(0, "z"), KeyError, r"no node.*'z'"),
    "what-if without a block": (lambda: graph().whatif()["x"], ValueError, r"with g\.whatif.*g\.fork\(\)"),
    "asarray without copy": (lambda: np.asarray(x3(), copy=False), ValueError, r"copy.*var\.value"),
}  # fmt: skip

OPERANDS: dict[str, Row] = {
    "string": (lambda: x3() + "a", TypeError, r"operand 2 of add is str \('a'\).*rg\.lift"),
    "None": (lambda: x3() + None, TypeError, r"NoneType.*rg\.lift"),
    "dict": (lambda: rg.tanh({}), TypeError, r"dict"),
    "decimal": (lambda: x3() * Decimal(1), TypeError, r"Decimal"),
    "fraction": (lambda: Fraction(1, 2) * x3(), TypeError, r"Fraction"),
    "strings": (lambda: rg.add(x3(), ["a", "b", "c"]), TypeError, r"strings"),
    "ragged": (lambda: rg.add(x3(), [[1], [1, 2]]), ValueError, r"different lengths"),
    "masked": (lambda: x3() + np.ma.array([1, 2, 3], mask=[1, 0, 0]), TypeError, r"masked"),
    "dates": (lambda: x3() + np.datetime64("2020-01-01"), TypeError, r"dates"),
    "objects": (lambda: rg.sum(np.array([None])), TypeError, r"objects"),
    "another length": (lambda: x3() + np.zeros(4), ValueError, r"lengths 3 and 4.*Reshape"),
    "negative of booleans": (lambda: -(x3() > 0), TypeError, r"bool"),
    "difference of booleans": (lambda: (x3() > 0) - (x3() > 0).value, TypeError, r"bool"),
    "floor of complex": (lambda: rg.floor([1j]), TypeError, r"complex128.*astype"),
    "another graph": (lambda: x3() + x3(), ValueError, r"'x'.*another graph.*g\.input\(v\.value\)"),
    "another graph in where": (lambda: (lambda x: rg.where(x > 0, x3(), x))(x3()), ValueError, r"another graph"),
    "another graph in concatenate": (lambda: rg.concatenate([x3(), x3()]), ValueError, r"another graph"),
    "another graph in lift": (lambda: rg.lift(max)(x3(), x3()), ValueError, r"another graph"),
    "another graph as index": (lambda: x3()[graph().input(1)], ValueError, r"another graph"),
    "another graph by edit": (lambda: (x3() + 1).replace_parent(0, x3()), ValueError, r"another graph"),
    "no such operand": (lambda: (lambda x: (x + 1).replace_parent(5, x))(x3()), ValueError, r"operand|position"),
    "a cycle": (lambda: (lambda y: y.replace_parent(0, y * 2))(x3() + 1), ValueError, r"multiply.*add.*multiply"),
}  # fmt: skip

ALL = {
    f"{table}: {name}": row
    for table, rows in {"leaf": LEAVES, "set": SETS, "read": READS, "operand": OPERANDS}.items()
    for name, row in rows.items()
}


@pytest.mark.parametrize("name", ALL)
def test_error_teaches(name: str) -> None:
    act, builtin, words = ALL[name]
    with pytest.raises(builtin, match=words) as caught:
        act()
    assert isinstance(caught.value, rg.ReactgradError), repr(caught.value)
    gc.collect()  # what is half-built must not complain later either


@pytest.mark.parametrize(
    "build",
    [
        lambda x: x + np.zeros(4),
        lambda x: x + "a",
        lambda x: x @ np.zeros((4, 2)),
        lambda x: rg.concatenate([x, np.zeros((2, 2)), 5.0]),
        lambda x: rg.stack([x, 1.0]),
        lambda x: rg.where([True, False], x, 1.0),
        lambda x: x[7],
    ],
)
def test_op_that_cannot_be_built_leaves_no_node(build: Any) -> None:
    x = x3()
    before = len(x.graph)
    with pytest.raises(rg.ReactgradError):
        build(x)
    gc.collect()
    assert len(x.graph) == before
    x.graph.check_invariants()


BAD_SETS = [None, "a", [1j] * 3, [[1.0], [1.0, 2.0]], np.zeros((2, 2)), np.array(["a"])]


@pytest.mark.parametrize("bad", BAD_SETS, ids=range(len(BAD_SETS)))
def test_set_that_fails_changes_nothing(bad: Any) -> None:
    g = graph()
    x, z = g.input([1.0, 2.0, 3.0]), g.input(5.0)
    y = x * np.arange(3.0) + z
    before = y.value
    with pytest.raises(rg.ReactgradError):
        x.set(bad)
    with pytest.raises(rg.ReactgradError):
        g.set({z: 7.0, x: bad})
    assert (x.value_version, z.value_version, y.value_version) == (1, 1, 1)
    assert z.value == 5.0
    assert y.value is before
    assert not y.is_stale
    g.check_invariants()


def test_set_of_several_is_atomic_when_a_cast_raises() -> None:
    """Where NumPy is told to raise on overflow, the first leaf must not have changed either."""
    g = graph()
    a, b = g.input(np.float32([1.0])), g.input(np.float32([2.0]))
    y = a + b
    _ = y.value
    with np.errstate(all="raise"):
        try:
            g.set({a: np.float32([5.0]), b: np.float64([1e300])})
        except (FloatingPointError, rg.ReactgradError):
            assert (a.value, b.value, y.value) == (1.0, 2.0, 3.0)
            assert (a.value_version, b.value_version) == (1, 1)
        else:
            assert (a.value, b.value, y.value) == (5.0, np.inf, np.inf)
            assert (a.value_version, b.value_version) == (2, 2)


def test_set_does_not_warn_when_precision_is_lost() -> None:
    x = graph().input(np.float32([1.0]))
    x.set(np.float64([1e300]))
    assert x.value[0] == np.inf


# --- names -------------------------------------------------------------------------------------


def test_names() -> None:
    g = graph()
    x = g.input(1.0, name="x")
    y = x + 1
    y.name = "y"
    assert g["x"] is x
    assert g["y"] is y
    with pytest.raises(ValueError, match=r"'x' is taken.*unique.*g\['x'\]"):
        g.input(2.0, name="x")
    with pytest.raises(ValueError, match="taken"):
        y.name = "x"
    for bad in ("", 3, b"z", ["a"]):
        with pytest.raises(rg.GraphError, match="non-empty string"):
            y.name = bad
    assert y.name == "y"
    y.name = "y"  # its own name is no conflict
    y.name = "z"
    with pytest.raises(KeyError):
        g["y"]
    y.name = None
    assert y.name.startswith("add")
    with pytest.raises(KeyError):
        g["z"]


def test_a_made_name_gives_way_to_a_given_one() -> None:
    g = graph()
    x = g.input(1.0)
    chosen = g.input(2.0, name="tanh_3")
    y = rg.tanh(x)
    assert y.name == "tanh_3_"
    assert g["tanh_3_"] is y
    assert g["tanh_3"] is chosen
    assert [node.name for node in g.snapshot().nodes] == ["x", "tanh_3", "y"]
    chosen.name = None
    assert g[y.name] is y


def test_refused_name_leaves_no_node() -> None:
    g = graph()
    x = g.input(1.0, name="x")
    with pytest.raises(rg.GraphError):
        g.input(2.0, name="x")
    assert len(g) == 1
    assert g["x"] is x


def test_name_is_free_again_when_its_node_is_gone() -> None:
    g = graph()
    x = g.input(1.0, name="x")
    del x
    gc.collect()
    assert g.input(2.0, name="x").value == 2.0
    kept = g.keep(g.input(3.0, name="kept"))
    del kept
    gc.collect()
    assert g["kept"].value == 3.0


def test_graph_is_no_sequence() -> None:
    g = graph()
    x = g.input(1.0, name="x")
    assert x.graph is g
    try:
        known = "x" in g, "y" in g
    except TypeError:
        return
    assert known == (True, False)


def test_unhashable_name() -> None:
    with pytest.raises((rg.ReactgradError, TypeError)) as caught:
        graph()[["x"]]
    assert isinstance(caught.value, (KeyError, TypeError))


# --- copies ------------------------------------------------------------------------------------


def test_copy_of_a_var_is_the_var() -> None:
    x = x3()
    assert copy.copy(x) is x


@pytest.mark.slow
def test_copy_of_a_graph_does_not_break_it() -> None:
    """A copy that dies, or was never finished, must not take the original's tables with it."""
    program = """
import copy, gc
import reactgrad as rg
g = rg.Graph()
x = g.input(1.0)
y = x + 1
for make in (copy.copy, copy.deepcopy):
    try:
        twin = make(g)
    except TypeError:
        twin = None
    del twin
    gc.collect()
assert y.value == 2.0
x.set(2.0)
assert y.value == 3.0
assert len(g) == 3
"""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr


async def _awaited(n: float) -> float:
    return n


@pytest.mark.parametrize(
    "function",
    [
        lambda n: (i for i in range(int(n))),
        lambda n: map(abs, [n]),
        lambda n: zip([n], [n], strict=True),
        lambda n: enumerate([n]),
        lambda n: iter([n]),
        lambda n: reversed([n]),
        lambda n: itertools.chain([n]),
        _awaited,
    ],
)
def test_a_result_that_its_first_reader_would_use_up_is_refused(g: rg.Graph, function: Any) -> None:
    x = g.input(3.0)
    y = rg.lift(function)(x)
    first, second = rg.lift(list)(y), rg.lift(list)(y)
    for node in (y, first, second):
        with pytest.raises(rg.DTypeError, match="gives what is in it to its first reader alone"):
            node.value
    with pytest.raises(rg.DTypeError, match="first reader alone"):
        rg.lift(lambda n: (1.0, iter(map(abs, [n]))), outputs=2)(x)[1].value
    assert rg.lift(lambda n: list(range(int(n))))(x).value == [0, 1, 2]
