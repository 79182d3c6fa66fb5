"""Axes in other lengths: cut at the end, or filled up with zeros there."""

from __future__ import annotations

from typing import Any, Final

from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api import _fit as _standard
from reactgrad.backend.numpy import _fit
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops import known_shape

add_kernels(_fit.register, _standard.register)


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,), (shape,) = specs, attrs
    return spec(shape, one.dtype, one.device)


# The attribute is the whole shape. The transpose of cutting is filling up.
FIT: Final = Op("fit_shape", _infer, (lambda g, ans, x, shape: fitted(g, x.shape),), (LINEAR,))


def fitted(x: Any, shape: tuple[int | None, ...]) -> Any:
    """Return `x` with its axes cut, or filled up with zeros, to a shape of as many axes."""
    return x if known_shape(x) == shape else apply(FIT, (x,), (shape,))
