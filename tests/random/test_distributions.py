"""Each distribution has NumPy's law, and its gradient where it has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

import reactgrad as rg
from reactgrad.backend.numpy._random import gamma_slope

N = 20_000
R = rg.random

# The draw, and the distribution function that it must have.
CONTINUOUS: dict[str, tuple[Callable[[], Any], Any]] = {
    "standard_normal": (lambda: R.standard_normal((N,)), stats.norm()),
    "random": (lambda: R.random((N,)), stats.uniform()),
    "standard_exponential": (lambda: R.standard_exponential((N,)), stats.expon()),
    "standard_cauchy": (lambda: R.standard_cauchy((N,)), stats.cauchy()),
    "normal": (lambda: R.normal((N,), 2.0, 3.0), stats.norm(2.0, 3.0)),
    "float32": (lambda: R.normal((N,), 2.0, 3.0, dtype="f4"), stats.norm(2.0, 3.0)),
    "lognormal": (lambda: R.lognormal((N,), 0.5, 0.7), stats.lognorm(0.7, scale=np.exp(0.5))),
    "uniform": (lambda: R.uniform((N,), -1.0, 3.0), stats.uniform(-1.0, 4.0)),
    "exponential": (lambda: R.exponential((N,), 2.0), stats.expon(scale=2.0)),
    "laplace": (lambda: R.laplace((N,), 1.0, 2.0), stats.laplace(1.0, 2.0)),
    "gumbel": (lambda: R.gumbel((N,), 1.0, 2.0), stats.gumbel_r(1.0, 2.0)),
    "logistic": (lambda: R.logistic((N,), 1.0, 2.0), stats.logistic(1.0, 2.0)),
    "rayleigh": (lambda: R.rayleigh((N,), 2.0), stats.rayleigh(scale=2.0)),
    "weibull": (lambda: R.weibull(1.5, (N,)), stats.weibull_min(1.5)),
    "pareto": (lambda: R.pareto(3.0, (N,)), stats.lomax(3.0)),
    "power": (lambda: R.power(3.0, (N,)), stats.powerlaw(3.0)),
    "triangular": (lambda: R.triangular(-1.0, 0.0, 3.0, (N,)), stats.triang(0.25, -1.0, 4.0)),
    "standard_gamma": (lambda: R.standard_gamma(0.4, (N,)), stats.gamma(0.4)),
    "gamma": (lambda: R.gamma(2.5, 3.0, (N,)), stats.gamma(2.5, scale=3.0)),
    "chisquare": (lambda: R.chisquare(3.0, (N,)), stats.chi2(3.0)),
    "standard_t": (lambda: R.standard_t(4.0, (N,)), stats.t(4.0)),
    "f": (lambda: R.f(4.0, 7.0, (N,)), stats.f(4.0, 7.0)),
    "beta": (lambda: R.beta(0.5, 2.0, (N,)), stats.beta(0.5, 2.0)),
    "vonmises": (lambda: R.vonmises(0.5, 2.0, (N,)), stats.vonmises(2.0, 0.5)),
    "wald": (lambda: R.wald(1.0, 2.0, (N,)), stats.invgauss(0.5, scale=2.0)),
    "noncentral_chisquare": (lambda: R.noncentral_chisquare(3.0, 2.0, (N,)), stats.ncx2(3.0, 2.0)),
    "noncentral_f": (lambda: R.noncentral_f(3.0, 8.0, 2.0, (N,)), stats.ncf(3.0, 8.0, 2.0)),
}

COUNTED: dict[str, tuple[Callable[[], Any], Any]] = {
    "integers": (lambda: R.integers(2, 9, (N,)), stats.randint(2, 9)),
    "endpoint": (lambda: R.integers(2, 9, (N,), endpoint=True), stats.randint(2, 10)),
    "binomial": (lambda: R.binomial(10, 0.3, (N,)), stats.binom(10, 0.3)),
    "poisson": (lambda: R.poisson(4.0, (N,)), stats.poisson(4.0)),
    "geometric": (lambda: R.geometric(0.4, (N,)), stats.geom(0.4)),
    "negative_binomial": (lambda: R.negative_binomial(5, 0.5, (N,)), stats.nbinom(5, 0.5)),
    "hypergeometric": (lambda: R.hypergeometric(8, 6, 5, (N,)), stats.hypergeom(14, 8, 5)),
    "logseries": (lambda: R.logseries(0.6, (N,)), stats.logser(0.6)),
    "zipf": (lambda: R.zipf(4.0, (N,)), stats.zipf(4.0)),
    "bernoulli": (lambda: R.bernoulli(0.3, (N,)), stats.bernoulli(0.3)),
    "choice": (
        lambda: R.choice(4, (N,), p=[0.1, 0.2, 0.3, 0.4]),
        stats.rv_discrete(values=(range(4), [0.1, 0.2, 0.3, 0.4])),
    ),
    "categorical": (
        lambda: R.categorical(np.log([0.1, 0.2, 0.3, 0.4]), (N,)),
        stats.rv_discrete(values=(range(4), [0.1, 0.2, 0.3, 0.4])),
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_draws_have_their_distribution(name: str) -> None:
    build, law = CONTINUOUS[name]
    with rg.Graph(rng=12):
        x = build()
    assert x.dtype == (np.float32 if name == "float32" else np.float64)
    assert x.value.shape == (N,)
    # With the seed the result is always the same; of laws that are off by a hundredth none would pass.
    assert stats.kstest(x.value, law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", COUNTED)
def test_counts_have_their_probabilities(name: str) -> None:
    build, law = COUNTED[name]
    with rg.Graph(rng=12):
        x = build()
    value = x.value.astype(np.int64)
    for k in range(int(value.max()) + 1):
        expected = law.pmf(k)
        if N * expected < 10.0:
            continue
        assert (
            abs((value == k).mean() - expected)
            < 5.0 * np.sqrt(expected * (1 - expected) / N) + 1e-9
        )


def test_vectors() -> None:
    with rg.Graph(rng=12):
        part = R.dirichlet([0.5, 1.0, 2.5], (N,))
        counts = R.multinomial(10, [0.2, 0.3, 0.5], (N,))
        colours = R.multivariate_hypergeometric([3, 4, 5], 6, (N,))
        vector = R.multivariate_normal([1.0, -1.0], [[2.0, 0.6], [0.6, 1.0]], (N,))
        rows = R.permuted(np.arange(12.0).reshape(3, 4), axis=1)
        parts = R.choice(np.arange(8.0).reshape(4, 2), (3,), replace=False)
    np.testing.assert_allclose(part.value.sum(-1), 1.0)
    np.testing.assert_allclose(part.value.mean(0), [0.125, 0.25, 0.625], atol=0.01)
    assert (counts.value.sum(-1) == 10).all()
    np.testing.assert_allclose(counts.value.mean(0), [2.0, 3.0, 5.0], atol=0.05)
    assert (colours.value.sum(-1) == 6).all()
    np.testing.assert_allclose(np.cov(vector.value.T), [[2.0, 0.6], [0.6, 1.0]], atol=0.08)
    np.testing.assert_allclose(vector.value.mean(0), [1.0, -1.0], atol=0.05)
    np.testing.assert_array_equal(np.sort(rows.value, axis=1), np.arange(12.0).reshape(3, 4))
    assert len({tuple(one) for one in parts.value}) == 3


SMOOTH: dict[str, tuple[Callable[..., Any], list[Any], int]] = {
    "normal": (lambda loc, scale: R.normal((4,), loc, scale), [0.3, 1.2], 2),
    "lognormal": (lambda mean, sigma: R.lognormal((4,), mean, sigma), [0.3, 0.2], 2),
    "uniform": (lambda low, high: R.uniform((4,), low, high), [0.3, 1.2], 2),
    "exponential": (lambda scale: R.exponential((4,), scale), [1.2], 2),
    "laplace": (lambda loc, scale: R.laplace((4,), loc, scale), [0.3, 1.2], 2),
    "gumbel": (lambda loc, scale: R.gumbel((4,), loc, scale), [0.3, 1.2], 2),
    "logistic": (lambda loc, scale: R.logistic((4,), loc, scale), [0.3, 1.2], 2),
    "rayleigh": (lambda scale: R.rayleigh((4,), scale), [1.2], 2),
    "weibull": (lambda a: R.weibull(a, (4,)), [1.7], 2),
    "pareto": (lambda a: R.pareto(a, (4,)), [3.1], 2),
    "power": (lambda a: R.power(a, (4,)), [3.1], 2),
    "triangular": (lambda a, b, c: R.triangular(a, b, c, (4,)), [-1.0, 0.3, 2.0], 2),
    "multivariate_normal": (
        lambda mean, root: R.multivariate_normal(mean, root @ root.T, (3,)),
        [np.array([1.0, 2.0]), np.array([[2.0, 0.1], [0.5, 1.0]])],
        2,
    ),
    "choice": (lambda a: R.choice(a, (5,)), [np.array([1.0, 2.0, 3.0])], 2),
    "permutation": (R.permutation, [np.arange(6.0).reshape(3, 2)], 2),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_by_parameters(name: str) -> None:
    call, parameters, order = SMOOTH[name]
    rg.testing.check_grads(call, parameters, order=order)


@pytest.mark.parametrize("alpha", [1e-3, 0.05, 0.3, 1.0, 2.5, 30.0, 1e4])
def test_the_slope_of_gamma_draws_keeps_their_probability(alpha: float) -> None:
    """Beside minus the derivative of the distribution function by alpha, over the density, by mpmath."""
    x = stats.gamma(alpha).ppf([0.02, 0.3, 0.5, 0.9, 0.999])
    x = x[x > 1e-250]
    found = gamma_slope(x, np.full(x.shape, alpha))
    with mpmath.workdps(40):
        for one, slope in zip(x, found, strict=True):
            t, a = mpmath.mpf(float(one)), mpmath.mpf(alpha)
            by_alpha = mpmath.diff(lambda a, t=t: mpmath.gammainc(a, 0, t, regularized=True), a)
            density = t ** (a - 1) * mpmath.exp(-t) / mpmath.gamma(a)
            assert slope == pytest.approx(float(-by_alpha / density), rel=1e-11)


@pytest.mark.parametrize(
    ("build", "parameters", "mean_slopes"),
    [
        (lambda a, s: R.gamma(a, s, (N,)), [1.5, 2.0], [2.0, 1.5]),
        (lambda a, b: R.beta(a, b, (N,)), [2.0, 3.0], [3.0 / 25.0, -2.0 / 25.0]),
        (lambda df: R.chisquare(df, (N,)), [3.0], [1.0]),
    ],
    ids=["gamma", "beta", "chisquare"],
)
def test_the_mean_slope_of_draws_is_the_slope_of_the_mean(
    build: Callable[..., Any], parameters: list[float], mean_slopes: list[float]
) -> None:
    g = rg.Graph(rng=3)
    leaves = [g.param(one) for one in parameters]
    mean = build(*leaves).mean()
    for slope, wanted in zip(rg.grad(mean, leaves), mean_slopes, strict=True):
        assert slope.item() == pytest.approx(wanted, rel=0.05, abs=0.01)
    tangent = rg.jvp(mean, leaves, [1.0] * len(leaves))
    assert tangent.item() == pytest.approx(sum(rg.grad(mean, one).item() for one in leaves))


def test_dirichlet_passes_gradients() -> None:
    g = rg.Graph(rng=3)
    alpha = g.param([1.0, 2.0, 3.0])
    x = R.dirichlet(alpha, (N,))
    slope = rg.grad(x.mean(axis=0)[0], alpha).value  # of alpha_0 / sum
    np.testing.assert_allclose(slope, [5.0 / 36.0, -1.0 / 36.0, -1.0 / 36.0], atol=0.01)


def test_no_gradient_is_lost_in_silence() -> None:
    g = rg.Graph()
    kappa = g.param(1.0)
    with pytest.raises(rg.GradientError):
        rg.grad(R.vonmises(0.0, kappa, (3,)).sum(), kappa)
    alpha = g.param(1.0)
    with pytest.raises(rg.GradientError):
        rg.grad(rg.grad(R.gamma(alpha, 1.0, (3,)).sum(), alpha), alpha).value
