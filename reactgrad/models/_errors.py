"""The errors for models that cannot become graphs."""

from __future__ import annotations

from collections.abc import Sequence

from reactgrad import LoadError


class ModelError(LoadError):
    """A model file cannot become a graph: damaged, too large, or with something that has no function here."""


class OpError(ModelError):
    """An op, or a use of it, that has no function here; the message names all at once, with counts."""


class UnknownLengthError(ModelError):
    """A number decides about the shape of the graph, and follows from inputs whose values are not known.

    Attributes
    ----------
    needs : tuple of str
        The inputs that it follows from: give their values as ``constants=``, or their shapes as
        ``shapes=``.
    """

    def __init__(self, message: str, needs: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.needs = tuple(needs)
