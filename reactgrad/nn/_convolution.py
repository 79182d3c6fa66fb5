"""Convolutions and their transposes over one, two or three axes of space."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from reactgrad._errors import ParameterError, ShapeError
from reactgrad.nn._module import Module
from reactgrad.nn._values import Values
from reactgrad.ops import neural
from reactgrad.ops.arrangement import pad
from reactgrad.scheduler import safe_repr

# NumPy's names of what lies beyond an edge, by PyTorch's.
_BEYOND = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def each(call: str, what: str, value: Any, axes: int, least: int = 1) -> tuple[int, ...]:
    """Return an integer for each axis of space, of one for all or one for each.

    Raises
    ------
    DTypeError
        If these are no such integers.
    """
    found = tuple(value) if isinstance(value, list | tuple) else (value,) * axes
    whole = all(
        isinstance(one, int) and not isinstance(one, bool) and one >= least for one in found
    )
    if len(found) != axes or not whole:
        raise ParameterError(
            f"{call}({what}={safe_repr(value):.40}): it is an integer of at least {least}, or one for "
            f"each of {axes} axes."
        )
    return found


class _Conv(Module):
    _settings = ("in_channels", "out_channels", "kernel_size", "stride", "padding")
    _axes: ClassVar[int]
    _call: ClassVar[Any]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        padding_mode: str,
    ) -> None:
        name, axes = type(self).__name__, self._axes
        if in_channels % groups or out_channels % groups:
            raise ShapeError(
                f"{name}({in_channels}, {out_channels}, groups={groups}): the groups divide both numbers of channels."
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = each(name, "kernel_size", kernel_size, axes)
        self.stride = each(name, "stride", stride, axes)
        self.dilation = each(name, "dilation", dilation, axes)
        self.padding = (
            padding if isinstance(padding, str) else each(name, "padding", padding, axes, 0)
        )
        self.padding_mode = padding_mode

    def extra_repr(self) -> str:
        """Return the settings that are not the usual ones."""
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        usual = {"stride": (1,), "padding": (0,), "dilation": (1,)}
        for name, one in usual.items():
            if getattr(self, name) != one * self._axes:
                text += f", {name}={getattr(self, name)!r}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return (
            text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode!r}"
        )


class _Forth(_Conv):
    """A convolution; see ``Conv2d``."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros" and padding_mode not in _BEYOND:
            raise ParameterError(
                f"{type(self).__name__}(padding_mode={safe_repr(padding_mode)}): it is 'zeros', "
                "'reflect', 'replicate' or "
                "'circular'."
            )
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ParameterError(
                f"{type(self).__name__}(padding={padding!r:.40}): it is an integer, one for each axis, 'same' or "
                "'valid'."
            )
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode
        )
        if padding == "same" and any(one != 1 for one in self.stride):
            raise ParameterError(
                f"{type(self).__name__}(padding='same', stride={stride!r}): windows in steps of more than 1 do not "
                "give the length of the input. Write the padding as numbers."
            )
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight, self.bias = Values(rng, dtype).of_layer(
            shape, out_channels if bias else None, prod(shape[1:])
        )

    def _around(self) -> list[tuple[int, int]]:
        """Return the lengths that are added before and behind each axis."""
        if self.padding == "valid":
            return [(0, 0)] * self._axes
        if not isinstance(self.padding, str):
            return [(one, one) for one in self.padding]
        spans = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        return [(span // 2, span - span // 2) for span in spans]

    def forward(self, input: Any) -> Any:
        """Return the sums of products with the kernel at each place."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            width = [(0, 0)] * (input.ndim - self._axes) + self._around()
            input, padding = pad(input, width, _BEYOND[self.padding_mode]), 0
        return self._call(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class Conv1d(_Forth):
    """See ``Conv2d``; input of shape (batch, channels, length)."""

    _axes = 1
    _call = staticmethod(neural.conv1d)


class Conv2d(_Forth):
    """The sums of products with kernels at each place of images; see ``rg.conv2d``.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride, dilation : int or tuple of int
        One for both axes, or one for each.
    padding : int, tuple of int, "same" or "valid"
    groups : int
        Divides both numbers of channels, which are only connected within a group.
    bias : bool
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
    rng, dtype
        See ``rg.nn``.

    Attributes
    ----------
    weight : Var, shape ``(out_channels, in_channels // groups, *kernel_size)``
        Even up to ``1 / sqrt(fan_in)``.
    bias : Var or None, shape (out_channels,)

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> with rg.Graph():
    ...     layer = rg.nn.Conv2d(3, 8, 3, padding=1)
    >>> layer(np.zeros((2, 3, 5, 5))).shape
    (2, 8, 5, 5)
    """

    _axes = 2
    _call = staticmethod(neural.conv2d)


class Conv3d(_Forth):
    """See ``Conv2d``; input of shape (batch, channels, depth, height, width)."""

    _axes = 3
    _call = staticmethod(neural.conv3d)


class _Back(_Conv):
    """The transpose of a convolution; see ``ConvTranspose2d``."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        *,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        name = type(self).__name__
        if padding_mode != "zeros" or isinstance(padding, str):
            raise ParameterError(f"{name}: it pads with zeros, by integers.")
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode
        )
        self.output_padding = each(name, "output_padding", output_padding, self._axes, 0)
        shape = (in_channels, out_channels // groups, *self.kernel_size)
        self.weight, self.bias = Values(rng, dtype).of_layer(
            shape, out_channels if bias else None, prod(shape[1:])
        )

    def forward(self, input: Any, output_size: Any = None) -> Any:
        """Return images in which each element has added a multiple of the kernel.

        Parameters
        ----------
        output_size : sequence of int, optional
            The size of the result, of those that the stride leaves open.
        """
        more = self.output_padding
        if output_size is not None:
            sizes = tuple(output_size)[-self._axes :]
            more = tuple(
                size - ((n - 1) * s - 2 * p + d * (k - 1) + 1)
                for size, n, s, p, d, k in zip(
                    sizes,
                    input.shape[-self._axes :],
                    self.stride,
                    self.padding,
                    self.dilation,
                    self.kernel_size,
                    strict=True,
                )
            )
            if not all(0 <= one < s for one, s in zip(more, self.stride, strict=True)):
                raise ShapeError(
                    f"{type(self).__name__}: output_size={sizes} is no size that an input of shape {input.shape} "
                    f"can have; the stride {self.stride} leaves only that many more open."
                )
        return self._call(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            more,
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_Back):
    """See ``ConvTranspose2d``; input of shape (batch, channels, length)."""

    _axes = 1
    _call = staticmethod(neural.conv_transpose1d)


class ConvTranspose2d(_Back):
    """The transpose of a convolution, which makes images larger; see ``rg.conv_transpose2d``.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, groups, bias, dilation, rng, dtype
        As for ``Conv2d``.
    output_padding : int or tuple of int
        How much longer the result is at one side.

    Attributes
    ----------
    weight : Var, shape ``(in_channels, out_channels // groups, *kernel_size)``
    bias : Var or None, shape (out_channels,)
    """

    _axes = 2
    _call = staticmethod(neural.conv_transpose2d)


class ConvTranspose3d(_Back):
    """See ``ConvTranspose2d``; input of shape (batch, channels, depth, height, width)."""

    _axes = 3
    _call = staticmethod(neural.conv_transpose3d)
