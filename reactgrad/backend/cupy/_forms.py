"""NumPy's calls that CuPy lacks, made of calls that it has.

Families of ops register their kernels with ``with_numpys_forms(cupy)``: CuPy itself, except for the names below.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

# The functions that reduce as a ufunc does, where the ufunc has no ``reduce`` of its own.
_REDUCTIONS: Final = {
    "maximum": "max",
    "minimum": "min",
    "fmax": "nanmax",
    "fmin": "nanmin",
    "logical_and": "all",
    "logical_or": "any",
}
_OWN: Final = ("add", "multiply")  # ufuncs that have ``reduce`` and ``accumulate``
_UFUNCS: Final = (*_OWN, *_REDUCTIONS, "logaddexp", "logaddexp2")
_ABSENT: Final = object()


class Ufunc:
    """A ufunc of CuPy with the methods of NumPy's."""

    def __init__(self, xp: Any, name: str) -> None:
        self._xp = xp
        self._ufunc = getattr(xp, name)
        self.__name__ = name
        self.nin, self.nout = 2, 1
        self.at, self.outer = self._ufunc.at, self._ufunc.outer

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ufunc(*args, **kwargs)

    def reduce(
        self,
        x: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = _ABSENT,
        where: Any = True,
    ) -> Any:
        xp, name = self._xp, self.__name__
        if where is not True:
            neutral = _neutral(name, x.dtype) if initial is _ABSENT else initial
            x = xp.where(where, x, xp.asarray(neutral).astype(x.dtype))
        if dtype is not None and name not in _OWN:
            x = x.astype(dtype, copy=False)
        if initial is not _ABSENT:
            found = self.reduce(x, axis, dtype, None, keepdims) if x.size else None
            start = xp.asarray(initial).astype(x.dtype if out is None else out.dtype)
            if found is None:
                raise NotImplementedError(f"{name}.reduce of nothing, from an initial value")
            return self._ufunc(found, start) if out is None else self._ufunc(found, start, out)
        if name in _OWN:
            return self._ufunc.reduce(x, axis, dtype, out, keepdims)
        if name in _REDUCTIONS:
            function = _REDUCTIONS[name]
            if function.startswith("nan") and x.dtype.kind not in "fc":
                function = function.removeprefix("nan")
            return getattr(xp, function)(x, axis=axis, out=out, keepdims=keepdims)
        raise NotImplementedError(f"{name}.reduce on this device")

    def accumulate(self, x: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        if self.__name__ in _OWN:
            return self._ufunc.accumulate(x, axis, dtype, out)
        if dtype is not None or out is not None:
            x = x.astype(out.dtype if dtype is None else dtype, copy=False)
        found = self._scan(x, axis % x.ndim)
        if out is None:
            return found
        self._xp.copyto(out, found)
        return out

    def _scan(self, x: Any, axis: int) -> Any:
        """Return the running results, by partners at distances that double (Hillis and Steele 1986)."""
        before = (slice(None),) * axis
        distance = 1
        while distance < x.shape[axis]:
            new = x.copy()
            earlier, later = (*before, slice(None, -distance)), (*before, slice(distance, None))
            self._ufunc(x[earlier], x[later], new[later])
            x, distance = new, 2 * distance
        return x


def _neutral(name: str, dtype: Any) -> Any:
    """Return the element that changes no result."""
    if name in ("add", "logical_or"):
        return 0
    if name in ("multiply", "logical_and"):
        return 1
    least = name in ("maximum", "fmax")
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if least else np.iinfo(dtype).max
    return -np.inf if least else np.inf


class WithNumPysForms:
    """CuPy's namespace, with what it lacks; see ``with_numpys_forms``."""

    def __init__(self, xp: Any) -> None:
        self._xp = xp
        for name in _UFUNCS:
            setattr(self, name, Ufunc(xp, name))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._xp, name)
        setattr(self, name, found)
        return found

    def count_nonzero(self, x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        return self._xp.sum(x != 0, axis, np.dtype(np.intp), None, keepdims)


def with_numpys_forms(xp: Any) -> Any:
    """Return CuPy's namespace with those of NumPy's calls that it lacks and kernels use."""
    return WithNumPysForms(xp)
