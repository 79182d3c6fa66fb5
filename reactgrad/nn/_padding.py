"""Borders around the axes of space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from reactgrad._errors import ParameterError, ShapeError
from reactgrad.nn._module import Module
from reactgrad.ops.arrangement import pad
from reactgrad.scheduler import safe_repr


def bordered(x: Any, width: Sequence[tuple[int, int]], mode: str, **options: Any) -> Any:
    """Return a value with a border of some width before and behind each axis; a negative one takes away."""
    if any(one < 0 for pair in width for one in pair):
        short = [
            i
            for i, (a, b) in enumerate(width)
            if x.shape[i] is not None and x.shape[i] < -min(a, 0) - min(b, 0)
        ]
        if short:
            raise ShapeError(
                f"a border of {width[short[0]]} takes away more than the {x.shape[short[0]]} elements along axis "
                f"{short[0]} of shape {x.shape}."
            )
        x = x[tuple([slice(max(-a, 0), -max(-b, 0) or None) for a, b in width])]
    return pad(x, [(max(a, 0), max(b, 0)) for a, b in width], mode, **options)


class _Pad(Module):
    """A border; see ``ZeroPad2d``."""

    _settings: tuple[str, ...] = ("padding",)
    _axes: ClassVar[int]
    _beyond: ClassVar[str] = "constant"

    def __init__(self, padding: Any) -> None:
        name, count = type(self).__name__, 2 * self._axes
        found = tuple(padding) if isinstance(padding, list | tuple) else (padding,) * count
        if len(found) != count or not all(isinstance(one, int) for one in found):
            raise ParameterError(
                f"{name}({safe_repr(padding):.40}): a border is an integer, or {count} of them: before "
                "and behind the last "
                "axis, then the axis before it. Negative ones take away."
            )
        self.padding = found

    def _options(self) -> dict[str, Any]:
        return {}

    def forward(self, input: Any) -> Any:
        """Return the input with its border."""
        more = input.ndim - self._axes
        if more < 1:
            raise ShapeError(
                f"{type(self).__name__} of shape {input.shape}: it pads the last {self._axes} axes, and there is one "
                "of channels before them."
            )
        pairs = [self.padding[i : i + 2] for i in range(0, len(self.padding), 2)]
        return bordered(input, [(0, 0)] * more + pairs[::-1], self._beyond, **self._options())


class _ConstantPad(_Pad):
    """A border of one number."""

    _settings = ("padding", "value")

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def _options(self) -> dict[str, Any]:
        return {"constant_values": self.value}


class ZeroPad1d(_Pad):
    """Zeros beyond the edge of 1 axis; see ``ZeroPad2d``."""

    _axes = 1


class ZeroPad2d(_Pad):
    """Zeros around images.

    Parameters
    ----------
    padding : int or tuple of int
        One for all sides; or left, right, top and bottom, as in PyTorch. Negative ones take away.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.ZeroPad2d((1, 0, 0, 0))([[[1.0, 2.0]]])
    >>> y.value
    array([[[0., 1., 2.]]])
    """

    _axes = 2


class ZeroPad3d(_Pad):
    """Zeros beyond the edge of 3 axes; see ``ZeroPad2d``."""

    _axes = 3


class ConstantPad1d(_ConstantPad):
    """One number beyond the edge of 1 axis; see ``ZeroPad2d``."""

    _axes = 1


class ConstantPad2d(_ConstantPad):
    """One number beyond the edge of 2 axes; see ``ZeroPad2d``."""

    _axes = 2


class ConstantPad3d(_ConstantPad):
    """One number beyond the edge of 3 axes; see ``ZeroPad2d``."""

    _axes = 3


class ReflectionPad1d(_Pad):
    """The reflection of the input at its edge beyond the edge of 1 axis; see ``ZeroPad2d``."""

    _axes = 1
    _beyond = "reflect"


class ReflectionPad2d(_Pad):
    """The reflection of the input at its edge beyond the edge of 2 axes; see ``ZeroPad2d``."""

    _axes = 2
    _beyond = "reflect"


class ReflectionPad3d(_Pad):
    """The reflection of the input at its edge beyond the edge of 3 axes; see ``ZeroPad2d``."""

    _axes = 3
    _beyond = "reflect"


class ReplicationPad1d(_Pad):
    """The number at the edge beyond the edge of 1 axis; see ``ZeroPad2d``."""

    _axes = 1
    _beyond = "edge"


class ReplicationPad2d(_Pad):
    """The number at the edge beyond the edge of 2 axes; see ``ZeroPad2d``."""

    _axes = 2
    _beyond = "edge"


class ReplicationPad3d(_Pad):
    """The number at the edge beyond the edge of 3 axes; see ``ZeroPad2d``."""

    _axes = 3
    _beyond = "edge"


class CircularPad1d(_Pad):
    """The input again beyond the edge of 1 axis; see ``ZeroPad2d``."""

    _axes = 1
    _beyond = "wrap"


class CircularPad2d(_Pad):
    """The input again beyond the edge of 2 axes; see ``ZeroPad2d``."""

    _axes = 2
    _beyond = "wrap"


class CircularPad3d(_Pad):
    """The input again beyond the edge of 3 axes; see ``ZeroPad2d``."""

    _axes = 3
    _beyond = "wrap"
