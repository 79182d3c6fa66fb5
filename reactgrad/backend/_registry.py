"""The table of kernels, by op and device kind. All kernels are found here, never called by name.

A *kernel* is called as ``kernel(*inputs, out, *attrs)`` and writes into ``out``. A *binder* is
called once, with the inputs, ``out`` and the attributes, and returns the call that is then repeated.
Kernels that need scratch memory, or that are chosen by shape, have a binder of their own.

In graphs with ``jit``, binders of kind ``"jit"`` come before those of kind ``"cpu"``. They return
calls of compiled loops (``machine._loop_call``), or ``None`` to leave the step to the other binder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from reactgrad._errors import DeviceError
from reactgrad.backend._device import guard_of, kind_of
from reactgrad.scheduler import safe_repr

Kernel = Callable[..., object]
Binder = Callable[[Sequence[Any], Any, tuple[Any, ...]], Any]
Fits = Callable[[tuple[Any, ...]], bool]

_binders: dict[tuple[str, str], Binder] = {}
# Binders for devices of any kind, by op; those for the kind come before them.
_anywhere: dict[str, Binder] = {}
# By (op, device kind): the binder, the operands that it may overwrite, and for which attributes.
_overwriting: dict[tuple[str, str], tuple[Binder, frozenset[int], Fits]] = {}


class Direct:
    """The binder of a kernel that needs no preparation."""

    __slots__ = ("kernel",)

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def __call__(
        self, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
    ) -> Callable[[], object]:
        return partial(self.kernel, *inputs, out, *attrs)


class _Guarded(NamedTuple):
    """A binder whose kernels run with their device as the current one of its library."""

    binder: Binder
    guard: Any

    def __call__(
        self, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
    ) -> Callable[[], object]:
        with self.guard:
            return GuardedStep(self.guard, self.binder(inputs, out, attrs))


class GuardedStep:
    """A step that runs with its device as the current one."""

    __slots__ = ("guard", "step")

    def __init__(self, guard: Any, step: Callable[[], object]) -> None:
        self.guard, self.step = guard, step

    def __call__(self) -> object:
        with self.guard:
            return self.step()


class Launch:
    """A step of a GPU that may be captured, see ``cupy._capture``; `xp` is the library that it calls."""

    __slots__ = ("call", "xp")

    def __init__(self, call: Callable[[], object], xp: Any) -> None:
        self.call, self.xp = call, xp

    def __call__(self) -> object:
        return self.call()


class _Compiled(NamedTuple):
    """A binder that tries the op's compiled loops first, and then its binder for NumPy."""

    compiled: Binder
    other: Binder

    def __call__(
        self, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
    ) -> Callable[[], object]:
        return self.compiled(inputs, out, attrs) or self.other(inputs, out, attrs)


def register_kernel(op: str, kind: str, kernel: Kernel) -> None:
    """Use `kernel` for `op` on devices of this kind."""
    _binders[op, kind] = Direct(kernel)


def register_binder(op: str, kind: str, binder: Binder) -> None:
    """Use `binder` for `op` on devices of this kind."""
    _binders[op, kind] = binder


def register_anywhere(op: str, binder: Binder) -> None:
    """Use `binder` for `op` on devices of every kind that has none of its own for it."""
    _anywhere[op] = binder


def register_overwriting(op: str, kind: str, operands: Iterable[int], fits: Fits) -> None:
    """Note that `op` may write its result over one of these operands, for attributes that fit.

    This is a property of the binder registered now; it ends when another one is registered.
    """
    _overwriting[op, kind] = _binders[op, kind], frozenset(operands), fits


def may_overwrite(op: str, kind: str, operand: int, attrs: tuple[Any, ...]) -> bool:
    """Return whether `op` may write its result into the memory of this operand.

    The operand must have the shape and dtype of the result.
    """
    known = _overwriting.get((op, kind))
    if known is None:
        return False
    binder, operands, fits = known
    return operand in operands and _binders[op, kind] is binder and fits(attrs)


def has_kernel(op: str, kind: str) -> bool:
    """Return whether devices of this kind compute `op`."""
    return (op, kind) in _binders or op in _anywhere


def find_binder(op: str, device: str, jit: bool = False) -> Binder:
    """Return the binder of `op` for a device, in a graph with `jit` or without.

    Raises
    ------
    DeviceError
        If there is none.
    """
    kind = kind_of(device)
    found = _binders.get((op, kind)) or _anywhere.get(op)
    if found is None:
        kinds = sorted(k for name, k in _binders if name == op)
        where = f"on {device!r}: there is none " if device != kind else ""
        raise DeviceError(
            f"op {op!r} has no kernel {where}for devices of kind {safe_repr(kind)} (it has for: "
            f"{', '.join(kinds) or 'none'}). Move its operands, x.to('cpu'), or register one with "
            f"rg.extend.register_kernel({op!r}, {safe_repr(kind)}, kernel)."
        )
    if kind == "cpu":
        return _Compiled(_binders[op, "jit"], found) if jit and (op, "jit") in _binders else found
    guard = guard_of(device)
    return found if guard is None else _Guarded(found, guard)
