"""Draws for small parameters, and of few bits, stay what their distribution says: no NaN, no infinity, no 1.0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import reactgrad as rg
from reactgrad.backend.numpy import _random
from reactgrad.random._draw import Draw

N = 20_000
R = rg.random
SMALL = [(0.01, 0.01), (1e-4, 2e-4), (1e-3, 1.0)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("a", "b"), SMALL)
def test_beta(a: float, b: float, dtype: str) -> None:
    g = rg.Graph(rng=1)
    leaves = [g.param(np.array(one, dtype)) for one in (a, b)]
    x = R.beta(leaves[0], leaves[1], (N,))
    a, b = (float(one.value) for one in leaves)
    assert x.dtype == dtype
    assert np.isfinite(x.value).all()
    law = stats.beta(a, b)
    error = law.std() / np.sqrt(N)
    assert x.value.mean(dtype="f8") == pytest.approx(law.mean(), abs=4.0 * error)
    slopes = rg.grad(x.astype("float64").mean(), leaves)
    assert all(np.isfinite(one.value) for one in slopes)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_slopes_of_beta_and_dirichlet(dtype: str) -> None:
    g = rg.Graph(rng=1)
    a, b = g.param(np.array(0.05, dtype)), g.param(np.array(0.1, dtype))
    mean = R.beta(a, b, (4 * N,)).astype("float64").mean()
    found = [one.item() for one in rg.grad(mean, [a, b])]
    np.testing.assert_allclose(found, [0.1 / 0.15**2, -0.05 / 0.15**2], rtol=0.06)
    alpha = g.param(np.array([0.05, 0.1, 0.15], dtype))
    x = R.dirichlet(alpha, (4 * N,)).astype("float64")
    assert np.isfinite(x.value).all()
    np.testing.assert_allclose(x.value.sum(-1), 1.0, rtol=2.0 * float(np.finfo(dtype).eps))
    np.testing.assert_allclose(x.value.mean(0), [1 / 6, 1 / 3, 1 / 2], atol=0.01)
    slope = rg.grad(x.mean(axis=0)[0], alpha).value
    np.testing.assert_allclose(slope, [0.25 / 0.09, -0.05 / 0.09, -0.05 / 0.09], rtol=0.12)


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), [(0.7, 1.3), (2.0, 3.0), (20.0, 50.0)])
def test_slopes_of_beta_are_those_of_a_quotient_of_gamma_draws(a: float, b: float) -> None:
    """The path that the draws take is another one; the mean slope of any function is the same."""
    g, many = rg.Graph(rng=1), 20 * N
    leaves = [g.param(np.full(many, a)), g.param(np.full(many, b))]  # a slope for each draw
    first, second = R.gamma(leaves[0], 1.0), R.gamma(leaves[1], 1.0)
    draws = [R.beta(*leaves), first / (first + second)]
    along = [[slope.value for slope in rg.grad(x.sum(), leaves)] for x in draws]
    for slope_at in (np.ones_like, lambda v: 2.0 * v, lambda v: 5.0 * np.cos(5.0 * v)):
        slopes = np.array(
            [[slope_at(x.value) * one for one in own] for x, own in zip(draws, along, strict=True)]
        )
        found, wanted = slopes.mean(axis=2)
        errors = np.sqrt(slopes.var(axis=2).sum(axis=0) / many)  # standard errors of the difference
        most = np.minimum(5.0 * errors, 2e-3 + 0.05 * np.abs(wanted))
        assert (np.abs(found - wanted) < most).all()


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.02, 0.4, 1.0, 3.0, 40.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_mean_slope_of_the_logarithm_of_gamma_draws(alpha: float, dtype: str) -> None:
    """The mean is digamma, and its slope trigamma."""
    g = rg.Graph(rng=2)
    a = g.param(np.array(alpha, dtype))
    draw = Draw("gamma", (4 * N,), None, None, a)
    x = draw.log_gammas(a)
    assert x.value.mean(dtype="f8") == pytest.approx(special.digamma(alpha), rel=0.03, abs=0.02)
    slope = rg.grad(x.mean(), a).item()
    assert slope == pytest.approx(special.polygamma(1, alpha), rel=0.03)


def test_f() -> None:
    with rg.Graph(rng=1):
        x = R.f(0.01, 0.01, (N,))
    assert not np.isnan(x.value).any()
    assert (x.value > 1.0).mean() == pytest.approx(0.5, abs=0.015)


def test_a_gamma_draw_below_every_float_is_zero_and_has_no_slope() -> None:
    g = rg.Graph(rng=1)
    alpha = g.param(1e-5)
    x = R.gamma(alpha, 1.0, (100,))
    slope = rg.grad(x.sum(), alpha)
    assert (x.value == 0.0).sum() > 90
    assert np.isfinite(slope.value)


def test_uniform_halves_are_below_one() -> None:
    with rg.Graph(rng=1):
        u = R.random((200_000,), dtype="float16")
    assert set(np.unique(u.value.astype("f8") * 2048.0)) == set(range(2048))


def test_a_probability_that_is_a_half_is_kept() -> None:
    with rg.Graph(rng=1):
        x = R.bernoulli(np.array([1e-4], np.float16), (2_000_000,))
    assert x.value.mean() == pytest.approx(1e-4, rel=0.2)


class _Zeros:
    """A generator all of whose draws are zero."""

    def standard_exponential(self, size: Any, dtype: Any, out: Any = None) -> Any:
        if out is None:
            return np.zeros(size, dtype)
        out[:] = 0.0
        return out


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", ["gumbel", "logistic", "laplace", "categorical"])
def test_the_smallest_exponential_draw_has_a_logarithm(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_random, "stream", lambda *key: _Zeros())
    g = rg.Graph(rng=1)
    with g:
        if name == "categorical":
            x = R.categorical(np.array([0.0, -np.inf], dtype), (3,))
            assert x.tolist() == [0, 0, 0]
            return
        x = getattr(R, name)((5,), dtype=dtype)
    assert np.isfinite(x.value).all()
    if name == "gumbel":
        np.testing.assert_allclose(x.value, 24.0 * np.log(2.0), rtol=1e-3)
