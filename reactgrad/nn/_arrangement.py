"""Modules that arrange elements in another way."""

from __future__ import annotations

from typing import Any

from reactgrad._errors import ShapeError
from reactgrad.nn._module import Module
from reactgrad.ops import neural
from reactgrad.ops._operand import node
from reactgrad.ops.arrangement import flatten, swapaxes, unflatten
from reactgrad.ops.neural._space import whole


class Flatten(Module):
    """Several axes as one; by default all but the first.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.Flatten()(np.zeros((2, 3, 4)))
    >>> y.shape
    (2, 12)
    """

    _settings = ("start_dim", "end_dim")

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Any:
        """Return the input with fewer axes."""
        return flatten(input, self.start_dim, self.end_dim)


class Unflatten(Module):
    """One axis taken apart into several; one length may be -1."""

    _settings = ("dim", "unflattened_size")

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Any) -> Any:
        """Return the input with more axes."""
        return unflatten(input, self.dim, self.unflattened_size)


class PixelShuffle(Module):
    """See ``rg.pixel_shuffle``."""

    _settings = ("upscale_factor",)

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, input: Any) -> Any:
        """Return larger images with fewer channels."""
        return neural.pixel_shuffle(input, self.upscale_factor)


def channel_shuffle(input: Any, groups: int) -> Any:
    """Return images whose channels come from each of `groups` parts in turn; see ``ChannelShuffle``.

    Raises
    ------
    ShapeError
        If the channels, axis 1, are no multiple of `groups`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.functional.channel_shuffle([[[0.0], [1.0], [2.0], [3.0]]], 2)
    >>> y.value.ravel()
    array([0., 2., 1., 3.])
    """
    x = node(input)
    groups = whole("channel_shuffle", "groups", groups, 1)
    channels = x.shape[1] if x.ndim > 2 else None
    if channels is None or channels % groups:
        raise ShapeError(
            f"channel_shuffle of shape {x.shape} by {groups}: it is (batch, channels, ...), and the number of channels "
            f"a multiple of {groups}."
        )
    parts = unflatten(x, 1, (groups, channels // groups))
    return flatten(swapaxes(parts, 1, 2), 1, 2)


class ChannelShuffle(Module):
    """Channels from each of several parts in turn (Zhang and others, ShuffleNet, 2018).

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.ChannelShuffle(2)(np.arange(4.0).reshape(1, 4, 1))
    >>> y.value.ravel()
    array([0., 2., 1., 3.])
    """

    _settings = ("groups",)

    def __init__(self, groups: int) -> None:
        self.groups = groups

    def forward(self, input: Any) -> Any:
        """Return the input with its channels in another order."""
        return channel_shuffle(input, self.groups)


class PixelUnshuffle(Module):
    """See ``rg.pixel_unshuffle``."""

    _settings = ("downscale_factor",)

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, input: Any) -> Any:
        """Return smaller images with more channels."""
        return neural.pixel_unshuffle(input, self.downscale_factor)


class Upsample(Module):
    """Images stretched to another size; see ``rg.interpolate``."""

    _settings = ("size", "scale_factor", "mode")

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Any) -> Any:
        """Return the stretched images."""
        return neural.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )


class UpsamplingNearest2d(Upsample):
    """``Upsample`` by the nearest pixels."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """``Upsample`` by lines between pixels; corners stay corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class Unfold(Module):
    """The patches of images as columns; see ``rg.unfold``."""

    _settings: tuple[str, ...] = ("kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Any) -> Any:
        """Return the columns."""
        return neural.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Module):
    """Images in which each patch is added at its place; see ``rg.fold``."""

    _settings = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> None:
        self.output_size, self.kernel_size, self.dilation = output_size, kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Any) -> Any:
        """Return the images."""
        return neural.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )
