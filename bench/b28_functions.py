"""B28: functions of whole arrays: scans, sorting, norms, linear algebra beside NumPy; activations beside PyTorch.

Each is set and read. Activations are those of learning, in float32, alone and with their gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import at_most, faster
from bench._peers import load

Draw = Callable[[np.random.Generator], Any]

# Ours and NumPy's have the same name and arguments.
OF_ROWS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "cumsum": (lambda x: rg.cumsum(x, axis=1), lambda x: np.cumsum(x, axis=1)),
    "cumprod": (lambda x: rg.cumprod(x, axis=1), lambda x: np.cumprod(x, axis=1)),
    "sort": (rg.sort, np.sort),
    "argsort": (rg.argsort, np.argsort),
    "norm": (rg.linalg.norm, np.linalg.norm),
}
OF_MATRICES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    name: (getattr(rg.linalg, name), getattr(np.linalg, name))
    for name in ("inv", "det", "cholesky", "eigvalsh")
}
OF_LEARNING: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "sigmoid": (rg.sigmoid, lambda torch, x: torch.sigmoid(x)),
    "silu": (rg.silu, lambda torch, x: torch.nn.functional.silu(x)),
    "gelu": (rg.gelu, lambda torch, x: torch.nn.functional.gelu(x)),
    "softplus": (rg.softplus, lambda torch, x: torch.nn.functional.softplus(x)),
    "softmax": (lambda x: rg.softmax(x, axis=-1), lambda torch, x: torch.softmax(x, -1)),
}


def _ours(example: Any, function: Callable[[Any], Any], *, slope: bool = False) -> Step:
    g = rg.Graph()
    x = g.param(example)
    y = function(x)
    result = rg.grad((y * y).sum(), x) if slope else y

    def step(value: Any) -> Any:
        x.set(value)
        return result.value

    return step


def _in_torch(function: Callable[[Any, Any], Any], *, slope: bool) -> Step:
    torch = load("torch")

    def value(x: Any) -> Any:
        with torch.no_grad():
            return function(torch, x)

    def gradient(x: Any) -> Any:
        x = x.detach().requires_grad_()
        y = function(torch, x)
        (y * y).sum().backward()
        return x.grad

    return gradient if slope else value


def _drawn(shape: tuple[int, ...], *, matrices: bool = False, dtype: Any = np.float64) -> Draw:
    def draw(rng: np.random.Generator) -> Any:
        x = rng.standard_normal(shape)
        # Positive definite, so that each function takes it, and its determinant stays in the dtype.
        return (x @ x.T / shape[0] + np.eye(shape[0]) if matrices else x).astype(dtype)

    return draw


def _beside_numpy(
    name: str, shape: tuple[int, ...], functions: tuple[Any, Any], *, matrices: bool
) -> Contest:
    ours, hand = functions
    draw = _drawn(shape, matrices=matrices)
    example = draw(np.random.default_rng(0))
    return Contest(
        f"{name}, {shape[0]} × {shape[1]}",
        draw,
        Side("reactgrad", lambda: _ours(example, ours)),
        (Peer(Side("by hand", lambda: hand), at_most(1.1)),),
    )


def _beside_torch(name: str, shape: tuple[int, int], *, slope: bool) -> Contest:
    ours, theirs = OF_LEARNING[name]
    draw = _drawn(shape, dtype=np.float32)
    example = draw(np.random.default_rng(0))
    torch = Side(
        "PyTorch",
        lambda: _in_torch(theirs, slope=slope),
        take=lambda x: load("torch").from_numpy(x),
        needs="torch",
        apart=True,
    )
    return Contest(
        f"{name}{', gradient' if slope else ''}, float32 {shape[0]} × {shape[1]}",
        draw,
        Side("reactgrad", lambda: _ours(example, ours, slope=slope)),
        (Peer(torch, faster(1.0)),),
        rtol=2e-5,  # float32
        atol=1e-6,
    )


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    found: list[Case] = []
    by = 16 if setting.permuted else 15  # permuted: other shapes
    for rows, columns in ((64 * by // 15, 64), (1024 * 15 // by, 1024)):
        shape = (setting.size(rows, 3), setting.size(columns, 8))
        found += [_beside_numpy(name, shape, one, matrices=False) for name, one in OF_ROWS.items()]
    for n in (10, 100, 300):
        n = setting.size(n * by // 15, 2 + n // 100)
        found += [
            _beside_numpy(name, (n, n), one, matrices=True) for name, one in OF_MATRICES.items()
        ]
    shape = (setting.size(1000 * by // 15, 4), setting.size(1000, 16))
    for slope in (False, True):
        found += [_beside_torch(name, shape, slope=slope) for name in OF_LEARNING]
    return found


WORKLOAD = Workload("B28", "functions", cases)


def test_b28(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
