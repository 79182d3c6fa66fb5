"""New values of leaves: copied into the leaf's buffer, adopted as they are, or put in place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from reactgrad.backend import (
    Spec,
    device_of,
    own_copy,
    read_value,
    spec,
    storage_shape,
    weak_spec,
)
from reactgrad.nodes._op import INPUT, PARAM
from reactgrad.values._columns import _FLOAT64, MISSING
from reactgrad.values._lending import Lending
from reactgrad.values._set_together import MAX_GROUPS, Together

_FLOATS = (float, np.float64)

_FLOAT_SPEC = spec((), _FLOAT64)

# Types of values that replace one of the same type without a check, with the spec of such a leaf.
_PLAIN = {int: weak_spec(int), float: weak_spec(float), str: None}


class LeafWrites(Lending):
    """The storey of the storage that replaces values of leaves."""

    def remember(self, handles: Mapping[Any, Any], slots: Sequence[int]) -> None:
        """Remember these leaves, which were just set plainly, since they may be set together again.

        Nothing is remembered if a leaf holds a Python number, which has no memory to copy into.
        """
        if any(isinstance(handle, str) for handle in handles) or len(set(slots)) < len(slots):
            return
        if any(type(self.data[slot]) is not np.ndarray for slot in slots):
            return
        self.join(id(next(iter(handles))), Together(self, handles, slots))

    def join(self, key: int, group: Any) -> None:
        """Enter a group of leaves that lie together."""
        if len(self.together) >= MAX_GROUPS:
            self.together.clear()
        self.together[key] = group

    def replace_memory(self, slot: int, buffer: Any) -> None:
        """Make `buffer`, which holds the value of a leaf, its memory; callers and forks keep the former one."""
        self.moved(slot)
        self.handed.pop(slot, None)
        self._leases.pop(slot, None)
        self.data[slot] = buffer
        if self._own is not None:
            self._own.add(slot)
        if self.policy is not None:
            self.policy.given(slot)

    @staticmethod
    def _fits(buffer: Any, found: Spec) -> bool:
        """Return whether a value of this spec can be copied into ``buffer``."""
        if found.kind == "cpu":
            return (
                type(buffer) is np.ndarray
                and buffer.shape == storage_shape(found)
                and buffer.dtype == found.dtype
            )
        seen = None if buffer is MISSING else read_value(buffer, "a buffer")[0]
        return (
            seen is not None
            and seen.device == found.device
            and seen.shape == storage_shape(found)
            and seen.dtype == found.dtype
        )

    def plain_writes(self, slots: Sequence[int], values: Iterable[Any]) -> bool:
        """Return whether ``plain_write`` holds for each of these; arrays are checked without a call."""
        data, specs, ops, cutoffs = self.data, self.specs, self.ops, self.cutoffs
        for slot, value in zip(slots, values):
            if type(value) is np.ndarray is type(data[slot]):
                found, op = specs[slot], ops[slot]
                if (
                    found is None
                    or value.dtype is not found.dtype
                    or value.shape != found.shape
                    or (op is not INPUT and op is not PARAM)
                    or slot in cutoffs
                ):
                    return False
            elif not self.plain_write(slot, value):
                return False
        return True

    def plain_write(self, slot: int, value: Any) -> bool:
        """Return whether the value needs no check: a copy into the leaf's buffer, or a place, will do."""
        buffer = self.data[slot]
        op = self.ops[slot]
        if (op is not INPUT and op is not PARAM) or slot in self.cutoffs:
            return False
        found = self.specs[slot]
        if found is None or type(buffer) is not np.ndarray:
            kind = type(value)
            return (
                kind is type(buffer)
                and kind in _PLAIN
                and found is _PLAIN[kind]
                and slot not in self.patterns
            )
        if type(value) is np.ndarray:
            return value.shape == found.shape and value.dtype is found.dtype  # type: ignore[union-attr]
        return type(value) in _FLOATS and found is _FLOAT_SPEC

    def write_plainly(self, slot: int, value: Any) -> None:
        """Replace the value of a leaf by one for which ``plain_write`` is true."""
        buffer = self.data[slot]
        if type(buffer) is np.ndarray:
            self.overwrite((slot,))
            buffer = self.data[slot]
        if type(buffer) is np.ndarray:
            buffer[...] = value
        elif buffer is MISSING:  # the buffer was left to a caller, who still holds its view
            self.write_leaf(slot, self.specs[slot], value, adopt=False)
        else:  # numbers are immutable: callers need no protection
            self.handed.pop(slot, None)
            self.data[slot] = value
            if slot in self._literals:
                self._renumber(slot, buffer, value)

    def write_part(self, slot: int, index: Any, values: Any) -> None:
        """Replace a part of the array of a leaf by values of its dtype that broadcast to that part."""
        former = self.data[slot]
        self.overwrite((slot,))
        buffer = self.data[slot]
        if buffer is MISSING:  # left to a caller or a fork
            found = self.specs[slot]
            assert found is not None
            buffer = own_copy(found, former)
            buffer[index] = values
            self.data[slot] = buffer
            self.footprint.add(buffer)
            if self.policy is not None:
                self.policy.given(slot)
        else:
            buffer[index] = values

    def finish_writes(self) -> None:
        """Write again the values that were being written when an error came: all of them, not some."""
        if self.cut_slots:
            self.scheduler.changed_together(tuple(self.cut_slots))
            for slot, value in zip(self.cut_slots, self.cut_values):
                self.discard(slot)  # into new memory: callers may hold the old one
                self.write_leaf(slot, self.specs[slot], value, adopt=False)
            self.cut_slots = self.cut_values = ()

    def write_leaf(self, slot: int, found: Spec | None, value: Any, *, adopt: bool) -> None:
        """Replace the value of a leaf by a copy of `value`, or by `value` itself."""
        self.overwrite((slot,))
        buffer = self.data[slot]
        if found is None or found.weak is not None:
            self.data[slot] = value
            if found is self.specs[slot]:
                self._renumber(slot, buffer, value)
                return
        elif adopt and self.adopt(slot, found, value):
            self._forget_literals(slot)
            return
        elif self._fits(buffer, found):
            device_of(found.device).assign(buffer, value)
            return
        else:
            self.data[slot] = own_copy(found, value)
        self.footprint.add(self.data[slot])
        self._forget_literals(slot)
        self.specs[slot] = found
        self.moved(slot)
        if self.policy is not None:
            self.policy.given(slot)

    def adopt(self, slot: int, found: Spec, value: Any) -> bool:
        """Make the given array the memory of a leaf. Return ``False`` if it must be copied instead."""
        if found.kind != "cpu" or type(value) is not np.ndarray or value.dtype != found.dtype:
            return False
        flags = value.flags
        if not (flags.c_contiguous and flags.owndata and flags.aligned):
            return False
        value.setflags(write=False)
        buffer = self.data[slot] = value.reshape(found.storage)
        self.handed.pop(slot, None)
        if self._own is not None:
            self._own.add(slot)
        # The array belongs to the caller who gave it: it is never written, and the next set leaves it.
        self._leases[slot] = [_always_held]
        if found is not self.specs[slot]:
            self.specs[slot] = found
        self.footprint.add(buffer)
        self.moved(slot)
        if self.policy is not None:
            self.policy.given(slot)
        return True


def _always_held() -> bool:
    """Return ``True``: in place of a lease, it says that a caller holds the memory for ever."""
    return True
