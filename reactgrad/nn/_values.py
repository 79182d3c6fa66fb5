"""Arrays of first values, which layers make their params of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reactgrad.graph._var import Var
from reactgrad.nn import init
from reactgrad.nn._parameter import Parameter, real


class Values:
    """Params for one layer: of one dtype, from one generator.

    Parameters
    ----------
    rng : int, Generator or None
        A seed, a generator of NumPy, or none to go on with the seed of the current graph.
    dtype : dtype_like or None
        ``None`` for float64.
    """

    __slots__ = ("_made", "_rng", "dtype")

    def __init__(self, rng: Any, dtype: Any) -> None:
        self._rng = rng
        self._made: np.random.Generator | None = None
        self.dtype = real(dtype)

    @property
    def rng(self) -> np.random.Generator:
        """The generator of the layer, one for all of its params."""
        if self._made is None:
            self._made = init.generator(self._rng, None)
        return self._made

    def uniform(self, shape: tuple[int, ...], bound: float) -> Var:
        """Return a param drawn evenly from ``-bound`` to ``bound``."""
        return Parameter(self.rng.uniform(-bound, bound, shape).astype(self.dtype))

    def normal(self, shape: tuple[int, ...], std: float = 1.0) -> Var:
        """Return a param drawn normally."""
        return Parameter(self.rng.normal(0.0, std, shape).astype(self.dtype))

    def full(self, shape: tuple[int, ...], value: float) -> Var:
        """Return a param of one number."""
        return Parameter(np.full(shape, value, self.dtype))

    def of_layer(
        self, shape: tuple[int, ...], bias: int | None, fan_in: int
    ) -> tuple[Var, Var | None]:
        """Return weight and bias as linear layers and convolutions of PyTorch have them.

        Both are even up to ``1 / sqrt(fan_in)``, which is ``kaiming_uniform_`` with ``a=sqrt(5)`` for the
        weight.

        Parameters
        ----------
        bias : int or None
            The length of the bias, ``None`` for none.
        """
        bound = 1.0 / math.sqrt(fan_in) if fan_in > 0 else 0.0
        weight = self.uniform(shape, bound)
        return weight, None if bias is None else self.uniform((bias,), bound)
