"""Choices between classes that pass gradients (Jang and others; Maddison and others, 2017)."""

from __future__ import annotations

from typing import Any

from reactgrad import ops
from reactgrad._errors import ParameterError
from reactgrad.ops import where
from reactgrad.random._draw import Draw
from reactgrad.random._dropout import _floats
from reactgrad.scheduler import safe_repr


def gumbel_softmax(logits: Any, tau: float = 1.0, hard: bool = False, dim: int = -1) -> Any:
    """Return the softmax of scores with noise, which is close to a choice of one class where `tau` is small.

    Parameters
    ----------
    logits : Var or array_like
        Scores, floats of any shape.
    tau : float
        The temperature, positive.
    hard : bool
        Whether the value is a one and zeros; its gradient stays that of the softmax.
    dim : int
        The axis of the classes.

    Returns
    -------
    Var
        The same choice at every read, until ``touch``, ``g.reseed``, or a new call.

    Raises
    ------
    DTypeError
        If `tau` is not positive, or the scores are no floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph(rng=0) as g:
    ...     y = rg.nn.functional.gumbel_softmax(g.input([0.0, 9.0]), hard=True)
    >>> y.value
    array([0., 1.])
    """
    if not tau > 0.0:
        raise ParameterError(
            f"gumbel_softmax(tau={safe_repr(tau):.40}): the temperature is positive, as in tau=1.0."
        )
    x = _floats("gumbel_softmax", logits, 0.0)
    draw = Draw("gumbel_softmax", None, None, x.dtype, graph=x._graph)
    draw.follow([x.detach()], x.shape)  # also another length
    noise = -ops.log(draw.standard("standard_exponential"))
    soft = ops.softmax((x + noise) / tau, dim)
    if not hard:
        return draw.of(soft)
    still = soft.detach()
    chosen = where(ops.equal(still, ops.max(still, dim, keepdims=True)), 1.0, 0.0)
    return draw.of(ops.astype(chosen, x.dtype) + (soft - still))
