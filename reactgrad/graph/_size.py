"""The number of elements of a value, an integer that says so where it is called as PyTorch's ``x.size()``."""

from __future__ import annotations

from typing import Any, Never

from reactgrad._errors import DTypeError


class Size(int):
    """A number of elements."""

    __slots__ = ()

    def __call__(self, *axis: Any) -> Never:
        written = ", ".join([f"{one!r:.20}" for one in axis])
        instead = f"x.shape[{written}]" if axis else "x.shape"
        raise DTypeError(
            f"x.size({written}): size is the number of elements here, as in NumPy, and no function. Write {instead}."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)
