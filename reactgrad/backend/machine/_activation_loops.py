"""Activation functions by the loops of the driver: one pass, and exponentials of our own; see ``_activations.h``.

Binders for the CPU are replaced by binders that take the loops for float32 and float64, where there is a driver: for
all layouts and sizes, with ``jit`` or without, so that an element has the same bits everywhere. For the ops that are
always there this is done on import, for others by those who register them.
What has no loop, half floats among it, is bound as before. NumPy's kernels, which compute the same where there is no
driver, differ by a few units in the last place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any, Final, NamedTuple

import numpy as np

from reactgrad.backend._registry import Binder, find_binder, register_binder, register_overwriting
from reactgrad.backend.blocks._blockwise import depends_on_place
from reactgrad.backend.blocks._strips import Elementwise, is_large
from reactgrad.backend.machine._find import find_driver
from reactgrad.backend.machine._loop_call import loop_call
from reactgrad.backend.machine._loops import address_of
from reactgrad.backend.numpy._activations import SHORT_TAIL, SHORT_TAIL_RANGE

Attrs = tuple[Any, ...]

# In additions in the cache, as the costs of ``_blockwise``.
_COST: Final = 6.0
# The operands over which the result may be written.
_OVERWRITTEN: Final = {"sigmoid": (0,), "sigmoid_backward": (2,)}


class _Loop(NamedTuple):
    address: int
    data: int  # the address of its numbers


def _no_numbers(attrs: Attrs) -> tuple[float, ...] | None:
    return None if attrs else ()


def _of_softplus(attrs: Attrs) -> tuple[float, ...] | None:
    beta, limit = attrs
    return None if beta != 1.0 else (np.inf if limit is None else limit,)


def _of_elu(attrs: Attrs) -> tuple[float, ...]:
    alpha, scale, width = attrs
    return scale, scale * alpha, width


def _of_short_tail(attrs: Attrs) -> tuple[float, ...]:
    low, high = SHORT_TAIL_RANGE
    return *SHORT_TAIL, (low + high) / 2.0, 2.0 / (high - low)


# By op: the numbers of its loop for attributes; ``None`` if it has none for these.
_NUMBERS: Final[dict[str, Callable[[Attrs], tuple[float, ...] | None]]] = {
    **dict.fromkeys(("sigmoid", "sigmoid_backward", "silu", "silu_slope"), _no_numbers),
    **dict.fromkeys(("log_sigmoid", "mish", "gelu_tanh", "gelu_tanh_slope"), _no_numbers),
    **dict.fromkeys(("gelu", "gelu_slope"), _of_short_tail),
    "softplus": _of_softplus,
    "elu": _of_elu,
}
_kept: Final[list[Any]] = []  # loops read these arrays as long as the process lives


@cache
def _loop(name: str, dtype: str, attrs: Attrs) -> _Loop | None:
    """Return the loop of an op for floats of a dtype; ``None`` if there is none."""
    driver = find_driver()
    address = None if driver is None else driver.LOOPS.get(f"{name} {dtype}")
    found = None if address is None else _NUMBERS[name](attrs)
    if address is None or found is None:
        return None
    if not found:
        return _Loop(address, 0)
    _kept.append(numbers := np.array(found, dtype))
    return _Loop(address, address_of(numbers))


def _bind(
    name: str, otherwise: Binder, inputs: Sequence[Any], out: Any, attrs: Attrs
) -> Callable[[], object]:
    dtype = out.dtype
    found = _loop(name, dtype.char, attrs) if type(out) is np.ndarray and out.size else None
    if found is None or any(type(one) is not np.ndarray for one in inputs):
        return otherwise(inputs, out, attrs)
    if is_large(out) and not any(map(depends_on_place, inputs)):
        return Elementwise(partial(_compute, found), [*inputs, out], _COST)
    if all(one.shape == out.shape and one.dtype == dtype for one in inputs):
        call = loop_call(found.address, [*inputs, out], found.data)
        if call is not None:
            return call
    return partial(_compute, found, *inputs, out)


def _compute(loop: _Loop, *arrays: Any) -> None:
    """Call a loop for arrays of any layout and for operands that broadcast to the result."""
    *inputs, out = arrays
    target = out if out.flags.c_contiguous and out.flags.aligned else np.empty_like(out, order="C")
    rows = [
        np.ascontiguousarray(np.broadcast_to(one, out.shape), out.dtype).reshape(out.shape)
        for one in inputs
    ]
    call = loop_call(loop.address, [*rows, target], loop.data)
    assert call is not None
    call()
    if target is not out:
        out[...] = target


def use_loops(names: Iterable[str]) -> None:
    """Bind these ops, which have binders, to their loops where there are some."""
    for name in names:
        register_binder(name, "cpu", partial(_bind, name, find_binder(name, "cpu")))
        if name in _OVERWRITTEN:
            register_overwriting(name, "cpu", _OVERWRITTEN[name], lambda attrs: True)


use_loops(("sigmoid", "sigmoid_backward"))
