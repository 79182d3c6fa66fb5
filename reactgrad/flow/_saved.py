"""Values that a user's hooks pack after a run and unpack before the next run that reads them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar
from typing import Any, NamedTuple, Self

import numpy as np

from reactgrad._errors import DTypeError, ShapeError
from reactgrad.backend import device_of, owner
from reactgrad.scheduler import add_note
from reactgrad.values._transient import Transient

# Hooks of the open blocks of all threads, for a cheap check; those of this task, innermost last.
open_hooks: set[Hooks] = set()
_mine: ContextVar[tuple[Hooks, ...]] = ContextVar("reactgrad_saved_hooks", default=())


class Away(NamedTuple):
    """A packed value, with its version and the form that ``unpack`` must return."""

    version: int
    packed: Any
    shape: tuple[int, ...]
    dtype: Any


class Hooks(Transient):
    """The hooks of one block, which pack and unpack the values of the nodes built in it."""

    recomputed = False

    def __init__(self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        self._pack, self._unpack = pack, unpack

    def let_go(self, host: Any, slot: int) -> bool:
        if slot in host._view_of:  # a view has no memory of its own: it is made again as a view
            if not host.recomputable(slot):
                return False
            host.release([slot])
            return True
        found = host.specs[slot]
        plain = owner(host.data[slot]) is None if found is None else found.weak is not None
        if plain or slot in host.cutoffs:
            return False
        if not host.scheduler.topology.parents[slot]:  # pinned
            return False
        version, away = host.scheduler.version(slot), host.away.get(slot)
        if away is None or away.version != version:
            array = host.hand_out(slot)
            array = np.asarray(array) if isinstance(array, np.generic) else array
            self.put_away(host, slot, array, version)
        host.forget(slot)
        return True

    def put_away(self, host: Any, slot: int, array: Any, version: int) -> None:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
        with host.aside(slot):
            packed = self._pack(array)
        host.away[slot] = Away(version, packed, tuple(array.shape), array.dtype)

    def bring_back(self, host: Any, slot: int) -> None:
        scheduler, away = host.scheduler, host.away.get(slot)
        if (
            away is None
            or scheduler.staleness.mark[slot]
            or away.version != scheduler.version(slot)
        ):
            return
        host.restore(slot, self.fetch(host, slot))

    def fetch(self, host: Any, slot: int) -> Any:
        away = host.away[slot]
        try:
            with host.aside(slot):
                array = self._unpack(away.packed)
            return _checked(host, slot, array, away)
        except Exception as error:
            add_note(error, f"raised when its value was brought back: {host.explain(slot)}")
            raise


def _checked(host: Any, slot: int, array: Any, away: Away) -> Any:
    """Return the array of ``unpack``, on the node's device, after a check that it is like the packed one."""
    who = f"saved_tensors_hooks: unpack of the value of {host.label(slot)!r}"
    if owner(array) is None:
        raise DTypeError(
            f"{who} returned {type(array).__name__}. It must return an array with the shape and dtype "
            f"of the one that pack was given, {away.dtype}{list(away.shape)}."
        )
    if tuple(array.shape) != away.shape:
        raise ShapeError(
            f"{who} returned an array of shape {tuple(array.shape)}; pack was given one of shape "
            f"{away.shape}. Keep the shape beside what you store, or reshape."
        )
    # The cheap check comes first; dtypes of other libraries are compared by name.
    same = array.dtype is away.dtype
    if not same and str(array.dtype).rpartition(".")[2] != str(away.dtype).rpartition(".")[2]:
        raise DTypeError(
            f"{who} returned an array of {array.dtype}; pack was given one of {away.dtype}. A value "
            "stored with less precision has to be converted back, .astype(...)."
        )
    found = host.specs[slot]
    if found is not None and found.kind != "cpu" and isinstance(array, np.ndarray):
        return device_of(found.device).asarray(array, found.dtype)
    return array


class SavedHooks(ContextDecorator):
    """A block of ``rg.saved_tensors_hooks``; may be entered again, nested, and in several threads."""

    def __init__(self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        self._pack, self._unpack = pack, unpack

    def __enter__(self) -> Self:
        hooks = Hooks(self._pack, self._unpack)
        open_hooks.add(hooks)
        _mine.set((*_mine.get(), hooks))
        return self

    def __exit__(self, *exc: object) -> None:
        *others, hooks = _mine.get()
        _mine.set(tuple(others))
        open_hooks.discard(hooks)


def hooks_here() -> Hooks | None:
    """Return the hooks of the innermost block of this thread, ``None`` if none is open."""
    mine = _mine.get()
    return mine[-1] if mine else None


def saved_tensors_hooks(pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> SavedHooks:
    """Pack the values of nodes built in a block until something reads them.

    This is a context manager and a decorator, for its thread; the innermost block counts. When the run
    that computed a node's value does not read it for nodes of the same order any more (a gradient reads
    it later), the value is given to ``pack`` and its memory is freed. A later reader, be it a gradient,
    another node or the user, gets what ``unpack`` makes of the packed object. After that run the memory
    is freed again, without a call of ``pack``. The targets of a read stay until the next run. Otherwise
    the node works as always: when an input changes, it runs, gets a new version, and its new value is
    packed. Versions and the nodes that run are the same as without hooks.

    Leaves, nodes of gradients, observed and pinned nodes, nodes with a cutoff, and values that are not
    arrays are not packed. Views are dropped with the array that they show, and made again.

    If ``pack`` raises, the value stays. The read then raises at its end, if it computed or used that
    value. Each later run tries again, and raises under the same condition. If ``unpack`` raises, or
    returns an unfit array, the reader raises, and so do later reads of a node that failed by it, until
    something changes or ``g.forward(y, retry=True)``. The packed object is kept.

    Parameters
    ----------
    pack : callable
        ``pack(array) -> object``. The array is read-only and of the library of the device. It may be
        kept as it is, which frees no memory.
    unpack : callable
        ``unpack(object) -> array``, with the shape and dtype that ``pack`` was given; also as a NumPy
        array for a node on another device. It may be called several times for one object. Its result is
        copied.

    Raises
    ------
    DTypeError
        If one of them cannot be called.

    Notes
    -----
    ``torch.autograd.graph.saved_tensors_hooks`` packs only what an op saves for backward, leaves
    included, once, when the op runs. Here nodes keep all values, so all values of the block are packed.
    Neither function may change the graph.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param(np.ones(1000))
    >>> with rg.saved_tensors_hooks(lambda a: a.tobytes(), np.frombuffer):
    ...     h = rg.tanh(rg.exp(w))
    >>> y = h.sum()
    >>> run = g.forward(y)
    >>> g.stats().bytes
    8008
    >>> run = y.backward()
    >>> len(run.rebuilt), h.value_version
    (0, 1)
    """
    for what, one in (("pack", pack), ("unpack", unpack)):
        if not callable(one):
            raise DTypeError(
                f"rg.saved_tensors_hooks: {what} is {type(one).__name__}; give two functions, "
                "pack(array) and unpack(what pack returned)."
            )
    return SavedHooks(pack, unpack)
