"""Small units of networks: gated halves, softmin, bilinear forms."""

from __future__ import annotations

from typing import Any

from reactgrad import ops
from reactgrad._errors import ShapeError
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import multiply, negative, sigmoid
from reactgrad.ops._operand import node
from reactgrad.ops._shapes import normal_axis
from reactgrad.ops._softmax import softmax
from reactgrad.ops._split import split


@deferred
def glu(input: Any, axis: int = -1) -> Any:
    """Return the first half of an axis times the sigmoid of the second (Dauphin and others, 2017).

    Parameters
    ----------
    input : Var or array_like
        With an even length along `axis`.
    axis : int

    Raises
    ------
    ShapeError
        If the length is odd or not known.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.glu([1.0, 2.0, 0.0, 0.0])
    >>> y.value
    array([0.5, 1. ])
    """
    x = node(input)
    at = normal_axis("glu", axis, x.ndim)
    length = x.shape[at]
    if length is None or length % 2:
        raise ShapeError(
            f"rg.glu along axis {axis} of shape {x.shape}: the length is even, and known."
        )
    first, second = split(x, 2, at)
    return multiply(first, sigmoid(second))


@deferred
def softmin(input: Any, axis: int = -1) -> Any:
    """Return ``softmax(-input)``: large where the input is small.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.softmin([0.0, 1000.0])
    >>> y.value
    array([1., 0.])
    """
    return softmax(negative(input), axis)


@deferred
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """Return ``input1 @ weight[k] @ input2 + bias[k]`` for each k.

    Parameters
    ----------
    input1 : Var or array_like, shape (..., m)
    input2 : Var or array_like, shape (..., n)
    weight : Var or array_like, shape (k, m, n)
    bias : Var or array_like, optional, shape (k,)

    Returns
    -------
    Var
        Shape (..., k).

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.bilinear([1.0, 2.0], [3.0], [[[1.0], [1.0]]])
    >>> y.value
    array([9.])
    """
    input1 = node(input1, input2, weight, bias)
    y = ops.einsum("...m,kmn,...n->...k", input1, weight, input2)
    return y if bias is None else y + bias
