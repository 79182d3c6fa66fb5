"""The product of two arrays, summed over some of their axes: the op behind einsum and its relatives.

Most products are a ``matmul`` or a ``multiply`` and become these ops. All others are one op, ``einsum``,
whose kernel brings its operands into the form of a matrix product, as views where that is possible.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api import _contract as _standard
from reactgrad.backend.numpy import _contract
from reactgrad.nodes._handle import Handle, apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._astype import astype
from reactgrad.ops._complex import conj
from reactgrad.ops._elementwise import multiply
from reactgrad.ops._layout import expand_dims, known_shape, spread_to, transpose
from reactgrad.ops._matmul import matmul
from reactgrad.ops._reduce import sum
from reactgrad.ops._shapes import common_device, promote
from reactgrad.ops.products._diagonal import same_diagonal
from reactgrad.ops.products._subscripts import canonical, split
from reactgrad.scheduler import safe_repr

add_kernels(_contract.register, _standard.register)


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    subscripts, _, stretches = attrs
    first, second, result = split(subscripts)
    lengths: dict[str, int | None] = {}
    for i, (term, one) in enumerate(zip((first, second), specs, strict=True)):
        if len(term) != len(one.shape):
            raise ShapeError(
                f"einsum {safe_repr(subscripts)} of {specs[0]!r} and {specs[1]!r}: operand {i} has "
                f"{len(one.shape)} axes, and its subscripts {term!r} name {len(term)}."
            )
    if not stretches:
        _check_inner(specs, (first, second), result)
    for term, one in zip((first, second), specs, strict=True):
        for label, n in zip(term, one.shape, strict=True):
            lengths[label] = _joined(subscripts, specs, label, lengths.get(label, 1), n)
    shape = tuple([lengths[label] for label in result])
    return spec(shape, promote(specs), common_device("einsum", specs))


def _check_inner(specs: tuple[Spec, ...], terms: tuple[str, str], result: str) -> None:
    left, right = (
        dict(zip(term, one.shape, strict=True)) for term, one in zip(terms, specs, strict=True)
    )
    for label in left:
        m, n = left[label], right.get(label)
        if label not in result and m != n and m is not None and n is not None:
            raise ShapeError(
                f"a product of {specs[0]!r} and {specs[1]!r} over axes of lengths {m} and {n}: axes that are summed "
                "together have one length. Transpose an operand, or name other axes."
            )


def _joined(
    subscripts: str, specs: tuple[Spec, ...], label: str, m: int | None, n: int | None
) -> int | None:
    """Return the length of an axis that has these lengths in the operands."""
    if m == n or n == 1:
        return m
    if m == 1 or m is None:
        return n
    if n is None:
        return m
    raise ShapeError(
        f"einsum {safe_repr(subscripts)} of {specs[0]!r} and {specs[1]!r}: axis {label!r} has length {m} in one "
        f"operand and {n} in the other. Axes with one label have one length, or length 1."
    )


def _first_rule(
    g: Any, ans: Any, a: Any, b: Any, subscripts: str, conjugated: bool, stretches: bool
) -> Any:
    first, second, result = split(subscripts)
    if conjugated:
        g, b = conj(g), conj(b)
    return _back(g, result, a, first, b, second)


def _second_rule(
    g: Any, ans: Any, a: Any, b: Any, subscripts: str, conjugated: bool, stretches: bool
) -> Any:
    first, second, result = split(subscripts)
    return _back(g, result, b, second, a, first, conjugated)


def _back(
    g: Any, result: str, one: Any, term: str, other: Any, others: str, conjugated: bool = False
) -> Any:
    """Return the gradient of the operand `one`, with labels `term`."""
    shape, beside = known_shape(one), known_shape(other)
    if shape is None or beside is None:
        return contract(other, g, others, result, term, conjugated)
    # Axes of length 1 that were repeated along those of the other operand: the gradient is summed over them.
    length = dict(zip(others, beside, strict=True))
    stretched = [
        i for i, n in enumerate(shape) if n == 1 and length.get(term[i], 1) not in (1, None)
    ]
    kept = "".join([label for i, label in enumerate(term) if i not in stretched])
    part = contract(other, g, others, result, kept, conjugated)
    if stretched:
        part = expand_dims(part, tuple(stretched))
    # Axes that are summed in the result, and of length 1 in the other operand.
    return part if known_shape(part) is None else spread_to(part, shape)


EINSUM: Final = Op("einsum", _infer, (_first_rule, _second_rule), (LINEAR, LINEAR), broadcasts=True)


def contract(
    a: Any,
    b: Any,
    first: str,
    second: str,
    result: str,
    conjugated: bool = False,
    stretches: bool = True,
) -> Any:
    """Return the product of two operands, summed over the labels that are not in `result`.

    Parameters
    ----------
    a, b : Var or array_like
        One of them, at least, a Var where labels stand twice, or in one operand only.
    first, second : str
        The label of each axis; `result` has some of these labels, each once.
    conjugated : bool
        Whether the elements of `a` are conjugated.
    stretches : bool
        Whether an axis of length 1 that is summed may go with a longer one, as in einsum.
    """
    kind, subscripts = _lowered(first, second, result)
    if kind == "alone":
        a, first = alone(a, first, second + result)
        b, second = alone(b, second, first + result)
        kind, subscripts = _lowered(first, second, result)
    if kind == "einsum":
        return apply(EINSUM, (a, b), (subscripts, conjugated, stretches))
    if conjugated:
        a = conj(a)
    if kind == "multiply":
        return multiply(a, b)
    left, right = (a, b) if kind == "matmul" else (b, a)
    if _by_matmul(left, right, stretches):
        return matmul(left, right)
    return apply(EINSUM, (a, b), (subscripts, False, stretches))


def _by_matmul(left: Any, right: Any, stretches: bool) -> bool:
    """Return whether ``matmul`` is fast for these dtypes, and right for the lengths that are summed."""
    lengths: list[int | None] = []
    for one, inner in ((left, 1), (right, 2)):
        found = one._graph._host.specs[one._slot] if isinstance(one, Handle) else None
        if found is None:
            lengths.append(None)
        elif found.dtype.kind not in "fc":
            return False
        else:
            lengths.append(found.shape[-inner] if len(found.shape) >= inner else found.shape[-1])
    m, n = lengths
    return not stretches or (m == n and m is not None)


@lru_cache(maxsize=4096)
def _lowered(first: str, second: str, result: str) -> tuple[str, str]:
    """Return the op for a product, and its subscripts.

    ``"alone"`` says that some axes have to be taken away before: those of labels that stand twice in an operand,
    or nowhere else.
    """
    for term, others in ((first, second + result), (second, first + result)):
        if len(set(term)) < len(term) or not set(term) <= set(others):
            return "alone", ""
    subscripts = canonical(first, second, result)
    summed = [label for label in first if label not in result]
    if (
        not summed
        and result in (first, second)
        and result.endswith(first)
        and result.endswith(second)
    ):
        return "multiply", subscripts
    if _is_matmul(first, second, result, summed):
        return "matmul", subscripts
    if _is_matmul(second, first, result, summed):
        return "swapped", subscripts
    return "einsum", subscripts


def _is_matmul(first: str, second: str, result: str, summed: list[str]) -> bool:
    if len(summed) != 1 or not first.endswith(summed[0]):
        return False
    (inner,) = summed
    lead = len(first) - 2
    if lead > 0:
        batch, row, column = first[:lead], first[lead], second[-1]
        return second == batch + inner + column and result == batch + row + column
    return second[:1] == inner and len(second) <= 2 and result == first[:-1] + second[1:]


def alone(x: Any, term: str, others: str) -> tuple[Any, str]:
    """Return an operand without repeated labels, and summed over those that stand nowhere else."""
    while len(set(term)) < len(term):
        label = next(one for one in term if term.count(one) > 1)
        at = term.index(label)
        again = term.index(label, at + 1)
        x = same_diagonal(x, at, again)
        term = term[:at] + term[at + 1 : again] + term[again + 1 :] + label
    summed = tuple([i for i, label in enumerate(term) if label not in others])
    return (
        (total(x, summed), "".join([one for one in term if one in others])) if summed else (x, term)
    )


def total(x: Any, axes: tuple[int, ...]) -> Any:
    """Return the sum over axes in the dtype of `x`, integers and booleans, too."""
    found = sum(x, axes)
    return found if x.dtype.kind in "fc" else astype(found, x.dtype)


def ordered(x: Any, term: str, result: str) -> Any:
    """Return `x`, whose axes have the labels `term`, with its axes in another order."""
    return x if term == result else transpose(x, tuple([term.index(label) for label in result]))
