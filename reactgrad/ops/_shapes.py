"""Rules for shapes and dtypes that several families of ops share.

A length that is not known yet is ``None``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from reactgrad._calls import whole
from reactgrad._errors import DeviceError, DTypeError, ShapeError
from reactgrad.backend import Spec, spec
from reactgrad.backend._spec import DType, Shape
from reactgrad.scheduler import safe_repr


def shapes_text(specs: Sequence[Spec]) -> str:
    """Return specs as text for messages: ``float64[3, 4] and float64[5]``."""
    return " and ".join(map(repr, specs))


def broadcast(name: str, specs: Sequence[Spec]) -> Shape:
    """Return the shape to which all `specs` broadcast.

    Raises
    ------
    ShapeError
        If they do not broadcast together; `name` is the op in its message.
    """
    shape: Shape = ()
    for one in specs:
        shape = _broadcast_two(name, shape, one.shape, specs)
    return shape


def _broadcast_two(name: str, a: Shape, b: Shape, specs: Sequence[Spec]) -> Shape:
    if a == b or not b:
        return a
    if not a:
        return b
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    out = list(long)
    for i in range(1, len(short) + 1):
        m, n = long[-i], short[-i]
        if m == n or n == 1:
            continue
        if m == 1:
            out[-i] = n
        elif m is None or n is None:
            out[-i] = n if m is None else m
        else:
            raise ShapeError(
                f"{name} cannot combine {shapes_text(specs)}: lengths {m} and {n} at axis -{i} "
                "are different and neither is 1. Reshape one of them, or add an axis with "
                "x[:, None]."
            )
    return tuple(out)


def common_device(name: str, specs: Sequence[Spec]) -> str:
    """Return the one device of all operands; Python numbers fit any.

    Raises
    ------
    DeviceError
        If the operands lie on several.
    """
    device = ""
    for one in specs:
        if one.weak is None:
            if device and one.device != device:
                raise DeviceError(
                    f"{name} has operands on {device} and on {one.device}. Nothing is moved in silence: "
                    f"write x.to({safe_repr(device)}) for the operand on {one.device}, or the other way round."
                )
            device = one.device
    return device or specs[0].device


@lru_cache(maxsize=4096)
def resolve(ufunc: np.ufunc, dtypes: tuple[Any, ...], name: str = "") -> tuple[DType, ...]:
    """Return the dtypes of a ufunc's loop: the inputs', then the output's.

    A Python type among `dtypes` stands for a Python number. Errors call the ufunc `name`.
    """
    wanted = tuple(np.dtype(bool) if d is bool else d for d in dtypes)
    try:
        return ufunc.resolve_dtypes((*wanted, *[None] * ufunc.nout))
    except (TypeError, ValueError) as error:
        names = " and ".join(
            f"a Python {d.__name__}" if isinstance(d, type) else str(d) for d in dtypes
        )
        raise DTypeError(
            f"{name or ufunc.__name__} is not defined for {names} ({error}). Convert with "
            ".astype(...) first."
        ) from None


def operand_types(specs: Sequence[Spec]) -> tuple[Any, ...]:
    """Return what promotion depends on: the dtype of each array, the Python type of each number."""
    return tuple([one.weak or one.dtype for one in specs])


def ufunc_rule(
    ufunc: np.ufunc, name: str = ""
) -> Callable[[tuple[Spec, ...], tuple[Any, ...]], Spec]:
    """Return the shape rule of an elementwise op, `name`, that promotes as `ufunc` does."""
    name = name or ufunc.__name__

    def infer(specs: tuple[Spec, ...], attrs: tuple[Any, ...]) -> Spec:
        dtype = resolve(ufunc, operand_types(specs), name)[-1]
        return spec(broadcast(name, specs), dtype, common_device(name, specs))

    return infer


def ufunc_loop(ufunc: np.ufunc) -> Callable[[tuple[Spec, ...]], tuple[DType, ...]]:
    """Return the rule for the dtypes in which `ufunc` takes its operands (see ``Op.loop_dtypes``)."""

    def loop(specs: tuple[Spec, ...]) -> tuple[DType, ...]:
        return resolve(ufunc, operand_types(specs))[: len(specs)]

    return loop


_SAMPLES = {bool: False, int: 0, float: 0.0, complex: 0j}


def promote(specs: Sequence[Spec]) -> DType:
    """Return the common dtype by NumPy's promotion, with Python numbers as literals."""
    return np.result_type(*[one.dtype if one.weak is None else _SAMPLES[one.weak] for one in specs])


def normal_axis(name: str, axis: Any, ndim: int) -> int:
    """Return `axis` counted from the front.

    Raises
    ------
    DTypeError
        If it is no integer.
    AxisError
        If there is no such axis among `ndim`.
    """
    number = whole(name, "axis", axis)  # NumPy's functions do not agree on what a boolean means
    if not -ndim <= number < ndim:
        raise AxisError(
            f"{name}: axis {number} does not exist in a value with {ndim} axes; it must be from "
            f"{-ndim} to {ndim - 1}."
            if ndim
            else f"{name}: axis {number} does not exist: the value has no axes (shape ())."
        )
    return number % ndim


def normal_axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Return `axis` (``None`` for all, an integer, or several) as distinct axes from the front.

    Raises
    ------
    DTypeError
        If one is no integer.
    AxisError
        If one does not exist, or is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    many = axis if isinstance(axis, tuple | list) else (axis,)
    axes = tuple(normal_axis(name, one, ndim) for one in many)
    if len(set(axes)) != len(axes):
        raise AxisError(f"{name}: axis {safe_repr(axis)} names one axis twice.")
    return axes


class AxisError(ShapeError, np.exceptions.AxisError):
    """An axis that a value does not have."""

    # NumPy's class keeps its message in slots, which copies of an error lose.
    axis = ndim = None
    __str__ = ShapeError.__str__


def size_of(shape: Shape) -> int:
    """Return the number of elements; a length that is not known counts as 1."""
    size = 1
    for n in shape:
        size *= 1 if n is None else n
    return size
