"""The parts of a module: params, buffers and modules among its attributes, by path."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from reactgrad._errors import ParameterError
from reactgrad.graph._var import Var
from reactgrad.nodes._op import PARAM
from reactgrad.scheduler import safe_repr

# Numbers of editions, each given once in the process; and a count of changes of what registers where.
_editions = itertools.count(1)
changes = [0]
_MADE = re.compile(r"(?:^|/)(?:param|input)_\d+$")


class Record:
    """The state of a module beside its attributes.

    Attributes
    ----------
    edition : int
        Another number after each attribute that was set outside of a call.
    training : bool
        As ``train`` and ``eval`` have left it.
    switch : Var or None
        The leaf that follows `training`, of a layer that obeys it.
    looked : bool
        Whether a ``forward`` has read ``training`` as a Python bool.
    buffers : dict of str to bool
        Whether each buffer is in the ``state_dict``.
    label : str or None
        The scope of a module that was called itself.
    call : object
        The nodes of its calls.
    hooks : list
        Functions that are called before and after ``forward``.
    parts : tuple or None
        The tree below, and the count of changes when it was found.
    """

    __slots__ = (
        "buffers",
        "call",
        "edition",
        "hooks",
        "label",
        "looked",
        "moments",
        "parts",
        "switch",
        "training",
    )

    def __init__(self) -> None:
        self.edition = next(_editions)
        self.training = True
        self.switch: Any = None
        self.looked = False
        self.buffers: dict[str, bool] = {}
        self.label: str | None = None
        self.call: Any = None
        self.parts: Any = None
        self.moments: list[Any] = []
        self.hooks: list[Any] = []

    def edit(self) -> None:
        """Note that calls build anew."""
        self.edition = next(_editions)


class Parameters(Iterator[Var]):
    """Params, one after the other.

    Attributes
    ----------
    named : iterator of (str, Var)
        Those that are left, with their paths.
    """

    __slots__ = ("named",)

    def __init__(self, named: Iterator[tuple[str, Var]]) -> None:
        self.named = named

    def __next__(self) -> Var:
        return next(self.named)[1]


class Registered:
    """The base of ``Module``."""

    _record: Record
    _waits = False  # True while the params of a layer wait for its first input


def check_path(owner: Any, name: Any) -> None:
    """Raise ``ParameterError`` for a name that is no part of a path such as ``"layers.0.weight"``."""
    if not isinstance(name, str) or not name or "." in name:
        raise ParameterError(
            f"{type(owner).__name__}: {safe_repr(name):.60} names no part of it. A name is a text without dots, which "
            "join names to paths: 'layers.0.weight'. Write str(key), or '_' for '.'."
        )


def is_param(one: object) -> bool:
    """Return whether this is a trainable leaf, frozen ones included.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> is_param(g.param(1.0)), is_param(g.param(1.0).freeze()), is_param(g.param(1.0) * 2.0)
    (True, True, False)
    """
    return isinstance(one, Var) and one._graph._host.ops[one._slot] is PARAM


def named_by_hand(var: Var) -> bool:
    """Return whether a leaf has a name that was given, not made."""
    return not _MADE.search(var.name)


def registers(value: Any) -> bool:
    """Return whether an attribute is part of a module's tree, or may come to be."""
    return isinstance(value, Registered | Var | list | tuple | dict)


def _entries(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield what registers of an attribute, by path: itself, or elements of a list, tuple or dict."""
    if isinstance(value, Registered) or is_param(value):
        yield path, value
    elif isinstance(value, list | tuple):
        for i, one in enumerate(value):
            yield from _entries(one, f"{path}.{i}")
    elif type(value) is dict:
        for key, one in value.items():
            if isinstance(key, str | int):
                yield from _entries(one, f"{path}.{key}")


class Parts:
    """The tree below a module, found once and again after a change.

    Attributes
    ----------
    modules : list of (str, Module)
        The module itself under ``""``, and those below; each once.
    entries : list of (str, Var, kind)
        Params and buffers by path, in order; a shared one at each of its places. The kind is
        ``"param"``, ``"buffer"``, or ``"passing"`` for a buffer that is in no ``state_dict``.
    own : int
        The number of entries, the first ones, that are in no module below.
    open : bool
        Whether there are lists or dicts, which may change without notice.
    waiting : list of str
        The paths of layers whose params wait for their first input.
    dtype : dtype or None
        That of all params, if they are floats of one dtype.
    """

    __slots__ = ("changes", "dtype", "entries", "modules", "open", "own", "waiting")

    def __init__(self, root: Registered) -> None:
        self.changes = changes[0]
        self.open, self.own = False, 0
        self.modules: list[tuple[str, Any]] = []
        self.entries: list[tuple[str, Any, str]] = []
        self.waiting: list[str] = []
        self._add(root, "", {})
        found = {var.dtype for _, var, kind in self.entries if kind == "param"}
        only = found.pop() if len(found) == 1 else None
        self.dtype: np.dtype[Any] | None = only if only is not None and only.kind == "f" else None

    def _add(self, module: Any, path: str, seen: dict[int, bool]) -> None:
        """Add a module. One that is at two places has its entries at both; one inside itself does not."""
        first = id(module) not in seen
        if not first and seen[id(module)]:
            return
        seen[id(module)] = True  # is being added
        if first:
            self.modules.append((path, module))
            if module._waits:
                self.waiting.append(path)
        start = f"{path}." if path else ""
        buffers = module._record.buffers
        below: list[tuple[str, Any]] = []
        held: list[tuple[str, Any, str]] = []
        for name, value in module._attributes():
            if name in buffers:
                if value is not None:
                    held.append((start + name, value, "buffer" if buffers[name] else "passing"))
                continue
            if isinstance(value, list | dict | tuple) and not isinstance(value, str):
                self.open = self.open or isinstance(value, list | dict)
            for at, one in _entries(value, start + name):
                if isinstance(one, Registered):
                    below.append((at, one))
                else:
                    self.entries.append((at, one, "param"))
        self.entries += held
        if not path:
            self.own = len(self.entries)
        for at, one in below:
            self._add(one, at, seen)
        seen[id(module)] = False


def parts_of(module: Any) -> Parts:
    """Return the tree below a module."""
    parts = module._record.parts
    if parts is None or parts.open or parts.changes != changes[0]:
        parts = module._record.parts = Parts(module)
    return parts
