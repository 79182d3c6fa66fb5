"""The form of the ops of special functions: real numbers only, in the dtype that NumPy's exp has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError
from reactgrad.backend import Spec, add_kernels, in_blocks, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.nodes._op import Attrs, Op, Vjp
from reactgrad.ops._astype import astype
from reactgrad.ops._operand import known_dtype
from reactgrad.ops._shapes import broadcast, common_device, promote, resolve, shapes_text


def _float_dtype(name: str, specs: tuple[Spec, ...]) -> Any:
    """Return the common dtype, and that of NumPy's exp for integers and booleans."""
    one = specs[0].weak if len(specs) == 1 else None
    dtype = resolve(np.exp, (one or promote(specs),), name)[-1]
    if dtype.kind == "c":
        raise DTypeError(f"{name} of {shapes_text(specs)}: it takes real numbers only.")
    return dtype


def smooth(name: str, *rules: Vjp | None) -> Op:
    """Return an elementwise op of as many operands as there are rules; each rule serves both modes."""

    def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        dtype = _float_dtype(name, specs)
        return spec(broadcast(name, specs), dtype, common_device(name, specs))

    def loop(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
        return (_float_dtype(name, specs),) * len(specs)

    return Op(name, infer, rules, rules, elementwise=True, broadcasts=True, loop_dtypes=loop)


def widened(x: Any) -> Any:
    """Return booleans and short integers as float64, which NumPy's functions that are no ufuncs make of them."""
    dtype = known_dtype(x)
    short = dtype is not None and dtype.kind in "biu" and dtype.itemsize < 4
    return astype(x, np.float64) if short else x


def with_kernels(register: Callable[[Any, str], None], cost: float, *ops: Op) -> None:
    """Register the kernels of these ops, each element of which costs as much as `cost` sums."""
    names = [one.name for one in ops]
    add_kernels(register, on_host(names))
    in_blocks(names, cost)
