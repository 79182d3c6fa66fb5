"""Where values lie between the runs that read them: what the user makes of them and back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar
from typing import Any, NamedTuple, Self

import numpy as np

from reactgrad._errors import DTypeError, ShapeError
from reactgrad.backend import device_of_kind, owner
from reactgrad.values._transient import Transient

# The hooks of the open blocks of all threads, and those of this thread or task, innermost last.
open_hooks: set[Hooks] = set()
_mine: ContextVar[tuple[Hooks, ...]] = ContextVar("reactgrad_saved_hooks", default=())


class Away(NamedTuple):
    """A value that lies somewhere else."""

    version: int
    packed: Any
    shape: tuple[int, ...]
    dtype: Any


class Hooks(Transient):
    """How the values of the nodes of one block are put away and brought back."""

    recomputed = False

    def __init__(self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        self._pack, self._unpack = pack, unpack

    def let_go(self, host: Any, slot: int) -> bool:
        if slot in host._view_of:  # without memory of its own; a view again, with the same strides
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
            error.add_note(f"raised when its value was brought back: {host.explain(slot)}")
            raise


def _checked(host: Any, slot: int, array: Any, away: Away) -> Any:
    """What `unpack` returned, held against what `pack` was given, on the device of the node."""
    who = f"saved_tensors_hooks: unpack of the value of {host.name(slot)!r}"
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
    same = array.dtype is away.dtype  # which other libraries' are not, for arrays of the host
    if not same and str(array.dtype).rpartition(".")[2] != str(away.dtype).rpartition(".")[2]:
        raise DTypeError(
            f"{who} returned an array of {array.dtype}; pack was given one of {away.dtype}. A value "
            "stored with less precision has to be converted back, .astype(...)."
        )
    found = host.specs[slot]
    if found is not None and found.kind != "cpu" and isinstance(array, np.ndarray):
        return device_of_kind(found.kind).asarray(array, found.dtype)
    return array


class SavedHooks(ContextDecorator):
    """What ``rg.saved_tensors_hooks`` returns; may be entered again, nested, and in several threads."""

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
    """The hooks of the innermost block of this thread."""
    mine = _mine.get()
    return mine[-1] if mine else None


def saved_tensors_hooks(pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> SavedHooks:
    """Put away the values of the nodes that are built in a block, until something reads them.

    A context manager and a decorator, of its thread; the innermost block counts. The value of a node
    that was built inside is given to `pack` as soon as the run that computed it does not read it for
    nodes of the same order any more (a gradient reads it later), and its memory is freed. Whatever
    reads it then, a gradient, another node or the user, gets what `unpack` makes of what `pack`
    returned; after that run it is put away again, without a call of `pack`. What was asked for stays
    until the next run. The node lives on as always: when an input changes it runs, gets a new
    version, and its new value is packed anew; versions and what runs are the same as without hooks.

    Leaves, nodes of gradients, observed and pinned nodes, nodes with a cutoff and values that are no arrays stay
    where they are; views are freed with what they show, and made again.

    If `pack` raises, the value stays and the read raises once all has run, if it computed or used
    that value; each later run tries again, and raises on the same terms. If `unpack` raises, or
    returns something else, what reads it raises, and so do later reads of a node that failed by
    it, until something changes or ``g.forward(y, retry=True)``; what was packed stays.

    Parameters
    ----------
    pack : callable
        ``pack(array) -> object``. The array is read-only and of the library of the device; it may be
        kept, which frees no memory.
    unpack : callable
        ``unpack(object) -> array``, of the shape and dtype that `pack` was given, also as a NumPy
        array for a node on another device. May be called several times for one object. It is copied.

    Raises
    ------
    DTypeError
        If one of them cannot be called.

    Notes
    -----
    ``torch.autograd.graph.saved_tensors_hooks`` packs only what an op saves for backward, leaves
    included, when the op runs, and once. Here all values are kept by their nodes, so all of the block
    are packed. Neither function may change the graph.

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
