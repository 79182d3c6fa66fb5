"""Moving values between devices and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError
from reactgrad.backend import (
    Spec,
    cpu,
    device_of,
    holder,
    is_device_name,
    read_device,
    read_dtype,
    register_anywhere,
    spec,
)
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._astype import astype
from reactgrad.scheduler import safe_repr


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(specs[0].shape, specs[0].dtype, attrs[0])


def _bind(inputs: Sequence[Any], out: Any, attrs: Attrs) -> Callable[[], object]:
    (x,), device = inputs, device_of(attrs[0])
    source = holder(x)
    assert source is not None  # operands are arrays
    if source is cpu or source.kind == device.kind:
        return lambda: device.assign(out, x)
    # By way of the host. The one copy that has to wait for the other device is the one that leaves it.
    return lambda: device.assign(out, source.to_numpy(x))


# The gradient goes back to the operand's device.
TO_DEVICE = Op(
    "to_device",
    _infer,
    (lambda g, ans, x, device: to_device(g, x.device),),
    (LINEAR,),
    elementwise=True,
)
register_anywhere("to_device", _bind)


def to_device(x: Any, device: str) -> Any:
    """Return a node that holds the value of `x` on a device; `x` itself if it lives there."""
    return x if x.device == device else apply(TO_DEVICE, (x,), (device,))


def to(
    x: Any,
    *targets: Any,
    dtype: Any = None,
    device: Any = None,
) -> Any:
    """Return the value in another dtype, on another device, or both; see ``Var.to``."""
    for one in targets:
        if isinstance(one, str) and is_device_name(one):
            if device is not None:
                raise DTypeError(f"x.to was given two devices, {safe_repr(device)} and {one!r}.")
            device = one
        else:
            if dtype is not None:
                raise DTypeError(
                    f"x.to was given {one!r:.60} beside dtype={safe_repr(dtype):.60}. Write a dtype, a device, or one "
                    "of each: x.to('cuda:0', 'float32')."
                )
            dtype = one
    found: Any = x
    where = None if device is None else read_device("x.to", device)
    if dtype is not None:
        wanted = np.dtype(read_dtype("x.to", dtype))
        weak = x._graph._host.specs[x._slot]
        if found.dtype != wanted or (weak is not None and weak.weak is not None):
            found = astype(found, wanted)
    return found if where is None else to_device(found, where)
