"""Convolution and correlation of two series; both are differentiable, by rules that are linear in each."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad._errors import ParameterError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _convolve
from reactgrad.backend.numpy._convolve import extent
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._complex import conj
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import reshape
from reactgrad.ops._shapes import common_device, operand_types, resolve
from reactgrad.ops.special._pairs import together

add_kernels(_convolve.register, on_host(("convolve", "convolve_back")))


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    a, b = specs
    for one in specs:
        if len(one.shape) != 1:
            raise ShapeError(
                f"a convolution of {a!r} and {b!r}: both are series, of one axis. For images see rg.conv2d."
            )
        if one.shape[0] == 0:
            raise ShapeError(f"a convolution of {a!r} and {b!r}: a series needs an element.")
    (n,), (m,) = a.shape, b.shape
    count = None if n is None or m is None else extent(n, m, attrs[0])[1]
    dtype = resolve(np.multiply, operand_types(specs), "convolve")[-1]
    return spec((count,), dtype, common_device("convolve", specs))


def _infer_back(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    g, b, like = specs
    dtype = resolve(np.multiply, operand_types((g, b)), "convolve")[-1]
    return spec(like.shape, dtype, common_device("convolve", specs))


def _back(g: Any, b: Any, like: Any, mode: str, first: bool) -> Any:
    return apply(CONVOLVE_BACK, (g, b, like), (mode, first))


def _gradient_rule(h: Any, ans: Any, g: Any, b: Any, like: Any, mode: str, first: bool) -> Any:
    return apply(CONVOLVE, (h, b) if first else (b, h), (mode,))


def _operand_rule(h: Any, ans: Any, g: Any, b: Any, like: Any, mode: str, first: bool) -> Any:
    return _back(g, h, b, mode, not first)


CONVOLVE: Final = Op(
    "convolve",
    _infer,
    (
        lambda g, ans, a, b, mode: _back(g, b, a, mode, True),
        lambda g, ans, a, b, mode: _back(g, a, b, mode, False),
    ),
    (LINEAR, LINEAR),
)
CONVOLVE_BACK: Final = Op(
    "convolve_back",
    _infer_back,
    (_gradient_rule, _operand_rule, None),
    (LINEAR, LINEAR, None),
)

_MODES: Final = ("valid", "same", "full")


def _mode(name: str, mode: Any) -> str:
    numbered = isinstance(mode, int) and not isinstance(mode, bool) and mode in (0, 1, 2)
    found = _MODES[mode] if numbered else mode  # NumPy's numbers of the modes
    if not isinstance(found, str) or found not in _MODES:
        raise ParameterError(f'{name}(mode={mode!r}): write "full", "same" or "valid".')
    return found


def _series(a: Any, v: Any) -> list[Any]:
    return [one if one.ndim else reshape(one, (1,)) for one in together(a, v)]


@deferred
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """Return the convolution of two series.

    Parameters
    ----------
    a, v : Var or array_like
        Of one axis, with an element at least.
    mode : str
        ``"full"`` for all sums of products, ``"same"`` for as many as the longer series has elements,
        ``"valid"`` for those in which the series overlap completely.

    Returns
    -------
    Var
        The sums of ``a[i] * v[k - i]``. Those of float16 and float32 are added in float64.

    Raises
    ------
    ShapeError
        If a series has another number of axes, or no elements.
    DTypeError
        If there is no such mode.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.convolve([1.0, 2.0, 3.0], [0.5, 1.0])
    >>> y.value
    array([0.5, 2. , 3.5, 3. ])
    """
    return apply(CONVOLVE, _series(a, v), (_mode("convolve", mode),))


@deferred
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """Return the correlation of two series, the convolution with the second one reversed and conjugated.

    Parameters
    ----------
    a, v : Var or array_like
        Of one axis, with an element at least.
    mode : str
        As of ``convolve``.

    Returns
    -------
    Var
        The sums of ``a[i + k] * conj(v[i])``. Those of float16 and float32 are added in float64.

    Raises
    ------
    ShapeError
        If a series has another number of axes, or no elements.
    DTypeError
        If there is no such mode.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.correlate([1.0, 2.0, 3.0], [0.5, 1.0])
    >>> y.value
    array([2.5, 4. ])
    """
    known = _mode("correlate", mode)
    a, v = _series(a, v)
    v = (conj(v) if v.dtype.kind == "c" else v)[::-1]
    return apply(CONVOLVE, (a, v), ("correlated" if known == "same" else known,))
