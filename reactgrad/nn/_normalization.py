"""Normalisation of each sample by itself."""

from __future__ import annotations

from typing import Any

from reactgrad import ops
from reactgrad._errors import ShapeError
from reactgrad.nn._module import Module
from reactgrad.nn._values import Values
from reactgrad.ops import neural


class _Rows(Module):
    """Rows over the last axes; see ``LayerNorm``."""

    _settings = ("normalized_shape", "eps")

    def _open(self, normalized_shape: Any, eps: float | None) -> tuple[int, ...]:
        found = normalized_shape
        shape = tuple(found) if isinstance(found, list | tuple) else (found,)
        self.normalized_shape, self.eps = shape, eps
        self._axes = tuple(range(-len(shape), 0))
        return shape

    def _check(self, input: Any) -> None:
        shape = self.normalized_shape
        have = tuple(input.shape)[-len(shape) :]
        if len(have) != len(shape) or any(
            n is not None and n != m for n, m in zip(have, shape, strict=True)
        ):
            raise ShapeError(
                f"{type(self).__name__}({shape}) of shape {tuple(input.shape)}: the last axes of the input are those "
                "of the layer."
            )


class LayerNorm(_Rows):
    """Rows moved to mean 0 and scaled to variance 1, then ``* weight + bias`` (Ba and others, 2016).

    Parameters
    ----------
    normalized_shape : int or tuple of int
        The lengths of the last axes, which are a row together.
    eps : float
        Added to the variance.
    elementwise_affine, bias : bool
        Whether there are a weight and a bias.
    dtype
        See ``rg.nn``.

    Attributes
    ----------
    weight, bias : Var or None, shape normalized_shape

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.LayerNorm(2, eps=0.0)([[1.0, 3.0]])
    >>> y.value
    array([[-1.,  1.]])
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        shape, make = self._open(normalized_shape, eps), Values(0, dtype)
        self.weight = make.full(shape, 1.0) if elementwise_affine else None
        self.bias = make.full(shape, 0.0) if elementwise_affine and bias else None

    def forward(self, input: Any) -> Any:
        """Return the rows."""
        self._check(input)
        return ops.layer_norm(input, self.weight, self.bias, axis=self._axes, eps=self.eps)  # type: ignore[arg-type]


class RMSNorm(_Rows):
    """Rows divided by the root of the mean of their squares, then ``* weight``; see ``rg.rms_norm``.

    Parameters
    ----------
    normalized_shape : int or tuple of int
        The lengths of the last axes, which are a row together.
    eps : float, optional
        Added to the mean; by default that of the dtype.
    elementwise_affine : bool
        Whether there is a weight.
    dtype
        See ``rg.nn``.

    Attributes
    ----------
    weight : Var or None, shape normalized_shape
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        dtype: Any = None,
    ) -> None:
        shape = self._open(normalized_shape, eps)
        self.weight = Values(0, dtype).full(shape, 1.0) if elementwise_affine else None

    def forward(self, input: Any) -> Any:
        """Return the rows."""
        self._check(input)
        return neural.rms_norm(input, self.weight, axis=self._axes, eps=self.eps)


class GroupNorm(Module):
    """Groups of channels moved to mean 0 and scaled to variance 1; see ``rg.group_norm``.

    Parameters
    ----------
    num_groups : int
        Divides the number of channels.
    num_channels : int
    eps : float
    affine : bool
        Whether there are a weight and a bias.
    dtype
        See ``rg.nn``.
    bias : bool
        ``False`` for a weight alone.

    Attributes
    ----------
    weight, bias : Var or None, shape (num_channels,)
    """

    _settings = ("num_groups", "num_channels", "eps")

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise ShapeError(
                f"GroupNorm({num_groups}, {num_channels}): the groups divide the channels."
            )
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        make = Values(0, dtype)
        self.weight = make.full((num_channels,), 1.0) if affine else None
        self.bias = make.full((num_channels,), 0.0) if affine and bias else None

    def forward(self, input: Any) -> Any:
        """Return the normalised groups."""
        return neural.group_norm(input, self.num_groups, self.weight, self.bias, eps=self.eps)


class LocalResponseNorm(Module):
    """See ``rg.local_response_norm``."""

    _settings = ("size", "alpha", "beta", "k")

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Any) -> Any:
        """Return the input divided by the size of neighbouring channels."""
        return neural.local_response_norm(input, self.size, self.alpha, self.beta, self.k)
