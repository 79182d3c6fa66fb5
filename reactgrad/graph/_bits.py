"""Operators on the bits of integers, and on booleans: ``& | ^ << >> ~``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from reactgrad import ops
from reactgrad._errors import DTypeError
from reactgrad.nodes._handle import Handle

# By operator: the op for booleans, the name of the op for integers, and what to write for other numbers.
_OPS: Final[dict[str, tuple[Any, str, str]]] = {
    "&": (ops.logical_and, "bitwise_and", "use it on comparisons such as x > 0"),
    "|": (ops.logical_or, "bitwise_or", "use it on comparisons such as x > 0"),
    "^": (ops.not_equal, "bitwise_xor", "for a power write x ** y"),
    "<<": (None, "left_shift", "write x * 2.0**y"),
    ">>": (None, "right_shift", "write x / 2.0**y"),
}


class BitOperators:
    """The operators, for a handle of a node."""

    __slots__ = ()

    # What the handle has besides.
    dtype: Any
    label: Any
    _augmented: Callable[[Callable[[Any, Any], Any], Any, str], Any]

    def __and__(self, other: Any) -> Any:
        return _node("&", self, other)

    def __rand__(self, other: Any) -> Any:
        return _node("&", other, self)

    def __iand__(self, other: Any) -> Any:
        return self._augmented(partial(_node, "&"), other, "&=")

    def __or__(self, other: Any) -> Any:
        return _node("|", self, other)

    def __ror__(self, other: Any) -> Any:
        return _node("|", other, self)

    def __ior__(self, other: Any) -> Any:
        return self._augmented(partial(_node, "|"), other, "|=")

    def __xor__(self, other: Any) -> Any:
        return _node("^", self, other)

    def __rxor__(self, other: Any) -> Any:
        return _node("^", other, self)

    def __ixor__(self, other: Any) -> Any:
        return self._augmented(partial(_node, "^"), other, "^=")

    def __lshift__(self, other: Any) -> Any:
        return _node("<<", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _node("<<", other, self)

    def __ilshift__(self, other: Any) -> Any:
        return self._augmented(partial(_node, "<<"), other, "<<=")

    def __rshift__(self, other: Any) -> Any:
        return _node(">>", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return _node(">>", other, self)

    def __irshift__(self, other: Any) -> Any:
        return self._augmented(partial(_node, ">>"), other, ">>=")

    def __invert__(self) -> Any:
        kind = self.dtype.kind
        if kind == "b":
            return ops.logical_not(self)
        if kind in "iu":
            return ops.invert(self)
        raise DTypeError(
            f"~ negates booleans, and the bits of integers; {self.label!r} is of {self.dtype}."
        )


def _node(sign: str, a: Any, b: Any) -> Any:
    of_booleans, of_integers, instead = _OPS[sign]
    kinds = "".join([_kind(a), _kind(b)])
    if kinds == "bb" and of_booleans is not None:
        return of_booleans(a, b)
    if set(kinds) <= set("biu"):
        return getattr(ops, of_integers)(a, b)
    raise DTypeError(f"{sign} combines booleans, or the bits of integers; {instead}.")


def _kind(x: Any) -> str:
    handle: Any = x if isinstance(x, Handle) else np.asarray(x)
    return handle.dtype.kind
