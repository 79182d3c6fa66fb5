"""Acts on one model, each as a whole or in steps, and all that can be seen of the model afterwards."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import reactgrad as rg

Nodes = dict[str, Any]
Act = Callable[[rg.Graph, Nodes], object]
Seen = dict[str, Any]

LEAVES = ("x", "w", "s", "b", "i", "long")
GRADIENTS = ("gx", "gw", "gb")


def new_model(**options: Any) -> tuple[rg.Graph, Nodes]:
    """Leaves of all kinds, a view, a cutoff, functions, one that reads, a pin and gradients; all read."""
    g = rg.Graph(rng=0, **options)
    x, w = g.input(np.array([0.5, 1.5, -0.25])), g.param(np.array([2.0, 1.0, 3.0]))
    s, b, i = g.input(3.0), g.param(np.array(0.5)), g.input(2)
    a = x * w
    t = rg.tanh(a) + s
    c = rg.clip(t, -1.0, 3.0)
    c.cutoff = "equal"
    v = t[1:]
    f = rg.lift(lambda u, k: float(u.sum() * k))(t, s)
    d = rg.lift(lambda u: float(u.sum() + s.value * w.value[0]))(a)
    y = (a * t).sum() + c.sum() + v.sum() + b * i
    p = rg.exp(x) * 2.0
    p.pin(np.array([1.0, 2.0, 3.0]))
    gx, gw, gb = rg.grad(y, [x, w, b])
    n: Nodes = {
        "x": x,
        "w": w,
        "s": s,
        "b": b,
        "i": i,
        "a": a,
        "t": t,
        "c": c,
        "v": v,
        "f": f,
        "d": d,
    }
    n |= {"y": y, "p": p, "q": p + s, "gx": gx, "gw": gw, "gb": gb}
    for turn in range(3):
        s.set(3.0 + turn)
        g.forward(*n.values())
    return g, n


def seen(n: Nodes) -> Seen:
    """Values, operands, names, pins, cutoffs and ``.grad`` of the model."""
    found: Seen = {}
    label = {id(var): key for key, var in n.items()}
    for key, var in n.items():
        if key[0] == "_":
            continue
        if "removed" in repr(var):
            found[key] = "removed"
            continue
        found[key] = var.value, var.pinned, repr(var.cutoff)
        if key not in GRADIENTS:  # these may be computed in another way that gives the same
            found[f"{key} of"] = var.name, [label.get(id(one), "new") for one in var.parents]
    for key in "wb":
        found[f"{key}.grad"] = n[key].grad, n[key].frozen
    return found


def follows(g: rg.Graph, n: Nodes) -> Seen:
    """What comes of sets, edits and a backward after that."""
    found: Seen = {}
    n["s"].set(-1.5)
    n["x"].set(np.asarray(n["x"].value) * 3.0 + 1.0)
    found["sets"] = seen(n)
    g.set({n["s"]: 2.25, n["b"]: 0.75, n["i"]: 7})
    n["y"].replace_parent(0, n["y"].parents[0] + n["s"])
    found["edit"] = seen(n)
    g.zero_grad()
    n["y"].backward()
    found["backward"] = seen(n)
    if "_optimiser" in n:
        n["_optimiser"].step()
        found["step"] = seen(n)
    return found


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)


ACTS: dict[str, Act] = {}
STEPS: set[str] = set()  # acts of several steps, each of which may have been made
OPTIONS: dict[str, dict[str, Any]] = {
    "budget": {"max_bytes": 200},
    "jit": {"jit": True},
    "parallel": {"executor": rg.Threads(2)},
}
BEFORE: dict[str, Act] = {
    "hook_gone": lambda g, n: n.setdefault("_hook", n["t"].register_hook(lambda v: v * 2.0)),
    "zero_grad": lambda g, n: n["y"].backward(),
    "written_anew": lambda g, n: [write(n) for _ in range(4)],
    "written_otherwise": lambda g, n: [write(n) for _ in range(4)],
    "unfreeze": lambda g, n: n["w"].freeze(),
    "set_rows_and_read": lambda g, n: with_rows(g, n),
    "read_prepared": lambda g, n: with_reader(g, n),
    "train_prepared": lambda g, n: with_training_step(g, n),
    "optimise": lambda g, n: with_optimiser(g, n),
}


def write(n: Nodes, other: bool = False) -> None:
    """A step of a loop that writes its model anew."""
    h = rg.tanh(n["x"] * n["w"]) * 2.0
    n["new"] = (rg.exp(h) if other else h + n["b"]).sum()
    n["new"].backward()


def with_rows(g: rg.Graph, n: Nodes) -> None:
    n["long"] = g.param(np.arange(400.0).reshape(100, 4) / 400.0)
    n["sums"] = (rg.exp(n["long"]) * 2.0).sum(axis=1)
    n["slope"] = rg.grad((n["sums"] * n["sums"]).sum(), n["long"])
    g.forward(n["sums"], n["slope"])


def with_reader(g: rg.Graph, n: Nodes) -> None:
    n["_step"] = g.reader(n["y"], feeds=[n["s"]], updates={n["w"]: n["w"] - 0.125 * n["gw"]})
    for number in (1.0, 2.0, 3.0):
        n["_step"](number)


def with_optimiser(g: rg.Graph, n: Nodes) -> None:
    n["_optimiser"] = rg.optim.Adam([n["w"], n["b"]], lr=0.125)
    for _ in range(2):
        n["_optimiser"].zero_grad()
        n["y"].backward()
        n["_optimiser"].step()


def with_training_step(g: rg.Graph, n: Nodes) -> None:
    n["_step"] = rg.optim.SGD([n["w"], n["b"]], lr=0.125, momentum=0.5).training_step(
        n["y"], feeds=[n["s"]]
    )
    for number in (1.0, 2.0):
        n["_step"](number)


def act(function: Act) -> Act:
    ACTS[function.__name__] = function
    return function


def steps(function: Act) -> Act:
    STEPS.add(function.__name__)
    return act(function)


def prepared(name: str) -> tuple[rg.Graph, Nodes, Callable[[], object]]:
    """The graph, the nodes to look at, and the act to call."""
    g, n = new_model(**OPTIONS.get(name, {}))
    if name in BEFORE:
        BEFORE[name](g, n)
    own = dict(n)  # what the act builds stays alive with it
    return g, n, lambda: ACTS[name](g, own)


@act
def set_number(g: rg.Graph, n: Nodes) -> None:
    n["s"].set(0.25)


@act
def set_integer(g: rg.Graph, n: Nodes) -> None:
    n["i"].set(5)


@act
def set_array(g: rg.Graph, n: Nodes) -> None:
    n["x"].set(np.array([1.0, 2.0, 3.0]))


@act
def set_adopted(g: rg.Graph, n: Nodes) -> None:
    n["x"].set(np.array([1.0, 2.0, 3.0]), copy=False)


@act
def set_another_kind(g: rg.Graph, n: Nodes) -> None:
    n["i"].set(2.5)


@act
def set_several(g: rg.Graph, n: Nodes) -> None:
    g.set({n["x"]: np.arange(3.0), n["w"]: np.arange(3.0) + 4.0, n["s"]: 0.25})


@act
def set_shapes(g: rg.Graph, n: Nodes) -> None:
    g.set({n["x"]: np.arange(4.0), n["w"]: np.arange(4.0) + 4.0, n["s"]: 0.25, n["b"]: 1.5})


@steps
def touch(g: rg.Graph, n: Nodes) -> None:
    n["s"].touch()
    n["d"].touch()


@act
def mutate(g: rg.Graph, n: Nodes) -> None:
    with n["x"].mutate() as array:
        array[0] = 9.0


@act
def build(g: rg.Graph, n: Nodes) -> None:
    n["new"] = rg.tanh(n["x"] * 2.0 + 17.5) @ n["w"]


@act
def build_function(g: rg.Graph, n: Nodes) -> None:
    n["new"] = rg.lift(lambda u, v: u + v)(n["x"], n["s"])


@act
def build_outputs(g: rg.Graph, n: Nodes) -> None:
    n["new"] = rg.lift(lambda u: (u + 1.0, u * 2.0), outputs=2)(n["x"])
    assert n["new"][0].value is not None


_sub = rg.subgraph(lambda u, v: rg.tanh(u * v) + u)


@act
def build_subgraph(g: rg.Graph, n: Nodes) -> None:
    n["new"] = _sub(n["x"], n["w"])
    assert n["new"].value is not None


@act
def drop(g: rg.Graph, n: Nodes) -> None:
    rg.tanh(n["x"] * 3.25).value.sum()
    len(g)


@steps
def read(g: rg.Graph, n: Nodes) -> None:
    n["s"].set(0.5)
    n["y"].value.item()


@steps
def read_many(g: rg.Graph, n: Nodes) -> None:
    n["s"].set(0.5)
    n["x"].set(np.array([1.0, 2.0, 3.0]))
    g.forward(n["y"], n["f"], n["d"], n["gx"], n["gw"])


@steps
def budget(g: rg.Graph, n: Nodes) -> None:
    n["s"].set(0.5)
    g.forward(n["y"], n["gw"])
    n["q"].value.sum()


@steps
def jit(g: rg.Graph, n: Nodes) -> None:
    n["s"].set(0.5)
    g.forward(n["y"], n["gw"])


@steps
def dynamic(g: rg.Graph, n: Nodes) -> None:
    n["w"].set(np.array([4.0, 5.0, 6.0]))
    n["new"] = n["d"].value


@act
def dynamic_new(g: rg.Graph, n: Nodes) -> None:
    one = rg.lift(lambda v: float(v.sum()) + (n["s"].value if n["i"].value else n["b"].value))
    n["new"] = one(n["x"])
    n["value"] = n["new"].value


@act
def differentiate(g: rg.Graph, n: Nodes) -> None:
    n["new"] = rg.grad((n["t"] * n["t"]).sum(), n["w"])
    n["value"] = n["new"].value


@act
def differentiate_twice(g: rg.Graph, n: Nodes) -> None:
    n["new"] = rg.grad(n["gw"].sum(), n["x"])
    n["value"] = n["new"].value


@act
def backward(g: rg.Graph, n: Nodes) -> None:
    n["y"].backward()


@act
def backward_released(g: rg.Graph, n: Nodes) -> None:
    n["y"].backward(retain_graph=False)


@act
def retain(g: rg.Graph, n: Nodes) -> None:
    n["t"].retain_grad()
    n["y"].backward()


@act
def zero_grad(g: rg.Graph, n: Nodes) -> None:
    g.zero_grad()


@act
def replace(g: rg.Graph, n: Nodes) -> None:
    n["t"].parents[0].replace_parent(0, n["x"] * 1.5)


@act
def rewire(g: rg.Graph, n: Nodes) -> None:
    n["a"].rewire(n["w"], n["x"])


@act
def insert(g: rg.Graph, n: Nodes) -> None:
    g.insert(n["x"], n["a"], rg.sin)


@act
def remove(g: rg.Graph, n: Nodes) -> None:
    g.remove(n["f"])


@act
def edit(g: rg.Graph, n: Nodes) -> None:
    with g.edit():
        n["a"].replace_parent(1, n["x"])
        n["t"].replace_parent(1, n["b"])


@act
def pin(g: rg.Graph, n: Nodes) -> None:
    n["t"].pin(np.array([1.0, 2.0, 3.0]))


@act
def unpin(g: rg.Graph, n: Nodes) -> None:
    n["p"].unpin()


@act
def freeze(g: rg.Graph, n: Nodes) -> None:
    n["w"].freeze()


@act
def name(g: rg.Graph, n: Nodes) -> None:
    n["t"].name = "tee"


@act
def cutoff(g: rg.Graph, n: Nodes) -> None:
    n["t"].cutoff = rg.tolerance(1e-3, 0.0)


@act
def no_cutoff(g: rg.Graph, n: Nodes) -> None:
    n["c"].cutoff = None


def _many_changes(g: rg.Graph, n: Nodes) -> None:
    n["s"].set(7.0)
    n["new"] = n["y"].value
    with g.transaction():
        n["w"].set(np.array([7.0, 8.0, 9.0]))
        n["t"].pin(np.array([1.0, 2.0, 3.0]))
    n["a"].replace_parent(0, n["w"])
    n["new"] = n["gw"].value
    n["c"].cutoff = None
    n["b"].name = "bias"


@act
def transaction(g: rg.Graph, n: Nodes) -> None:
    with g.transaction():
        _many_changes(g, n)


@act
def rollback(g: rg.Graph, n: Nodes) -> None:
    with suppress(ZeroDivisionError), g.transaction():
        _many_changes(g, n)
        raise ZeroDivisionError


@act
def fork(g: rg.Graph, n: Nodes) -> None:
    h = n["new"] = g.fork()
    h[n["s"]].set(9.0)
    n["value"] = h[n["y"]].value


@act
def whatif(g: rg.Graph, n: Nodes) -> None:
    with g.whatif({n["s"]: 9.0}) as w:
        n["value"] = w[n["y"]].value, w[n["gw"]].value


@steps
def observe(g: rg.Graph, n: Nodes) -> None:
    n["new"] = n["y"].observe(lambda old, new: None)
    n["s"].set(2.5)
    g.stabilize()


@act
def reuse(g: rg.Graph, n: Nodes) -> None:
    for _ in range(2):
        with g.reuse():
            n["new"] = rg.tanh(n["x"] * n["w"]) + n["s"]


@steps
def written_anew(g: rg.Graph, n: Nodes) -> None:
    write(n)
    n["s"].set(2.5)
    write(n)


@steps
def written_otherwise(g: rg.Graph, n: Nodes) -> None:
    write(n, True)
    write(n)


@act
def checkpoint(g: rg.Graph, n: Nodes) -> None:
    n["new"] = rg.checkpoint(lambda u: rg.tanh(u * n["w"]).sum(), n["x"])
    n["value"] = rg.grad(n["new"], n["w"]).value


@act
def hook(g: rg.Graph, n: Nodes) -> None:
    n["_hook"] = n["t"].register_hook(lambda v: v * 2.0)


@act
def hook_gone(g: rg.Graph, n: Nodes) -> None:
    n["_hook"].remove()


@act
def detach(g: rg.Graph, n: Nodes) -> None:
    n["new"] = n["t"].detach_node() * 2.0
    n["value"] = n["new"].value


@act
def unfreeze(g: rg.Graph, n: Nodes) -> None:
    n["w"].unfreeze()


@act
def set_rows(g: rg.Graph, n: Nodes) -> None:
    n["x"].set_at(slice(1, 3), [7.0, 8.0])


@steps
def set_rows_and_read(g: rg.Graph, n: Nodes) -> None:
    n["long"].set_at(7, 1.0)
    g.forward(n["sums"], n["slope"])
    n["long"].set_at([3, 4], 2.0)
    with n["long"].mutate(rows=9) as row:
        row += 1.0
    n["value"] = n["sums"].value, n["slope"].value


@act
def mutate_refused(g: rg.Graph, n: Nodes) -> None:
    with suppress(ZeroDivisionError), n["x"].mutate() as array:
        array[0] = 9.0
        raise ZeroDivisionError


@act
def edit_refused(g: rg.Graph, n: Nodes) -> None:
    with suppress(rg.CycleError), g.edit():
        n["t"].replace_parent(1, n["b"])
        n["a"].replace_parent(1, n["t"])


@act
def edit_with_shapes(g: rg.Graph, n: Nodes) -> None:
    with g.edit():
        n["x"].set(np.arange(4.0))
        n["w"].set(np.arange(4.0) + 4.0)


@act
def nested(g: rg.Graph, n: Nodes) -> None:
    with g.transaction():
        n["s"].set(7.0)
        with suppress(ZeroDivisionError), g.transaction():
            n["x"].set(np.array([7.0, 8.0, 9.0]))
            n["t"].replace_parent(1, n["b"])
            raise ZeroDivisionError
        with g.edit():
            n["a"].replace_parent(0, n["w"])


@act
def rollback_of_shapes(g: rg.Graph, n: Nodes) -> None:
    with suppress(ZeroDivisionError), g.transaction():
        g.set({n["x"]: np.arange(4.0), n["w"]: np.arange(4.0) + 4.0})
        n["value"] = n["y"].value, n["gw"].value
        raise ZeroDivisionError


@steps
def lengths(g: rg.Graph, n: Nodes) -> None:
    for length in (4, 3, 4):
        g.set({n["x"]: np.arange(float(length)), n["w"]: np.ones(length)})
        n["value"] = n["y"].value, n["gw"].value


@act
def reseed(g: rg.Graph, n: Nodes) -> None:
    g.reseed(7)


@steps
def draw(g: rg.Graph, n: Nodes) -> None:
    with g:
        n["new"] = rg.random.normal((3,)) * n["w"]
    n["value"] = n["new"].value
    g.reseed(7)
    n["value"] = n["new"].value


@act
def train(g: rg.Graph, n: Nodes) -> None:
    g.eval()
    g.train()


@steps
def read_prepared(g: rg.Graph, n: Nodes) -> None:
    n["_step"](2.5)
    n["_step"](0.5)


@steps
def read_prepared_anew(g: rg.Graph, n: Nodes) -> None:
    g.reader(n["y"], feeds=[n["s"]], updates={n["w"]: n["w"] - 0.125 * n["gw"]})(2.5)


@act
def optimise(g: rg.Graph, n: Nodes) -> None:
    n["_optimiser"].step()


@steps
def train_prepared(g: rg.Graph, n: Nodes) -> None:
    n["_step"](2.5)
    n["_step"](0.5)


@act
def pass_again(g: rg.Graph, n: Nodes) -> None:
    n["again"] = rg.tanh(n["x"] * 2.5)
    n["again"].value.sum()
    n.pop("again")
    n["again"] = rg.tanh(n["x"] * 2.5)


@act
def whatif_changed(g: rg.Graph, n: Nodes) -> None:
    with g.whatif({n["s"]: 9.0}) as w:
        w[n["a"]].replace_parent(0, w[n["w"]])
        w[n["t"]].pin(np.array([1.0, 2.0, 3.0]))
        with w.transaction():
            w[n["x"]].set(np.array([3.0, 2.0, 1.0]))
        inner = w.fork()
        inner[n["s"]].set(1.0)
        n["value"] = inner[n["y"]].value, w[n["gw"]].value, n["y"].value


@act
def fork_goes(g: rg.Graph, n: Nodes) -> None:
    h = g.fork()
    h[n["s"]].set(9.0)
    h[n["y"]].backward()
    h[n["y"]].value.item()
    del h


@steps
def parallel(g: rg.Graph, n: Nodes) -> None:
    n["s"].set(0.5)
    g.forward(n["y"], n["f"], n["d"], n["gw"])


@act
def settings(g: rg.Graph, n: Nodes) -> None:
    g.max_bytes = 10**6
    g.max_bytes = None
    g.jit = True
    g.jit = False
    g.executor = rg.Threads(2)


@act
def keep(g: rg.Graph, n: Nodes) -> None:
    g.keep(n["t"] + 8.5)


@steps
def recorded(g: rg.Graph, n: Nodes) -> None:
    with g.record(), rg.profile(), rg.detect_anomaly():
        n["s"].set(0.5)
        n["value"] = n["y"].value


@act
def explain(g: rg.Graph, n: Nodes) -> None:
    n["text"] = str(g.why(n["y"])), repr(g.plan(n["y"], n["gw"])), repr(n["y"]), g.stats().nodes
    n["text"] = g.snapshot().nodes, g.to_dot(n["y"])


@act
def twins(g: rg.Graph, n: Nodes) -> None:
    other = rg.Graph()
    y = rg.tanh(other.input(np.array([1.0, 2.0]))) * 2.0
    y.name = "y"
    n["other"], n["new"] = other, rg.from_bytes(other.to_bytes())
    n["value"] = n["new"]["y"].value


@steps
def derivatives(g: rg.Graph, n: Nodes) -> None:
    n["new"] = rg.hessian(n["y"], n["w"]), rg.jvp(n["y"], [n["x"]], [np.ones(3)])
    n["value"] = [one.value for one in n["new"]]


@act
def scale(g: rg.Graph, n: Nodes) -> None:
    n["new"] = n["t"].scale_grad(0.5).sum()
    n["value"] = rg.grad(n["new"], n["w"]).value


@act
def switch(g: rg.Graph, n: Nodes) -> None:
    n["new"] = rg.switch(n["s"] > 0.0, n["t"], n["c"])
    n["value"] = n["new"].value


@act
def fail(g: rg.Graph, n: Nodes) -> None:
    def refuse(v: float) -> float:
        raise ZeroDivisionError(v)

    n["new"] = rg.lift(refuse)(n["s"]) * 2.0
    with suppress(ZeroDivisionError):
        n["value"] = n["new"].value
    with suppress(ZeroDivisionError):
        g.forward(n["y"], n["new"])


@act
def save_and_load(g: rg.Graph, n: Nodes) -> None:
    other = rg.Graph()
    y = rg.tanh(other.input(np.array([1.0, 2.0]))) * 2.0
    y.name = "y"
    with TemporaryDirectory() as folder:
        other.save(Path(folder) / "graph")
        n["value"] = rg.load(Path(folder) / "graph")["y"].value
