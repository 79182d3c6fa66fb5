"""Random programs: a graph built and changed step by step, and everything that must hold of it.

A ``Recipe`` lists what was built, in order, and can build it all again in a new graph. A
``Program`` plays actions on a graph and compares every read with such a new graph, with what an
independent model (networkx) says must run, and with all values that were handed out before.

Actions and nodes are coded as integers that are taken apart with ``Code``: one draw of Hypothesis
each, which shrinks towards simple ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import networkx as nx
import numpy as np

import reactgrad as rg

Shape = tuple[int, ...]
SHAPES: list[Shape] = [(), (3,), (2, 3), (1,), (3, 3), (3, 1), (0,), (2, 0)]
MOST_ELEMENTS = 48
MOST_NODES = 2500


class Code:
    """A non-negative integer, used up choice by choice."""

    def __init__(self, number: int) -> None:
        self.number = number

    def pick(self, count: int) -> int:
        """A number below `count`."""
        self.number, chosen = divmod(self.number, count)
        return chosen

    def among(self, options: Sequence[Any]) -> Any:
        """One of the options."""
        return options[self.pick(len(options))]

    def array(self, shape: Shape) -> np.ndarray[Any, Any]:
        """Numbers with many ties and, sometimes, something special among them."""
        rng = np.random.default_rng(self.pick(1 << 16))
        values = np.round(rng.normal(size=shape) * 2, self.pick(3))
        if values.size and self.pick(12) == 11:
            values.flat[0] = self.among([np.nan, np.inf, -0.0])
        return values


def same_bits(a: Any, b: Any) -> bool:
    """The same type, shape, dtype, and bits (any NaN is a NaN)."""
    if type(a) is not type(b):
        return False
    x, y = np.asarray(a), np.asarray(b)
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    if x.tobytes() == y.tobytes():
        return True
    nan = np.isnan(x) & np.isnan(y)
    return x[~nan].tobytes() == y[~nan].tobytes()


# --- ops ---------------------------------------------------------------------------------------

ARRAY_OPS: dict[str, tuple[int, Callable[..., rg.Var]]] = {
    "add": (2, lambda a, b: a + b),
    "multiply": (2, lambda a, b: a * b),
    "tanh": (1, rg.tanh),
    "subtract": (2, lambda a, b: a - b),
    "sum": (1, lambda a: a.sum()),
    "scale": (1, lambda a: a * 0.5 + 1.0),
    "sin": (1, rg.sin),
    "divide": (2, lambda a, b: a / (b * b + 1.0)),
    "where": (2, lambda a, b: rg.where(a > b, a, b * 0.5)),
    "where3": (3, lambda a, b, c: rg.where(a > 0.0, b, c)),
    "maximum": (2, rg.maximum),
    "minimum": (2, rg.minimum),
    "matmul": (2, lambda a, b: a @ b),
    "transpose": (1, lambda a: a.T),
    "ravel": (1, lambda a: a.reshape(-1)),
    "new axis": (1, lambda a: a[None]),
    "first": (1, lambda a: a[0]),
    "last": (1, lambda a: a[..., -1]),
    "every second": (1, lambda a: a[::2]),
    "reversed": (1, lambda a: a[..., ::-1]),
    "gather": (1, lambda a: a[[0, 0, -1]]),
    "column": (1, lambda a: rg.expand_dims(a, -1)),
    "squeeze": (1, rg.squeeze),
    "repeat": (1, lambda a: rg.broadcast_to(a, (2, *a.shape))),
    "sum 0": (1, lambda a: a.sum(axis=0)),
    "sum -1": (1, lambda a: a.sum(axis=-1, keepdims=True)),
    "mean": (1, lambda a: a.mean()),
    "max": (1, lambda a: a.max(axis=-1)),
    "min": (1, lambda a: a.min()),
    "clip": (1, lambda a: rg.clip(a, -1.0, 1.0)),
    "clip3": (3, lambda a, b, c: rg.clip(a, b, c)),
    "concatenate": (2, lambda a, b: rg.concatenate([a.reshape(-1), b.reshape(-1)])),
    "stack": (2, lambda a, b: rg.stack([a, b], axis=-1)),
    "square": (1, lambda a: a**2),
    "sigmoid": (1, rg.sigmoid),
    "relu": (1, rg.relu),
    "abs": (1, abs),
    "decay": (1, lambda a: rg.exp(-abs(a))),
    "norm_cdf": (1, rg.norm_cdf),
    "float32": (1, lambda a: a.astype("float32").astype("float64")),
    "power": (2, lambda a, b: (abs(a) + 1.0) ** rg.tanh(b)),
}
# The results of these repeat, so that cutoffs have something to do.
COARSE_OPS: dict[str, tuple[int, Callable[..., rg.Var]]] = {
    "floor": (1, lambda a: rg.floor(a * 0.5)),
    "sign": (1, rg.sign),
    "zero": (1, lambda a: a * 0.0),
}


def _double(a: Any) -> Any:
    return np.tanh(a) * 2.0


def _double_vjp(g: Any, ans: Any, a: Any) -> tuple[Any]:
    return (g * (2.0 - ans * ans * 0.5),)


def _product(a: Any, b: Any) -> Any:
    return a * b + 1.0


def _product_vjp(g: Any, ans: Any, a: Any, b: Any) -> tuple[Any, Any]:
    return fit(g * b, a), fit(g * a, b)


def fit(part: Any, like: Any) -> Any:
    """`part` summed to the shape of `like`, which it was broadcast from."""
    while part.ndim > like.ndim:
        part = part.sum(axis=0)
    for axis, length in enumerate(like.shape):
        if length == 1 != part.shape[axis]:
            part = part.sum(axis=axis, keepdims=True)
    return part


def _norm(a: Any) -> float:
    return float(np.sum(np.asarray(a) * 0.25))


def _norm_vjp(g: Any, ans: Any, a: Any) -> tuple[Any]:
    return (rg.broadcast_to(g * 0.25, a.shape),)


def _same(a: Any) -> Any:
    return a


def _part(a: Any) -> Any:
    return np.asarray(a)[..., :1] if np.ndim(a) else a


LIFTED: dict[str, tuple[int, Callable[..., Any], Callable[..., Any] | None]] = {
    "lifted double": (1, _double, _double_vjp),
    "lifted product": (2, _product, _product_vjp),
    "lifted norm": (1, _norm, _norm_vjp),
    "lifted same": (1, _same, lambda g, ans, a: (g,)),
    "lifted part": (1, _part, None),
}


@cache
def result_shape(op: str, shapes: tuple[Shape, ...]) -> Shape | None:
    """The shape of an op's result, or ``None`` where the op does not fit."""
    if op in LIFTED:
        _, function, _ = LIFTED[op]
        try:
            return np.shape(function(*[np.ones(shape) for shape in shapes]))
        except ValueError:
            return None
    _, function = (ARRAY_OPS | COARSE_OPS)[op]
    graph = rg.Graph()
    try:
        shape = function(*[graph.input(np.ones(shape)) for shape in shapes]).shape
    except rg.ReactgradError:
        return None
    return shape if len(shape) <= 3 and np.prod(shape) <= MOST_ELEMENTS else None


# --- recipes -----------------------------------------------------------------------------------


@dataclass
class Entry:
    """One thing that was built: a leaf, an op on earlier entries, or a gradient of one."""

    op: str
    parents: tuple[int, ...]
    shape: Shape
    declared: bool = False
    cutoff: bool = False


LEAVES = ("input", "param", "number")


class Recipe:
    """What was built, and the present values of the leaves."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.values: dict[int, Any] = {}

    def build(self, graph: rg.Graph, index: int, made: list[Any]) -> Any:
        """Build one entry from those before it."""
        entry = self.entries[index]
        operands = [made[parent] for parent in entry.parents]
        if entry.op in LEAVES:
            make = graph.param if entry.op == "param" else graph.input
            return make(self.values[index])
        if entry.op == "grad":
            y, x = operands
            if y is None or x is None:
                return None
            scalar = y if entry.declared else y.sum()
            return rg.grad(scalar, x, allow_unused=True)
        if any(operand is None for operand in operands):
            return None
        if entry.op in LIFTED:
            _, function, vjp = LIFTED[entry.op]
            declared = {"shape": entry.shape} if entry.declared else {}
            var = rg.lift(function, vjp=vjp, **declared)(*operands)
        else:
            var = (ARRAY_OPS | COARSE_OPS)[entry.op][1](*operands)
        if entry.cutoff:
            var.cutoff = "equal"
        return var

    def build_all(self) -> tuple[rg.Graph, list[Any]]:
        """A new graph with everything in it, computed from nothing but the leaves' values."""
        graph = rg.Graph()
        made: list[Any] = []
        for index in range(len(self.entries)):
            made.append(self.build(graph, index, made))
        return graph, made


# --- what must run, by networkx ----------------------------------------------------------------


class Expectation:
    """Which nodes are stale, by the rule and nothing else: descendants of what changed."""

    def __init__(self, graph: rg.Graph) -> None:
        self.graph = graph
        self.known: set[str] = set()
        self.stale: set[str] = set()

    def look(self) -> Any:
        """The present nodes and edges, by name; new computed nodes are stale."""
        edges = nx.DiGraph()
        for var in self.graph.nodes:
            name = var.name
            edges.add_node(name)
            parents = [parent.name for parent in var.parents]
            edges.add_edges_from((parent, name) for parent in parents)
            if name not in self.known:
                self.known.add(name)
                if parents:
                    self.stale.add(name)
        return edges

    def changed(self, names: Iterable[str]) -> None:
        """These were changed."""
        edges = self.look()
        for name in names:
            self.stale |= nx.descendants(edges, name)

    def read(self, names: Iterable[str]) -> set[str]:
        """These are read: what has to run."""
        edges = self.look()
        needed = set(names)
        for name in tuple(needed):
            needed |= nx.ancestors(edges, name)
        due = needed & self.stale
        self.stale -= due
        return due

    def check_order(self, ran: Sequence[str]) -> None:
        """Parents before children."""
        edges = self.look()
        place = {name: i for i, name in enumerate(ran)}
        for name in place.keys() & edges.nodes:  # what nobody holds may be gone already
            at = place[name]
            for parent in edges.predecessors(name):
                assert place.get(parent, -1) < at, f"{parent} ran after its child {name}"


# --- programs ----------------------------------------------------------------------------------


class Program:
    """A graph, and the actions played on it.

    Parameters
    ----------
    distrust
        Whether every read forgets all marks and plans first.
    watch
        Whether versions and invariants are looked at after every action. Looking brings the
        tables up to date; not looking leaves more to plans, journal and pending changes.
    cutoffs, lifted
        Whether nodes may have cutoffs; whether some are Python functions.
    compare
        Whether reads are compared with new graphs.
    max_bytes
        The memory budget of the graph.
    """

    def __init__(
        self,
        nodes: Sequence[int],
        *,
        distrust: bool = False,
        watch: bool = False,
        cutoffs: bool = False,
        lifted: bool = True,
        compare: bool = True,
        max_bytes: int | None = None,
    ) -> None:
        self.graph = rg.Graph(max_bytes=max_bytes)
        if distrust:
            self.graph._scheduler.distrust = True
        self.watch, self.cutoffs, self.compare = watch, cutoffs, compare
        names = [*ARRAY_OPS, *(LIFTED if lifted else ()), *COARSE_OPS]
        self.names = names
        self.recipe = Recipe()
        self.made: list[Any] = []
        self.expected = Expectation(self.graph)
        self.fresh: list[Any] | None = None
        self.handed: list[tuple[Any, Any]] = []
        self.versions: dict[str, int] = {}
        self.grads: dict[int, Any] = {}
        self.log: list[Any] = []  # what other programs are compared with
        for shape in SHAPES[:3]:
            self.add_leaf("param" if shape == (3,) else "input", shape, Code(len(shape)))
        for code in nodes:
            self.build(Code(code))

    # --- building

    def add_leaf(self, kind: str, shape: Shape, code: Code) -> None:
        value = float(code.array(())) if kind == "number" else code.array(shape)
        self.recipe.values[len(self.made)] = value
        self._add(Entry(kind, (), () if kind == "number" else shape))

    def _add(self, entry: Entry) -> Any:
        self.recipe.entries.append(entry)
        self.fresh = None
        self.made.append(None)
        self.made[-1] = self.recipe.build(self.graph, len(self.made) - 1, self.made)
        if entry.op == "repeat":
            self._resync()  # it asks for a shape, which may run a function that declares none
        return self.made[-1]

    def build(self, code: Code) -> None:
        """A new leaf, or an op on something alive, rather on what is new than on what is old."""
        if len(self.graph) > MOST_NODES:
            return
        if code.pick(8) == 7:
            kind = code.among(["input", "param", "number"])
            self.add_leaf(kind, code.among(SHAPES), code)
            return
        op = code.among(self.names)
        arity = (LIFTED.get(op) or (ARRAY_OPS | COARSE_OPS)[op])[0]
        alive = self.alive()
        near = alive[-6:] if code.pick(3) else alive
        parents = tuple(code.among(near if i == 0 else alive) for i in range(arity))
        shape = result_shape(op, tuple(self.recipe.entries[p].shape for p in parents))
        if shape is None:
            op, parents = "scale", parents[:1]
            shape = self.recipe.entries[parents[0]].shape
        coarse = op in COARSE_OPS or code.pick(4) == 3
        declared = op in LIFTED and op != "lifted norm" and code.pick(2) == 1
        self._add(Entry(op, parents, shape, declared, self.cutoffs and coarse))

    def alive(self, *, leaves: bool | None = None) -> list[int]:
        """Entries whose Var is held."""
        return [
            i
            for i, var in enumerate(self.made)
            if var is not None
            and (leaves is None or (self.recipe.entries[i].op in LEAVES) is leaves)
        ]

    # --- actions

    def play(self, number: int) -> None:
        """One action."""
        code = Code(number)
        action = code.among(
            [
                self.set_one,
                self.read_one,
                self.read_some,
                self.build,
                self.set_some,
                self.rebuild,
                self.drop,
                self.touch,
                self.mutate,
                self.add_grad,
                self.backward,
                self.forget,
                self.loop,
                self.transaction,
                self.loop,
                self.read_one,
            ]
        )
        action(code)
        if self.watch:
            self.check()

    def _changed(self, indices: Iterable[int]) -> None:
        self.fresh = None
        self.expected.changed([self.made[i].name for i in indices])

    def _new_value(self, index: int, code: Code) -> Any:
        if self.recipe.entries[index].op == "number":
            return float(code.array(()))
        return code.array(self.recipe.entries[index].shape)

    def set_one(self, code: Code) -> None:
        index = code.among(self.alive(leaves=True))
        value = self._new_value(index, code)
        self.recipe.values[index] = value
        self.made[index].set(value)
        self._changed([index])

    def set_some(self, code: Code) -> None:
        leaves = self.alive(leaves=True)
        chosen = {code.among(leaves) for _ in range(1 + code.pick(3))}
        values = {index: self._new_value(index, code) for index in chosen}
        self.recipe.values |= values
        self.graph.set({self.made[index]: value for index, value in values.items()})
        self._changed(values)

    def mutate(self, code: Code) -> None:
        leaves = [i for i in self.alive(leaves=True) if self.recipe.entries[i].op != "number"]
        index = code.among(leaves)
        with self.made[index].mutate() as array:
            array *= 0.5
            array += 1.0
        self.recipe.values[index] = self.recipe.values[index] * 0.5 + 1.0
        self._changed([index])

    def touch(self, code: Code) -> None:
        entries = self.recipe.entries
        able = [i for i in self.alive() if entries[i].op in LEAVES or entries[i].op in LIFTED]
        index = code.among(able)
        self.made[index].touch()
        self._changed([index])
        if entries[index].op in LIFTED:
            self.expected.stale.add(self.made[index].name)

    def transaction(self, code: Code) -> None:
        """Sets, and perhaps a read; in half of the cases it fails and all is taken back."""
        before = dict(self.recipe.values)
        fails = code.pick(2)
        touched: list[int] = []
        with suppress(ZeroDivisionError), self.graph.transaction():
            for _ in range(1 + code.pick(2)):
                index = code.among(self.alive(leaves=True))
                self.recipe.values[index] = self._new_value(index, code)
                self.made[index].set(self.recipe.values[index])
                self._changed([index])
                touched.append(index)
            if code.pick(2):
                self.read([code.among(self.alive())])
            if fails:
                raise ZeroDivisionError
        if fails:
            self.recipe.values = before
            self._changed(touched)

    def rebuild(self, code: Code) -> None:
        """The expression of something that exists, built once more."""
        index = code.among(self.alive())
        entry = self.recipe.entries[index]
        if entry.op not in (*LEAVES, "grad") and all(
            self.made[parent] is not None for parent in entry.parents
        ):
            self._add(Entry(**vars(entry)))

    def drop(self, code: Code) -> None:
        index = code.among(self.alive(leaves=False) or [0])
        if self.recipe.entries[index].op not in LEAVES:
            self.made[index] = None

    def forget(self, code: Code) -> None:
        self.graph.forget_marks()

    def add_grad(self, code: Code) -> None:
        if len(self.graph) > MOST_NODES // 8:
            return
        alive = self.alive()
        y, x = code.among(alive[-8:]), code.among(alive)
        if self.recipe.entries[y].op == "number" or self.recipe.entries[x].op == "number":
            return
        direct = self.recipe.entries[y].shape in ((), (1,)) and bool(code.pick(2))
        entry = Entry("grad", (y, x), self.recipe.entries[x].shape, direct)
        try:
            self._add(entry)
        except rg.GradientError:
            if "lifted part" not in self._ancestry(y):
                raise
            self._take_back()
        self._resync()

    def _take_back(self) -> None:
        self.recipe.entries.pop()
        self.made.pop()

    def _ancestry(self, index: int) -> set[str]:
        found, stack = {index}, [index]
        while stack:
            for parent in self.recipe.entries[stack.pop()].parents:
                if parent not in found:
                    found.add(parent)
                    stack.append(parent)
        return {self.recipe.entries[i].op for i in found}

    def _resync(self) -> None:
        """Building gradients of functions that declare no shape reads them to learn it."""
        ops = {entry.op for entry in self.recipe.entries if not entry.declared}
        if ops & set(LIFTED):
            self.expected.look()
            self.expected.stale &= {v.name for v in self.graph.nodes if v.is_stale}

    def backward(self, code: Code) -> None:
        """``.grad`` of the params grows by the adjoints of a new graph."""
        if len(self.graph) > MOST_NODES // 8:
            return
        numbers = [i for i in self.alive(leaves=False) if self.recipe.entries[i].shape == ()]
        if not numbers:
            return
        index = code.among(numbers)
        retain = code.among([None, None, False, True])
        y = self.made[index]
        try:
            y.backward(retain_graph=retain)
        except rg.GradientError:
            assert not y.requires_grad or "lifted part" in self._ancestry(index)
            self._resync()
            return
        _, twins = self.recipe.build_all()
        twins[index].backward(retain_graph=retain)
        ran = [v.name for v in self.graph.last_run.ran]
        self._resync()
        self.expected.look()
        self.expected.stale -= set(ran)
        self.expected.check_order(ran)
        for i in self.alive(leaves=True):
            if self.recipe.entries[i].op == "param":
                self._add_up(i, twins[i].grad)
        if retain:
            for i in self.alive(leaves=False):
                if self.made[i].grad is not None and twins[i].grad is not None:
                    assert same_bits(np.asarray(self.made[i].grad), np.asarray(twins[i].grad))
        if code.pick(3) == 2:
            self.graph.zero_grad()
            self.grads.clear()

    def _add_up(self, index: int, new: Any) -> None:
        old = self.grads.get(index)
        if new is not None:
            self.grads[index] = new if old is None else np.add(old, new)
        found, wanted = self.made[index].grad, self.grads.get(index)
        if wanted is None:
            assert found is None
        elif self.compare:
            assert found.dtype == wanted.dtype
            assert found.shape == np.shape(wanted)
            assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes() or same_bits(
                np.asarray(found), np.asarray(wanted)
            )
        self.log.append(("grad", index, None if found is None else np.array(found)))

    def loop(self, code: Code) -> None:
        """A few sets and reads in a fixed order, again and again with new numbers."""
        alive = self.alive()
        leaves = self.alive(leaves=True)
        turns = 4 + code.pick(4)
        steps: list[tuple[str, int]] = []
        for _ in range(1 + code.pick(3)):
            steps += [("set", code.among(leaves)) for _ in range(code.pick(3))]
            steps.append(("read", code.among(alive)))
        seed = code.pick(1 << 16)
        for turn in range(turns):
            for i, (what, index) in enumerate(steps):
                if what == "set":
                    value = self._new_value(index, Code(seed + 977 * turn + 31 * i))
                    self.recipe.values[index] = value
                    self.made[index].set(value)
                    self._changed([index])
                else:
                    self.read([index], quietly=True)

    def read_one(self, code: Code) -> None:
        self.read([code.among(self.alive())], again=bool(code.pick(2)))

    def read_some(self, code: Code) -> None:
        alive = self.alive()
        self.read([code.among(alive) for _ in range(1 + code.pick(4))], again=bool(code.pick(2)))

    # --- reads, and what must hold of them

    def read(self, indices: Sequence[int], *, again: bool = False, quietly: bool = False) -> None:
        """Read these entries and compare everything."""
        targets = [self.made[i] for i in indices]
        due = self.expected.read([target.name for target in targets])
        if quietly and len(targets) == 1:
            # The shortest way. Without anything to run it leaves the record of an earlier run.
            before = self.graph._scheduler.last_run
            targets[0].value
            idle = not due and self.graph._scheduler.last_run is before
            ran = [] if idle else [v.name for v in self.graph.last_run.ran]
            cut: set[str] = set()
        else:
            run = self.graph.forward(*targets)
            ran = [v.name for v in run.ran]
            cut = {v.name for v in run.cut_off}
            assert not run.failed
        assert len(set(ran)) == len(ran), "a node ran twice"
        if self.cutoffs:
            assert set(ran) <= due
            assert cut <= set(ran)
        else:
            assert set(ran) == due
        self.expected.check_order(ran)
        self.log.append(("ran", sorted(ran), sorted(cut)))
        if again:
            assert not self.graph.forward(*targets).ran, "a second read ran something"
        for index in dict.fromkeys(indices):
            value = self.made[index].value
            assert value is self.made[index].value
            self.log.append((index, value))
            self.handed.append((value, np.array(value, copy=True)))
            if self.compare:
                wanted = self.fresh_value(index)
                assert same_bits(value, wanted), f"{self.made[index].name}: {value} not {wanted}"

    def fresh_value(self, index: int) -> Any:
        """What a new graph computes for this entry."""
        if self.fresh is None:
            _, self.fresh = self.recipe.build_all()
        return self.fresh[index].value

    def check(self) -> None:
        """All that must hold at any moment."""
        self.graph.check_invariants()
        for value, copy in self.handed[-60:]:
            assert np.asarray(value).tobytes() == copy.tobytes(), "a value changed under its holder"
        now = {v.name: v.value_version for v in self.graph.nodes}
        for name, version in now.items():
            assert version >= self.versions.get(name, 0), f"the version of {name} went back"
        self.versions = now

    def check_all(self) -> None:
        """At the end: everything alive is right, and then clean."""
        self.check()
        for index in self.alive():
            self.read([index])
        self.handed, recent = [], self.handed
        for value, copy in recent:
            assert np.asarray(value).tobytes() == copy.tobytes(), "a value changed under its holder"
        assert not self.graph.forward(*[self.made[i] for i in self.alive()]).ran
        self.check()
