"""Distributions without gradients: integers, and those that are drawn by rejection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ParameterError
from reactgrad.backend import read_dtype
from reactgrad.build._key import new_key
from reactgrad.nodes._handle import Handle, apply, graph_of
from reactgrad.ops import less
from reactgrad.random._draw import METHOD, Draw, Shape, shape_of
from reactgrad.scheduler import safe_repr


def _drawn(
    method: str,
    parameters: Sequence[Any],
    shape: Shape,
    dtype: Any,
    core: int = 0,
    options: tuple[tuple[str, Any], ...] = (),
) -> Any:
    """Return the draws of a method of a generator of NumPy."""
    key = new_key(graph_of(parameters))
    operands = [one if isinstance(one, Handle) else np.asarray(one) for one in parameters]
    return apply(METHOD, (key, *operands), (method, shape, np.dtype(dtype), core, options, 0))


def integers(
    low: Any,
    high: Any = None,
    shape: Any = None,
    dtype: Any = np.int64,
    endpoint: bool = False,
    *,
    size: Any = None,
) -> Any:
    """Return integers from `low`, up to but without `high`.

    Parameters
    ----------
    low, high : Var or array_like of int
        With one of them only, the numbers are from 0 to it.
    shape : int or tuple of int, optional
        By default that to which the bounds broadcast. `size` is NumPy's name for it.
    dtype : dtype
        Of integers or booleans.
    endpoint : bool
        Whether `high` may be drawn.

    Raises
    ------
    ParameterError
        A ``ValueError``: if there is no integer between the bounds. Those of nodes show when the draw is computed.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph(rng=0):
    ...     x = rg.random.integers(6, shape=(1000,))
    >>> sorted(set(x.tolist()))
    [0, 1, 2, 3, 4, 5]
    """
    found = read_dtype("rg.random.integers", dtype)
    if found.kind not in "iub":
        raise DTypeError(
            f"rg.random.integers(dtype={found}): it draws integers; convert with .astype."
        )
    if high is None:
        low, high = 0, low
    _check_bounds(low, high, endpoint)
    options = (("dtype", found), ("endpoint", bool(endpoint)))
    return _drawn("integers", (low, high), shape_of("integers", shape, size), found, 0, options)


def _check_bounds(low: Any, high: Any, endpoint: bool) -> None:
    """Raise if there is no integer between bounds that are known; those of nodes are checked by the draw."""
    if isinstance(low, int) and isinstance(high, int) and (high < low if endpoint else high <= low):
        raise ParameterError(
            f"rg.random.integers({safe_repr(low)}, {safe_repr(high)}): there is no integer from {safe_repr(low)} "
            + ("up to " if endpoint else "to below ")
            + safe_repr(high)
            + ". The lower bound comes first; a single number is the upper one, and the shape is written shape=."
        )


def bernoulli(p: Any = 0.5, shape: Any = None, *, size: Any = None) -> Any:
    """Return booleans that are true with probability `p`.

    Only comparisons change when `p` does: a larger `p` makes some of them true, and none false.

    Parameters
    ----------
    p : Var or array_like
        Probabilities.
    shape : int or tuple of int, optional
        By default that of `p`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph(rng=0):
    ...     x = rg.random.bernoulli(0.25, (10_000,))
    >>> round(float(x.value.mean()), 1)
    0.2
    """
    draw = Draw("bernoulli", shape, size, None, p)
    draw.dtype = np.promote_types(draw.dtype, np.float32)  # half floats are too far apart
    return draw.of(less(draw.standard("random"), draw.parameters[0]))


def binomial(n: Any, p: Any, shape: Any = None, *, size: Any = None) -> Any:
    """Return numbers of successes in `n` trials, each with probability `p`."""
    return _drawn("binomial", (n, p), shape_of("binomial", shape, size), np.int64)


def poisson(lam: Any = 1.0, shape: Any = None, *, size: Any = None) -> Any:
    """Return numbers of events whose mean is `lam`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph(rng=0):
    ...     x = rg.random.poisson(4.0, (10_000,))
    >>> round(float(x.value.mean()), 1)
    4.0
    """
    return _drawn("poisson", (lam,), shape_of("poisson", shape, size), np.int64)


def geometric(p: Any, shape: Any = None, *, size: Any = None) -> Any:
    """Return numbers of trials up to the first success."""
    return _drawn("geometric", (p,), shape_of("geometric", shape, size), np.int64)


def negative_binomial(n: Any, p: Any, shape: Any = None, *, size: Any = None) -> Any:
    """Return numbers of failures before `n` successes."""
    return _drawn("negative_binomial", (n, p), shape_of("negative_binomial", shape, size), np.int64)


def hypergeometric(
    ngood: Any, nbad: Any, nsample: Any, shape: Any = None, *, size: Any = None
) -> Any:
    """Return numbers of good ones among `nsample` taken without replacement."""
    found = shape_of("hypergeometric", shape, size)
    return _drawn("hypergeometric", (ngood, nbad, nsample), found, np.int64)


def logseries(p: Any, shape: Any = None, *, size: Any = None) -> Any:
    """Return draws of the logarithmic series distribution."""
    return _drawn("logseries", (p,), shape_of("logseries", shape, size), np.int64)


def zipf(a: Any, shape: Any = None, *, size: Any = None) -> Any:
    """Return draws of the Zipf distribution."""
    return _drawn("zipf", (a,), shape_of("zipf", shape, size), np.int64)


def multinomial(n: Any, pvals: Any, shape: Any = None, *, size: Any = None) -> Any:
    """Return how often each category came up in `n` trials.

    Parameters
    ----------
    n : Var or array_like of int
    pvals : Var or array_like
        Probabilities of the categories along the last axis.
    shape : int or tuple of int, optional
        Without the axis of categories.
    """
    return _drawn("multinomial", (n, pvals), shape_of("multinomial", shape, size), np.int64, -1)


def multivariate_hypergeometric(
    colors: Any, nsample: int, shape: Any = None, *, size: Any = None
) -> Any:
    """Return how many of each colour are among `nsample` taken without replacement.

    `nsample` is one integer, as in NumPy, and no node.
    """
    found, name = (
        shape_of("multivariate_hypergeometric", shape, size),
        "multivariate_hypergeometric",
    )
    return _drawn(name, (colors,), found, np.int64, 1, (("nsample", int(nsample)),))


def vonmises(mu: Any, kappa: Any, shape: Any = None, *, size: Any = None) -> Any:
    """Return angles in [-pi, pi] around `mu`; without gradient, since they are drawn by rejection."""
    return _drawn("vonmises", (mu, kappa), shape_of("vonmises", shape, size), np.float64)


def wald(mean: Any, scale: Any, shape: Any = None, *, size: Any = None) -> Any:
    """Return draws of the inverse Gaussian distribution; without gradient: they choose between two roots."""
    return _drawn("wald", (mean, scale), shape_of("wald", shape, size), np.float64)


def noncentral_chisquare(df: Any, nonc: Any, shape: Any = None, *, size: Any = None) -> Any:
    """Return draws of the noncentral chi-square distribution; without gradient: a count is among its parts."""
    found = shape_of("noncentral_chisquare", shape, size)
    return _drawn("noncentral_chisquare", (df, nonc), found, np.float64)


def noncentral_f(dfnum: Any, dfden: Any, nonc: Any, shape: Any = None, *, size: Any = None) -> Any:
    """Return draws of the noncentral F distribution; without gradient, see ``noncentral_chisquare``."""
    found = shape_of("noncentral_f", shape, size)
    return _drawn("noncentral_f", (dfnum, dfden, nonc), found, np.float64)
