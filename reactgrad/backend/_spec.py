"""Specs: the shape, dtype and device of a value, known before the value is computed."""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any, Final

import numpy as np

from reactgrad._errors import ShapeError

Shape = tuple[int | None, ...]  # None: a length that is not known until an input is set
DType = np.dtype[Any]

MOST_AXES: Final = 64  # that an array of NumPy may have

# The dtypes of Python's numbers where they stand alone; beside an array they take its dtype (NEP 50).
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
        ``"cpu"`` or for example ``"cuda:0"``; the part before the colon is the device kind, `kind`.
    weak : type or None
        ``bool``, ``int``, ``float`` or ``complex`` for a Python number, which promotes as a
        literal does.
    size : int or None
        The number of elements; ``None`` if a length is not known.
    storage : tuple of int
        The shape in which values are stored: at least one axis.
    counts : bool
        Whether it is one whole number of the host, whose dtype a result may leave.
    """

    __slots__ = ("counts", "device", "dtype", "kind", "shape", "size", "storage", "weak")

    shape: Shape
    dtype: DType
    device: str
    kind: str
    size: int | None
    storage: tuple[int, ...]
    weak: type | None
    counts: bool

    def __repr__(self) -> str:
        if self.weak is not None:
            return f"a Python {self.weak.__name__}"
        shape = ", ".join("?" if n is None else str(n) for n in self.shape)
        return f"{self.dtype.name}[{shape}]"

    @property
    def known(self) -> bool:
        """True if every length is known."""
        return None not in self.shape

    @property
    def nbytes(self) -> int:
        """The memory of a stored value; 0 for a Python number, or if a length is not known."""
        if self.weak is not None or self.size is None:
            return 0
        return self.size * self.dtype.itemsize

    @property
    def differentiable(self) -> bool:
        """True for floats, which pass gradients, and for complex numbers, which refuse them.

        Integers and booleans end gradients without an error.
        """
        return self.dtype.kind in "fc"


_interned: dict[tuple[Shape, DType, str, type | None], Spec] = {}


def spec(shape: Shape, dtype: DType, device: str = "cpu", weak: type | None = None) -> Spec:
    """Return the one ``Spec`` with these properties."""
    key = (shape, dtype, device, weak)
    found = _interned.get(key)
    if found is None:
        # NumPy's own object for this dtype, so that `is` recognises it on arrays.
        own = np.dtype(np.dtype(dtype).newbyteorder("=").str)
        if not isinstance(dtype, np.dtype) or dtype != own:
            return spec(shape, own, device, weak)
        found = Spec()
        # As keys 1.0 and True equal 1; lengths are ints only.
        found.shape = tuple([None if n is None else int(index(n)) for n in shape])
        found.storage = tuple([n for n in found.shape if n is not None]) or (1,)
        if len(found.shape) > MOST_AXES:
            raise ShapeError(
                f"a value would have {len(found.shape)} axes; an array has at most {MOST_AXES}."
            )
        found.size = prod(found.storage) if found.known else None
        if found.size is not None and found.size * own.itemsize >= 2**63:
            raise ShapeError(
                f"{own.name}{list(found.shape)} would take {found.size * own.itemsize} bytes; no array is so large."
            )
        found.device, found.weak = device, weak
        found.dtype = own
        found.kind = device.partition(":")[0]
        found.counts = not shape and own.kind in "iu" and device == "cpu" and weak is None
        # setdefault: two threads that make the same one end up with the same object.
        found = _interned.setdefault(key, found)
    return found


def weak_spec(number_type: type, device: str = "cpu") -> Spec:
    """Return the spec of a Python number of this type."""
    return spec((), WEAK_DTYPES[number_type], device, number_type)


# The specs of Python numbers, by type.
WEAK_SPECS: Final[dict[type, Spec]] = {kind: weak_spec(kind) for kind in WEAK_DTYPES}
