"""Graphs that release 0.1 saved into ``files_0_1/``, and the functions that these files name.

``python -m tests.io.graphs_of_0_1 FOLDER`` writes them; the committed ones were written by 0.1.0 itself,
at commit c12783f, and are not written anew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import reactgrad as rg


class Scaled(rg.Function):
    """Its gradient needs a number that forward leaves on ctx: the file names what watches that number."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.positive = int((x > 0.0).sum())
        return x * x * ctx.positive

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * x * 2.0 * ctx.positive

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return t * x * 2.0 * ctx.positive


class Halves(rg.Function, outputs=2):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.n = len(x) // 2
        return x[: ctx.n] * 2.0, x[ctx.n :] * 3.0

    @staticmethod
    def backward(ctx: Any, first: Any, second: Any) -> Any:
        return rg.concatenate([first * 2.0, second * 3.0])


def cube(a: Any) -> Any:
    return a**3


def cube_vjp(g: Any, ans: Any, a: Any) -> Any:
    return g * 3.0 * a**2


def cube_jvp(tangents: Any, ans: Any, a: Any) -> Any:
    return tangents[0] * 3.0 * a**2


def near(old: Any, new: Any) -> bool:
    return bool(np.all(np.abs(old - new) < 0.5))


def length(text: str) -> float:
    return float(len(text))


def values() -> rg.Graph:
    """Values of many kinds, names, scopes, a pin, cutoffs of each kind."""
    g = rg.Graph()
    g.keep(g.input([1, 2, 3], name="integers"))
    g.keep(g.input(np.arange(6, dtype=np.float32).reshape(2, 3), name="matrix"))
    g.keep(g.input(np.asfortranarray(np.arange(6.0).reshape(2, 3)), name="fortran"))
    g.keep(g.input(np.array([1 + 2j]), name="complex"))
    g.keep(g.input("süß", name="text"))
    g.keep(g.input({"a": [1, (2.5, None)]}, name="nested"))
    x = g.keep(g.input(1.0, name="x", cutoff=rg.tolerance(rtol=0.1, atol=0.01)))
    y = g.keep(x * 2.0)
    y.name, y.cutoff = "y", "equal"
    z = g.keep(y + 1.0)
    z.name, z.cutoff = "z", near
    with g.scope("outer"):
        inside = g.keep(rg.exp(z))
    inside.name = "inside"
    pinned = g.keep(rg.sin(z) + 1.0)
    pinned.name = "pinned"
    below = g.keep(pinned * 10.0)
    below.name = "below"
    pinned.pin(5.0)
    called = g.keep(rg.lift(length)(g["text"]))
    called.name = "called"
    g.forward(z, inside, below, called)
    return g


def functions() -> rg.Graph:
    """Python functions with their rules and their gradients; a switch, a checkpoint, a subgraph."""
    g = rg.Graph()
    x = g.keep(g.param(np.array([1.0, -2.0, 3.0, 0.5]), name="x"))
    scaled = Scaled.apply(x)
    first, second = Halves.apply(x)
    cubed = rg.lift(cube, vjp=cube_vjp, jvp=cube_jvp, shape=(4,), dtype=float)(x)
    chosen = rg.switch(x.sum() > 0.0, cubed, scaled)
    spared = rg.checkpoint(lambda a: rg.tanh(rg.sin(a)) * 2.0, x)
    poured = rg.subgraph(_poured)(x)
    y = g.keep((scaled + chosen + spared + poured).sum() + (first * second).sum())
    y.name = "y"
    dx = g.keep(rg.grad(y, x))
    dx.name = "dx"
    g.forward(y, dx)
    return g


def _poured(a: Any) -> Any:
    return rg.exp(a * 0.5)


def network() -> rg.Graph:
    """Two layers, a loss and the gradients of their parameters, and one op of most families."""
    g = rg.Graph()
    rng = np.random.default_rng(3)
    x = g.keep(g.input(rng.normal(size=(5, 4)), name="x"))
    labels = g.keep(g.input(np.array([0, 2, 1, 1, 0]), name="labels"))
    w = g.keep(g.param(rng.normal(size=(4, 6)), name="w"))
    b = g.keep(g.param(np.zeros(6), name="b"))
    v = g.keep(g.param(rng.normal(size=(6, 3)), name="v"))
    hidden = rg.layer_norm(rg.relu(rg.linear(x, w, b)))
    scores = hidden @ v
    loss = g.keep(rg.cross_entropy(scores, labels).mean())
    loss.name = "loss"
    parts = [
        rg.softmax(scores)[1:, 0].sum(),
        rg.log_softmax(scores).max(),
        rg.where(x > 0.0, x, -x).mean(),
        rg.concatenate([x[0], x[1][::-1]]).reshape(2, 4).T.sum(),
        rg.stack([w[:, 0], w[:, 1]]).min(),
        rg.split(x, 2, axis=1)[1].sum(),
        rg.clip(x, -0.5, 0.5).sum(),
        rg.norm_cdf(x).sum() + rg.erf(x).mean(),
        rg.hypot(x, 2.0).sum() / rg.sigmoid(x).sum(),
        rg.astype(x > 0.0, np.float64).sum(),
        rg.expand_dims(rg.squeeze(x[:1]), 0).sum(),
        rg.broadcast_to(b + 1.0, (3, 6)).sum(),
    ]
    total = loss
    for part in parts:
        total = total + part
    total = g.keep(total)
    total.name = "total"
    for param in (w, b, v):
        gradient = g.keep(rg.grad(total, param))
        gradient.name = f"d{param.name}"
    g.forward(total, g["dw"], g["db"], g["dv"])
    return g


GRAPHS: dict[str, Callable[[], rg.Graph]] = {
    "values": values,
    "functions": functions,
    "network": network,
}


def main() -> None:
    folder = Path(sys.argv[1])
    for name, build in GRAPHS.items():
        build().save(folder / f"{name}.safetensors")


if __name__ == "__main__":
    from tests.io import graphs_of_0_1 as here  # under the name that the files shall hold

    here.main()
