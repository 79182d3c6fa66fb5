"""Dropout, which draws anew at each call and does nothing in eval mode."""

from __future__ import annotations

from typing import Any, ClassVar

from reactgrad._errors import ParameterError
from reactgrad.nn._module import Module
from reactgrad.nodes._handle import graph_of
from reactgrad.random import _dropout


class Dropout(Module):
    """Elements set to zero with probability `p`, and the others divided by ``1 - p``, in train mode.

    Each call draws others; a result that is held keeps its own, at every read. ``eval`` of the layer, of a
    module above it or of the graph makes results follow, and reruns nothing else.

    Parameters
    ----------
    p : float
        From 0 to 1.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(np.ones(8))
    >>> layer = rg.nn.Dropout(0.5)
    >>> y, z = layer(x), layer(x)
    >>> sorted(set(y.tolist())), y.tolist() == z.tolist()
    ([0.0, 2.0], False)
    >>> layer.eval().training, y.tolist() == z.tolist()
    (False, True)
    """

    _settings = ("p",)
    _drop: ClassVar[Any] = staticmethod(_dropout.dropout)

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if isinstance(p, bool) or not isinstance(p, int | float) or not 0.0 <= p <= 1.0:
            raise ParameterError(
                f"{type(self).__name__}(p={p!r:.40}): it is a probability, from 0 to 1. Write 0.1 for one in ten."
            )
        self.p = p

    def forward(self, input: Any) -> Any:
        """Return the input with elements dropped."""
        return self._drop(input, self.p, self._mode(graph_of(input)))


class Dropout1d(Dropout):
    """Whole channels dropped: shape (batch, channels, length); see ``Dropout``."""

    _drop = staticmethod(_dropout.dropout1d)


class Dropout2d(Dropout):
    """Whole channels dropped: shape (batch, channels, height, width); see ``Dropout``."""

    _drop = staticmethod(_dropout.dropout2d)


class Dropout3d(Dropout):
    """Whole channels dropped: three axes of space; see ``Dropout``."""

    _drop = staticmethod(_dropout.dropout3d)


class AlphaDropout(Dropout):
    """Elements set to SELU's limit, so that mean 0 and variance 1 stay; see ``Dropout``."""

    _drop = staticmethod(_dropout.alpha_dropout)


class FeatureAlphaDropout(Dropout):
    """Whole channels set to SELU's limit: shape (batch, channels, ...); see ``AlphaDropout``."""

    _drop = staticmethod(_dropout.feature_alpha_dropout)
