"""LAPACK's routines as NumPy ships them, written straight into the result.

``numpy.linalg`` checks and converts what the shape rules know already, changes the error state, and returns arrays
of its own: 5 to 30 us a call, and a copy. The loops below it are generalized ufuncs, which take ``out``; the results
have the same bits. They are no public part of NumPy, so each is looked up, and where one is absent, or of other
types, the plain kernel stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from reactgrad.backend._registry import find_binder, register_binder

# What is private to NumPy; `None` where a release has it elsewhere.
_loops: Any = getattr(np.linalg, "_umath_linalg", None)


class Routine(NamedTuple):
    """A loop with the arrays that it writes.

    ``first`` holds the first element of each matrix of a result, which is NaN where LAPACK has refused the operand.
    Operands with NaNs look the same: the plain kernel tells them apart. It is ``None`` for loops that refuse nothing.
    """

    loop: str
    results: tuple[Any, ...]
    first: Any


# routine(inputs, out, *attrs): which one an op calls; `None` if the plain kernel does more than call it
Choose = Callable[..., Routine | None]


def _solve(inputs: Sequence[Any], out: Any) -> Routine:
    if inputs[1].ndim == 1:
        return Routine("solve1", (out,), out[..., 0])
    return Routine("solve", (out,), out[..., 0, 0])


def _inv(inputs: Sequence[Any], out: Any, strict: bool) -> Routine:
    return Routine("inv", (out,), out[..., 0, 0])


def _det(inputs: Sequence[Any], out: Any) -> Routine:
    return Routine("det", (out,), None)


def _slogdet(inputs: Sequence[Any], out: Any) -> Routine:
    return Routine("slogdet", (out[..., 0], out[..., 1]), None)


def _cholesky(inputs: Sequence[Any], out: Any, upper: bool) -> Routine | None:
    return None if upper else Routine("cholesky_lo", (out,), out[..., 0, 0])


def _eigvalsh(inputs: Sequence[Any], out: Any, uplo: str) -> Routine:
    return Routine("eigvalsh_lo" if uplo == "L" else "eigvalsh_up", (out,), out[..., 0])


def _eigh(inputs: Sequence[Any], out: Any, uplo: str) -> Routine:
    n = inputs[0].shape[-1]
    parts = _parts(out, (n,), (n, n))
    return Routine("eigh_lo" if uplo == "L" else "eigh_up", parts, parts[0][..., 0])


def _svd(inputs: Sequence[Any], out: Any, full: bool, hermitian: bool) -> Routine | None:
    if hermitian:
        return None
    m, n = inputs[0].shape[-2:]
    k = min(m, n)
    parts = _parts(out, (m, m if full else k), (k,), (n if full else k, n))
    return Routine("svd_f" if full else "svd_s", parts, parts[1][..., 0])


def _svdvals(inputs: Sequence[Any], out: Any, hermitian: bool) -> Routine | None:
    return None if hermitian else Routine("svd", (out,), out[..., 0])


CHOICES: Final[dict[str, Choose]] = {
    "solve": _solve,
    "inv": _inv,
    "det": _det,
    "slogdet": _slogdet,
    "cholesky": _cholesky,
    "eigvalsh": _eigvalsh,
    "eigh": _eigh,
    "svd": _svd,
    "svdvals": _svdvals,
}


def _parts(out: Any, *shapes: tuple[int, ...]) -> tuple[Any, ...]:
    """Return views of results that lie side by side along the last axis, see ``linalg._parts``."""
    found, start = [], 0
    for shape in shapes:
        part = out[..., start : start + prod(shape)]
        found.append(part.reshape((*part.shape[:-1], *shape)))
        start += prod(shape)
    return tuple(found)


def register(xp: Any, kind: str, *names: str) -> None:
    """Let these ops use the loops where the namespace is NumPy; their plain kernels are registered."""
    if xp is np and _loops is not None:
        for name in names:
            register_binder(name, kind, _binder(CHOICES[name], find_binder(name, kind)))


def _binder(choose: Choose, plain: Callable[..., Callable[[], object]]) -> Any:
    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        step = plain(inputs, out, attrs)
        if out is None or not out.size or not all(one.size for one in inputs):
            return step
        routine = choose(inputs, out, *attrs)
        loop = None if routine is None else getattr(_loops, routine.loop, None)
        if routine is None or loop is None:
            return step
        # NumPy computes in double precision whatever the operands, and rounds.
        letter = "D" if any(one.dtype.kind == "c" for one in inputs) else "d"
        known = [one for one in loop.types if one.startswith(f"{letter * len(inputs)}->")]
        if not known:
            return step
        return _call(loop, (*inputs, *routine.results), known[0], routine.first, step)

    return bind


def _call(
    loop: Any, arrays: tuple[Any, ...], types: str, first: Any, plain: Callable[[], object]
) -> Callable[[], object]:
    compute = partial(loop, *arrays, signature=types)
    if first is None:
        return compute
    if first.ndim == 0:  # one matrix: its number is looked at without an array in between
        number = first.item

        def call() -> None:
            compute()
            if (one := number()) != one:
                plain()

        return call

    def call_for_each() -> None:
        compute()
        if np.isnan(first).any():
            plain()

    return call_for_each
