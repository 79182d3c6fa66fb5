"""Detached views: operands that give their value to an op, and no gradient."""

from __future__ import annotations

from typing import Any

from reactgrad._errors import DTypeError, ReactgradError, SetError
from reactgrad.core._core import V
from reactgrad.graph._value import Value, absent_of


class DetachedError(ReactgradError, AttributeError):
    """A detached view was asked for an attribute that only its base has."""


class DetachedVar(Value[V]):
    """A view of a node for ops that gradients must not pass; made by ``Var.detach``.

    Attributes
    ----------
    base : Var
        The node.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input(2.0)
    >>> x.detach().base is x
    True
    """

    __slots__ = ("base",)

    base: V

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise DTypeError("detached views are made by v.detach().")

    def __getattr__(self, name: str) -> Any:
        if hasattr(
            type(self), name
        ):  # a property, which raised an AttributeError of the node's own
            return getattr(self.base, name)
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if not hasattr(self._graph._var, name):
            raise absent_of(self.base, name)
        own = self.base.name
        raise DetachedError(
            f"a detached view has no {name!r}: it says of an operand that no gradient passes, and is no "
            f"node of its own. Of the node itself: {own}.base.{name}, where {own} is the view; for a "
            "node that no gradient passes write detach_node() in place of detach()."
        )

    def detach(self) -> DetachedVar[V]:
        """Return the view itself."""
        return self

    @property
    def requires_grad(self) -> bool:
        """Always ``False``."""
        return False

    def set(self, value: Any, copy: bool = True) -> None:
        """Raise ``SetError``: a detached view cannot be set. Set its base."""
        raise SetError(f"a detached view cannot be set; write {self.label}.base.set(...).")

    def __repr__(self) -> str:
        return f"<detached {self.base!r}>"
