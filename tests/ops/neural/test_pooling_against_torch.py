"""Random pooling against PyTorch: values, places, derivatives to second order, refusals."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")

KINDS = ["max_pool", "avg_pool", "lp_pool", "adaptive_max_pool", "adaptive_avg_pool"]


def drawn(rng: random.Random) -> tuple[str, list[int], tuple[Any, ...]]:
    """Return a function's name, the shape of the images, and the other arguments."""
    axes, kind = rng.choice([1, 2, 2, 3]), rng.choice(KINDS)

    def numbers(low: int, high: int) -> Any:
        many = tuple(rng.randint(low, high) for _ in range(axes))
        return many[0] if axes == 1 else many

    samples = [] if rng.random() < 0.2 else [rng.choice([0, 1, 2, 3])]
    shape = [*samples, rng.choice([1, 3]), *[rng.randint(1, 11) for _ in range(axes)]]
    kernel, stride = numbers(1, 6), rng.choice([None, numbers(1, 4)])
    half = kernel // 2 if axes == 1 else tuple(rng.randint(0, n // 2) for n in kernel)
    ceil = rng.random() < 0.5
    arguments: tuple[Any, ...]
    if kind == "max_pool":
        arguments = (kernel, stride, half, numbers(1, 3), ceil)
    elif kind == "avg_pool":
        divisor = (rng.choice([None, 7]),) if axes > 1 else ()
        arguments = (kernel, stride, half, ceil, rng.random() < 0.5, *divisor)
    elif kind == "lp_pool":
        length = kernel if axes != 3 else (kernel[0],) * 3  # others PyTorch does not multiply out
        arguments = (rng.choice([2, 3.0, 1.5, float("inf")]), length, stride, ceil)
    else:
        arguments = (numbers(1, 7),)
    return f"{kind}{axes}d", shape, arguments


@pytest.mark.parametrize(
    "seed", [*range(80), *[pytest.param(n, marks=pytest.mark.slow) for n in range(80, 600)]]
)
def test_random_pooling(seed: int) -> None:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    name, shape, arguments = drawn(rng)
    ties = rng.random() < 0.4
    image = numbers.integers(-2, 3, shape).astype(float) if ties else numbers.standard_normal(shape)
    if name.startswith("lp"):
        image = np.abs(image) + 0.1
    given = {"return_indices": True} if "max" in name else {}
    tensor = torch.tensor(image, requires_grad=True)
    g = rg.Graph()
    leaf = g.param(image)
    try:
        wanted = getattr(torch.nn.functional, name)(tensor, *arguments, **given)
    except RuntimeError:
        return  # too large a window: we refuse fewer
    try:
        found = getattr(rg, name)(leaf, *arguments, **given)
    except rg.ShapeError as error:
        # PyTorch gives a place that is none for a window that holds no element.
        if "holds no element" not in str(error):
            raise
        return
    if given:
        wanted, places = wanted
        found, own = found
        np.testing.assert_array_equal(own.value, places.numpy())
    np.testing.assert_allclose(found.value, wanted.detach().numpy(), rtol=1e-10, atol=1e-10)
    slope = rg.grad((found**3).sum(), leaf)
    (other,) = torch.autograd.grad((wanted**3).sum(), tensor, create_graph=True)
    np.testing.assert_allclose(slope.value, other.detach().numpy(), rtol=1e-9, atol=1e-9)
    if 0 not in shape:
        second = rg.grad((slope**2).sum(), leaf)
        (other,) = torch.autograd.grad((other**2).sum(), tensor)
        np.testing.assert_allclose(second.value, other.numpy(), rtol=1e-8, atol=1e-8)
