"""Functions of each element, or along one axis, as modules."""

from __future__ import annotations

from typing import Any

from reactgrad import ops
from reactgrad._errors import ParameterError
from reactgrad.nn._module import Module
from reactgrad.nn._values import Values
from reactgrad.nodes._handle import graph_of
from reactgrad.ops import neural, special
from reactgrad.random._rrelu import rrelu
from reactgrad.scheduler import safe_repr


class _Elementwise(Module):
    """A function without settings; ``inplace`` is taken and changes nothing."""

    def __init__(self, inplace: bool = False) -> None:
        pass


class ReLU(_Elementwise):
    """``x`` where it is positive, else 0; see ``rg.relu``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.ReLU()([-1.0, 2.0])
    >>> y.value
    array([0., 2.])
    """

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return ops.relu(input)


class ReLU6(_Elementwise):
    """See ``rg.relu6``."""

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.relu6(input)


class Sigmoid(_Elementwise):
    """See ``rg.sigmoid``."""

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return ops.sigmoid(input)


class Tanh(_Elementwise):
    """See ``rg.tanh``."""

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return ops.tanh(input)


class SiLU(_Elementwise):
    """See ``rg.silu``."""

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.silu(input)


class Mish(_Elementwise):
    """See ``rg.mish``."""

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.mish(input)


class SELU(_Elementwise):
    """See ``rg.selu``."""

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.selu(input)


class Hardsigmoid(_Elementwise):
    """See ``rg.hardsigmoid``."""

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.hardsigmoid(input)


class Hardswish(_Elementwise):
    """See ``rg.hardswish``."""

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.hardswish(input)


class LogSigmoid(_Elementwise):
    """See ``rg.log_sigmoid``."""

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.log_sigmoid(input)


class Softsign(_Elementwise):
    """See ``rg.softsign``."""

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.softsign(input)


class Tanhshrink(_Elementwise):
    """See ``rg.tanhshrink``."""

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.tanhshrink(input)


class GELU(Module):
    """See ``rg.gelu``.

    Parameters
    ----------
    approximate : str
        ``"none"``, or ``"tanh"``.
    """

    _settings = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.gelu(input, self.approximate)


class ELU(Module):
    """See ``rg.elu``.

    Parameters
    ----------
    alpha : float
    """

    _settings = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = alpha

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.elu(input, self.alpha)


class CELU(ELU):
    """See ``rg.celu``."""

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.celu(input, self.alpha)


class LeakyReLU(Module):
    """See ``rg.leaky_relu``.

    Parameters
    ----------
    negative_slope : float
    """

    _settings = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        self.negative_slope = negative_slope

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.leaky_relu(input, self.negative_slope)


class PReLU(Module):
    """``rg.prelu`` with a slope that is learned, one for all channels or one for each.

    Parameters
    ----------
    num_parameters : int
        1, or the number of channels: the second axis of the input.
    init : float
        The first slope.
    dtype
        See ``rg.nn``.

    Attributes
    ----------
    weight : Var, shape (num_parameters,)
    """

    _settings = ("num_parameters",)

    def __init__(self, num_parameters: int = 1, init: float = 0.25, *, dtype: Any = None) -> None:
        self.num_parameters = num_parameters
        self.weight = Values(0, dtype).full((num_parameters,), init)

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.prelu(input, self.weight)


class RReLU(Module):
    """A leaky ReLU whose slopes are drawn evenly from `lower` to `upper` in train mode, and are their mean else.

    Each call draws others; a result that is held keeps its own.

    Parameters
    ----------
    lower, upper : float
        The least and the largest slope.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> layer = rg.nn.RReLU(0.25, 0.75).eval()
    >>> with rg.Graph():
    ...     y = layer(np.array([1.0, -1.0]))
    >>> y.value
    array([ 1. , -0.5])
    """

    _settings = ("lower", "upper")

    def __init__(
        self, lower: float = 1.0 / 8.0, upper: float = 1.0 / 3.0, inplace: bool = False
    ) -> None:
        if not lower <= upper:
            raise ParameterError(
                f"RReLU(lower={safe_repr(lower):.40}, upper={safe_repr(upper):.40}): the first slope "
                "is at most the second."
            )
        self.lower, self.upper = lower, upper

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return rrelu(input, self.lower, self.upper, self._mode(graph_of(input)))


class Hardtanh(Module):
    """See ``rg.hardtanh``.

    Parameters
    ----------
    min_val, max_val : float
    """

    _settings = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        self.min_val, self.max_val = min_val, max_val

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.hardtanh(input, self.min_val, self.max_val)


class Hardshrink(Module):
    """See ``rg.hardshrink``.

    Parameters
    ----------
    lambd : float
    """

    _settings = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.hardshrink(input, self.lambd)


class Softshrink(Hardshrink):
    """See ``rg.softshrink``."""

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.softshrink(input, self.lambd)


class Softplus(Module):
    """See ``rg.softplus``.

    Parameters
    ----------
    beta, threshold : float
        Where ``beta * x`` is above the threshold the result is ``x``.
    """

    _settings = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.softplus(input, self.beta, self.threshold)


class Threshold(Module):
    """See ``rg.threshold``.

    Parameters
    ----------
    threshold, value : float
        Where ``x`` is not above the threshold the result is the value.
    """

    _settings = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        self.threshold, self.value = threshold, value

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return special.threshold(input, self.threshold, self.value)


# --- along an axis -------------------------------------------------------------------------------


def axis_of_classes(input: Any) -> int:
    """Return the axis that PyTorch takes where none is given: 0 for 0, 1 or 3 axes, else 1."""
    return 0 if input.ndim in (0, 1, 3) else 1


class _Along(Module):
    """A function along one axis."""

    _settings: tuple[str, ...] = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        self.dim = dim

    def _axis(self, input: Any) -> int:
        return axis_of_classes(input) if self.dim is None else self.dim


class Softmax(_Along):
    """See ``rg.softmax``.

    Parameters
    ----------
    dim : int, optional
        By default 0 for an input of 1 or 3 axes, else 1, as in PyTorch.
    """

    def forward(self, input: Any) -> Any:
        """Return the shares along the axis."""
        return ops.softmax(input, self._axis(input))


class LogSoftmax(_Along):
    """See ``rg.log_softmax``, and ``Softmax`` for the axis."""

    def forward(self, input: Any) -> Any:
        """Return the logarithms of the shares along the axis."""
        return ops.log_softmax(input, self._axis(input))


class Softmin(_Along):
    """See ``rg.softmin``, and ``Softmax`` for the axis."""

    def forward(self, input: Any) -> Any:
        """Return the shares along the axis."""
        return neural.softmin(input, self._axis(input))


class Softmax2d(Module):
    """``rg.softmax`` over the channels of images."""

    def forward(self, input: Any) -> Any:
        """Return the shares of the channels at each place."""
        return ops.softmax(input, -3)


class GLU(Module):
    """See ``rg.glu``.

    Parameters
    ----------
    dim : int
    """

    _settings = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, input: Any) -> Any:
        """Return the first half times the sigmoid of the second."""
        return neural.glu(input, self.dim)
