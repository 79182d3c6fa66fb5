"""Second derivatives at the points where rules choose between formulas: ties, zeros, whole exponents.

A rule may write down the first derivative of one point as a number, and lose the second one there. So each
function is compared, at all pairs of such points, with differences of its own first derivative a step aside.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

POINTS = np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0])
STEP = 1e-5
UNARY = (
    "absolute arccos arccosh arcsin arcsinh arctan arctanh bessel_i0 bessel_i0e cbrt celu cos cosh elu erf erfc erfinv "
    "exp exp2 expm1 fabs gammaln gelu hardshrink hardsigmoid hardswish hardtanh i0 i0e i1 i1e leaky_relu log "
    "log1p log2 log10 log_ndtr log_sigmoid logit mish ndtr ndtri norm_pdf reciprocal relu relu6 rsqrt selu "
    "sigmoid silu sin sinc sinh softplus softshrink softsign sqrt square tan tanh tanhshrink digamma"
)
BINARY = (
    "add arctan2 betaln copysign divide float_power fmax fmin fmod hypot logaddexp logaddexp2 maximum minimum "
    "multiply power prelu remainder subtract xlog1py xlogy"
)
OF_PAIRS = (
    "binary_cross_entropy_with_logits huber_loss kl_div l1_loss mse_loss smooth_l1_loss soft_margin_loss "
    "poisson_nll_loss hinge_embedding_loss"
)


def _of_each(name: str) -> Callable[..., Any]:
    return lambda *operands: getattr(rg, name)(*operands, reduction="none")


FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    **{name: (getattr(rg, name), 1) for name in UNARY.split()},
    **{name: (getattr(rg, name), 2) for name in BINARY.split()},
    **{name: (_of_each(name), 2) for name in OF_PAIRS.split()},
    "lp_pool": (lambda x: rg.lp_pool1d(x[None, :, None], 2.0, 1)[0, :, 0], 1),
    "clip": (lambda x: rg.clip(x, -0.5, 0.5) ** 2, 1),
    "norm": (lambda x, y: rg.norm(rg.stack([x, y]), axis=0), 2),
    "logsumexp": (lambda x, y: rg.logsumexp(rg.stack([x, y]), axis=0), 2),
    "prod": (lambda x, y: rg.prod(rg.stack([x, y]), axis=0), 2),
    "cumprod": (lambda x, y: rg.cumprod(rg.stack([x, y]), axis=0).sum(axis=0), 2),
    "var": (lambda x, y: rg.var(rg.stack([x, y]), axis=0), 2),
}


class Derivatives:
    """The value, first and second derivatives of a function of each element, live."""

    def __init__(self, function: Callable[..., Any], points: np.ndarray) -> None:
        self.graph = g = rg.Graph()
        self.leaves = [g.input(row) for row in points]
        count, zeros = len(points), np.zeros(points.shape[1])
        directions = [
            [np.ones_like(zeros) if i == j else zeros for j in range(count)] for i in range(count)
        ]
        self.value = function(*self.leaves)

        def back(node: Any) -> list[Any]:
            return list(rg.grad(node.sum(), self.leaves, allow_unused=True))

        def along(node: Any) -> list[Any]:
            return [rg.jvp(node, self.leaves, one, allow_unused=True) for one in directions]

        modes = {"reverse": back, "forward": along}
        self.first = {name: mode(self.value) for name, mode in modes.items()}
        self.second = {
            f"{outer} over {inner}": [
                [None] * count if one is None else modes[outer](one) for one in self.first[inner]
            ]
            for outer, inner in product(modes, repeat=2)
        }

    def at(self, points: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the value, and all first and second derivatives, at other points."""
        self.graph.set(dict(zip(self.leaves, points, strict=True)))

        def read(nest: Any) -> Any:
            if isinstance(nest, list):
                return np.array([read(one) for one in nest])
            return np.zeros(points.shape[1]) if nest is None else nest.value

        found = {name: read(nest) for name, nest in {**self.first, **self.second}.items()}
        return self.value.value, found


def slopes(left: Any, here: Any, right: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return central differences, and where those of both sides agree: where there is no kink and no pole."""
    before, after = (here - left) / STEP, (right - here) / STEP
    smooth = np.abs(after - before) <= 1e-3 * np.maximum(1.0, np.abs(after))
    return (right - left) / (2.0 * STEP), smooth & (np.abs(before + after) < 1e3)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives_where_rules_choose(name: str) -> None:
    function, count = FUNCTIONS[name]
    points = np.array(list(product(POINTS, repeat=count))).T
    with np.errstate(all="ignore"):
        derivatives = Derivatives(function, points)
        value, found = derivatives.at(points)
        checked = 0
        for j in range(count):
            aside = np.zeros_like(points)
            aside[j] = STEP
            (low, below), (high, above) = (derivatives.at(points + s * aside) for s in (-1, 1))
            slope, smooth = slopes(low, value, high)
            for mode in ("reverse", "forward"):
                np.testing.assert_allclose(
                    found[mode][j][smooth], slope[smooth], rtol=1e-4, atol=1e-5, err_msg=mode
                )
            for i in range(count):
                # Differences of slopes on both sides, and not of the slope here: that is what is tested.
                bend = (above["reverse"][i] - below["reverse"][i]) / (2.0 * STEP)
                _, level = slopes(below["reverse"][i], found["reverse"][i], above["reverse"][i])
                fine = smooth & level
                checked += int(fine.sum())
                for mode in derivatives.second:
                    np.testing.assert_allclose(
                        found[mode][i][j][fine],
                        bend[fine],
                        rtol=1e-3,
                        atol=1e-4,
                        err_msg=f"{mode}, by operands {i} and {j}",
                    )
    assert checked
