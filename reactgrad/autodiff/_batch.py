"""A linear computation for many seeds at once, along a new last axis.

A derivative is linear in its seed. Built for one seed it is a pattern, which is never computed.
Built again with an axis of seeds behind all others it gives the derivatives for all seeds in one
pass, as ordinary nodes. The axis is the last and not the first one, so that broadcasting, indices
and axes counted from the front keep their meaning.

A table says for each op, in one line, how it treats the axis. An op that is not listed, or whose
shapes are only known once it has run, computes seed by seed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from string import ascii_letters
from typing import Any, Final

from reactgrad.autodiff._edges import operand_vars, sources
from reactgrad.build._functions import output_of
from reactgrad.core._handles import handle
from reactgrad.flow._mode import no_grad
from reactgrad.nodes._handle import Handle, apply
from reactgrad.nodes._op import Op, Output
from reactgrad.nodes._reached import reached
from reactgrad.ops import (
    SUM_TO,
    Index,
    expand_dims,
    known_shape,
    reshape_to,
    spread_to,
    stack,
    transpose,
)


def batch(seed: Any, result: Any, seeds: Any) -> Any:
    """Return `result`, which is linear in `seed`, for all `seeds`.

    Parameters
    ----------
    seed, result : Var
        The pattern.
    seeds : Var
        All seeds: the shape of `seed` and a last axis, as long as there are seeds.

    Returns
    -------
    Var
        The shape of `result` and that axis.
    """
    graph, length = seed._graph, seeds.shape[-1]
    wide = {seed._slot: seeds}
    thin: dict[Any, Any] = {}
    for slot in _between(graph, seed._slot, result._slot):
        operands = operand_vars(graph, slot)
        part = _Part(
            graph._host.ops[slot],
            graph._host.attrs[slot],
            known_shape(handle(graph, slot)),
            operands,
            [wide.get(operand._slot) for operand in operands],
            length,
            thin,
        )
        closed = graph._host.closed.get(slot, ()) is None
        with no_grad() if closed else nullcontext():
            wide[slot] = part.built()
    found = wide.get(result._slot)
    return _repeated(result, length) if found is None else found


def _between(graph: Any, start: int, end: int) -> list[int]:
    """Return the nodes after `start` up to `end`, in topological order."""
    topology, users = graph._scheduler.topology, graph._host.branch_users
    found = reached([start], lambda slot: (*topology.children[slot], *users.get(slot, ())))
    needed = {end}
    for slot in reversed(order := topology.sort(found)):
        if slot in needed:
            needed.update(sources(graph, slot))
    return [slot for slot in order[1:] if slot in needed]


def _repeated(x: Any, length: int) -> Any:
    """Return `x` with a last axis along which it does not change."""
    return spread_to(expand_dims(x, -1), (*x.shape, length))


@dataclass(slots=True)
class _Part:
    """One node of the pattern."""

    op: Any
    attrs: tuple[Any, ...]
    shape: Any  # of its result; None where not known
    operands: tuple[Any, ...]
    wides: list[Any]  # the operands that have the axis, None for the others
    length: int
    _thin: dict[Any, Any]  # operands that were given an axis of length 1 before

    def built(self) -> Any:
        """Return the node with the axis.

        For a function with several outputs, return its outputs for each seed.
        """
        if isinstance(self.op, Output):
            return stack([self._output(outputs) for outputs in self.wides[0]], axis=-1)
        found = None
        if isinstance(self.op, Op):
            rule = _elementwise if self.op.elementwise else RULES.get(self.op.name)
            found = None if rule is None else rule(self)
        return self.one_by_one() if found is None else found

    def one_by_one(self) -> Any:
        """Return the results for the seeds, each computed by itself, along the axis."""
        parts: list[Any] = []
        for i in range(self.length):
            operands = [
                operand if wide is None else wide[..., i]
                for operand, wide in zip(self.operands, self.wides, strict=True)
            ]
            parts.append(
                apply(self.op, operands, self.attrs)
                if isinstance(self.op, Op)
                else self.op.again(operands)
            )
        return stack(parts, axis=-1) if isinstance(parts[0], Handle) else parts

    def _output(self, outputs: tuple[Any, ...]) -> Any:
        return output_of(outputs[0]._graph, outputs[0].parents[0], self.op.index)

    @property
    def only_first(self) -> bool:
        """True where the first operand has the axis and no other one has."""
        return self.wides[0] is not None and all(wide is None for wide in self.wides[1:])

    def thin(self, i: int) -> Any:
        """Return operand `i` in a shape that broadcasts along the axis."""
        operand = self.operands[i]
        if self.wides[i] is not None:
            return self.wides[i]
        if known_shape(operand) == ():
            return operand
        key = (operand._slot, type(operand))
        found = self._thin.get(key)
        if found is None:
            found = self._thin[key] = expand_dims(operand, -1)
        return found

    def full(self, i: int) -> Any:
        """Return operand `i` with the whole axis."""
        return _repeated(self.operands[i], self.length) if self.wides[i] is None else self.wides[i]

    def on_first(self, attrs: tuple[Any, ...]) -> Any:
        """Return the op applied to its first operand with the axis, with other attributes."""
        return apply(self.op, (self.wides[0], *self.operands[1:]), attrs)


Rule = Callable[[_Part], Any]


def _elementwise(part: _Part) -> Any:
    return apply(part.op, [part.thin(i) for i in range(len(part.operands))], part.attrs)


def _transpose(part: _Part) -> Any:
    shape, axes = known_shape(part.operands[0]), part.attrs[0]
    if shape is None:
        return None
    ndim = len(shape)
    order = range(ndim)[::-1] if axes is None else [axis % ndim for axis in axes]
    return transpose(part.wides[0], (*order, ndim))


def _reshape(part: _Part) -> Any:
    return None if part.shape is None else reshape_to(part.wides[0], (*part.shape, part.length))


def _to_shape(part: _Part) -> Any:
    return part.on_first(((*part.attrs[0], part.length),))


def _vdot(part: _Part) -> Any:
    return apply(SUM_TO, (part.thin(0) * part.thin(1),), ((*part.attrs[0], part.length),))


def _reduce(part: _Part) -> Any:
    shape, (axis, keepdims) = known_shape(part.operands[0]), part.attrs
    if shape is None:
        return None
    if axis is None or not shape:  # of a number the first axis is none
        return part.on_first((tuple(range(len(shape))), keepdims))
    axes = axis if isinstance(axis, tuple) else (axis,)
    return part.on_first((tuple(i % len(shape) for i in axes), keepdims))


def _rows(part: _Part) -> Any:
    """Batch a gradient of an op along axes, such as softmax's: each seed has its own rows."""
    axis, *rest = part.attrs
    if part.shape is None:
        return None
    ndim = len(part.shape)
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    operands = [part.thin(i) for i in range(len(part.operands))]
    return apply(part.op, operands, (tuple(i % ndim for i in axes), *rest))


def _numbered(part: _Part) -> Any:
    """Batch an op that chooses from each row by a number."""
    shapes = [known_shape(operand) for operand in part.operands]
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    ndim = max(map(len, known))
    operands = [part.full(i) for i in range(len(part.operands))]
    return apply(part.op, operands, (part.attrs[0] % ndim,))


def _along(part: _Part) -> Any:
    """Batch an op that goes along the axis in its first attribute."""
    axis, *rest = part.attrs
    if part.shape is None:
        return None
    operands = [part.full(i) for i in range(len(part.operands))]
    return apply(part.op, operands, (axis % len(part.shape), *rest))


def _unbind(part: _Part) -> Any:
    axis, *rest = part.attrs
    shape = known_shape(part.operands[0])
    return None if shape is None else part.on_first((axis % len(shape), *rest))


def _split(part: _Part) -> Any:
    cuts, axis, which = part.attrs
    shape = known_shape(part.operands[0])
    return None if shape is None else part.on_first((cuts, axis % len(shape), which))


def _flip(part: _Part) -> Any:
    (axes,), shape = part.attrs, known_shape(part.operands[0])
    if shape is None:
        return None
    given = range(len(shape)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    return part.on_first((tuple(i % len(shape) for i in given),))


def _join(part: _Part) -> Any:
    axis, ndim = part.attrs[0], None if part.shape is None else len(part.shape)
    if ndim is None:
        return None
    operands = [part.full(i) for i in range(len(part.operands))]
    return apply(part.op, operands, (axis % ndim,))


def _with_all(index: Index | None) -> Index | None:
    """Return an index that keeps a new last axis whole."""
    if index is None or not any(one is Ellipsis for one in index.parts):
        return index  # axes that it does not name stay behind those it does
    return Index((*index.parts, slice(None)))


def _getitem(part: _Part) -> Any:
    return part.on_first((_with_all(part.attrs[0]),)) if part.only_first else None


def _accumulate(part: _Part) -> Any:
    shape, places = part.attrs
    operands = [part.full(i) for i in range(len(places))]
    operands += part.operands[len(places) :]
    whole = None if shape is None else (*shape, part.length)
    return apply(part.op, operands, (whole, tuple(_with_all(place) for place in places)))


def _matmul(part: _Part) -> Any:
    """Batch a product: the axis joins the columns of the second matrix, so that it stays one
    product.
    """
    (a, b), (wide_a, wide_b) = part.operands, part.wides
    shape_a, shape_b = known_shape(a), known_shape(b)
    if shape_a is None or shape_b is None or part.shape is None:
        return None
    if wide_a is not None and wide_b is not None:
        return None
    if wide_a is not None:  # (a @ b).T = b.T @ a.T, row by row
        matrix = expand_dims(b, 0) if len(shape_b) == 1 else _swapped(b)
        if len(shape_a) > 1 and len(shape_b) > 2:
            matrix = expand_dims(matrix, -3)
        product = matrix @ wide_a
    elif len(shape_b) == 1:
        return a @ wide_b
    else:
        columns = None if shape_b[-1] is None else shape_b[-1] * part.length
        product = a @ reshape_to(wide_b, (*shape_b[:-1], columns))
    return reshape_to(product, (*part.shape, part.length))


def _swapped(x: Any) -> Any:
    ndim = len(x.shape)
    return transpose(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def _einsum(part: _Part) -> Any:
    """Batch a product by one more label, of the operand that has the axis and of the result."""
    if all(wide is not None for wide in part.wides):
        return None
    operands, _, result = part.attrs[0].partition("->")
    terms = operands.split(",")
    label = next((one for one in ascii_letters if one not in operands), None)
    if label is None:
        return None
    inputs = [
        term + label * (wide is not None) for term, wide in zip(terms, part.wides, strict=True)
    ]
    values = [
        one if wide is None else wide for one, wide in zip(part.operands, part.wides, strict=True)
    ]
    return apply(part.op, values, (f"{','.join(inputs)}->{result}{label}", *part.attrs[1:]))


def _diagonal(part: _Part) -> Any:
    """Batch a diagonal, which is the last axis of the result: the axis of seeds changes places with it."""
    shape = known_shape(part.operands[0])
    if shape is None:
        return None
    offset, axis1, axis2, same = part.attrs
    return _swapped(part.on_first((offset, axis1 % len(shape), axis2 % len(shape), same)))


def _place_diagonal(part: _Part) -> Any:
    if part.shape is None:
        return None
    _, offset, axis1, axis2, same = part.attrs
    ndim = len(part.shape)
    attrs = ((*part.shape, part.length), offset, axis1 % ndim, axis2 % ndim, same)
    return apply(part.op, (_swapped(part.wides[0]),), attrs)


def _on_last(part: _Part) -> Any:
    """Batch an op on the last axes of its operands: the axis of seeds goes in front of all others for it."""
    shapes = [known_shape(operand) for operand in part.operands]
    if part.shape is None or None in shapes:
        return None
    ndim = len(part.shape)
    if part.op.name in ("tril", "triu") and len(shapes[0] or ()) < 2:  # a vector becomes a matrix
        return None
    operands = [
        operand if wide is None else _in_front(wide, ndim)
        for operand, wide in zip(part.operands, part.wides, strict=True)
    ]
    return transpose(apply(part.op, operands, part.attrs), (*range(1, ndim + 1), 0))


def _in_front(wide: Any, ndim: int) -> Any:
    """Return an operand with its last axis in front of `ndim` others, some of them new."""
    last = len(wide.shape) - 1
    moved = transpose(wide, (last, *range(last)))
    return expand_dims(moved, tuple(range(1, ndim - last + 1))) if last < ndim else moved


def _kron(part: _Part) -> Any:
    if all(wide is not None for wide in part.wides):
        return None
    return apply(part.op, (part.thin(0), part.thin(1)))


def _transform(part: _Part) -> Any:
    """Batch a Fourier transform, or a shift of its result."""
    shape = known_shape(part.operands[0])
    if shape is None:
        return None
    at = 0 if part.op.name == "fftshift" else 1
    axes = range(len(shape)) if part.attrs[at] is None else part.attrs[at]
    axes = tuple(i % len(shape) for i in axes)
    return part.on_first((*part.attrs[:at], axes, *part.attrs[at + 1 :]))


# How each op treats the axis, by the op's name.
RULES: Final[dict[str, Rule]] = {
    "accumulate": _accumulate,
    "added_along": _along,
    "alias": lambda part: part.wides[0],
    "array_split": _split,
    "broadcast_to": _to_shape,
    "chosen_along": _along,
    "concatenate": _join,
    "cross": _on_last,
    "cumsum": _along,
    "diagonal": _diagonal,
    "einsum": _einsum,
    "expand_dims": _reshape,
    "fft": _transform,
    "fftshift": _transform,
    "fit_shape": _to_shape,
    "flip": _flip,
    "gather": _getitem,
    "getitem": _getitem,
    "ifft": _transform,
    "irfft": _transform,
    "irfft_transposed": _transform,
    "kron": _kron,
    "log_softmax_grad": _rows,
    "matmul": _matmul,
    "mean": _reduce,
    "over_std": _rows,
    "pick": _numbered,
    "place": _numbered,
    "place_diagonal": _place_diagonal,
    "recurrence": _along,
    "reshape": _reshape,
    "rfft": _transform,
    "rfft_transposed": _transform,
    "shifted": _along,
    "softmax_grad": _rows,
    "split": _split,
    "squeeze": _reshape,
    "stack": _join,
    "standardize_back": _rows,
    "standardize_grad": _rows,
    "sum": _reduce,
    "sum_to": _to_shape,
    "transpose": _transpose,
    "tril": _on_last,
    "triu": _on_last,
    "unbind": _unbind,
    "vdot": _vdot,
}
