"""Several values joined to one: concatenate, stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reactgrad._calls import one_of
from reactgrad._errors import DTypeError, ShapeError
from reactgrad.backend import Spec, read_dtype, spec
from reactgrad.nodes._handle import Handle, apply, on_stack, stacked
from reactgrad.nodes._op import Attrs, Op, RuleOfAll
from reactgrad.ops._index import Placed
from reactgrad.ops._layout import reshape
from reactgrad.ops._places import Index
from reactgrad.ops._shapes import common_device, normal_axis, promote, shapes_text
from reactgrad.ops._split import unbind

# From the number of an operand to the index of its part in the result.
_Part = Callable[[int], tuple[Any, ...]]
_Parts = Callable[[Any, tuple[Any, ...], Attrs], _Part]


def taken(parts: _Parts) -> Callable[..., RuleOfAll]:
    """Return the rule by which each operand gets its part of the gradient."""

    def variadic(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
        part = parts(ans, operands, attrs)
        return lambda i, g: g[part(i)]

    return variadic


def put(parts: _Parts) -> Callable[..., RuleOfAll]:
    """Return the rule by which each operand's tangent goes to its part of the result."""

    def variadic(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
        part = parts(ans, operands, attrs)
        return lambda i, t: Placed(t, Index(part(i)))

    return variadic


def _infer_concatenate(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    ndim = len(specs[0].shape)
    if not ndim:
        raise ShapeError("concatenate needs values with at least one axis; use stack for numbers.")
    axis = normal_axis("concatenate", attrs[0], ndim)
    shape = list(specs[0].shape)
    total: int | None = 0
    for one in specs:
        fits = len(one.shape) == ndim and all(
            m == n or m is None or n is None or i == axis
            for i, (m, n) in enumerate(zip(one.shape, shape, strict=True))
        )
        if not fits:
            raise ShapeError(
                f"concatenate along axis {axis} of {shapes_text(specs)}: all other lengths must "
                "be the same."
            )
        shape = [n if m is None else m for m, n in zip(shape, one.shape, strict=True)]
        length = one.shape[axis]
        total = None if total is None or length is None else total + length
    shape[axis] = total
    return spec(tuple(shape), promote(specs), common_device("concatenate", specs))


def _parts_joined(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> _Part:
    axis = normal_axis("concatenate", attrs[0], ans.ndim)
    ends = [0]

    def part(i: int) -> tuple[Any, ...]:
        # Only as far as they are asked for: a shape may be known only once its value is.
        for x in operands[len(ends) - 1 : i + 1]:
            ends.append(ends[-1] + (x.shape[axis] or 0))  # a length that is not known counts as 0
        return (*[slice(None)] * axis, slice(ends[i], ends[i + 1]))

    return part


CONCATENATE = Op(
    "concatenate",
    _infer_concatenate,
    variadic=taken(_parts_joined),
    variadic_jvp=put(_parts_joined),
    any_count=True,
)


def concatenate(
    values: Sequence[Any],
    /,
    axis: int | None = 0,
    *,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    """Return values joined along an axis that they have.

    Parameters
    ----------
    values : sequence of Var or array_like
        At least one; all of the same shape except along `axis`.
    axis : int or None
        ``None`` joins the flattened values.
    dtype : dtype_like, optional
        The dtype of the result; by default the common one.
    casting : str
        NumPy's rule for that conversion.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If the other lengths differ, or a value has no axis.
    DTypeError
        If `casting` does not allow the conversion.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.concatenate([[1, 2], [3]])
    >>> y.value
    array([1, 2, 3])
    """
    operands = sequence("concatenate", values)
    if axis is None:
        operands = [reshape(x, -1) if isinstance(x, Handle) else _row(x) for x in operands]
        axis = 0
    return converted("concatenate", apply(CONCATENATE, operands, (axis,)), dtype, casting)


def converted(name: str, joined: Any, dtype: Any, casting: Any) -> Any:
    """Return what `name` has joined, in a dtype to which a rule of NumPy allows the conversion.

    Raises
    ------
    DTypeError
        If it does not.
    ParameterError
        If there is no such rule.
    """
    if casting != "same_kind":
        one_of(name, "casting", casting, ("no", "equiv", "safe", "same_kind", "unsafe"))
    if dtype is None:
        return joined
    from reactgrad.ops._conversion import cast_result  # few calls name a dtype

    return cast_result(name, joined, read_dtype(name, dtype), casting)


def _row(x: Any) -> Any:
    x = stacked(x)
    return reshape(x, -1) if isinstance(x, Handle) else np.ravel(x)


def _infer_stack(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    shape = specs[0].shape
    for one in specs:
        if len(one.shape) != len(shape) or any(
            m != n and m is not None and n is not None
            for m, n in zip(one.shape, shape, strict=True)
        ):
            raise ShapeError(f"stack of {shapes_text(specs)}: all shapes must be the same.")
        shape = tuple(n if m is None else m for m, n in zip(shape, one.shape, strict=True))
    axis = normal_axis("stack", attrs[0], len(shape) + 1)
    new = (*shape[:axis], len(specs), *shape[axis:])
    return spec(new, promote(specs), common_device("stack", specs))


def _parts_stacked(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> _Part:
    before = [slice(None)] * normal_axis("stack", attrs[0], ans.ndim)
    return lambda i: (*before, i)


STACK = Op(
    "stack",
    _infer_stack,
    variadic=taken(_parts_stacked),
    variadic_jvp=put(_parts_stacked),
    any_count=True,
)


def stack(values: Sequence[Any], /, axis: int = 0) -> Any:
    """Return values of one shape joined along a new axis.

    Parameters
    ----------
    values : sequence of Var or array_like
        At least one; all of one shape.
    axis : int
        The place of the new axis in the result.

    Returns
    -------
    Var
        Of the common dtype.

    Raises
    ------
    ShapeError
        If the shapes differ.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.stack([1, 2])
    >>> y.value
    array([1, 2])
    """
    return apply(STACK, sequence("stack", values), (axis,))


on_stack(stack)  # lists that hold Vars become one node from now on


def sequence(name: str, values: Any) -> list[Any]:
    """Return the values that `name` is to join, in a list: of a node those along its first axis.

    Raises
    ------
    DTypeError
        If they are no sequence.
    ShapeError
        If there is none.
    """
    whole: Any = values
    if isinstance(values, Handle) and whole.ndim:
        values = unbind(values)
    elif isinstance(values, Handle) or not hasattr(values, "__iter__"):
        raise DTypeError(
            f"{name} takes a sequence of values, as in rg.{name}([a, b]), not {type(values).__name__}."
        )
    operands = list(values)
    if not operands:
        raise ShapeError(f"{name} needs at least one value.")
    return operands
