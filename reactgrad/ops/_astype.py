"""A change of dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import DTypeError
from reactgrad.backend import Spec, read_dtype, spec
from reactgrad.nodes._handle import Handle, apply
from reactgrad.nodes._op import Attrs, Op


def _infer_astype(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    dtype: np.dtype[Any] = attrs[0]
    if specs[0].dtype.kind == "c" and dtype.kind != "c":
        raise DTypeError(
            f"astype would drop the imaginary part of {specs[0]!r}; write rg.real(x) if that is meant."
        )
    return spec(specs[0].shape, dtype, specs[0].device)


def _passes(dtype: np.dtype[Any]) -> bool:
    """Return whether derivatives pass a conversion to `dtype`: only to floats and complex numbers."""
    return dtype.kind in "fc"


# The gradient comes back in the operand's dtype, as every gradient does.
ASTYPE = Op(
    "astype",
    _infer_astype,
    (lambda g, ans, x, dtype: g if _passes(dtype) else None,),
    (lambda t, ans, x, dtype: apply(ASTYPE, (t,), (dtype,)) if _passes(dtype) else None,),
    elementwise=True,
)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: str | None = None) -> Any:
    """Return `x` converted to another dtype.

    Parameters
    ----------
    x : Var or array_like
        Any shape and dtype.
    dtype : dtype_like
        A boolean, integer, float or complex dtype.
    copy : bool
        False to return a Var of this dtype itself. Values are never written in place, so nothing else
        depends on it.
    device : str, optional
        The device of the result; by default that of `x`.

    Returns
    -------
    Var
        Of the shape of `x`.

    Raises
    ------
    DTypeError
        If `dtype` has no kernels, or would drop an imaginary part.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.astype([1, 2], "float32")
    >>> y.value
    array([1., 2.], dtype=float32)
    """
    wanted = read_dtype("astype", dtype)
    if not copy and isinstance(x, Handle) and _is_of(x, wanted):
        found: Any = x
    else:
        found = apply(ASTYPE, (x,), (wanted,))
    return found if device is None else found.to(device=device)


def _is_of(x: Handle, dtype: Any) -> bool:
    """Return whether a node is known to hold an array of this dtype."""
    found = x._graph._host.specs[x._slot]
    return found is not None and found.weak is None and found.dtype == dtype
