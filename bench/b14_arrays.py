"""B14: single operations on large arrays, beside NumPy by hand and PyTorch.

Twice: with results that the caller drops, beside ``out=`` into one array; and with results that the
caller still holds while the next one is computed, beside calls that make new arrays. No side copies
inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import at_most, faster
from bench._peers import load


@dataclass(frozen=True)
class Operation:
    """One computation on two arrays, written for each library.

    Attributes
    ----------
    ours, torch
        From two values to the result.
    hand
        The same with ``out=``, or with ``None`` for a new array.
    result
        The shape of the result, from that of the arrays.
    """

    name: str
    ours: Callable[[Any, Any], Any]
    hand: Callable[[Any, Any, Any], Any]
    torch: Callable[[Any, Any, Any], Any]
    result: Callable[[tuple[int, int]], tuple[int, ...]] = lambda shape: shape


HELD = ("x + y", "exp(x)")  # also measured with a caller that keeps the result
OPERATIONS = [
    Operation("x + y", lambda x, y: x + y, np.add, lambda t, x, y: x + y),
    Operation(
        "exp(x)", lambda x, y: rg.exp(x), lambda x, y, out: np.exp(x, out), lambda t, x, y: t.exp(x)
    ),
    Operation(
        "tanh(x)",
        lambda x, y: rg.tanh(x),
        lambda x, y, out: np.tanh(x, out),
        lambda t, x, y: t.tanh(x),
    ),
    Operation(
        "maximum(x, y)",
        lambda x, y: rg.maximum(x, y),
        lambda x, y, out: np.maximum(x, y, out=out),
        lambda t, x, y: t.maximum(x, y),
    ),
    Operation(
        "x.sum()",
        lambda x, y: x.sum(),
        lambda x, y, out: np.add.reduce(x, None, None, out),
        lambda t, x, y: x.sum(),
        lambda shape: (),
    ),
    Operation(
        "x.sum(axis=0)",
        lambda x, y: x.sum(axis=0),
        lambda x, y, out: np.add.reduce(x, 0, None, out),
        lambda t, x, y: x.sum(0),
        lambda shape: shape[1:],
    ),
    Operation(
        "x.max(axis=1)",
        lambda x, y: x.max(axis=1),
        lambda x, y, out: np.maximum.reduce(x, 1, None, out),
        lambda t, x, y: x.amax(1),
        lambda shape: shape[:1],
    ),
]


def chain(x: Any, y: Any, xp: Any) -> Any:
    """Return the result of several elementwise operations."""
    z = x * 0.5 + y
    for _ in range(3):
        z = xp.tanh(z) * x + z * 0.25
    return xp.exp(z * -0.5) + y * z - x


def chain_by_hand(x: Any, y: Any, out: Any, scratch: Any) -> Any:
    """Compute the same in two existing arrays."""
    np.multiply(x, 0.5, out)
    np.add(out, y, out)
    for _ in range(3):
        np.tanh(out, scratch)
        np.multiply(scratch, x, scratch)
        np.multiply(out, 0.25, out)
        np.add(scratch, out, out)
    np.multiply(out, -0.5, scratch)
    np.exp(scratch, scratch)
    np.multiply(y, out, out)
    np.add(scratch, out, out)
    return np.subtract(out, x, out)


def chain_in_numexpr() -> Step:
    """Return the step by numexpr."""
    numexpr = load("numexpr")
    evaluate = numexpr.evaluate

    def step(arrays: Any) -> Any:
        x, y = arrays
        z = evaluate("x * 0.5 + y", {"x": x, "y": y})
        for _ in range(3):
            z = evaluate("tanh(z) * x + z * 0.25", {"x": x, "z": z})
        return evaluate("exp(z * -0.5) + y * z - x", {"x": x, "y": y, "z": z})

    return step


def chain_in_jax() -> Step:
    """Return the step by JAX."""
    jax = load("jax")
    compiled = jax.jit(lambda x, y: chain(x, y, jax.numpy))
    return lambda arrays: compiled(*arrays).block_until_ready()


def ours(shape: tuple[int, int], expression: Callable[[Any, Any], Any]) -> Step:
    """Return our step."""
    g = rg.Graph()
    x, y = g.input(np.zeros(shape)), g.input(np.zeros(shape))
    result = expression(x, y)

    def step(arrays: Any) -> Any:
        x.set(arrays[0], copy=False)
        y.set(arrays[1], copy=False)
        return result.value

    return step


def by_hand(operation: Operation, shape: tuple[int, int], *, keep: bool) -> Step:
    """Return the step by NumPy."""
    hand = operation.hand
    out = None if keep else np.empty(operation.result(shape))
    return lambda arrays: hand(arrays[0], arrays[1], out)


def in_torch(expression: Callable[[Any, Any, Any], Any]) -> Step:
    """Return the step by PyTorch."""
    torch = load("torch")
    return torch.no_grad()(lambda tensors: expression(torch, *tensors))


def tensors(arrays: Any) -> Any:
    """Return the arrays as tensors."""
    torch = load("torch")
    return [torch.from_numpy(array) for array in arrays]


def on_device(arrays: Any) -> Any:
    """Return the arrays as JAX arrays."""
    jax = load("jax")
    return [jax.numpy.asarray(array).block_until_ready() for array in arrays]


def torch_peer(expression: Callable[[Any, Any, Any], Any]) -> Peer:
    """Return PyTorch as a peer."""
    side = Side("PyTorch", lambda: in_torch(expression), take=tensors, needs="torch", apart=True)
    return Peer(side, faster(1.0))


def contest(shape: tuple[int, int], operation: Operation, *, keep: bool) -> Contest:
    """Return the contest of one operation at one size."""
    hand = Side("by hand", lambda: by_hand(operation, shape, keep=keep))
    return Contest(
        f"{operation.name}{', result held' if keep else ''}, {shape[0]} × {shape[1]}",
        drawn(shape),
        Side("reactgrad", lambda: ours(shape, operation.ours)),
        (Peer(hand, at_most(1.0)), torch_peer(operation.torch)),
        keep=keep,
    )


def chain_contest(shape: tuple[int, int]) -> Contest:
    """Return the contest of several elementwise operations at one size."""

    def hand() -> Step:
        out, scratch = np.empty(shape), np.empty(shape)
        return lambda arrays: chain_by_hand(arrays[0], arrays[1], out, scratch)

    jax = Side("JAX jit", chain_in_jax, take=on_device, needs="jax", apart=True)
    return Contest(
        f"chain of 19 operations, {shape[0]} × {shape[1]}",
        drawn(shape),
        Side("reactgrad", lambda: ours(shape, lambda x, y: chain(x, y, rg))),
        (
            Peer(Side("by hand", hand), at_most(1.0)),
            torch_peer(lambda torch, x, y: chain(x, y, torch)),
            Peer(Side("numexpr", chain_in_numexpr, needs="numexpr", apart=True)),
            Peer(jax),
        ),
        keep=False,
    )


def drawn(shape: tuple[int, int]) -> Callable[[np.random.Generator], list[np.ndarray]]:
    """Return a function that draws two new arrays."""
    return lambda rng: [rng.standard_normal(shape), rng.standard_normal(shape)]


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    found: list[Case] = []
    for shape in ((256, 256), (2048, 2048)):
        if setting.permuted:
            shape = (shape[0] * 16 // 15 + 1, shape[1] * 15 // 16)
        if setting.small:
            shape = (shape[0] // 128, shape[1] // 16)
        found += [contest(shape, operation, keep=False) for operation in OPERATIONS]
        found += [contest(shape, one, keep=True) for one in OPERATIONS if one.name in HELD]
        found.append(chain_contest(shape))
    return found


WORKLOAD = Workload("B14", "arrays", cases)


def test_b14(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
