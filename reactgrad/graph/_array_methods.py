"""Methods of NumPy's arrays whose functions are imported when they are first used."""

from __future__ import annotations

import sys
from typing import Any, Final

from reactgrad import ops
from reactgrad._calls import explain_methods
from reactgrad._errors import ParameterError
from reactgrad._habits import unknown_keyword
from reactgrad.scheduler import safe_repr

# Versions of the array API standard that the package follows, the last one as a whole.
_VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12")

_OPTIONS: Final = ("where", "mean", "correction")


class ArrayMethods:
    """Methods that call the function of their name with the node in first place."""

    __slots__ = ()

    def to(self, *targets: Any, dtype: Any = None, device: str | None = None) -> Any:
        """Return the value in another dtype, on another device, or both.

        Where there is nothing to do, this is the node itself. Otherwise it is a node that follows this one,
        and gradients come back in its dtype and to its device. A copy from one device to another waits for
        neither; only a copy to the host waits, for the value that it copies.

        Parameters
        ----------
        *targets : dtype_like or str
            A dtype, the name of a device, or one of each.
        dtype : dtype_like, optional
        device : str, optional
            One of ``rg.devices()``.

        Raises
        ------
        DeviceError
            If there is no such device.
        DTypeError
            If there is no such dtype, or it would drop an imaginary part.

        Examples
        --------
        >>> import reactgrad as rg
        >>> x = rg.Graph().input([1.0, 2.0])
        >>> x.to("float64") is x, x.to("cpu") is x
        (True, True)
        >>> x.to("float32").to("cpu").dtype
        dtype('float32')
        """
        return ops.to(self, *targets, dtype=dtype, device=device)

    def to_device(self, device: str, /, *, stream: None = None) -> Any:
        """Return the value on another device, as the array API standard calls ``to``."""
        return ops.to(self, device=device)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """Return ``reactgrad``, which has the functions of the array API standard."""
        if api_version not in (None, *_VERSIONS):
            raise ParameterError(
                f"api_version={safe_repr(api_version)}: the namespace follows the array API standard {_VERSIONS[-1]}."
            )
        return sys.modules["reactgrad"]  # by name: the package is above all of its folders

    def all(self, axis: Any = None, keepdims: bool = False, *, where: Any = True) -> Any:
        """Return whether all elements along axes are true; see ``rg.all``."""
        return ops.all(self, axis, keepdims=keepdims, where=where)

    def any(self, axis: Any = None, keepdims: bool = False, *, where: Any = True) -> Any:
        """Return whether any element along axes is true; see ``rg.any``."""
        return ops.any(self, axis, keepdims=keepdims, where=where)

    def argmax(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return the index of the largest element along an axis; see ``rg.argmax``."""
        return ops.argmax(self, axis, keepdims=keepdims)

    def argmin(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return the index of the smallest element along an axis; see ``rg.argmin``."""
        return ops.argmin(self, axis, keepdims=keepdims)

    def argpartition(self, kth: Any, axis: Any = -1, kind: str = "introselect") -> Any:
        """Return the indices that would partition the elements; see ``rg.argpartition``."""
        return ops.argpartition(self, kth, axis, kind)

    def argsort(
        self,
        axis: Any = -1,
        kind: str | None = None,
        order: None = None,
        *,
        stable: bool | None = None,
        descending: bool = False,
    ) -> Any:
        """Return the indices that would sort the elements along an axis; see ``rg.argsort``."""
        return ops.argsort(self, axis, kind, order, stable=stable, descending=descending)

    @property
    def itemsize(self) -> int:
        """The memory of one element in bytes."""
        return self.dtype.itemsize  # type: ignore[attr-defined]

    @property
    def nbytes(self) -> int:
        """The memory of all elements in bytes, without computing."""
        return self.size * self.itemsize  # type: ignore[attr-defined]

    def numel(self) -> int:
        """Return the number of elements: ``size`` by PyTorch's name."""
        return self.size  # type: ignore[attr-defined]

    @property
    def at(self) -> Any:
        """The places of the value: ``x.at[i].set(v)`` is a node of the value with a part changed.

        Also ``add``, ``subtract``, ``multiply``, ``divide``, ``power``, ``min``, ``max`` and ``apply``, as in JAX.
        Nothing is written into the value itself.

        Examples
        --------
        >>> import reactgrad as rg
        >>> x = rg.Graph().input([1.0, 2.0, 3.0])
        >>> x.at[1:].add(10.0).value
        array([ 1., 12., 13.])
        """
        from reactgrad.ops.arrangement._place import At

        return At(self)

    def choose(self, choices: Any, mode: str = "raise") -> Any:
        """Return elements of several arrays, chosen by the numbers of this one; see ``rg.choose``."""
        return ops.choose(self, choices, mode=mode)

    def compress(self, condition: Any, axis: Any = None) -> Any:
        """Return the parts along an axis whose condition is true; see ``rg.compress``."""
        return ops.compress(condition, self, axis)

    def cumprod(self, axis: Any = None, dtype: Any = None) -> Any:
        """Return the running product along an axis; see ``rg.cumprod``."""
        return ops.cumprod(self, axis, dtype)

    def cumsum(self, axis: Any = None, dtype: Any = None) -> Any:
        """Return the running sum along an axis; see ``rg.cumsum``."""
        return ops.cumsum(self, axis, dtype)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        """Return the diagonal of a matrix; see ``rg.diagonal``."""
        return ops.diagonal(self, offset, axis1, axis2)

    def dot(self, b: Any) -> Any:
        """Return the product of vectors and matrices; see ``rg.dot``."""
        return ops.dot(self, b)

    @property
    def mT(self) -> Any:
        """Each matrix transposed: the last two axes are exchanged; see ``rg.matrix_transpose``."""
        return ops.matrix_transpose(self)

    def flatten(self, start_dim: Any = 0, end_dim: int = -1, order: str = "C") -> Any:
        """Return the elements along one axis, or some axes taken together; see ``rg.flatten``."""
        return ops.flatten(self, start_dim, end_dim, order)

    def nonzero(self) -> Any:
        """Return the indices of the elements that are not zero, an array for each axis; see ``rg.nonzero``."""
        return ops.nonzero(self)

    def prod(
        self, axis: Any = None, dtype: Any = None, keepdims: bool = False, **options: Any
    ) -> Any:
        """Return the product over axes; see ``rg.prod``."""
        return ops.prod(self, axis, dtype, keepdims=keepdims, **options)

    def ravel(self, order: str = "C") -> Any:
        """Return the elements along one axis; see ``rg.ravel``."""
        return ops.ravel(self, order)

    def repeat(self, repeats: Any, axis: Any = None) -> Any:
        """Return each element several times; see ``rg.repeat``."""
        return ops.repeat(self, repeats, axis)

    def round(self, decimals: int = 0) -> Any:
        """Return the elements rounded to a number of decimals; see ``rg.round``."""
        return ops.round(self, decimals)

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Any:
        """Return where elements would be inserted to keep the order; see ``rg.searchsorted``."""
        return ops.searchsorted(self, v, side, sorter)

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
        **options: Any,
    ) -> Any:
        """Return the standard deviation over axes; see ``rg.std``."""
        _check_options("x.std", options)
        return ops.std(self, axis, dtype, ddof, keepdims=keepdims, **options)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """Return the value with two axes exchanged; see ``rg.swapaxes``."""
        return ops.swapaxes(self, axis1, axis2)

    def take(self, indices: Any, axis: Any = None, mode: str = "raise") -> Any:
        """Return the elements at indices along an axis; see ``rg.take``."""
        return ops.take(self, indices, axis, mode=mode)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
        """Return the sum of a diagonal; see ``rg.trace``."""
        return ops.trace(self, offset, axis1, axis2, dtype)

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
        **options: Any,
    ) -> Any:
        """Return the variance over axes; see ``rg.var``."""
        _check_options("x.var", options)
        return ops.var(self, axis, dtype, ddof, keepdims=keepdims, **options)


def _check_options(call: str, options: dict[str, Any]) -> None:
    """Raise ``DTypeError`` for an argument that ``std`` and ``var`` do not have."""
    unknown = {name: value for name, value in options.items() if name not in _OPTIONS}
    if unknown:
        raise unknown_keyword(call, unknown, ("axis", "dtype", "ddof", "keepdims", *_OPTIONS))


explain_methods(ArrayMethods)
