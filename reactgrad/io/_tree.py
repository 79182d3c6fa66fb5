"""States of objects: containers as JSON, arrays as tensors that are named by the keys leading to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reactgrad._errors import LoadError
from reactgrad.io._format import PAIRS, from_tensor
from reactgrad.io._json import (
    MOST_NESTED,
    Reader,
    UnwritableError,
    Writer,
    axes_in_memory,
    in_order,
    items_of,
)
from reactgrad.scheduler import safe_repr

Array = np.ndarray[Any, Any]


class TreeWriter(Writer):
    """Writes states. `path` leads to what is being written, and to what could not be."""

    def __init__(self) -> None:
        super().__init__()
        self.path: list[str] = []
        self.names: list[str] = []
        self._known: set[str] = {"manifest"}

    def value(self, thing: Any, depth: int = 0) -> Any:
        if isinstance(thing, Mapping) and depth <= MOST_NESTED:
            below = depth + 1
            return {
                "dict": [
                    [super(TreeWriter, self).value(key, below), self._at(str(key), one, below)]
                    for key, one in thing.items()
                ]
            }
        if type(thing) in (list, tuple) and depth <= MOST_NESTED:
            items = [self._at(str(at), one, depth + 1) for at, one in enumerate(thing)]
            return items if type(thing) is list else {"tuple": items}
        if isinstance(thing, np.ndarray):
            if isinstance(thing, np.ma.MaskedArray):
                raise UnwritableError("a masked array has no form in a file")
            # In C order, as other programs expect; `axes` say how it lay, since the bits of sums depend on that.
            axes = axes_in_memory(thing) or range(thing.ndim)
            place = self.array(np.ascontiguousarray(thing).reshape(thing.shape))
            return {"array": [place, self.dtype(thing.dtype), [*axes]]}
        return super().value(thing, depth)

    def _at(self, key: str, thing: Any, depth: int) -> Any:
        self.path.append(key)
        form = self.value(thing, depth)
        self.path.pop()
        return form

    def array(self, array: Array) -> int:
        place = super().array(array)
        name = wanted = ".".join(self.path).encode(errors="replace").decode()
        count = 1
        while name in self._known:
            count += 1
            name = f"{wanted}#{count}"
        self._known.add(name)
        self.names.append(name)
        return place


class TreeReader(Reader):
    """Reads states; each tensor serves one array, so the arrays are no larger than the file."""

    def __init__(self, tensors: Sequence[tuple[str, Array]]) -> None:
        super().__init__(lambda place, dtype: tensors[place][1], ())
        self._tensors = tensors
        self._used: set[int] = set()

    def value(self, form: Any, depth: int = 0) -> Any:
        if not isinstance(form, dict) or form.keys() != {"array"}:
            return super().value(form, depth)
        place, dtype, axes = items_of(form["array"], 3, "an array")
        array = self.array(place, dtype)
        in_order(array, axes)  # raises unless these are its axes
        if axes == list(range(array.ndim)):
            return array
        back = [axes.index(axis) for axis in range(array.ndim)]
        return np.ascontiguousarray(array.transpose(axes)).transpose(back)

    def array(self, place: Any, dtype: Any) -> Array:
        wanted = self.dtype(dtype).name
        if type(place) is not int or not 0 <= place < len(self._tensors) or place in self._used:
            raise LoadError(f"it has no tensor {safe_repr(place):.60}, or has used it")
        self._used.add(place)
        name, found = self._tensors[place]
        if found.dtype != PAIRS.get(wanted, wanted) or (
            wanted in PAIRS and found.shape[-1:] != (2,)
        ):
            raise LoadError(f"tensor {name!r:.60} is of {found.dtype}, and declared {wanted}")
        return from_tensor(found, wanted)
