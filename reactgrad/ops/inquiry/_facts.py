"""Facts about arrays: kinds of dtypes, memory, texts. They follow from specs, or from the present value."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad.nodes._handle import Handle
from reactgrad.ops._astype import astype


def _empty(one: Any) -> Any:
    """Return an array without elements that has the dtype of a node; other things as they are."""
    return np.empty(0, one.dtype) if isinstance(one, Handle) else one  # type: ignore[attr-defined]


def common_type(*arrays: Any) -> Any:
    """Return the float type that holds the elements of all arrays, as ``np.common_type`` does.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.common_type(rg.Graph().input([1, 2])).__name__
    'float64'
    """
    return np.common_type(*map(_empty, arrays))


def min_scalar_type(a: Any) -> np.dtype[Any]:
    """Return the dtype of a node: that of a number would follow its value, which changes.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.min_scalar_type(rg.Graph().input(3))
    dtype('int64')
    """
    return a.dtype if isinstance(a, Handle) else np.min_scalar_type(a)  # type: ignore[attr-defined]


def _share_nothing(a: Any, b: Any, max_work: Any = None) -> bool:
    """Return false: what a caller has never shares memory with a node (values are safe to keep)."""
    return False


def _text(name: str) -> Any:
    function = getattr(np, name)

    def text(a: Any, *args: Any, **kwargs: Any) -> str:
        # Formatting shows the present value, and is named as a way out (rule V1).
        return function(np.asarray(a.value) if isinstance(a, Handle) else a, *args, **kwargs)  # type: ignore[attr-defined]

    text.__name__ = name
    return text


def _astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Return a node in another dtype; a node is never written to, so that no copy is made of it."""
    return astype(x, dtype)


def _can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    return np.can_cast(_dtype(from_), _dtype(to), casting)  # type: ignore[arg-type]


def _result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    return np.result_type(*map(_operand, arrays_and_dtypes))


def _dtype(one: Any) -> Any:
    return one.dtype if isinstance(one, Handle) else one  # type: ignore[attr-defined]


def _operand(one: Any) -> Any:
    """Return what promotes as a node does: its dtype, or a Python number where it holds one."""
    if not isinstance(one, Handle):
        return one
    found = one._graph._host.specs[one._slot]
    return _NUMBERS[found.weak] if found is not None and found.weak else one.dtype  # type: ignore[attr-defined]


_NUMBERS: Final = {bool: False, int: 0, float: 0.0, complex: 0j}

_FOR_NUMPY: Final = {
    "astype": _astype,
    "can_cast": _can_cast,
    "result_type": _result_type,
    "may_share_memory": _share_nothing,
    "shares_memory": _share_nothing,
    "array_repr": _text("array_repr"),
    "array_str": _text("array_str"),
    "array2string": _text("array2string"),
}
