"""Normalisation of a channel by its neighbours (Krizhevsky, Sutskever and Hinton, 2012)."""

from __future__ import annotations

from typing import Any

from reactgrad._calls import real_number, whole
from reactgrad._errors import ShapeError
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import power, square
from reactgrad.ops.neural._resampling import resample
from reactgrad.ops.neural._space import operand


@deferred
def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """Return `input` divided by ``(k + alpha * mean of squares of neighbouring channels) ** beta``.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, ...), with at least one axis of space.
    size : int
        The number of neighbouring channels, the channel among them; channels that do not exist count as 0.
    alpha, beta, k : float
        As in the formula.

    Returns
    -------
    Var
        In the shape of `input`.

    Raises
    ------
    ShapeError
        If there is no axis of space, or `size` is less than 1.
    DTypeError
        If `size` is no integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.local_response_norm([[[1.0], [2.0]]], 2, alpha=2.0, beta=1.0, k=0.0)
    >>> y.value
    array([[[1. ],
            [0.4]]])
    """
    x = operand(input)
    size = whole("local_response_norm", "size", size, 1)
    given = {"alpha": alpha, "beta": beta, "k": k}
    alpha, beta, k = [real_number("local_response_norm", what, one) for what, one in given.items()]
    if x.ndim < 3:
        raise ShapeError(
            f"local_response_norm of an array of shape {tuple(x.shape)}: images have samples, channels and at least "
            "one axis of space, (N, C, L). Add axes of length 1 with x[:, :, None]."
        )
    # An even number of neighbours has one more before than behind, and so one window too many.
    # A window that reaches all channels from each of them need not be larger.
    window = size if x.shape[1] is None else min(size, 2 * x.shape[1] + size % 2)
    rule = ("sum", window, 1, window // 2, 1, False)
    squares = resample(square(x), (rule, *[None] * (x.ndim - 2)))
    if size % 2 == 0:
        squares = squares[:, :-1]
    return x / power(squares * (alpha / size) + k, beta)
