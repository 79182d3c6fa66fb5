"""Draws among given things: permutations, choices, categories."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from reactgrad import ops
from reactgrad._errors import ParameterError, SetError, ShapeError
from reactgrad.build._key import new_key
from reactgrad.nodes._handle import Handle, apply, graph_of, stacked
from reactgrad.ops._layout import RESHAPE_LIKE
from reactgrad.ops._shapes import normal_axis
from reactgrad.random._draw import (
    CHOICE,
    CHOICE_ALONG,
    PERMUTATION,
    Draw,
    drawn,
    is_const,
    shape_of,
)
from reactgrad.scheduler import safe_repr


def permutation(x: Any, axis: int = 0) -> Any:
    """Return the numbers below `x` in random order, or the parts of an array along an axis.

    Parameters
    ----------
    x : int, Var or array_like
        A Python integer stands for so many numbers. Gradients pass to the elements of an array.
    axis : int
        The axis along which the parts change places.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph(rng=0):
    ...     order = rg.random.permutation(5)
    >>> sorted(order.tolist())
    [0, 1, 2, 3, 4]
    """
    key = new_key(graph_of((x,)))
    if isinstance(x, int | np.integer) and not isinstance(x, bool):
        if x < 0:
            raise ParameterError(f"rg.random.permutation({x}): there are no {x} numbers.")
        return apply(PERMUTATION, (key,), (int(x),))
    node: Any = x if isinstance(x, Handle) else graph_of((x,)).const(x)
    if not node.ndim:
        raise ShapeError(
            "rg.random.permutation of a node without axes: a number of places must be a Python integer, "
            "since the shape follows from it."
        )
    turned = node if axis == 0 else ops.moveaxis(node, axis, 0)
    order = (
        apply(PERMUTATION, (key,), (turned.shape[0],))
        if is_const(turned)
        else apply(PERMUTATION, (key, turned), (None,))
    )
    moved = turned[order]
    return drawn("permutation", moved if axis == 0 else ops.moveaxis(moved, 0, axis), key)


def permuted(x: Any, axis: int | None = None) -> Any:
    """Return an array whose elements along an axis are in random order, each row in another one.

    Parameters
    ----------
    x : Var or array_like
    axis : int, optional
        By default all elements change places.
    """
    node: Any = x if isinstance(x, Handle) else graph_of((x,)).const(x)
    if axis is None:
        flat = permutation(node.reshape(-1))
        back = flat.reshape(node.shape) if is_const(node) else apply(RESHAPE_LIKE, (flat, node))
        return drawn("permuted", back, flat.parents[1])
    draw = Draw("permuted", None, None, np.float64, graph=node._graph)
    draw.follow([node.detach()], node.shape)
    order = ops.argsort(draw.standard("random"), axis)
    return draw.of(ops.take_along_axis(node, order, axis))


def shuffle(x: Any, axis: int = 0) -> NoReturn:
    """Refuse: NumPy's function of this name writes into its argument.

    Raises
    ------
    SetError
        Always; it says what to write.
    """
    raise SetError(
        "rg.random.shuffle would write in place. Write y = rg.random.permutation(x, axis)."
    )


def choice(
    a: Any,
    shape: Any = None,
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    *,
    size: Any = None,
) -> Any:
    """Return parts of an array, or numbers below `a`, drawn at random.

    Parameters
    ----------
    a : int, Var or array_like
        A Python integer stands for the numbers below it. Gradients pass to the elements of an array.
    shape : int or tuple of int, optional
        How many to draw; one by default.
    replace : bool
        Whether a part may be drawn more than once.
    p : Var or array_like, optional
        Probabilities, one a part, that add up to 1.
    axis : int
        The axis of an array along which parts are drawn.

    Raises
    ------
    ShapeError
        If there are too few parts, other than one probability for each, or no axis.
    ParameterError
        A ``ValueError``, when the draw is computed: if the probabilities are negative or do not add up to 1.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph(rng=0):
    ...     x = rg.random.choice([10.0, 20.0, 30.0], shape=(4,), p=[0.0, 1.0, 0.0])
    >>> x.value
    array([20., 20., 20., 20.])
    """
    found = shape_of("choice", shape, size)
    found = () if found is None else found
    graph = graph_of((a, p))
    p = _probabilities(p)
    key = new_key(graph)
    weights = () if p is None else (p,)
    if isinstance(a, int | np.integer) and not isinstance(a, bool):
        return apply(CHOICE, (key, *weights), (int(a), found, bool(replace)))
    node: Any = a if isinstance(a, Handle) else graph.const(a)
    if not node.ndim:
        raise ShapeError(
            "rg.random.choice of a value without axes: to draw numbers below it write a Python integer, or "
            "rg.random.integers(a, shape=...), which takes a node."
        )
    at = normal_axis("choice", axis, node.ndim)
    picked = (
        apply(CHOICE, (key, *weights), (node.shape[at], found, bool(replace)))
        if is_const(node)
        else apply(CHOICE_ALONG, (key, node, *weights), (at, found, bool(replace)))
    )
    return drawn("choice", ops.take(node, picked, at), key)


def _probabilities(p: Any) -> Any:
    p = stacked(p)
    if p is None or isinstance(p, Handle):
        return p
    try:
        return np.asarray(p, np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            f"rg.random.choice(p={safe_repr(p):.60}): probabilities are real numbers, one a part."
        ) from None


def categorical(logits: Any, shape: Any = None, axis: int = -1, *, size: Any = None) -> Any:
    """Return numbers of categories, drawn with probabilities ``softmax(logits)``.

    The largest of the logits, each with a Gumbel draw added, is chosen (Gumbel, 1954).

    Parameters
    ----------
    logits : Var or array_like
        Logarithms of probabilities, which need not add up to 1, along `axis`.
    shape : int or tuple of int, optional
        Without the axis of categories; by default that of `logits` without it, which must broadcast to it.

    Raises
    ------
    ShapeError
        If `logits` has no axis, or its others do not broadcast to the shape.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph(rng=0):
    ...     x = rg.random.categorical([0.0, 50.0], shape=(3,))
    >>> x.value
    array([1, 1, 1])
    """
    outer = shape_of("categorical", shape, size)
    draw = Draw("categorical", None, None, None, logits)
    (logits,) = draw.parameters
    if not np.ndim(logits):
        raise ShapeError("rg.random.categorical(logits): an axis of logits holds the categories.")
    if axis not in (-1, logits.ndim - 1):
        logits = ops.moveaxis(logits, axis, -1)
    draw.among(outer, logits)
    noise = -ops.log(draw.standard("standard_exponential"))
    return draw.of(ops.argmax(logits + noise, -1), outer)
