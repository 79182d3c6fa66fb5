"""Gradients that are made smaller where they are too large."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, GradientError, ParameterError
from reactgrad.core._gradients import GradientBlock, Gradients
from reactgrad.nodes._handle import Handle
from reactgrad.scheduler import listed, safe_repr
from reactgrad.values._quiet import quietly


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
        raise ParameterError(f"clip_grad_norm_(max_norm={safe_repr(max_norm)}) must be at least 0.")
    found = _Found(parameters)
    if not found.any:
        return 0.0
    with found.graph._lock:
        total = quietly(_norm, found.arrays(), norm_type)
        if error_if_nonfinite and not math.isfinite(total):
            _refuse("clip_grad_norm_", found.params)
        factor = max_norm / (total + 1e-6)
        if not factor >= 1.0:
            quietly(found.scale, factor)
    return total


def _norm(arrays: list[Any], order: float) -> float:
    norms = [np.linalg.norm(one.astype(np.float64), order) for one in arrays]
    return float(norms[0] if len(norms) == 1 else np.linalg.norm(np.array(norms), order))


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
        raise ParameterError(
            f"clip_grad_value_(clip_value={safe_repr(clip_value)}) must be at least 0."
        )
    found = _Found(parameters)
    if not found.any:
        return
    with found.graph._lock:
        if not all(np.isfinite(one).all() for one in found.arrays()):
            _refuse("clip_grad_value_", found.params)
        found.put(lambda old, out: np.clip(old, -clip_value, clip_value, out))


def scale_grads(parameters: Any, factor: float) -> None:
    """Multiply the gradients of params by a number."""
    found = _Found(parameters)
    if found.any:
        with found.graph._lock:
            quietly(found.scale, factor)


class _Found:
    """The gradients of some params: in blocks as ``backward`` has left them, or alone.

    Attributes
    ----------
    params : list of Var
        The params that were given.
    blocks : list of GradientBlock
        Blocks all of whose params were given.
    alone : list of Var
        Params with a gradient of their own.
    any : bool
        True if there is any gradient.
    """

    def __init__(self, parameters: Any) -> None:
        given: Iterable[Any] = [parameters] if isinstance(parameters, Handle) else parameters
        self.params: list[Any] = [one[1] if isinstance(one, tuple) else one for one in given]
        for one in self.params:
            if not isinstance(one, Handle):
                raise DTypeError(f"gradients are clipped of params, not of {type(one).__name__}.")
            if one._graph is not self.params[0]._graph:
                raise GradientError("gradients of two graphs are clipped by two calls.")
        self.blocks: list[GradientBlock] = []
        self.alone: list[Any] = []
        if self.params:
            self.graph: Any = self.params[0]._graph
            host = self.graph._host
            slots = {one._slot for one in self.params}
            self.blocks = [one for one in host.gradients.blocks if one.places.keys() <= slots]
            inside = {slot for block in self.blocks for slot in block.places}
            if len(inside) < len(slots):
                rest = [one for one in self.params if one._slot not in inside]
                if any(host.gradients.holds(one._slot) for one in rest):
                    host.gradients = host.gradients.apart()
                    self.blocks, rest = [], self.params
                self.alone = [one for one in dict.fromkeys(rest) if one.grad is not None]
        self.any = bool(self.blocks or self.alone)

    def arrays(self) -> list[Any]:
        """Return the gradients, each with one axis."""
        now = self.graph._host.gradients.blocks
        blocks = [now[one] for one in self.blocks]
        return blocks + [np.asarray(one.grad).reshape(-1) for one in self.alone]

    def scale(self, factor: float) -> None:
        """Multiply the gradients by a number."""
        self.put(lambda old, out: np.multiply(old, old.dtype.type(factor), out))

    def put(self, change: Callable[[Any, Any], Any]) -> None:
        """Replace the gradients by ``change(old, out)``, all of them or none."""
        host = self.graph._host
        now = host.gradients
        blocks, alone = dict(now.blocks), dict(now.alone)
        for block in self.blocks:
            blocks[block] = change(now.blocks[block], block.free(now.blocks[block]))
        for one in self.alone:
            old = np.asarray(one.grad)
            new = change(old, np.empty_like(old))
            new.flags.writeable = False
            alone[one._slot] = new.view() if new.ndim else new[()]
        host.gradients = Gradients(alone, blocks, now.between, now.replaced)


def _refuse(who: str, params: Sequence[Any]) -> None:
    grads = [(one, one.grad) for one in params]
    bad = [
        repr(one.label) for one, grad in grads if grad is not None and not np.isfinite(grad).all()
    ]
    if not bad:
        raise GradientError(
            f"{who}: the norm of all gradients together is too large for a float. Scale the loss down."
        )
    raise GradientError(
        f"{who}: the gradients of {listed(bad)} are not finite, and no factor makes them so. "
        "rg.detect_anomaly() names the node where they come from; opt.zero_grad() leaves the step out."
    )
