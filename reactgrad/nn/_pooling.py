"""Pooling: the largest element or the mean of windows, or of equal parts."""

from __future__ import annotations

from typing import Any, ClassVar

from reactgrad._errors import ParameterError
from reactgrad.nn._module import Module
from reactgrad.ops import neural
from reactgrad.ops.neural._unpool import max_unpool
from reactgrad.random._fractional_pooling import fractional_max_pool


class _Pool(Module):
    """Windows along axes of space."""

    _settings: tuple[str, ...] = ("kernel_size", "stride", "padding")
    _call: ClassVar[Any]


class _MaxPool(_Pool):
    """The largest element of each window; see ``MaxPool2d``."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.dilation, self.return_indices, self.ceil_mode = dilation, return_indices, ceil_mode

    def forward(self, input: Any) -> Any:
        """Return the largest elements, and their places if they were asked for."""
        return self._call(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class _MaxUnpool(_Pool):
    """The elements of a pooling put back to their places; see ``MaxUnpool2d``."""

    _axes: ClassVar[int]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        """Return zeros with the elements of the input at their places.

        Parameters
        ----------
        input, indices : Var or array_like
            What ``MaxPool`` of the same arguments and ``return_indices=True`` has returned.
        output_size : tuple of int, optional
            The shape that was pooled; by default the shortest one.
        """
        return max_unpool(
            self._axes,
            input,
            indices,
            self.kernel_size,
            self.stride,
            self.padding,
            output_size,
        )


class _AvgPool(_Pool):
    """The mean of each window; see ``AvgPool2d``."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Any:
        """Return the means."""
        more = () if self.divisor_override is None else (self.divisor_override,)
        return self._call(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            *more,
        )


class _LPPool(_Pool):
    """The p-norm of each window; see ``rg.lp_pool2d``."""

    _settings = ("norm_type", "kernel_size", "stride")

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        self.norm_type, self.kernel_size, self.stride = norm_type, kernel_size, stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        """Return the norms."""
        return self._call(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class _Adaptive(Module):
    """Equal parts of each axis of space."""

    _settings = ("output_size",)
    _call: ClassVar[Any]

    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        """Return one number for each part."""
        return self._call(input, self.output_size)


class _AdaptiveMax(_Adaptive):
    """The largest element of each part."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Any) -> Any:
        """Return the largest elements, and their places if they were asked for."""
        return self._call(input, self.output_size, self.return_indices)


class MaxPool1d(_MaxPool):
    """See ``rg.max_pool1d``."""

    _call = staticmethod(neural.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest element of each window of images; see ``rg.max_pool2d``.

    Parameters
    ----------
    kernel_size, stride, padding, dilation : int or tuple of int
        By default the stride is the window's length.
    return_indices, ceil_mode : bool

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.MaxPool2d(2)([[[1.0, 3.0], [2.0, 0.0]]])
    >>> y.value
    array([[[3.]]])
    """

    _call = staticmethod(neural.max_pool2d)


class MaxPool3d(_MaxPool):
    """See ``rg.max_pool3d``."""

    _call = staticmethod(neural.max_pool3d)


class AvgPool1d(_AvgPool):
    """See ``rg.avg_pool1d``."""

    _call = staticmethod(neural.avg_pool1d)


class AvgPool2d(_AvgPool):
    """The mean of each window of images; see ``rg.avg_pool2d``.

    Parameters
    ----------
    kernel_size, stride, padding : int or tuple of int
    ceil_mode, count_include_pad : bool
    divisor_override : int, optional
        What sums are divided by, in place of the number of elements.
    """

    _call = staticmethod(neural.avg_pool2d)


class AvgPool3d(_AvgPool):
    """See ``rg.avg_pool3d``."""

    _call = staticmethod(neural.avg_pool3d)


class LPPool1d(_LPPool):
    """See ``rg.lp_pool1d``."""

    _call = staticmethod(neural.lp_pool1d)


class LPPool2d(_LPPool):
    """See ``rg.lp_pool2d``."""

    _call = staticmethod(neural.lp_pool2d)


class LPPool3d(_LPPool):
    """See ``rg.lp_pool3d``."""

    _call = staticmethod(neural.lp_pool3d)


class _FractionalMaxPool(Module):
    """The largest element of windows at random places; see ``FractionalMaxPool2d``."""

    _settings: tuple[str, ...] = ("kernel_size", "output_size", "output_ratio")
    _axes: ClassVar[int]

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        if (output_size is None) is (output_ratio is None):
            raise ParameterError(
                f"{type(self).__name__}: give output_size or output_ratio, one of the two."
            )
        self.kernel_size, self.output_size = kernel_size, output_size
        self.output_ratio, self.return_indices = output_ratio, return_indices
        self._random_samples = _random_samples

    def forward(self, input: Any) -> Any:
        """Return the largest elements, and their places if they were asked for."""
        return fractional_max_pool(
            self._axes,
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest element of windows that lie at random places, anew at each call (Graham, 2014).

    Parameters
    ----------
    kernel_size : int or tuple of two
        The lengths of a window.
    output_size : int or tuple of two, optional
        The number of windows along each axis.
    output_ratio : float or tuple of two, optional
        The same as a part of the lengths of the input, between 0 and 1; one of the two is given.
    return_indices : bool
        Whether to return the places of the elements, too, as ``MaxUnpool2d`` takes them.
    _random_samples : Var or array_like, optional, shape (batch, channels, 2)
        Numbers from 0 to 1 in place of draws.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.FractionalMaxPool2d(2, output_ratio=0.7)(np.zeros((1, 3, 10, 10)))
    >>> y.shape
    (1, 3, 7, 7)
    """

    _axes = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """See ``FractionalMaxPool2d``; input of shape (batch, channels, depth, height, width)."""

    _axes = 3


class AdaptiveAvgPool1d(_Adaptive):
    """See ``rg.adaptive_avg_pool1d``."""

    _call = staticmethod(neural.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_Adaptive):
    """See ``rg.adaptive_avg_pool2d``."""

    _call = staticmethod(neural.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_Adaptive):
    """See ``rg.adaptive_avg_pool3d``."""

    _call = staticmethod(neural.adaptive_avg_pool3d)


class AdaptiveMaxPool1d(_AdaptiveMax):
    """See ``rg.adaptive_max_pool1d``."""

    _call = staticmethod(neural.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """See ``rg.adaptive_max_pool2d``."""

    _call = staticmethod(neural.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMax):
    """See ``rg.adaptive_max_pool3d``."""

    _call = staticmethod(neural.adaptive_max_pool3d)


class MaxUnpool1d(_MaxUnpool):
    """See ``MaxUnpool2d``."""

    _axes = 1


class MaxUnpool2d(_MaxUnpool):
    """Zeros, with the elements of ``MaxPool2d`` at the places where it has found them.

    Parameters
    ----------
    kernel_size, stride, padding : int or tuple of int
        Those of the pooling.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> pool, unpool = rg.nn.MaxPool2d(2, return_indices=True), rg.nn.MaxUnpool2d(2)
    >>> with rg.Graph():
    ...     y = unpool(*pool(np.array([[[[1.0, 3.0], [2.0, 0.0]]]])))
    >>> y.value
    array([[[[0., 3.],
             [0., 0.]]]])
    """

    _axes = 2


class MaxUnpool3d(_MaxUnpool):
    """See ``MaxUnpool2d``."""

    _axes = 3
