"""Layers that take the number of features from their first input."""

from __future__ import annotations

from typing import Any, ClassVar

from reactgrad._calls import misfit
from reactgrad._errors import ShapeError
from reactgrad.nn._batch_norm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from reactgrad.nn._convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from reactgrad.nn._linear import Linear
from reactgrad.nn._module import Module


class _Lazy(Module):
    """A layer of the class behind this one, whose first argument comes with the first input."""

    _axis: ClassVar[int]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kind: Any = type(self).__mro__[2]
        found = misfit(type(self).__name__, kind.__init__, (None, 1, *args), kwargs)
        if found is not None:
            try:
                raise found
            finally:
                del found  # its traceback holds this frame
        self._given = (args, kwargs)
        self._waits = True

    def extra_repr(self) -> str:
        """Return the settings, or that there are none yet."""
        return "made at the first call" if self._waits else super().extra_repr()

    def forward(self, input: Any) -> Any:
        """Return what the layer does, which is made now if this is the first call."""
        if self._waits:
            features = input.shape[self._axis]
            if features is None:
                raise ShapeError(
                    f"{type(self).__name__} of shape {input.shape}: the number of features is open, and params are "
                    "made by it. Declare it, g.input(shape=(None, 3)), or give the first call an array."
                )
            args, kwargs = self._given
            layer: Any = super()
            layer.__init__(features, *args, **kwargs)
            self._waits = False
        return super().forward(input)


class LazyLinear(_Lazy, Linear):
    """``Linear`` that takes `in_features` from its first input: ``LazyLinear(out_features, bias=True)``.

    Call a model that has one before its params are asked for, as by an optimiser.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> with rg.Graph():
    ...     net = rg.nn.Sequential(rg.nn.Flatten(), rg.nn.LazyLinear(2, rng=0))
    ...     y = net(np.ones((5, 3, 4)))
    >>> y.shape, net[1].weight.shape
    ((5, 2), (2, 12))
    """

    _axis = -1


class LazyConv1d(_Lazy, Conv1d):
    """``Conv1d`` that takes `in_channels` from its first input; see ``LazyLinear``."""

    _axis = -2


class LazyConv2d(_Lazy, Conv2d):
    """``Conv2d`` that takes `in_channels` from its first input; see ``LazyLinear``."""

    _axis = -3


class LazyConv3d(_Lazy, Conv3d):
    """``Conv3d`` that takes `in_channels` from its first input; see ``LazyLinear``."""

    _axis = -4


class LazyBatchNorm1d(_Lazy, BatchNorm1d):
    """``BatchNorm1d`` that takes `num_features` from its first input; see ``LazyLinear``."""

    _axis = 1


class LazyBatchNorm2d(_Lazy, BatchNorm2d):
    """``BatchNorm2d`` that takes `num_features` from its first input; see ``LazyLinear``."""

    _axis = 1


class LazyBatchNorm3d(_Lazy, BatchNorm3d):
    """``BatchNorm3d`` that takes `num_features` from its first input; see ``LazyLinear``."""

    _axis = 1


class LazyConvTranspose1d(_Lazy, ConvTranspose1d):
    """``ConvTranspose1d`` that takes `in_channels` from its first input; see ``LazyLinear``."""

    _axis = -2


class LazyConvTranspose2d(_Lazy, ConvTranspose2d):
    """``ConvTranspose2d`` that takes `in_channels` from its first input; see ``LazyLinear``."""

    _axis = -3


class LazyConvTranspose3d(_Lazy, ConvTranspose3d):
    """``ConvTranspose3d`` that takes `in_channels` from its first input; see ``LazyLinear``."""

    _axis = -4


class LazyInstanceNorm1d(_Lazy, InstanceNorm1d):
    """``InstanceNorm1d`` that takes `num_features` from its first input; see ``LazyLinear``."""

    _axis = -2


class LazyInstanceNorm2d(_Lazy, InstanceNorm2d):
    """``InstanceNorm2d`` that takes `num_features` from its first input; see ``LazyLinear``."""

    _axis = -3


class LazyInstanceNorm3d(_Lazy, InstanceNorm3d):
    """``InstanceNorm3d`` that takes `num_features` from its first input; see ``LazyLinear``."""

    _axis = -4
