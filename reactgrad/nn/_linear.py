"""Linear layers."""

from __future__ import annotations

from typing import Any

from reactgrad import ops
from reactgrad.nn._module import Module
from reactgrad.nn._values import Values
from reactgrad.ops.neural import bilinear


class Identity(Module):
    """Its input as it is; arguments are ignored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, input: Any) -> Any:
        """Return the input."""
        return input


class Linear(Module):
    """``x @ weight.T + bias``.

    Parameters
    ----------
    in_features, out_features : int
        The last axis of the input, and of the result.
    bias : bool
        Whether there is one.
    rng, dtype
        See ``rg.nn``.

    Attributes
    ----------
    weight : Var, shape (out_features, in_features)
        Even up to ``1 / sqrt(in_features)``.
    bias : Var or None, shape (out_features,)

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> with rg.Graph():
    ...     layer = rg.nn.Linear(3, 2, rng=0)
    >>> layer(np.ones((4, 3))).shape
    (4, 2)
    """

    _settings = ("in_features", "out_features")

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight, self.bias = Values(rng, dtype).of_layer(
            (out_features, in_features), out_features if bias else None, in_features
        )

    def forward(self, input: Any) -> Any:
        """Return the sums."""
        return ops.linear(input, ops.transpose(self.weight), self.bias)


class Bilinear(Module):
    """``x1 @ weight[k] @ x2 + bias[k]`` for each k.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
    bias : bool
    rng, dtype
        See ``rg.nn``.

    Attributes
    ----------
    weight : Var, shape (out_features, in1_features, in2_features)
    bias : Var or None, shape (out_features,)
    """

    _settings = ("in1_features", "in2_features", "out_features")

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        *,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        self.weight, self.bias = Values(rng, dtype).of_layer(
            (out_features, in1_features, in2_features), out_features if bias else None, in1_features
        )

    def forward(self, input1: Any, input2: Any) -> Any:
        """Return the sums."""
        return bilinear(input1, input2, self.weight, self.bias)
