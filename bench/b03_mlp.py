"""B3: one training step of a small network, beside NumPy by hand and PyTorch eager.

Two layers with relu between, softmax cross entropy, plain gradient descent, float32. A step takes a
new batch and its labels, and returns the loss; the params follow. Also with batches of three
lengths, as of an epoch, its end and an evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import at_most, faster
from bench._peers import load

RATE = 0.01
Sizes = tuple[int, int, int, int]
TABLE: list[tuple[Sizes, float, float]] = [
    ((1, 4, 8, 2), 1.3, 6.0),
    ((32, 64, 64, 10), 1.2, 4.0),
    ((64, 784, 128, 10), 1.03, 1.2),
    ((256, 784, 512, 10), 1.01, 0.9),
]


LENGTHS = (32, 7, 100)


def first_params(sizes: Sizes) -> list[np.ndarray]:
    """Return weights and biases at the start."""
    _, inputs, hidden, outputs = sizes
    rng = np.random.default_rng(3)
    return [
        (rng.normal(size=(inputs, hidden)) / inputs**0.5).astype("f4"),
        np.zeros(hidden, "f4"),
        (rng.normal(size=(hidden, outputs)) / hidden**0.5).astype("f4"),
        np.zeros(outputs, "f4"),
    ]


def moved(sizes: Sizes) -> Callable[[Any], Any]:
    """Return a function that returns the loss, and the distance of each param from its start, for
    comparing.
    """
    start = first_params(sizes)
    return lambda found: (
        found[0],
        [(getattr(w, "value", w) - at) / RATE for w, at in zip(found[1], start)],
    )


def drawn(sizes: Sizes) -> Callable[[np.random.Generator], Any]:
    """Return a function that draws a new batch: samples, and the number of each one's class."""
    batch, inputs, _, outputs = sizes
    return lambda rng: (
        rng.standard_normal((batch, inputs), dtype="f4"),
        rng.integers(0, outputs, batch),
    )


def drawn_in_turn(sizes: Sizes) -> Callable[[np.random.Generator], Any]:
    """Return a function that draws a new batch of one of three lengths."""
    _, inputs, hidden, outputs = sizes
    draws = [drawn((length, inputs, hidden, outputs)) for length in LENGTHS]
    return lambda rng: draws[rng.integers(len(LENGTHS))](rng)


def one_hot(sizes: Sizes) -> Callable[[Any], Any]:
    """Return a function that turns labels into rows of zeros and a one, as arrays need them."""
    rows = np.eye(sizes[3], dtype="f4")
    return lambda batch: (batch[0], rows[batch[1]])


def ours(sizes: Sizes) -> Step:
    """Return a step of one graph."""
    batch, inputs, _, outputs = sizes
    g = rg.Graph()
    x = g.input(np.zeros((batch, inputs), "f4"))
    labels = g.input(np.zeros((batch, outputs), "f4"))
    params = [g.param(first) for first in first_params(sizes)]
    w1, b1, w2, b2 = params
    logits = rg.linear(rg.relu(rg.linear(x, w1, b1)), w2, b2)
    loss = (rg.log_softmax(logits) * labels).sum() * (-1.0 / batch)
    new = [w - RATE * dw for w, dw in zip(params, rg.grad(loss, params), strict=True)]
    read = g.reader(loss, feeds=[x, labels], updates=dict(zip(params, new)))

    def step(given: Any) -> Any:
        (reached,) = read(*given)
        return reached, params

    return step


def ours_in_turn(sizes: Sizes) -> Step:
    """Return a step of one graph whose inputs take batches of any length."""
    _, inputs, _, outputs = sizes
    g = rg.Graph()
    x = g.input(shape=(None, inputs), dtype="f4")
    labels = g.input(shape=(None, outputs), dtype="f4")
    params = [g.param(first) for first in first_params(sizes)]
    w1, b1, w2, b2 = params
    logits = rg.linear(rg.relu(rg.linear(x, w1, b1)), w2, b2)
    loss = -(rg.log_softmax(logits) * labels).sum(axis=1).mean()
    g.set({x: np.zeros((1, inputs), "f4"), labels: np.zeros((1, outputs), "f4")})
    new = [w - RATE * dw for w, dw in zip(params, rg.grad(loss, params), strict=True)]
    read = g.reader(loss, feeds=[x, labels], updates=dict(zip(params, new)))

    def step(given: Any) -> Any:
        (reached,) = read(*given)
        return reached, params

    return step


def by_hand(sizes: Sizes) -> Step:
    """Return a step by NumPy: every result in an existing array, the loss's gradient by its closed
    form.
    """
    batch, _, hidden, outputs = sizes
    w1, b1, w2, b2 = first_params(sizes)
    z1, a1, h, dh, dz1 = (np.empty((batch, hidden), "f4") for _ in range(5))
    z2, logits, shifted, e, p, d, dlogits = (np.empty((batch, outputs), "f4") for _ in range(7))
    top, total, log_total, inverse = (np.empty((batch, 1), "f4") for _ in range(4))
    sum_of_logs, picked, loss = (np.empty((), "f4") for _ in range(3))
    positive = np.empty((batch, hidden), bool)
    dw1, db1, dw2, db2 = (np.empty_like(w) for w in (w1, b1, w2, b2))
    # Without an axis they broadcast at a third of the cost.
    zero, share, rate = np.zeros((), "f4"), np.full((), 1 / batch, "f4"), np.full((), RATE, "f4")
    w2_t, h_t = w2.T, h.T
    # For matrices the same product as `np.matmul`, with less overhead.
    matmul, add, multiply, subtract = np.dot, np.add, np.multiply, np.subtract
    maximum, exp, log, greater, divide = np.maximum, np.exp, np.log, np.greater, np.divide
    # NumPy's stubs have these two with keywords only.
    reduce_max: Any = np.maximum.reduce
    reduce: Any = np.add.reduce
    flat_shifted = shifted.reshape(-1)

    def step(given: Any) -> Any:
        x, labels = given
        matmul(x, w1, z1)
        add(z1, b1, a1)
        maximum(a1, zero, out=h)
        matmul(h, w2, z2)
        add(z2, b2, logits)
        reduce_max(logits, 1, None, top, True)
        subtract(logits, top, shifted)
        exp(shifted, e)
        reduce(e, 1, None, total, True)
        log(total, log_total)
        reduce(log_total, None, None, sum_of_logs)
        np.dot(labels.reshape(-1), flat_shifted, picked)
        multiply(sum_of_logs - picked, share, loss)

        divide(share, total, inverse)
        multiply(e, inverse, p)
        multiply(labels, share, d)
        subtract(p, d, dlogits)
        matmul(h_t, dlogits, dw2)
        reduce(dlogits, 0, None, db2)
        matmul(dlogits, w2_t, dh)
        greater(a1, zero, positive)
        multiply(dh, positive, dz1)
        matmul(x.T, dz1, dw1)
        reduce(dz1, 0, None, db1)
        for w, dw in ((w1, dw1), (b1, db1), (w2, dw2), (b2, db2)):
            multiply(dw, rate, dw)
            subtract(w, dw, w)
        return loss, (w1, b1, w2, b2)

    return step


def in_torch(sizes: Sizes) -> Step:
    """Return a step by PyTorch."""
    torch = load("torch")
    functional = torch.nn.functional
    params = [torch.from_numpy(first).requires_grad_() for first in first_params(sizes)]
    w1, b1, w2, b2 = params
    addmm, relu, cross_entropy = torch.addmm, torch.relu, functional.cross_entropy
    grad, no_grad = torch.autograd.grad, torch.no_grad

    def step(given: Any) -> Any:
        x, labels = given
        loss = cross_entropy(addmm(b2, relu(addmm(b1, x, w1)), w2), labels)
        gradients = grad(loss, params)
        with no_grad():
            for w, dw in zip(params, gradients):
                w.sub_(dw, alpha=RATE)
        return loss, params

    return step


def tensors(batch: Any) -> Any:
    """Return a batch as tensors."""
    torch = load("torch")
    return torch.from_numpy(batch[0]), torch.from_numpy(batch[1])


def torch_side(sizes: Sizes) -> Side:
    """Return PyTorch's side of a contest."""
    return Side(
        "PyTorch eager",
        lambda: in_torch(sizes),
        take=tensors,
        show=lambda found: moved(sizes)((found[0].item(), [w.detach().numpy() for w in found[1]])),
        needs="torch",
        apart=True,
    )


def in_turn(setting: Setting) -> Contest:
    """Return the contest with batches of several lengths, in any order."""
    sizes = (1, 72, 56, 11) if setting.permuted else (1, 64, 64, 10)
    if setting.small:
        sizes = (1, 5, 6, 3)
    return Contest(
        f"training step {sizes[1:]}, batches of {', '.join(map(str, LENGTHS))} in any order",
        drawn_in_turn(sizes),
        Side("reactgrad", lambda: ours_in_turn(sizes), take=one_hot(sizes), show=moved(sizes)),
        (Peer(torch_side(sizes)),),
        rtol=1e-4,
        atol=1e-5,
    )


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    found: list[Case] = []
    for sizes, hand_goal, torch_goal in TABLE:
        if setting.permuted:  # wider where it was narrow, with as many weights
            batch, inputs, hidden, outputs = sizes
            sizes = (batch, inputs + inputs // 7, hidden - hidden // 8, outputs + 1)
        if setting.small:
            sizes = (min(sizes[0], 3), min(sizes[1], 5), min(sizes[2], 6), min(sizes[3], 3))
        found.append(
            Contest(
                f"training step {sizes}",
                drawn(sizes),
                Side(
                    "reactgrad",
                    lambda sizes=sizes: ours(sizes),
                    take=one_hot(sizes),
                    show=moved(sizes),
                ),
                (
                    Peer(
                        Side(
                            "by hand",
                            lambda sizes=sizes: by_hand(sizes),
                            take=one_hot(sizes),
                            show=moved(sizes),
                        ),
                        at_most(hand_goal),
                    ),
                    Peer(
                        torch_side(sizes),
                        faster(torch_goal),
                    ),
                ),
                rtol=1e-4,
                atol=1e-5,
            )
        )
    found.append(in_turn(setting))
    return found


WORKLOAD = Workload("B3", "MLP", cases)


def test_b03(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
