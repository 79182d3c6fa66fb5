"""What is known of a value before it is computed: shape, dtype, device."""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any, Final

import numpy as np

Shape = tuple[int | None, ...]  # None: not known before the input it comes from is set
DType = np.dtype[Any]

# Python's numbers have no width of their own: beside an array they take the array's (NEP 50).
WEAK_DTYPES: Final[dict[type, DType]] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}


class Spec:
    """Shape, dtype and device of an array value; equal specs are the same object.

    Attributes
    ----------
    shape : tuple of int or None
        ``None`` stands for a length that is not known yet.
    dtype : numpy.dtype
        In native byte order.
    device : str
        ``"cpu"`` or for example ``"cuda:0"``; what precedes the colon is the device kind.
    weak : type or None
        ``bool``, ``int``, ``float`` or ``complex`` for a Python number, which promotes as a
        literal does.
    storage : tuple of int
        The shape in which values are stored: at least one axis.
    """

    __slots__ = ("device", "dtype", "kind", "shape", "storage", "weak")

    shape: Shape
    dtype: DType
    device: str
    kind: str
    storage: tuple[int, ...]
    weak: type | None

    def __repr__(self) -> str:
        if self.weak is not None:
            return f"a Python {self.weak.__name__}"
        shape = ", ".join("?" if n is None else str(n) for n in self.shape)
        return f"{self.dtype.name}[{shape}]"

    @property
    def known(self) -> bool:
        """Whether every length is known."""
        return None not in self.shape

    @property
    def nbytes(self) -> int:
        """Memory of a stored value; 0 of a Python number, and as long as a length is not known."""
        if self.weak is not None or None in self.shape:
            return 0
        return prod(self.storage) * self.dtype.itemsize

    @property
    def differentiable(self) -> bool:
        """Whether gradients pass such a value, or must be refused at it (complex numbers)."""
        return self.dtype.kind in "fc"


_interned: dict[tuple[Shape, DType, str, type | None], Spec] = {}


def spec(shape: Shape, dtype: DType, device: str = "cpu", weak: type | None = None) -> Spec:
    """The one ``Spec`` with these properties."""
    key = (shape, dtype, device, weak)
    found = _interned.get(key)
    if found is None:
        # NumPy's own object for this dtype, so that `is` recognises it on arrays.
        own = np.dtype(np.dtype(dtype).newbyteorder("=").str)
        if not isinstance(dtype, np.dtype) or dtype != own:
            return spec(shape, own, device, weak)
        found = Spec()
        # 1.0 and True are keys equal to 1, and no lengths.
        found.shape = tuple([None if n is None else int(index(n)) for n in shape])
        found.storage = tuple([n for n in found.shape if n is not None]) or (1,)
        found.device, found.weak = device, weak
        found.dtype = own
        found.kind = device.partition(":")[0]
        # setdefault: two threads that make the same one end up with the same object.
        found = _interned.setdefault(key, found)
    return found


def weak_spec(number_type: type, device: str = "cpu") -> Spec:
    """The spec of a Python number."""
    return spec((), WEAK_DTYPES[number_type], device, number_type)


# Of numbers as they are written.
WEAK_SPECS: Final[dict[type, Spec]] = {kind: weak_spec(kind) for kind in WEAK_DTYPES}
