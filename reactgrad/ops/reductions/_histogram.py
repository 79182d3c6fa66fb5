"""Histograms, and counts of integers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from reactgrad._calls import whole
from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.backend import Spec, add_kernels, register_anywhere, spec
from reactgrad.backend.numpy import _histograms
from reactgrad.backend.numpy._through_host import through_host
from reactgrad.nodes._handle import Handle, apply, holds_handles, stacked
from reactgrad.nodes._op import Attrs, Op, RuleOfAll
from reactgrad.ops._deferred import deferred_each, needs_axes
from reactgrad.ops._index import getitem
from reactgrad.ops._join import stack
from reactgrad.ops._layout import expand_dims, reshape
from reactgrad.ops._operand import node
from reactgrad.ops._reduce import sum
from reactgrad.ops._shapes import common_device
from reactgrad.ops.reductions._difference import diff
from reactgrad.ops.reductions._truth import own_dtypes
from reactgrad.scheduler import safe_repr

add_kernels(_histograms.register)
for _name in _histograms.NAMES:
    register_anywhere(_name, through_host(_name))

Bins = int | str | None


# --- ops -----------------------------------------------------------------------------------------------


def _infer_edges(specs: tuple[Spec, ...], attrs: Attrs) -> Spec | None:
    (one, *_), (bins, span, column) = specs, attrs
    if one.dtype.kind == "c":
        raise DTypeError(f"histogram of {one!r}: complex numbers have no order.")
    if isinstance(bins, str):
        return None  # how many there are shows in the values
    dtype = _histograms.edge_dtype(one.dtype, span, column is not None)
    return spec((bins + 1,), dtype, one.device)


EDGES = Op("histogram_edges", _infer_edges, loop_dtypes=own_dtypes)


def _infer_counts(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (bins, _, count), sample = attrs, specs[0]
    edges, weights = specs[1 : count + 1], specs[count + 1 :]
    if any(not one.shape for one in edges):
        raise _number_of_bins("histogram", "x")
    lengths = tuple(None if one.shape[0] is None else one.shape[0] - 1 for one in edges)
    if weights and None not in (*weights[0].shape, *sample.shape):
        wanted = sample.shape[:1] if bins == "columns" else sample.shape
        if weights[0].shape != wanted:
            raise ShapeError(
                f"histogram: weights of shape {weights[0].shape} for a sample of shape {wanted}; each "
                "element has one."
            )
    if bins == "columns":
        dtype = np.dtype(np.float64)
    else:
        dtype = weights[0].dtype if weights else np.dtype(np.intp)
    return spec(lengths, dtype, common_device("histogram", specs))


# In its weights a histogram is linear; the elements only say into which bin each weight goes.
def _counts_rule(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    count = attrs[2]
    return lambda i, g: (
        apply(OF_BIN, (g, *operands[: count + 1]), attrs[:1]) if i == count + 1 else None
    )


def _counts_jvp(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    count = attrs[2]
    return lambda i, t: (
        apply(COUNTS, (*operands[: count + 1], t), attrs) if i == count + 1 else None
    )


COUNTS = Op(
    "histogram",
    _infer_counts,
    variadic=_counts_rule,
    variadic_jvp=_counts_jvp,
    loop_dtypes=own_dtypes,
)


def _infer_of_bin(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    shape = specs[1].shape[:1] if attrs[0] == "columns" else specs[1].shape
    return spec(shape, specs[0].dtype, specs[0].device)


def _of_bin_rule(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    whole = (attrs[0], None, len(operands) - 2)
    return lambda i, g: None if i else apply(COUNTS, (*operands[1:], g), whole)


def _of_bin_jvp(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    return lambda i, t: None if i else apply(OF_BIN, (t, *operands[1:]), attrs)


OF_BIN = Op(
    "of_bin", _infer_of_bin, variadic=_of_bin_rule, variadic_jvp=_of_bin_jvp, loop_dtypes=own_dtypes
)


# --- functions -----------------------------------------------------------------------------------------


def _span(name: str, given: Any) -> tuple[float, float] | None:
    if given is None:
        return None
    ends: list[Any] = list(given) if isinstance(given, Iterable) else [given]
    if len(ends) != 2 or any(isinstance(one, Handle) for one in ends):
        raise ParameterError(
            f"{name}: range={safe_repr(given):.60}; it is two numbers, fixed when the node is built. For edges that "
            "follow nodes give them as bins."
        )
    low, high = (one.item() if hasattr(one, "item") else one for one in ends)
    if not low <= high:
        raise ParameterError(
            f"{name}: range={safe_repr(given):.60}; the first number is the lower one."
        )
    return low, high


def _number_of_bins(name: str, x: str) -> ParameterError:
    return ParameterError(
        f"{name}: bins={x}, a node with one number. How many bins there are is the length of the "
        f"result, and does not follow a node. Write {x}.value for its present value, or edges in a row."
    )


def _fixed_bins(name: str, bins: Any) -> Bins:
    """Return the number of even bins, or the name of a rule; ``None`` for edges."""
    if isinstance(bins, str):
        _check_rule(name, bins)
        return bins
    found = bins._graph._host.specs[bins._slot] if isinstance(bins, Handle) else None
    if found is not None and not found.shape:
        raise _number_of_bins(name, bins.label)
    if isinstance(bins, Handle) or holds_handles([bins]) or np.ndim(bins):
        return None
    if not hasattr(bins, "__index__"):
        raise ParameterError(
            f"{name}: bins={safe_repr(bins):.60}; a number, a rule, or edges in a row."
        )
    number = int(bins.__index__())
    if number < 1:
        raise ParameterError(f"{name}: bins={number}; there is at least one.")
    return number


def _check_rule(name: str, rule: str) -> None:
    try:
        np.histogram_bin_edges(_NO_NUMBERS, rule)
    except ValueError:
        raise ParameterError(
            f"{name}: bins={rule!r:.60}; NumPy has no such rule. Write 'auto', a number, or edges in a row."
        ) from None


_NO_NUMBERS = np.zeros(0)


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Return the edges of the bins that ``histogram`` uses. Has no gradient.

    Parameters
    ----------
    a : Var or array_like
        Any shape.
    bins : int, str, Var or array_like
        The number of even bins, the name of a rule of NumPy's (as ``"auto"``), or the edges themselves.
    range : tuple of float, optional
        The lowest and the highest edge of even bins; by default the smallest and largest element.
    weights : Var or array_like, optional
        As in NumPy, without effect on even bins.

    Returns
    -------
    Var
        One more than there are bins. With a rule the length shows only in the values.

    Raises
    ------
    DTypeError
        If `bins` or `range` is none.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     edges = rg.histogram_bin_edges([0.0, 1.0, 4.0], 2)
    >>> edges.value
    array([0., 2., 4.])
    """
    a = node(a, bins, weights)
    fixed = _fixed_bins("histogram_bin_edges", bins)
    if fixed is None:
        return node(bins, a)
    attrs = (fixed, _span("histogram_bin_edges", range), None)
    if weights is not None and isinstance(fixed, str):
        return apply(EDGES, (a, node(weights, a)), attrs)
    return apply(EDGES, (a,), attrs)


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Any, Any]:
    """Return how many elements lie in each bin, and the edges of the bins.

    Parameters
    ----------
    a : Var or array_like
        Any shape.
    bins : int, str, Var or array_like
        The number of even bins, the name of a rule of NumPy's (as ``"auto"``), or the edges.
    range : tuple of float, optional
        The lowest and the highest edge of even bins; by default the smallest and largest element.
    density : bool, optional
        Whether to return the density: its integral over the bins is 1.
    weights : Var or array_like, optional
        In the shape of `a`: what each element counts. Gradients pass to the weights only.

    Returns
    -------
    tuple of Var
        The counts, and the edges, one more than there are bins.

    Raises
    ------
    ShapeError
        If the weights do not fit.
    DTypeError
        If `bins` or `range` is none.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     counts, edges = rg.histogram([0.0, 1.0, 4.0], 2)
    >>> counts.value, edges.value
    (array([2, 1]), array([0., 2., 4.]))
    """
    a = node(a, bins, weights)
    fixed = _fixed_bins("histogram", bins)
    edges = histogram_bin_edges(a, bins, range, weights)
    operands = [a, edges] if weights is None else [a, edges, node(weights, a)]
    even = fixed if isinstance(fixed, int) else None
    counts = apply(COUNTS, operands, (even, _span("histogram", range) if even else None, 1))
    if density:
        counts = counts / diff(edges) / sum(counts)
    return counts, edges


def _counts_and_edges(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> Any:
    """Return the nest of results of ``histogramdd``."""
    rows = next((one for one in (sample, bins, range) if isinstance(one, list | tuple)), None)
    if rows is None:
        raise needs_axes(
            "histogramdd", "Give bins for each axis, rg.histogramdd(points, bins=(10, 10))."
        )
    return None, (None,) * len(rows)


@deferred_each(_counts_and_edges)
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Any, tuple[Any, ...]]:
    """Return how many points lie in each cell of a grid, and the edges along each axis.

    Parameters
    ----------
    sample : Var or array_like
        Points as rows, shape (points, axes); or a sequence of rows of coordinates, one for each axis.
    bins : int, or sequence of int, Var or array_like
        The number of even bins along all axes, or for each axis a number or the edges.
    range : sequence of tuple, optional
        For each axis the lowest and highest edge, or ``None``.
    density : bool, optional
        Whether to return the density: its integral over the grid is 1.
    weights : Var or array_like, optional
        What each point counts. Gradients pass to the weights only.

    Returns
    -------
    tuple
        The counts, as floats, and a tuple of the edges along each axis.

    Raises
    ------
    ShapeError
        If the sample is no table, or `bins` or `range` does not have one for each axis.
    DTypeError
        If `bins` or `range` is none.

    Examples
    --------
    >>> import reactgrad as rg
    >>> points = rg.Graph().input([[0.0, 0.0], [1.0, 3.0], [1.0, 2.0]])
    >>> counts, (xs, ys) = rg.histogramdd(points, 2)
    >>> counts.value
    array([[1., 0.],
           [0., 2.]])
    """
    others = (bins, weights)
    if isinstance(sample, list | tuple):
        # As in NumPy: a sequence holds the coordinates along each axis, and an array holds points.
        columns = [node(one, sample, *others) for one in sample]
        if not any(isinstance(stacked(one), Handle) for one in sample):
            found = np.atleast_2d(sample).T if np.ndim(sample) < 2 else np.asarray(sample).T
            sample = node(found, *others)
        else:
            sample = stack(columns, 1)
    sample = node(sample, *others)
    if sample.ndim == 1:
        sample = reshape(sample, (-1, 1))
    if sample.ndim != 2 or sample.shape[1] is None:
        raise ShapeError(
            f"histogramdd of a value of shape {sample.shape}: it is a table of points, (points, axes)."
        )
    width = sample.shape[1]
    several = isinstance(bins, list | tuple | np.ndarray)
    each = _for_each("bins", bins, width) if several else [bins] * width
    spans = [None] * width if range is None else _for_each("range", range, width)
    edges = []
    for i, (one, span) in enumerate(zip(each, spans, strict=True)):
        fixed = _fixed_bins("histogramdd", one)
        if isinstance(fixed, str):
            raise ParameterError(
                "histogramdd: bins are numbers or edges; the rules are for one axis only."
            )
        if fixed is None:
            edges.append(node(one, sample))
        else:
            edges.append(apply(EDGES, (sample,), (fixed, _span("histogramdd", span), i)))
    operands = [sample, *edges] if weights is None else [sample, *edges, node(weights, sample)]
    counts = apply(COUNTS, operands, ("columns", None, width))
    if density:
        total = sum(counts)
        for i, one in enumerate(edges):
            behind = tuple(j for j in np.arange(width).tolist() if j != i)
            counts = counts / (expand_dims(diff(one), behind) if behind else diff(one))
        counts = counts / total
    return counts, tuple(edges)


def _for_each(word: str, given: Any, width: int) -> list[Any]:
    found = list(given) if isinstance(given, Iterable) else [given]
    if len(found) != width:
        raise ShapeError(f"histogramdd: {len(found)} {word} for {width} axes; give one for each.")
    return found


def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: Any = None,
) -> tuple[Any, Any, Any]:
    """Return how many points lie in each cell of a plane, and the edges along both axes.

    Parameters
    ----------
    x, y : Var or array_like
        The coordinates, in rows of one length.
    bins : int, Var or array_like, or two of them
        The number of even bins, or the edges; one for both axes, or for each one.
    range, density, weights
        As of ``rg.histogramdd``.

    Returns
    -------
    tuple of Var
        The counts, shape (bins along x, bins along y), and the edges along both axes.

    Raises
    ------
    ShapeError
        If the lengths differ.
    DTypeError
        If `bins` or `range` is none.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     counts, xs, ys = rg.histogram2d([0.0, 1.0, 1.0], [0.0, 3.0, 2.0], 2)
    >>> counts.value
    array([[1., 0.],
           [0., 2.]])
    """
    points = stack([node(x, y, bins, weights), node(y, x, bins, weights)], 1)
    if isinstance(bins, Handle) and node(bins).ndim == 1:
        bins = [bins, bins]
    elif isinstance(bins, list | tuple | np.ndarray) and len(bins) not in (1, 2):
        bins = [bins, bins]  # edges along both axes
    counts, (xs, ys) = histogramdd(points, bins, range, density, weights)
    return counts, xs, ys


# --- counts of integers --------------------------------------------------------------------------------


def _infer_bincount(specs: tuple[Spec, ...], attrs: Attrs) -> None:
    x = specs[0]
    if len(x.shape) != 1:
        raise ShapeError(
            f"bincount of {x!r}: it counts the integers of one row; x.reshape(-1) is one."
        )
    if x.dtype.kind not in "iub":
        raise DTypeError(f"bincount of {x!r}: it counts integers. Write .astype('int64') first.")
    if len(specs) > 1 and None not in (*x.shape, *specs[1].shape) and x.shape != specs[1].shape:
        raise ShapeError(f"bincount: weights {specs[1]!r} for {x!r}; each element has one.")


def _bincount_rule(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    return lambda i, g: getitem(g, operands[0]) if i == 1 else None


def _bincount_jvp(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    return lambda i, t: apply(BINCOUNT, (operands[0], t), attrs) if i == 1 else None


BINCOUNT = Op(
    "bincount",
    _infer_bincount,
    variadic=_bincount_rule,
    variadic_jvp=_bincount_jvp,
    loop_dtypes=own_dtypes,
)


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """Return how often each integer from 0 on occurs.

    Parameters
    ----------
    x : Var or array_like
        One row of integers of at least 0.
    weights : Var or array_like, optional
        What each element counts. Gradients pass to the weights.
    minlength : int
        How long the result is at least.

    Returns
    -------
    Var
        One element more than the largest integer; its length shows only in the values.

    Raises
    ------
    ShapeError
        If `x` is no row, or the weights do not fit.
    DTypeError
        If `x` holds no integers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     counts = rg.bincount([0, 2, 2])
    >>> counts.value
    array([1, 0, 2])
    """
    x = node(x, weights)
    operands = (x,) if weights is None else (x, node(weights, x))
    return apply(BINCOUNT, operands, (whole("bincount", "minlength", minlength, 0),))
