"""More acts on the model of ``acts``: rules and functions of users, layers, tables, questions, names, callbacks."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

import reactgrad as rg
from tests.laws.acts import BEFORE, Nodes, act, steps


class Tripled(rg.Function):
    """A rule of a user's own, which saves an operand and counts on its context."""

    @staticmethod
    def forward(ctx: Any, u: Any, v: Any) -> Any:
        ctx.save_for_backward(u)
        ctx.factor = 3.0
        return u * v * 3.0

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (u,) = ctx.saved_tensors
        return gradient * ctx.factor, gradient * u * ctx.factor


def _named(g: rg.Graph, n: Nodes) -> None:
    n["s"].name, n["t"].name = "spot", "tee"


def _watched(g: rg.Graph, n: Nodes) -> None:
    n["_seen"] = []
    n["_observer"] = n["y"].observe(lambda old, new: n["_seen"].append(new))


def _with_layers(g: rg.Graph, n: Nodes) -> None:
    with g:
        n["_net"] = rg.nn.Sequential(
            rg.nn.Linear(3, 2, rng=0), rg.nn.Tanh(), rg.nn.Linear(2, 1, rng=1)
        )
    n["_state"] = {key: value * 2.0 for key, value in n["_net"].state_dict().items()}


BEFORE |= {
    "name_taken_away": _named,
    "leaf_again": _named,
    "observer_cancelled": _watched,
    "overwrite": lambda g, n: n["y"].backward(),
    "call_layers": _with_layers,
    "load_layers": _with_layers,
    "clip_gradients": lambda g, n: n["y"].backward(),
}


@act
def own_rule(g: rg.Graph, n: Nodes) -> None:
    n["new"] = Tripled.apply(n["x"], n["w"])
    n["slope"] = rg.grad(n["new"].sum(), n["w"])
    n["value"] = n["slope"].value


@act
def lift_with_rule(g: rg.Graph, n: Nodes) -> None:
    square = rg.lift(lambda v: v * v, vjp=lambda d, ans, v: d * v * 2.0, shape=(3,), dtype="f8")
    n["new"] = square(n["w"] * 2.0)
    n["slope"] = rg.grad(n["new"].sum(), n["w"])
    n["value"] = n["slope"].value


@act
def transforms(g: rg.Graph, n: Nodes) -> None:
    n["new"] = (
        rg.jacobian(n["t"], n["x"]),
        rg.hvp(n["y"], n["w"], np.ones(3)),
        rg.vjp(n["t"], n["w"], np.ones(3)),
    )
    n["value"] = [one.value for one in n["new"]]


@act
def transform_of_a_function(g: rg.Graph, n: Nodes) -> None:
    n["value"] = rg.value_and_grad(lambda v: (rg.tanh(v) * v).sum())(np.array([0.5, 1.0]))


@act
def leaves(g: rg.Graph, n: Nodes) -> None:
    with g, rg.no_grad():
        n["new"] = [
            g.input(1.0, name="one"),
            g.param(np.ones(3), name="two"),
            g.const([1.0, 2.0]),
            g.input(shape=(None, 2), dtype="f4", name="three"),
        ]


@act
def leaf_again(g: rg.Graph, n: Nodes) -> None:
    g.input(0.25, name="spot", exist_ok=True)


@act
def name_taken_away(g: rg.Graph, n: Nodes) -> None:
    n["t"].name = None


@act
def conversions(g: rg.Graph, n: Nodes) -> None:
    n["new"] = [
        n["t"].astype("f4") + 1.0,
        n["t"].at[1].set(n["s"]),
        n["t"].snapshot(),
        n["t"].to("cpu"),
    ]
    n["value"] = [one.value for one in n["new"]]


@steps
def observer_cancelled(g: rg.Graph, n: Nodes) -> None:
    n["_observer"].cancel()
    n["s"].set(2.5)
    g.stabilize()


@steps
def overwrite(g: rg.Graph, n: Nodes) -> None:
    for key in "wb":
        n[key].overwrite_grad()
    n["y"].backward()


@steps
def accumulate(g: rg.Graph, n: Nodes) -> None:
    for _ in range(3):  # the third adds in the memory that the second has made
        n["y"].backward()


@act
def after_grad(g: rg.Graph, n: Nodes) -> None:
    n["_hook"] = n["w"].register_post_accumulate_grad_hook(lambda w: None)
    n["_hook"].remove()


@act
def clip_gradients(g: rg.Graph, n: Nodes) -> None:
    n["value"] = rg.optim.clip_grad_norm_([n["w"], n["b"]], 0.5)


@act
def scope(g: rg.Graph, n: Nodes) -> None:
    with g.scope("inner"), g.no_grad():
        n["new"] = rg.sin(n["t"]) + n["s"]


@act
def saved_elsewhere(g: rg.Graph, n: Nodes) -> None:
    with rg.saved_tensors_hooks(lambda v: (v,), lambda packed: packed[0]):
        n["new"] = (rg.tanh(n["x"] * n["w"]) * n["w"]).sum()
    n["slope"] = rg.grad(n["new"], n["w"])
    n["value"] = n["slope"].value


@act
def make_layers(g: rg.Graph, n: Nodes) -> None:
    with g:
        n["_net"] = rg.nn.Linear(3, 2, rng=0)
    n["new"] = n["_net"](n["x"])
    n["value"] = n["new"].value


@act
def call_layers(g: rg.Graph, n: Nodes) -> None:
    n["new"] = n["_net"](n["x"])
    n["value"] = rg.grad(n["new"].sum(), n["x"]).value


@act
def load_layers(g: rg.Graph, n: Nodes) -> None:
    n["_net"].load_state_dict(n["_state"])


@act
def questions(g: rg.Graph, n: Nodes) -> None:
    _whole(rg.scenarios(n["y"], {n["s"]: [1.0, 2.0]}))
    n["value"] = rg.sensitivities(n["y"], [n["s"]]), rg.tornado(n["y"], [n["s"]], 0.1)


@act
def seek(g: rg.Graph, n: Nodes) -> None:
    n["value"] = rg.goal_seek(n["y"], n["s"], 20.0)


@act
def draws_of_inputs(g: rg.Graph, n: Nodes) -> None:
    _whole(rg.monte_carlo(n["y"], {n["s"]: lambda rng, size: rng.normal(size=size)}, 3))


def _whole(found: Any) -> None:
    """An interrupt ends a sweep, which keeps and gives what is done."""
    if not found.complete:
        raise KeyboardInterrupt


@act
def as_networkx(g: rg.Graph, n: Nodes) -> None:
    n["value"] = rg.to_networkx(g).number_of_nodes()


@act
def pickled(g: rg.Graph, n: Nodes) -> None:
    other = rg.Graph()
    y = rg.tanh(other.input(np.array([1.0, 2.0]), name="x")) * 2.0
    y.name = "y"
    n["new"] = pickle.loads(pickle.dumps(y))
    n["value"] = n["new"].value


@act
def listened(g: rg.Graph, n: Nodes) -> None:
    g.events = True
    n["value"] = n["y"].value
    g.events = False


@steps
def cancelled(g: rg.Graph, n: Nodes) -> None:
    n["s"].set(0.5)
    g.cancel()
    n["value"] = n["y"].value


@act
def neurons(g: rg.Graph, n: Nodes) -> None:
    n["new"] = rg.neuron([n["s"], n["b"]], weights=[0.5, 0.25])
    n["value"] = n["new"].value


@act
def constants_folded(g: rg.Graph, n: Nodes) -> None:
    with g:
        n["new"] = rg.zeros((3,)) + n["x"] + rg.arange(3.0)
    n["value"] = n["new"].value
