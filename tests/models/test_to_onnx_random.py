"""Random graphs of many ops, exported and run elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import reactgrad as rg

pytest.importorskip("onnx")

from tests.models.runs import agree

# Functions whose results stay of moderate size: of one matrix, and of two of shape (3, 4).
ONE = [
    *(
        rg.tanh,
        rg.sigmoid,
        rg.relu,
        rg.sin,
        rg.cos,
        rg.softmax,
        rg.log_softmax,
        rg.arctan,
        rg.erf,
        rg.gelu,
        rg.silu,
    ),
    *(
        rg.softplus,
        rg.softsign,
        rg.arcsinh,
        rg.norm_cdf,
        lambda x: -x,
        lambda x: x * 0.5 + 1,
        lambda x: x / (1 + x * x),
    ),
    lambda x: rg.exp(-abs(x)),
    lambda x: rg.log1p(abs(x)),
    lambda x: rg.sqrt(abs(x) + 0.1),
    lambda x: x - x.mean(axis=0),
    lambda x: x / (1 + x.max(axis=1, keepdims=True) ** 2),
    lambda x: rg.layer_norm(x),
    lambda x: x[::-1, [3, 0, 1, 2]],
    lambda x: rg.concatenate([x[1:], x[:1]]),
    lambda x: rg.pad(x[:, 1:3], ((0, 0), (1, 1))),
    lambda x: x.reshape(4, 3).T,
    lambda x: rg.cumsum(x, axis=1) / 4,
    lambda x: rg.roll(x, 1, axis=1),
    lambda x: rg.clip(x, -1, 1),
    lambda x: rg.flip(x, 0),
    lambda x: rg.tanh(x @ x.T) @ x,
    lambda x: x.at[1].add(0.5),
]
TWO = [
    *(rg.add, rg.subtract, rg.maximum, rg.minimum, rg.hypot, rg.logaddexp),
    lambda x, y: x * rg.tanh(y),
    lambda x, y: rg.where(x > y, x, 0.5 * y),
    lambda x, y: x + y[0],
    lambda x, y: rg.tanh(x @ y.T) @ y / 3,
    lambda x, y: rg.stack([x, y]).mean(axis=0),
    lambda x, y: rg.einsum("ij,kj->ik", x, rg.tanh(y)) @ x / 4,
]


@pytest.mark.parametrize("seed", range(200))
def test_a_random_graph_gives_the_same_elsewhere(seed):
    rng = np.random.default_rng(seed)
    dtype = "f4" if seed % 2 else "f8"
    g = rg.Graph()
    live = [g.input(rng.normal(size=(3, 4)).astype(dtype), name=name) for name in "ab"]
    live.append(g.param(rng.normal(size=(3, 4)).astype(dtype), name="w"))
    for _ in range(8):
        if rng.random() < 0.6:
            live.append(ONE[rng.integers(len(ONE))](live[rng.integers(len(live))]))
        else:
            x, y = (live[i] for i in rng.integers(len(live), size=2))
            live.append(TWO[rng.integers(len(TWO))](x, y))
    outputs = {"y": live[-1], "z": live[-2]}
    if dtype == "f8" and seed % 4 == 0:
        slope = rg.grad((rg.tanh(live[-1]) ** 2).sum(), live[2], allow_unused=True)
        outputs |= {"slope": slope} if slope is not None else {}
    agree(outputs, reference=seed % 10 == 0)
