"""One node of a graph while it becomes nodes of a file, and the table of writers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from reactgrad.models.export._draft import Draft
from reactgrad.models.export._kernels import DType, computed_in

# What a writer returns: the name of the value, or for a node with parts anything that other writers read.
Writer = Callable[["Node"], Any]
WRITERS: Final[dict[str, Writer]] = {}


class RefusedError(Exception):
    """A use of an op that has no form in a file: `what` names it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def writes(*names: str) -> Callable[[Writer], Writer]:
    """Enter a function into the table, as the writer of these ops."""

    def enter(function: Writer) -> Writer:
        for name in names:
            WRITERS[name] = function
        return function

    return enter


@dataclass(frozen=True, eq=False)
class Value:
    """A node that has been written: the name in the file, the spec, and of a Python number the number itself."""

    written: Any
    spec: Any
    number: Any = None


class Node:
    """A node of the graph, with what its operands have become.

    ``n[i]`` is the name of an operand in its own dtype, ``n.x(i, dtype)`` in another one; ``n.emit`` puts a
    node into the file and returns the name of its result.
    """

    def __init__(
        self,
        draft: Draft,
        label: str,
        op: str,
        attrs: tuple[Any, ...],
        spec: Any,
        values: list[Value],
    ) -> None:
        self.draft = draft
        self.label = label
        self.op = op
        self.attrs = attrs
        self.spec = spec
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, i: int) -> Any:
        return self.x(i)

    def x(self, i: int, dtype: Any = None) -> Any:
        """Return the name of operand `i`, converted to a dtype."""
        value = self.values[i]
        if value.number is not None:
            return self.const(value.number, dtype if dtype is not None else value.spec.dtype)
        return value.written if dtype is None else self.cast(value.written, dtype)

    def all(self, dtype: Any = None) -> list[Any]:
        """Return the names of all operands, in one dtype."""
        return [self.x(i, dtype) for i in range(len(self))]

    # --- what is known of them ----------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """The dtype of the result."""
        if self.spec is None:
            raise RefusedError(f"{self.op} of a shape that only values show")
        return self.spec.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result; all lengths are known while a draft is drawn up."""
        return (
            self.spec.shape
            if self.spec is not None
            else self.refuse("of a shape that only values show")
        )

    def dtype_of(self, i: int) -> DType:
        """Return the dtype of operand `i`."""
        return self.spec_of(i).dtype

    def shape_of(self, i: int) -> tuple[int, ...]:
        """Return the shape of operand `i`."""
        return self.spec_of(i).shape

    def spec_of(self, i: int) -> Any:
        """Return the spec of operand `i`."""
        found = self.values[i].spec
        return (
            found if found is not None else self.refuse("of a value whose shape only values show")
        )

    def rank(self, i: int = 0) -> int:
        """Return the number of axes of operand `i`."""
        return len(self.shape_of(i))

    def promoted(self, *which: int) -> DType:
        """Return the dtype to which operands promote; Python numbers promote as literals do."""
        specs = [self.spec_of(i) for i in which or range(len(self))]
        kinds = [s.dtype if s.weak is None else s.weak(0) for s in specs]
        return np.result_type(*kinds)

    def axes(self, axis: Any, ndim: int | None = None) -> list[int]:
        """Return an axis argument as a list of axes that are not negative."""
        ndim = self.rank() if ndim is None else ndim
        if axis is None:
            return list(range(ndim))
        if not ndim:
            return []
        return [a % ndim for a in (axis if isinstance(axis, tuple | list) else (axis,))]

    def refuse(self, why: str) -> Any:
        """Raise the error for a use of the op that has no form in a file."""
        raise RefusedError(f"{self.op} {why}")

    # --- what is written ----------------------------------------------------------------------

    def const(self, value: Any, dtype: Any = None) -> str:
        """Return the name of a constant."""
        return self.draft.constant(value, dtype)

    def ints(self, values: Sequence[int]) -> str:
        """Return the name of a row of integers."""
        return self.draft.constant(np.array(list(values), "i8"))

    def cast(self, name: str, dtype: Any) -> str:
        """Return a value converted to a dtype."""
        return self.draft.cast(name, np.dtype(dtype))

    def emit(
        self,
        op: str,
        *inputs: str | None,
        out: Any = None,
        outputs: int = 1,
        of: int = 0,
        **attributes: Any,
    ) -> Any:
        """Put in a node; return the name of its result, or a tuple of names.

        Parameters
        ----------
        out
            The dtype of the result, or a tuple of them; by default that of the operands.
        of
            The input whose dtype is that of the computation.

        Raises
        ------
        RefusedError
            If no runtime computes the op in this dtype, nor in one that holds its values.
        """
        draft = self.draft
        own = draft.dtypes[inputs[of] or ""]
        dtype = computed_in(op, own)
        if dtype is None:
            raise RefusedError(f"{self.op} in {own.name}")
        given = tuple(
            "" if one is None else draft.cast(one, dtype) if draft.dtypes[one] == own else one
            for one in inputs
        )
        kinds = out if isinstance(out, tuple) else (out,) * outputs
        found = draft.step(
            op,
            given,
            tuple(dtype if k is None else np.dtype(k) for k in kinds),
            self.label,
            attributes,
        )
        found = tuple(
            draft.cast(one, own) if k is None else one for one, k in zip(found, kinds, strict=True)
        )
        return found if outputs > 1 or isinstance(out, tuple) else found[0]
