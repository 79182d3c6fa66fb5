"""Random interpolation, patches and sampling against PyTorch: values and derivatives to second order."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")

MODES = {
    1: ["nearest", "nearest-exact", "linear", "area"],
    2: ["nearest", "nearest-exact", "bilinear", "bicubic", "area"],
    3: ["nearest", "nearest-exact", "trilinear", "area"],
}


def agree(name: str, arrays: list[Any], *arguments: Any, order: int = 2, **given: Any) -> None:
    """Check values and derivatives of a function of PyTorch and of ours."""
    tensors = [torch.tensor(one, requires_grad=True) for one in arrays]
    wanted = getattr(torch.nn.functional, name)(*tensors, *arguments, **given)
    g = rg.Graph()
    leaves = [g.param(one) for one in arrays]
    found = getattr(rg, name)(*leaves, *arguments, **given)
    rtol = 1e-10 if arrays[0].dtype == np.float64 else 2e-5
    assert found.dtype == arrays[0].dtype
    np.testing.assert_allclose(found.value, wanted.detach().numpy(), rtol=rtol, atol=rtol)
    if not wanted.numel():
        return
    slopes = rg.grad((found**3).sum(), leaves)
    others = torch.autograd.grad((wanted**3).sum(), tensors, create_graph=order > 1)
    rtol *= 30
    for one, other in zip(slopes, others, strict=True):
        np.testing.assert_allclose(one.value, other.detach().numpy(), rtol=rtol, atol=rtol)
    if order > 1:
        seconds = rg.grad(sum((one**2).sum() for one in slopes), leaves)
        others = torch.autograd.grad(sum((one**2).sum() for one in others), tensors)
        for one, other in zip(seconds, others, strict=True):
            np.testing.assert_allclose(one.value, other.numpy(), rtol=10 * rtol, atol=10 * rtol)


@pytest.mark.parametrize(
    "seed", [*range(80), *[pytest.param(n, marks=pytest.mark.slow) for n in range(80, 500)]]
)
def test_random_interpolation(seed: int) -> None:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    axes = rng.choice([1, 2, 2, 3])
    mode = rng.choice(MODES[axes])
    dtype = rng.choice(["f8", "f8", "f4"])
    shape = (rng.choice([1, 2]), rng.choice([1, 3]), *[rng.randint(1, 9) for _ in range(axes)])
    given: dict[str, Any] = {"mode": mode}
    if rng.random() < 0.5:
        given["size"] = tuple(rng.randint(1, 12) for _ in range(axes))
    else:
        scales = [2.0, 0.5, 1.7, 3, 1.0, 0.7, 1.3]
        given["scale_factor"] = tuple(rng.choice(scales) for _ in range(axes))
        if any(int(n * s) < 1 for n, s in zip(shape[2:], given["scale_factor"], strict=True)):
            given["scale_factor"] = 2.5
        given["recompute_scale_factor"] = rng.choice([None, True, False])
        if mode == "nearest" and axes != 2 and given["recompute_scale_factor"] is not True:
            return  # PyTorch 2.13 gives some gradients to other places than it took the values from
    if "linear" in mode or "cubic" in mode:
        given["align_corners"] = rng.choice([None, True, False])
        given["antialias"] = axes == 2 and rng.random() < 0.4
        if given["antialias"] and 1 in (shape[3], given.get("size", (2, 2))[1]):
            return  # PyTorch 2.13 gives all rows of a single column one value
    agree("interpolate", [numbers.standard_normal(shape).astype(dtype)], **given)


@pytest.mark.parametrize(
    "seed", [*range(30), *[pytest.param(n, marks=pytest.mark.slow) for n in range(30, 200)]]
)
def test_random_patches(seed: int) -> None:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    kernel, stride, dilation = [(rng.randint(1, 3), rng.randint(1, 3)) for _ in range(3)]
    padding = (rng.randint(0, 2), rng.randint(0, 2))
    size = tuple(d * (k - 1) + 1 + rng.randint(0, 4) for k, d in zip(kernel, dilation, strict=True))
    samples = (2,) if rng.random() < 0.7 else ()
    image = numbers.standard_normal((*samples, 2, *size))
    agree("unfold", [image], kernel, dilation, padding, stride)
    patches = torch.nn.functional.unfold(
        torch.tensor(image), kernel, dilation, padding, stride
    ).shape
    agree("fold", [numbers.standard_normal(patches)], size, kernel, dilation, padding, stride)


@pytest.mark.parametrize("seed", range(12))
def test_random_channels(seed: int) -> None:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    r = rng.randint(1, 3)
    lead = [(), (2,), (2, 1)][seed % 3]
    image = numbers.standard_normal((*lead, 2 * r * r, rng.randint(1, 4), 2))
    agree("pixel_shuffle", [image], r)
    agree("pixel_unshuffle", [numbers.standard_normal((*lead, 2, 2 * r, 3 * r))], r)
    shape = (2, rng.randint(1, 7), *[rng.randint(1, 4) for _ in range(1 + seed % 3)])
    agree("local_response_norm", [numbers.standard_normal(shape)], rng.randint(1, 5), 0.3, 0.6, 1.5)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of PyTorch, for align_corners
@pytest.mark.parametrize(
    "seed", [*range(60), *[pytest.param(n, marks=pytest.mark.slow) for n in range(60, 400)]]
)
def test_random_grids(seed: int) -> None:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    axes = rng.choice([2, 2, 3])
    mode = rng.choice(["bilinear", "nearest", "bicubic"][: 5 - axes])
    padding, align = rng.choice(["zeros", "border", "reflection"]), rng.choice([None, True, False])
    samples = rng.choice([0, 1, 2, 3])
    image = numbers.standard_normal((samples, 2, *[rng.randint(1, 6) for _ in range(axes)]))
    grid = numbers.uniform(-2.5, 2.5, (samples, *[rng.randint(1, 4) for _ in range(axes)], axes))
    if rng.random() < 0.2:
        grid = np.round(grid * 2) / 2  # between two pixels, at the border
    # PyTorch has no second derivatives here.
    agree("grid_sample", [image, grid], mode, padding, align, order=1)
    size = (samples, 2, *[rng.randint(1, 5) for _ in range(axes)])
    maps = numbers.standard_normal((samples, axes, axes + 1))
    if samples:
        agree("affine_grid", [maps], size, align, order=1)
