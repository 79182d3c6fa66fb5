"""Continuous distributions: functions of standard draws, with gradients by their parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad import ops
from reactgrad._errors import ParameterError, ShapeError
from reactgrad.nodes._handle import graph_of
from reactgrad.random._draw import Draw, shape_first, shape_of
from reactgrad.scheduler import safe_repr


def _check(name: str, above: float, strict: bool, **parameters: Any) -> None:
    """Refuse a plain number that no distribution has; arrays are taken as they are.

    Raises
    ------
    DTypeError
        If one lies below its bound, or on it where that is excluded.
    """
    for parameter, value in parameters.items():
        if isinstance(value, int | float) and not (value > above if strict else value >= above):
            raise ParameterError(
                f"rg.random.{name}({parameter}={safe_repr(value):.40}): it must be "
                f"{'greater than' if strict else 'at least'} {above:g}."
            )


@shape_first
def standard_normal(shape: Any = None, *, dtype: Any = None, size: Any = None) -> Any:
    """Return draws of the normal distribution with mean 0 and deviation 1.

    Parameters
    ----------
    shape : int or tuple of int, optional
        One number by default. `size` is NumPy's name for it.
    dtype : dtype, optional
        float64 by default.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph(rng=0):
    ...     z = rg.random.standard_normal((2, 3), dtype="float32")
    >>> z.shape, z.dtype
    ((2, 3), dtype('float32'))
    """
    draw = Draw("standard_normal", shape, size, dtype)
    return draw.standard("standard_normal")


@shape_first
def random(shape: Any = None, *, dtype: Any = None, size: Any = None) -> Any:
    """Return draws of the uniform distribution on [0, 1); see ``standard_normal`` for the arguments.

    They are multiples of 2**-53, in float32 of 2**-24, in float16 of 2**-11.
    """
    return Draw("random", shape, size, dtype).standard("random")


@shape_first
def standard_exponential(shape: Any = None, *, dtype: Any = None, size: Any = None) -> Any:
    """Return draws of the exponential distribution of scale 1; see ``standard_normal`` for the arguments.

    Those of float32 and float16 are at least 2**-24, so that they have logarithms.
    """
    return Draw("standard_exponential", shape, size, dtype).standard("standard_exponential")


@shape_first
def standard_cauchy(shape: Any = None, *, dtype: Any = None, size: Any = None) -> Any:
    """Return draws of the Cauchy distribution: quotients of two normal draws."""
    draw = Draw("standard_cauchy", shape, size, dtype)
    return draw.of(draw.standard("standard_normal") / draw.standard("standard_normal", 1))


@shape_first
def normal(
    shape: Any = None, loc: Any = 0.0, scale: Any = 1.0, *, dtype: Any = None, size: Any = None
) -> Any:
    """Return draws of the normal distribution, with gradients by its mean and deviation.

    Parameters
    ----------
    shape : int or tuple of int, optional
        By default that to which the parameters broadcast. `size` is NumPy's name for it.
    loc, scale : Var or array_like
        Mean and standard deviation.
    dtype : dtype, optional
        By default that of the parameters if these are arrays of floats, else float64.

    Raises
    ------
    DTypeError
        If the shape holds no integers, or `scale` is a negative number.
    ShapeError
        If the parameters do not broadcast to the shape.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph(rng=0)
    >>> mean = g.param(0.0)
    >>> x = rg.random.normal((1000,), loc=mean, scale=2.0)
    >>> before = x.value
    >>> mean.set(10.0)
    >>> (x.value - before).round(9).min(), rg.grad(x.mean(), mean).value.round(9)
    (np.float64(10.0), np.float64(1.0))
    """
    _check("normal", 0.0, False, scale=scale)
    draw = Draw("normal", shape, size, dtype, loc, scale)
    loc, scale = draw.parameters
    return draw.of(loc + scale * draw.standard("standard_normal"))


@shape_first
def lognormal(
    shape: Any = None, mean: Any = 0.0, sigma: Any = 1.0, *, dtype: Any = None, size: Any = None
) -> Any:
    """Return exponentials of normal draws, with gradients; see ``normal`` for the arguments."""
    _check("lognormal", 0.0, False, sigma=sigma)
    draw = Draw("lognormal", shape, size, dtype, mean, sigma)
    mean, sigma = draw.parameters
    return draw.of(ops.exp(mean + sigma * draw.standard("standard_normal")))


@shape_first
def uniform(
    shape: Any = None, low: Any = 0.0, high: Any = 1.0, *, dtype: Any = None, size: Any = None
) -> Any:
    """Return draws of the uniform distribution on [low, high), with gradients by both.

    See ``normal`` for the other arguments.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph(rng=0):
    ...     u = rg.random.uniform((1000,), -1.0, 1.0)
    >>> bool((abs(u.value) <= 1.0).all())
    True
    """
    draw = Draw("uniform", shape, size, dtype, low, high)
    low, high = draw.parameters
    return draw.of(low + (high - low) * draw.standard("random"))


@shape_first
def exponential(shape: Any = None, scale: Any = 1.0, *, dtype: Any = None, size: Any = None) -> Any:
    """Return draws of the exponential distribution, with gradient by `scale`; see ``normal``."""
    _check("exponential", 0.0, False, scale=scale)
    draw = Draw("exponential", shape, size, dtype, scale)
    return draw.of(draw.parameters[0] * draw.standard("standard_exponential"))


@shape_first
def laplace(
    shape: Any = None, loc: Any = 0.0, scale: Any = 1.0, *, dtype: Any = None, size: Any = None
) -> Any:
    """Return draws of the double exponential distribution, with gradients; see ``normal``."""
    _check("laplace", 0.0, False, scale=scale)
    draw = Draw("laplace", shape, size, dtype, loc, scale)
    loc, scale = draw.parameters
    apart = draw.standard("standard_exponential") - draw.standard("standard_exponential", 1)
    return draw.of(loc + scale * apart)


@shape_first
def gumbel(
    shape: Any = None, loc: Any = 0.0, scale: Any = 1.0, *, dtype: Any = None, size: Any = None
) -> Any:
    """Return draws of the Gumbel distribution (of maxima), with gradients; see ``normal``."""
    _check("gumbel", 0.0, False, scale=scale)
    draw = Draw("gumbel", shape, size, dtype, loc, scale)
    loc, scale = draw.parameters
    return draw.of(loc - scale * ops.log(draw.standard("standard_exponential")))


@shape_first
def logistic(
    shape: Any = None, loc: Any = 0.0, scale: Any = 1.0, *, dtype: Any = None, size: Any = None
) -> Any:
    """Return draws of the logistic distribution, with gradients; see ``normal``."""
    _check("logistic", 0.0, False, scale=scale)
    draw = Draw("logistic", shape, size, dtype, loc, scale)
    loc, scale = draw.parameters
    # The difference of two Gumbel draws is a logistic one.
    first, second = (ops.log(draw.standard("standard_exponential", lane)) for lane in (0, 1))
    return draw.of(loc + scale * (first - second))


@shape_first
def rayleigh(shape: Any = None, scale: Any = 1.0, *, dtype: Any = None, size: Any = None) -> Any:
    """Return draws of the Rayleigh distribution, with gradient by `scale`; see ``normal``."""
    _check("rayleigh", 0.0, False, scale=scale)
    draw = Draw("rayleigh", shape, size, dtype, scale)
    return draw.of(draw.parameters[0] * ops.sqrt(2.0 * draw.standard("standard_exponential")))


def weibull(a: Any, shape: Any = None, *, dtype: Any = None, size: Any = None) -> Any:
    """Return draws of the Weibull distribution of scale 1, with gradient by its form `a`."""
    _check("weibull", 0.0, True, a=a)
    draw = Draw("weibull", shape, size, dtype, a)
    return draw.of(draw.standard("standard_exponential") ** (1.0 / draw.parameters[0]))


def pareto(a: Any, shape: Any = None, *, dtype: Any = None, size: Any = None) -> Any:
    """Return draws of the Pareto II (Lomax) distribution, with gradient by its form `a`."""
    _check("pareto", 0.0, True, a=a)
    draw = Draw("pareto", shape, size, dtype, a)
    return draw.of(ops.expm1(draw.standard("standard_exponential") / draw.parameters[0]))


def power(a: Any, shape: Any = None, *, dtype: Any = None, size: Any = None) -> Any:
    """Return draws on [0, 1] with density ``a * x**(a - 1)``, with gradient by `a`."""
    _check("power", 0.0, True, a=a)
    draw = Draw("power", shape, size, dtype, a)
    return draw.of(ops.exp(-draw.standard("standard_exponential") / draw.parameters[0]))


def triangular(
    left: Any, mode: Any, right: Any, shape: Any = None, *, dtype: Any = None, size: Any = None
) -> Any:
    """Return draws of the triangular distribution, with gradients by its corners."""
    draw = Draw("triangular", shape, size, dtype, left, mode, right)
    left, mode, right = draw.parameters
    u, width = draw.standard("random"), right - left
    below = left + ops.sqrt(u * width * (mode - left))
    above = right - ops.sqrt((1.0 - u) * width * (right - mode))
    return draw.of(ops.where(u * width < mode - left, below, above))


def standard_gamma(alpha: Any, shape: Any = None, *, dtype: Any = None, size: Any = None) -> Any:
    """Return draws of the gamma distribution of scale 1; see ``gamma``."""
    return gamma(alpha, 1.0, shape, dtype=dtype, size=size)


def gamma(
    alpha: Any, scale: Any = 1.0, shape: Any = None, *, dtype: Any = None, size: Any = None
) -> Any:
    """Return draws of the gamma distribution, with gradients by both parameters.

    Parameters
    ----------
    alpha : Var or array_like
        The form, greater than 0; ``shape`` in NumPy. The gradient is that of the draw at constant probability,
        right to 1e-12 (implicit reparametrisation); it has no second derivative. For a small `alpha` many draws
        are smaller than any float: they are 0, and so is their gradient. ``beta``, ``dirichlet`` and ``f`` compute
        with logarithms of draws, so that theirs are right there too.
    scale : Var or array_like
        What the draws are multiplied by.
    shape, dtype, size
        See ``normal``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph(rng=0)
    >>> alpha = g.param(3.0)
    >>> x = rg.random.gamma(alpha, shape=(100_000,))
    >>> round(rg.grad(x.mean(), alpha).item(), 2)  # the mean is alpha
    1.0
    """
    _check("gamma", 0.0, True, alpha=alpha)
    _check("gamma", 0.0, False, scale=scale)
    draw = Draw("gamma", shape, size, dtype, alpha, scale)
    alpha, scale = draw.parameters
    return draw.of(scale * draw.gammas(alpha))


def chisquare(df: Any, shape: Any = None, *, dtype: Any = None, size: Any = None) -> Any:
    """Return sums of `df` squares of normal draws, with gradient by `df`, which may be any number above 0."""
    _check("chisquare", 0.0, True, df=df)
    draw = Draw("chisquare", shape, size, dtype, df)
    return draw.of(2.0 * draw.gammas(0.5 * draw.parameters[0]))


def standard_t(df: Any, shape: Any = None, *, dtype: Any = None, size: Any = None) -> Any:
    """Return draws of Student's distribution with `df` degrees of freedom, with gradient by `df`."""
    _check("standard_t", 0.0, True, df=df)
    draw = Draw("standard_t", shape, size, dtype, df)
    half = 0.5 * draw.parameters[0]
    return draw.of(draw.standard("standard_normal", 1) * ops.sqrt(half / draw.gammas(half)))


def f(dfnum: Any, dfden: Any, shape: Any = None, *, dtype: Any = None, size: Any = None) -> Any:
    """Return quotients of two mean squares (Fisher's distribution), with gradients by both parameters."""
    _check("f", 0.0, True, dfnum=dfnum, dfden=dfden)
    draw = Draw("f", shape, size, dtype, dfnum, dfden)
    first, second = (0.5 * one for one in draw.parameters)
    apart = draw.log_gammas(first) - draw.log_gammas(second, 1)
    return draw.of(draw.rounded(ops.exp(apart) * (second / first)))


def beta(a: Any, b: Any, shape: Any = None, *, dtype: Any = None, size: Any = None) -> Any:
    """Return draws of the beta distribution, with gradients by both parameters; see ``gamma``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph(rng=0):
    ...     x = rg.random.beta(2.0, 2.0, shape=(10_000,))
    >>> round(float(x.value.mean()), 1)
    0.5
    """
    _check("beta", 0.0, True, a=a, b=b)
    draw = Draw("beta", shape, size, dtype, a, b)
    a, b = draw.parameters
    # Of logarithms, since draws for small parameters are smaller than any float.
    apart = draw.log_gammas(a) - draw.log_gammas(b, 1)
    return draw.of(draw.rounded(ops.sigmoid(apart)))


def dirichlet(alpha: Any, shape: Any = None, *, dtype: Any = None, size: Any = None) -> Any:
    """Return draws of the Dirichlet distribution: along the last axis they add up to 1.

    Parameters
    ----------
    alpha : Var or array_like
        The parameters of the categories along the last axis; gradients pass to them, see ``gamma``.
    shape : int or tuple of int, optional
        Without the axis of categories; by default that of `alpha` without its last axis, which must broadcast to it.

    Raises
    ------
    ShapeError
        If `alpha` has no axis, or its others do not broadcast to the shape.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph(rng=0):
    ...     x = rg.random.dirichlet([1.0, 2.0, 3.0], shape=(4,))
    >>> x.shape, x.value.sum(axis=-1).round(9)
    ((4, 3), array([1., 1., 1., 1.]))
    """
    draw = Draw("dirichlet", None, None, dtype, alpha)
    outer = shape_of("dirichlet", shape, size)
    (alpha,) = draw.parameters
    if not np.ndim(alpha):
        raise ShapeError("rg.random.dirichlet(alpha): the last axis of alpha holds the categories.")
    draw.among(outer, alpha)
    return draw.of(draw.rounded(ops.softmax(draw.log_gammas(alpha), -1)))


def multivariate_normal(
    mean: Any, cov: Any, shape: Any = None, *, dtype: Any = None, size: Any = None
) -> Any:
    """Return draws of a normal distribution of vectors, with gradients by mean and covariance.

    Parameters
    ----------
    mean : Var or array_like, shape (..., n)
    cov : Var or array_like, shape (..., n, n)
        Symmetric and positive definite: its Cholesky factor multiplies the draws.
    shape : int or tuple of int, optional
        Without the axis of the vectors. By default that to which ``mean.shape[:-1]`` and ``cov.shape[:-2]`` broadcast;
        these must broadcast to it.

    Raises
    ------
    ShapeError
        If the mean is no vector or the covariance no matrix of its length, or they do not broadcast to the shape.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph(rng=0):
    ...     x = rg.random.multivariate_normal([0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]], shape=(3,))
    >>> x.shape
    (3, 2)
    """
    draw = Draw("multivariate_normal", None, None, dtype, mean, graph=graph_of((mean, cov)))
    outer = shape_of("multivariate_normal", shape, size)
    (mean,) = draw.parameters
    cov = draw.read(draw.key._graph, cov)
    if np.ndim(mean) < 1 or np.ndim(cov) < 2 or not _same(mean.shape[-1], *cov.shape[-2:]):
        raise ShapeError(
            f"rg.random.multivariate_normal(mean, cov) of shapes {np.shape(mean)} and {np.shape(cov)}: mean is "
            "(..., n) and cov (..., n, n)."
        )
    from reactgrad import linalg

    factor = linalg.cholesky(cov)
    draw.among(outer, mean + ops.sum(factor, -1))  # in the shape of both
    z = draw.standard("standard_normal")
    return draw.of(mean + ops.sum(factor * ops.expand_dims(z, -2), -1))


def _same(*lengths: int | None) -> bool:
    return len({n for n in lengths if n is not None}) <= 1
