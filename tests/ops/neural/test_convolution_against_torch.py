"""Random convolutions and transposed ones against PyTorch: values, derivatives to second order, refusals."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")


def drawn(rng: random.Random) -> tuple[str, list[int], list[int], int, dict[str, Any]]:
    """Return a function's name, the shapes of images and kernel, the number of results' channels, arguments."""
    axes, groups = rng.choice([1, 2, 2, 3]), rng.choice([1, 1, 2, 3])
    taken, made = rng.choice([1, 2, 3]), rng.choice([1, 2])
    transposed = rng.random() < 0.4

    def numbers(low: int, high: int) -> tuple[int, ...]:
        return tuple(rng.randint(low, high) for _ in range(axes))

    given: dict[str, Any] = {
        "stride": numbers(1, 3),
        "padding": numbers(0, 3),
        "dilation": numbers(1, 3),
        "groups": groups,
    }
    if transposed:
        more = zip(given["stride"], given["dilation"], strict=True)
        given["output_padding"] = tuple(rng.randint(0, max(two) - 1) for two in more)
    elif rng.random() < 0.15:
        given |= {"stride": (1,) * axes, "padding": "same"}
    samples = [] if rng.random() < 0.2 else [rng.choice([0, 1, 2, 5])]
    images = [*samples, groups * taken, *numbers(1, 9)]
    first = (groups * taken, made) if transposed else (groups * made, taken)
    name = f"conv{'_transpose' if transposed else ''}{axes}d"
    return name, images, [*first, *numbers(1, 4)], groups * made, given


@pytest.mark.filterwarnings("ignore:Using padding=.same.")  # of PyTorch, for even kernels
@pytest.mark.parametrize(
    "seed", [*range(60), *[pytest.param(n, marks=pytest.mark.slow) for n in range(60, 500)]]
)
def test_random_convolutions(seed: int) -> None:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    name, images, kernel, made, given = drawn(rng)
    arrays = [numbers.standard_normal(images), numbers.standard_normal(kernel)]
    if rng.random() < 0.5:
        arrays.append(numbers.standard_normal(made))
    tensors = [torch.tensor(one, requires_grad=True) for one in arrays]
    try:
        wanted = getattr(torch.nn.functional, name)(*tensors, **given)
    except RuntimeError:
        wanted = None
    g = rg.Graph()
    leaves = [g.param(one) for one in arrays]
    if wanted is None:
        try:
            found = getattr(rg, name)(*leaves, **given)
        except rg.ShapeError:
            return
        assert 0 in found.shape  # a result without elements is one, and has a gradient
        return
    found = getattr(rg, name)(*leaves, **given)
    np.testing.assert_allclose(found.value, wanted.detach().numpy(), rtol=1e-10, atol=1e-10)
    slopes = rg.grad((found**3).sum(), leaves)
    others = torch.autograd.grad((wanted**3).sum(), tensors, create_graph=True)
    for one, other in zip(slopes, others, strict=True):
        np.testing.assert_allclose(one.value, other.detach().numpy(), rtol=1e-9, atol=1e-9)
    if images[0] and all(one.requires_grad for one in others):
        seconds = rg.grad(sum((one**2).sum() for one in slopes), leaves)
        others = torch.autograd.grad(sum((one**2).sum() for one in others), tensors)
        for one, other in zip(seconds, others, strict=True):
            np.testing.assert_allclose(one.value, other.numpy(), rtol=1e-7, atol=1e-7)
