"""A request of one rank to the others: a collective, with shapes and dtype; compared before data moves."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reactgrad.distributed._errors import DistributedError

# The bytes of a header on the wire: number, flag, digest and text.
HEADER = 320
_DIGEST = 16

_NAMED = {"reduce": "reduce_add", "message": "send"}


@dataclass(frozen=True)
class Request:
    """A collective as one rank asks for it.

    Attributes
    ----------
    kind : str
        ``all_reduce``, ``reduce``, ``broadcast``, ``scatter``, ``gather``, ``all_gather``,
        ``reduce_scatter``, ``all_to_all``, ``barrier``, or ``message`` from `root` to `to`.
    shapes : tuple of tuple of int
        The shapes that this rank gives, one for each array.
    dtype : str
    reduction : str or None
        ``sum``, ``avg``, ``max``, ``min`` or ``product``.
    root : int or None
        The rank that gives, or gets, for all.
    to : int or None
        The rank that gets a message.
    label : str
        What the user's node is called; ranks may differ in it.
    """

    kind: str
    shapes: tuple[tuple[int, ...], ...] = ()
    dtype: str = "float64"
    reduction: str | None = None
    root: int | None = None
    to: int | None = None
    label: str = ""

    @cached_property
    def size(self) -> int:
        """The number of elements that this rank gives."""
        return sum(math.prod(shape) for shape in self.shapes)

    @cached_property
    def digest(self) -> bytes:
        """Equal for requests that go together."""
        key = repr((self.kind, self.shapes, self.dtype, self.reduction, self.root, self.to))
        return hashlib.blake2b(key.encode(), digest_size=_DIGEST).digest()

    @cached_property
    def participants(self) -> tuple[int, ...] | None:
        """The two ranks of a message; ``None`` for all ranks."""
        if self.kind != "message":
            return None
        assert self.root is not None
        assert self.to is not None
        return (self.root, self.to)

    def text(self) -> str:
        """Return the request in words."""
        return self._text

    @cached_property
    def _text(self) -> str:
        name = _NAMED.get(self.kind, self.kind)
        if self.kind == "message":
            name = f"message from {self.root} to {self.to}"
        elif self.reduction is not None:
            name += f"({self.reduction})"
        if self.root is not None and self.kind != "message":
            name += f" with root {self.root}"
        if not self.shapes:
            return name
        shapes = ", ".join(map(str, self.shapes[:4]))
        if len(self.shapes) > 4:
            shapes += f", … ({len(self.shapes)} arrays)"
        what = f"{name} of {self.dtype} {shapes}"
        return f"{what} for {self.label!r}" if self.label else what

    def received(self, size: int) -> int:
        """Return the number of elements that a rank gets in a group of `size`."""
        if self.kind in ("scatter", "reduce_scatter"):
            return self.size // size
        if self.kind in ("gather", "all_gather"):
            return self.size * size
        return self.size

    def bytes_from(self, rank: int) -> int:
        """Return how many bytes a rank gives."""
        if self.kind in ("broadcast", "scatter", "message") and rank != self.root:
            return 0
        return self.size * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Header:
    """The part of a request that travels ahead.

    Attributes
    ----------
    number : int
        How many collectives this rank has asked for before, on the same ranks.
    stale : bool
        Whether what this rank gives has changed since the last time.
    """

    number: int
    stale: bool
    digest: bytes
    text: str

    def encoded(self) -> np.ndarray:
        """Return the header as bytes of a fixed length."""
        text = self.text.encode()[: HEADER - _DIGEST - 9]
        raw = self.number.to_bytes(8, "little") + bytes([self.stale]) + self.digest + text
        return np.frombuffer(raw.ljust(HEADER, b"\0"), np.uint8)

    def equals(self, array: np.ndarray) -> bool:
        """Return whether bytes are a header of the same request, without decoding all of them."""
        raw = array.data
        return raw[9 : 9 + _DIGEST] == self.digest and self.number.to_bytes(8, "little") == raw[:8]

    @staticmethod
    def decoded(array: np.ndarray) -> Header:
        """Return the header of these bytes."""
        raw = array.tobytes()
        text = raw[9 + _DIGEST :].rstrip(b"\0").decode(errors="replace")
        return Header(int.from_bytes(raw[:8], "little"), bool(raw[8]), raw[9 : 9 + _DIGEST], text)


def in_words(asked: Mapping[int, str]) -> str:
    """Return who asked for what, in words."""
    by_text: dict[str, list[int]] = {}
    for rank, text in sorted(asked.items()):
        by_text.setdefault(text, []).append(rank)
    parts = []
    for text, ranks in by_text.items():
        who = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
        parts.append(f"{who} asked for {text}")
    return "; ".join(parts)


def check_together(headers: Mapping[int, Header]) -> None:
    """Raise unless all ranks ask for the same.

    Raises
    ------
    DistributedError
        It says which rank asked for what.
    """
    first = next(iter(headers.values()))
    if all(h.digest == first.digest and h.number == first.number for h in headers.values()):
        return
    asked = {rank: header.text for rank, header in headers.items()}
    raise DistributedError(
        f"the ranks do not ask for the same: {in_words(asked)}. All ranks must ask for the same "
        "collectives in the same order, with the same shapes and dtypes: build and read these nodes "
        "in the same order on every rank.",
        asked,
    )
