"""Binders for ops that have compiled loops of their own, for graphs with ``jit``.

A loop gives the same bits as the kernel that it replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import find_binder, register_binder
from reactgrad.backend.blocks._strips import Elementwise, is_large
from reactgrad.backend.machine._find import find_driver
from reactgrad.backend.machine._formulas import Formula, bell, formula
from reactgrad.backend.machine._instructions import MOST_ELEMENTS
from reactgrad.backend.machine._loop_call import LoopCall, loop_call
from reactgrad.backend.machine._loops import address_of, find_loop
from reactgrad.backend.numpy._chain import plain_calls

# The cost of one element, in additions in the cache.
_COST: Final = 8.0


def _bind(
    name: str, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
) -> Callable[[], object] | None:
    (x,) = inputs
    call = _loop_call(name, x, out)
    if call is None or not is_large(out):
        return call
    return Elementwise(partial(_compute, name), [x, out], _COST)


def _loop_call(name: str, x: Any, out: Any) -> LoopCall | None:
    """Return the call of the loop, or ``None`` if the arrays have a layout that it cannot take."""
    found = _loop(name, out.dtype.char)
    if found is None or type(x) is not np.ndarray or x.shape != out.shape:
        return None
    if x.size > 1 and not any(x.strides):  # one element in memory: the loop would read beyond it
        return None
    return loop_call(found.loop, [x, out], found.data)


def _bind_gaussian(
    inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
) -> Callable[[], object] | None:
    (x,), driver = inputs, find_driver()
    if driver is None or is_large(out) or type(x) is not np.ndarray or x.shape != out.shape:
        return None
    scale, rate = attrs
    found = bell(scale, rate, out.dtype.char, driver.LOOPS)
    if found is None or (x.size > 1 and not any(x.strides)):
        return None
    return loop_call(found.loop, [x, out], found.data)


def _bind_relu_grad(
    inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
) -> Callable[[], object] | None:
    (g, x), driver = inputs, find_driver()
    loop = None if driver is None else driver.LOOPS.get(f"relu_grad {out.dtype.char}")
    if loop is None or is_large(out) or x.shape != out.shape or g.shape not in ((), out.shape):
        return None
    return loop_call(loop, [g, x, out])


def _compute(name: str, x: Any, out: Any) -> None:
    call = _loop_call(name, x, out)
    if call is None:
        find_binder(name, "cpu")((x,), out, ())()
    else:
        call()


@cache
def _loop(name: str, dtype: str) -> Formula | None:
    """Return the compiled loop of a function, and its last argument; ``None`` if there is none."""
    driver = find_driver()
    if driver is not None:
        return formula(name, dtype, driver.LOOPS)
    from reactgrad.backend.machine._erf_loops import address  # imported late: it needs numba

    loop, exp = address(name, dtype), _exp_loop()
    return None if loop is None or exp is None else Formula(loop, address_of(exp))


@cache
def _exp_loop() -> np.ndarray[Any, Any] | None:
    """Return an array of the address of NumPy's loop for exponentials and the loop's last argument."""
    loop = find_loop(np.exp, "dd")
    return None if loop is None else np.array(loop, np.int64)


def _bind_chain(
    ufunc: np.ufunc, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
) -> Callable[[], object] | None:
    few = 0 < out.size <= MOST_ELEMENTS and not is_large(out)
    a, b = inputs
    return plain_calls(ufunc, a, b, out) if few else None


register_binder("chain_times", "jit", partial(_bind_chain, np.multiply))
register_binder("chain_over", "jit", partial(_bind_chain, np.divide))

register_binder("gaussian", "jit", _bind_gaussian)
register_binder("relu_grad", "jit", _bind_relu_grad)
for _name in ("erf", "erfc", "norm_cdf"):
    register_binder(_name, "jit", partial(_bind, _name))
