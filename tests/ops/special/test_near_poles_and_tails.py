"""Special functions beside mpmath where a step between x and 1 - x, or a square, would lose the digits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed")

NEAR_ZERO = [1e-300, -1e-300, 1e-40, -1e-17, 1e-10, -1e-10, 1e-5, -1e-3, 0.499, -2.5, -3 + 1e-9]


def relative(found: Any, wanted: Any) -> float:
    return float(abs((mpmath.mpf(float(found)) - wanted) / wanted))


@pytest.mark.parametrize("x", NEAR_ZERO)
def test_gamma_keeps_its_digits_beside_the_pole(x: float) -> None:
    """sin(pi (1 - (1 - x))) had 8 digits at 1e-10, and gave infinity from 1e-17 on."""
    with mpmath.workdps(60):
        there, leaf = mpmath.mpf(x), rg.Graph().param(x)
        assert relative(rg.gamma(leaf).value, mpmath.gamma(there)) < 2e-15
        assert relative(rg.gammaln(leaf).value, mpmath.log(abs(mpmath.gamma(there)))) < 2e-15
        slope = mpmath.gamma(there) * mpmath.digamma(there)
        if abs(slope) < 1e308:
            assert relative(rg.grad(rg.gamma(leaf), leaf).value, slope) < 1e-14
            assert relative(rg.jvp(rg.gamma(leaf), leaf, 1.0).value, slope) < 1e-14


APART = [(0.0, 737.5), (739.4, -3.14), (-288.7, 3.625), (1.0, 1.0), (0.5, 0.25), (-215.25, -356.26)]


@pytest.mark.parametrize(("x", "y"), APART)
def test_second_derivatives_of_logaddexp2_reach_into_its_tails(x: float, y: float) -> None:
    """A square of 1 + 2**(y - x) left the dtype, so reverse mode gave 0 where forward mode did not."""
    g = rg.Graph()
    a, b = g.param(x), g.param(y)
    z = rg.logaddexp2(a, b)
    da = rg.grad(z, a)
    with mpmath.workdps(400):
        share = 1 / (1 + mpmath.mpf(2) ** (mpmath.mpf(y) - mpmath.mpf(x)))
        bend = mpmath.log(2) * share * (1 - share)
        for found in (da, rg.jvp(z, a, 1.0)):
            assert relative(found.value, share) < 8e-16
        for found in (rg.grad(da, a), rg.jvp(da, a, 1.0), rg.jvp(rg.jvp(z, a, 1.0), a, 1.0)):
            assert relative(found.value, bend) < 1.2e-15
        assert relative(rg.grad(da, b).value, -bend) < 1.2e-15
        third = mpmath.log(2) * bend * (1 - 2 * share)
        if third:
            assert relative(rg.grad(rg.grad(da, a), a).value, third) < 4e-15


def test_two_infinities_share_evenly() -> None:
    g = rg.Graph()
    a, b = g.param([np.inf, -np.inf, np.inf, 1.0]), g.param([np.inf, -np.inf, 1.0, -np.inf])
    da, db = rg.grad(rg.logaddexp2(a, b).sum(), [a, b])
    assert (da.value.tolist(), db.value.tolist()) == ([0.5, 0.5, 1.0, 1.0], [0.5, 0.5, 0.0, 0.0])
    assert math.isnan(rg.grad(rg.logaddexp2(a[0], math.nan), a).value[0])
