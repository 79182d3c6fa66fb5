"""An array as a few letters, from which a box draws a line, an image or a histogram.

Each letter is one of 64 levels between the lowest and the highest finite element; a space is no finite
number. So the values of all boxes in sight fit into the message that says what has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from reactgrad.core._core import Core
from reactgrad.values._columns import MISSING

LETTERS = np.frombuffer(
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-", np.uint8
)
NOT_FINITE = ord(" ")
# Arrays of so many elements are drawn as lines or images, larger ones as histograms of so many elements.
MOST_DRAWN, MOST_COUNTED = 2**14, 2**16
POINTS, ROWS, COLUMNS, BINS = 48, 14, 36, 18


class Glance(NamedTuple):
    """The picture of an array that a box shows.

    Attributes
    ----------
    kind : str
        ``"line"``, ``"image"`` or ``"bins"``.
    letters : str
        Its levels, row by row.
    wide : int
        The number of letters in a row.
    norm : float
        The Euclidean norm of the array; 0.0 if it is no finite number.
    """

    kind: str
    letters: str
    wide: int
    norm: float


def glance(value: Any) -> Glance | None:
    """Return what a box draws of a value; ``None`` if it is no array of numbers, or of fewer than two."""
    if not isinstance(value, np.ndarray) or value.size < 2 or value.dtype.kind not in "biuf":
        return None
    with np.errstate(all="ignore"):
        norm = float(np.linalg.norm(value.ravel().astype(np.float64, copy=False)))
        norm = float(f"{norm:.4g}") if np.isfinite(norm) else 0.0
        if value.ndim == 3 and value.dtype == np.uint8 and value.shape[2] in (3, 4):
            value = value[..., :3].mean(axis=2)  # colours, as in _figures.py, but without colour
        if value.ndim > 2 or value.size > MOST_DRAWN:
            return Glance("bins", _levels(_counted(value.ravel()), low=0.0), BINS, norm)
        if value.ndim == 1:
            drawn = value[:: -(-value.size // POINTS)]
            return Glance("line", _levels(drawn), drawn.size, norm)
        drawn = value[:: -(-value.shape[0] // ROWS), :: -(-value.shape[1] // COLUMNS)]
        return Glance("image", _levels(drawn.ravel()), drawn.shape[1], norm)


def glances(graph: Core, slots: Mapping[int, int]) -> dict[str, list[Any]]:
    """Return for each node that has one its value version and its glance, by its key as text; runs nothing.

    Parameters
    ----------
    slots
        The slots of nodes, by their keys. Nodes that are gone or stale are left out.
    """
    scheduler, host = graph._scheduler, graph._host
    found: dict[str, list[Any]] = {}
    with graph._lock:
        number = scheduler.topology.number
        alive = {slot: key for key, slot in slots.items() if number(slot) == key}
        stale = set(scheduler.truly_stale(list(alive)))
        for slot, key in alive.items():
            value, spec = host.data[slot], host.specs[slot]
            if slot in stale or slot in scheduler.dropped or slot in scheduler.computing:
                continue
            if value is MISSING or (spec is not None and spec.known and spec.kind != "cpu"):
                continue
            seen = glance(value)  # read in place, so that nothing is copied or kept
            if seen is not None:
                found[str(key)] = [scheduler.version(slot), *seen]
    return found


def _counted(flat: np.ndarray) -> np.ndarray:
    """Return how many elements lie in each of equal parts between the lowest and the highest one."""
    numbers = flat[:: -(-flat.size // MOST_COUNTED)].astype(np.float64)
    numbers = numbers[np.isfinite(numbers)]
    if not numbers.size or not np.isfinite(numbers.max() - numbers.min()):
        return np.zeros(BINS)
    return np.histogram(numbers, BINS)[0].astype(np.float64)


def _levels(flat: np.ndarray, low: float | None = None) -> str:
    """Return the level of each number as a letter."""
    numbers = flat.astype(np.float64)
    good = np.isfinite(numbers)
    if not good.any():
        return " " * numbers.size
    least = float(numbers[good].min()) if low is None else low
    most = float(numbers[good].max())
    half = most / 2 - least / 2  # of the range, which may be too wide for a float
    share = (numbers / 2 - least / 2) / half if half > 0 else np.full(numbers.size, 0.5)
    levels = np.rint(np.where(good, share, 0.0) * (LETTERS.size - 1)).astype(np.intp)
    return np.where(good, LETTERS[levels], NOT_FINITE).astype(np.uint8).tobytes().decode("ascii")
