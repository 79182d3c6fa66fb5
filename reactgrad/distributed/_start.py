"""The node of a collective that gives this rank's values to the others, and does not wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reactgrad.distributed._errors import DistributedError
from reactgrad.distributed._group import Group
from reactgrad.distributed._request import Request
from reactgrad.distributed._work import Pack, Work
from reactgrad.nodes._lifted import Lifted

# Why collectives have no form in a file.
UNSAVED = (
    "it is part of a collective, and the ranks that it asks are those of this program. Save the graph before "
    "collectives are built in it, or the state of its modules, net.state_dict(), and build them anew."
)


class Start(Lifted):
    """The op of a node that asks the other ranks for a collective, and does not wait.

    Its value is the ``Work``. Outside of a run of its node, ``rounds`` may have asked already, since the
    operands are stale on another rank only; then ``given`` is what the next run returns.
    """

    INNER = True
    UNSAVED = UNSAVED
    __slots__ = ("_flat", "_request", "given", "group", "key", "latest", "options", "scaled")

    def __init__(
        self, group: Group, kind: str, options: dict[str, Any], label: str, scaled: bool
    ) -> None:
        super().__init__(self.run, None, None, None, ())
        self.group = group
        self.options = {"kind": kind, "label": label, **options}
        self.key = (id(group), kind, tuple(sorted(options.items())), scaled)
        self.name = f"start_{kind}"
        self.scaled = scaled  # the first operand is a factor of all others
        self.given: Work | None = None
        self._flat: np.ndarray | None = None
        self.latest: Work | None = None
        self._request: Request | None = None

    def definition(self) -> Any:
        """Return a key, equal for two calls that may share a node."""
        return (type(self), self.group, self.key)

    def run(self, *values: Any) -> Work:
        """Return the work that was asked for already, or ask."""
        given, self.given = self.given, None
        return self.post(values, True) if given is None else given

    def post(self, values: Sequence[Any], stale: bool) -> Work:
        """Ask the other ranks for the collective."""
        factor, *arrays = values if self.scaled else (None, *values)
        arrays = [np.asarray(one) for one in arrays]
        first = arrays[0]
        dtype = first.dtype if len(arrays) == 1 else np.result_type(*arrays)
        shapes = tuple([one.shape for one in arrays])
        request = self._request
        if request is None or request.shapes != shapes or request.dtype != dtype.name:
            if dtype.kind not in "biufc":
                raise DistributedError(
                    f"{self.name}: arrays of {dtype} cannot go to other ranks; give numbers."
                )
            request = self._request = Request(shapes=shapes, dtype=dtype.name, **self.options)
            self._flat = None
        # Memory is used again, once what it was used for is done: new memory costs as much as a copy.
        if self._flat is None or (self.latest is not None and not self.latest.is_done):
            self._flat = np.empty(max(request.size, request.received(self.group.size)), dtype)
        transport, flat = self.group.transport, self._flat
        if factor is None and len(arrays) == 1 and first.flags.c_contiguous:
            # Not copied: it stays as it is until the read has ended, and so has the collective.
            own = first.reshape(-1)
            work = transport.post(request, lambda: own, stale, flat)
        else:
            work = transport.post(
                request, _packed(arrays, flat[: request.size], factor), stale, flat
            )
        self.latest = work
        return work


def _packed(arrays: list[np.ndarray], flat: np.ndarray, factor: Any) -> Pack:
    """Return the function that copies the arrays side by side, each times the factor."""

    def pack() -> np.ndarray:
        at = 0
        for one in arrays:
            part = flat[at : at + one.size]
            if factor is None:
                part[...] = one.reshape(-1)
            elif factor == 0.0:  # of no rows: what was computed from them may be NaN
                part[...] = 0.0
            else:
                np.multiply(one.reshape(-1), factor, out=part, casting="same_kind")
            at += one.size
        return flat

    return pack
