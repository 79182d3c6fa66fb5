"""Gradients that are made smaller where they are too large."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, GradientError
from reactgrad.nodes._handle import Handle
from reactgrad.scheduler import listed


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = True,
) -> float:
    """Scale the gradients of params so that the norm of all together is at most `max_norm`.

    Parameters
    ----------
    parameters : iterable of Var, or Var
        Those without ``.grad`` are left out.
    max_norm : float
        The largest norm.
    norm_type : float
        The order of the norm; ``inf`` for the largest element.
    error_if_nonfinite : bool
        ``False`` to scale by a norm that is infinite or NaN, too.

    Returns
    -------
    float
        The norm before.

    Raises
    ------
    GradientError
        If gradients are not finite; it names their params, and nothing has changed.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([3.0, 4.0])
    >>> run = (w * w).sum().backward()
    >>> rg.optim.clip_grad_norm_([w], 1.0)
    10.0
    >>> w.grad.round(3)
    array([0.6, 0.8])
    """
    if not max_norm >= 0.0:
        raise DTypeError(f"clip_grad_norm_(max_norm={max_norm!r}) must be at least 0.")
    params = _with_gradient(parameters)
    if not params:
        return 0.0
    with params[0]._graph._lock, np.errstate(all="ignore"):
        grads = [np.asarray(one.grad) for one in params]
        norms = [
            float(np.linalg.norm(one.reshape(-1).astype(np.float64), norm_type)) for one in grads
        ]
        total = float(np.linalg.norm(norms, norm_type))
        if error_if_nonfinite and not math.isfinite(total):
            _refuse("clip_grad_norm_", params, grads)
        factor = max_norm / (total + 1e-6)
        if not factor >= 1.0:
            _replace(params, [one * one.dtype.type(factor) for one in grads])
    return total


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Clip each element of the gradients of params to ``[-clip_value, clip_value]``.

    Parameters
    ----------
    parameters : iterable of Var, or Var
        Those without ``.grad`` are left out.
    clip_value : float
        The largest absolute value.

    Raises
    ------
    GradientError
        If gradients are not finite; it names their params, and nothing has changed.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([3.0, -4.0])
    >>> run = (w * w).sum().backward()
    >>> rg.optim.clip_grad_value_([w], 7.0)
    >>> w.grad
    array([ 6., -7.])
    """
    if not clip_value >= 0.0:
        raise DTypeError(f"clip_grad_value_(clip_value={clip_value!r}) must be at least 0.")
    params = _with_gradient(parameters)
    if not params:
        return
    with params[0]._graph._lock:
        grads = [np.asarray(one.grad) for one in params]
        if not all(np.isfinite(one).all() for one in grads):
            _refuse("clip_grad_value_", params, grads)
        _replace(params, [np.clip(one, -clip_value, clip_value) for one in grads])


def _with_gradient(parameters: Any) -> list[Any]:
    given: Iterable[Any] = [parameters] if isinstance(parameters, Handle) else parameters
    params: list[Any] = [one[1] if isinstance(one, tuple) else one for one in given]
    for one in params:
        if not isinstance(one, Handle):
            raise DTypeError(f"gradients are clipped of params, not of {type(one).__name__}.")
        if one._graph is not params[0]._graph:
            raise GradientError("gradients of two graphs are clipped by two calls.")
    return [one for one in params if one.grad is not None]


def _refuse(who: str, params: Sequence[Any], grads: Sequence[Any]) -> None:
    bad = [
        repr(one.label)
        for one, grad in zip(params, grads, strict=True)
        if not np.isfinite(grad).all()
    ]
    if not bad:
        raise GradientError(
            f"{who}: the norm of all gradients together is too large for a float. Scale the loss down."
        )
    raise GradientError(
        f"{who}: the gradients of {listed(bad)} are not finite, and no factor makes them so. "
        "rg.detect_anomaly() names the node where they come from; opt.zero_grad() leaves the step out."
    )


def _replace(params: Sequence[Any], new: Sequence[Any]) -> None:
    grads = params[0]._graph._host.grads
    for one, array in zip(params, new, strict=True):
        if isinstance(array, np.ndarray) and array.ndim:
            array.flags.writeable = False
            grads[one._slot] = array.view()
        else:
            grads[one._slot] = array[()] if isinstance(array, np.ndarray) else array
