"""Dropout: elements set to zero at random while training (Srivastava and others, 2014)."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad import ops
from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.flow._training import mode_of
from reactgrad.nodes._handle import Handle, graph_of
from reactgrad.ops import less, where
from reactgrad.random._draw import Draw
from reactgrad.scheduler import safe_repr


def dropout(input: Any, /, p: float = 0.5, training: Any = None) -> Any:
    """Return `input` with each element zero with probability `p`, and the others divided by ``1 - p``.

    Parameters
    ----------
    input : Var or array_like
        Floats of any shape.
    p : float
        From 0 to 1.
    training : bool or Var, optional
        Where it is false nothing is dropped. By default it is the mode of the graph, ``g.mode``: ``g.eval()`` then
        reruns what depends on it, and nothing else.

    Returns
    -------
    Var
        The same elements are dropped at every read, until ``touch``, ``g.reseed``, or a new call. A loop
        that writes its model anew at each step draws anew at each.

    Raises
    ------
    DTypeError
        If `p` is no probability, or the elements are no floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph(rng=1)
    >>> y = rg.dropout(g.input([1.0, 1.0, 1.0, 1.0]))
    >>> sorted(set(y.tolist())), g.eval() is g, y.tolist()
    ([0.0, 2.0], True, [1.0, 1.0, 1.0, 1.0])
    """
    x = _floats("dropout", input, p, training)
    return _dropped("dropout", x, x, p, training)


def _floats(name: str, input: Any, p: Any, training: Any = None) -> Any:
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0.0 <= p <= 1.0:
        raise ParameterError(f"rg.{name}(p={safe_repr(p):.40}): it is a probability, from 0 to 1.")
    x: Any = input if isinstance(input, Handle) else graph_of((input, training)).const(input)
    if x.dtype.kind != "f":
        raise DTypeError(
            f"rg.{name} of {x.dtype}: it takes floats; convert with .astype('float32')."
        )
    return x


def _dropped(name: str, x: Any, like: Any, p: float, training: Any) -> Any:
    """Return `x` where a draw in the shape of `like` keeps it."""
    if training is False or p == 0.0:
        return x
    draw, kept = _kept(name, like, p)
    found = where(kept, x / (1.0 - p) if p < 1.0 else 0.0 * x, 0.0)
    return draw.of(_while_training(found, x, training))


def _kept(name: str, like: Any, p: float) -> tuple[Draw, Any]:
    """Return a draw, and for each element of a shape whether it is kept."""
    draw = Draw(name, None, None, np.float32, graph=like._graph)
    draw.follow([like.detach()], like.shape)  # also another length
    return draw, less(draw.standard("random"), 1.0 - p)


def _while_training(found: Any, x: Any, training: Any) -> Any:
    if training is True:
        return found
    return where(mode_of(x._graph) if training is None else training, found, x)


def _channels(name: str, input: Any, p: float, training: Any, space: int) -> Any:
    x = _floats(name, input, p, training)
    if x.ndim not in (space + 1, space + 2):
        raise ShapeError(
            f"rg.{name} of shape {x.shape}: it drops channels of an input of {space + 2} axes, (batch, channels, "
            f"...), or {space + 1} without the batch."
        )
    return _dropped(
        name, x, ops.sum(x.detach(), tuple(range(-space, 0)), keepdims=True), p, training
    )


def dropout1d(input: Any, /, p: float = 0.5, training: Any = None) -> Any:
    """Return `input` with whole channels dropped: shape (batch, channels, length); see ``dropout``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.dropout1d([[[1.0, 1.0]]], 0.5, training=False)
    >>> y.value
    array([[[1., 1.]]])
    """
    return _channels("dropout1d", input, p, training, 1)


def dropout2d(input: Any, /, p: float = 0.5, training: Any = None) -> Any:
    """Return `input` with whole channels dropped: shape (batch, channels, height, width); see ``dropout``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.dropout2d([[[[1.0]]]], 0.5, training=False)
    >>> y.value
    array([[[[1.]]]])
    """
    return _channels("dropout2d", input, p, training, 2)


def dropout3d(input: Any, /, p: float = 0.5, training: Any = None) -> Any:
    """Return `input` with whole channels dropped: three axes of space; see ``dropout``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.dropout3d([[[[[1.0]]]]], 0.5, training=False)
    >>> y.value
    array([[[[[1.]]]]])
    """
    return _channels("dropout3d", input, p, training, 3)


# Of SELU, to which dropped elements are set (Klambauer and others, Self-normalizing neural networks, 2017).
_SATURATED = -1.7580993408473766


def alpha_dropout(input: Any, /, p: float = 0.5, training: Any = None) -> Any:
    """Return `input` with elements set to SELU's limit, scaled so that mean 0 and variance 1 stay.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.alpha_dropout([1.0, 2.0], 0.5, training=False)
    >>> y.value
    array([1., 2.])
    """
    x = _floats("alpha_dropout", input, p, training)
    return _to_limit("alpha_dropout", x, x, p, training)


def feature_alpha_dropout(input: Any, /, p: float = 0.5, training: Any = None) -> Any:
    """Return `input` with whole channels set to SELU's limit: shape (batch, channels, ...); see ``alpha_dropout``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.functional.feature_alpha_dropout([[[1.0, 2.0]]], 0.5, training=False)
    >>> y.value
    array([[[1., 2.]]])
    """
    x = _floats("feature_alpha_dropout", input, p, training)
    if x.ndim < 2:
        raise ShapeError(
            f"rg.nn.functional.feature_alpha_dropout of shape {x.shape}: it drops channels, axis 1."
        )
    channels = ops.sum(x.detach(), tuple(range(2, x.ndim)), keepdims=True)
    return _to_limit("feature_alpha_dropout", x, channels, p, training)


def _to_limit(name: str, x: Any, like: Any, p: float, training: Any) -> Any:
    """Return `x`, at SELU's limit where a draw in the shape of `like` does not keep it."""
    if training is False or p == 0.0:
        return x
    if p == 1.0:
        return _dropped(name, x, like, p, training)
    scale = ((1.0 - p) * (1.0 + p * _SATURATED**2)) ** -0.5
    draw, kept = _kept(name, like, p)
    found = where(kept, x, _SATURATED) * scale - scale * p * _SATURATED
    return draw.of(_while_training(found, x, training))
