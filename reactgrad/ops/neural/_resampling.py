"""Linear maps along the axes of space, one rule for each axis: means of windows, and interpolation.

The rules are those of ``backend/numpy/_taps.py``. ``resample`` applies them, ``resample_back`` their
transposes; where the lengths that it has to give back are not known when the node is built, one more
operand gives them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _resampling
from reactgrad.backend.numpy._taps import Rule, length_of
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._layout import known_shape
from reactgrad.ops._shapes import common_device

Rules = tuple[Rule | None, ...]


def _dtype(dtype: Any, rules: Rules) -> Any:
    chosen = all(rule is None or rule[0].startswith("nearest") for rule in rules)
    return dtype if chosen or dtype.kind in "fc" else np.dtype(np.float64)


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (x,), (rules,) = specs, attrs
    first = len(x.shape) - len(rules)
    lengths = tuple([length_of(rule, n) for rule, n in zip(rules, x.shape[first:], strict=True)])
    if 0 in x.shape[first:] or any(n is not None and n < 1 for n in lengths):
        raise ShapeError(
            f"a map of {x!r} to lengths {lengths}: there is no element to take, or no place for a window. Use a "
            "smaller window, more padding, or another size."
        )
    return spec((*x.shape[:first], *lengths), _dtype(x.dtype, rules), x.device)


def _infer_back(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    g, rules = specs[0], attrs[0]
    first = len(g.shape) - len(rules)
    lengths = attrs[1] if len(specs) == 1 else specs[1].shape[first:]
    return spec((*g.shape[:first], *lengths), g.dtype, common_device("resample", specs))


def _back(g: Any, x: Any, rules: Rules) -> Any:
    """Return the transposed map of `g`, in the shape of `x`."""
    shape = known_shape(x)
    lengths = None if shape is None else shape[len(shape) - len(rules) :]
    if lengths is None or None in lengths:
        return apply(BACK_LIKE, (g, x), (rules,))
    return apply(BACK, (g,), (rules, lengths))


RESAMPLE = Op("resample", _infer, (lambda g, ans, x, rules: _back(g, x, rules),), (LINEAR,))

BACK = Op(
    "resample_back",
    _infer_back,
    (lambda h, ans, g, rules, lengths: resample(h, rules),),
    (LINEAR,),
)

BACK_LIKE = Op(
    "resample_back_like",
    _infer_back,
    (lambda h, ans, g, x, rules: resample(h, rules), None),
    (LINEAR, None),
)

add_kernels(_resampling.register, on_host(_resampling.NAMES))


def resample(x: Any, rules: Rules) -> Any:
    """Return `x` with the map of a rule applied along each of the last axes."""
    return apply(RESAMPLE, (x,), (rules,))
