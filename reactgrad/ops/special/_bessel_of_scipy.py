"""Bessel functions of any real order, with the kernels of SciPy: jv, yv, iv, kv.

Derivatives by x are functions of the orders beside; by the order there is none in such functions.
"""

from __future__ import annotations

from typing import Any, Final

from reactgrad.backend.numpy import _bessel_of_scipy
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Op
from reactgrad.ops._chain import times
from reactgrad.ops._elementwise import public
from reactgrad.ops.special._form import smooth, with_kernels
from reactgrad.ops.special._incomplete import by_parameter


def _of_orders_beside(name: str, before: float, behind: float) -> Op:
    """Return an op whose derivative is that of the order before times a factor, and of the one behind."""

    def rule(g: Any, ans: Any, order: Any, x: Any) -> Any:
        low, high = apply(op, (order - 1.0, x)), apply(op, (order + 1.0, x))
        return times(g, low * before + high * behind)

    op = smooth(name, by_parameter(name, "the order", f"{name}(order.detach(), x)"), rule)
    return op


JV: Final = _of_orders_beside("jv", 0.5, -0.5)
YV: Final = _of_orders_beside("yv", 0.5, -0.5)
IV: Final = _of_orders_beside("iv", 0.5, 0.5)
KV: Final = _of_orders_beside("kv", -0.5, -0.5)
with_kernels(_bessel_of_scipy.register, 300.0, JV, YV, IV, KV)

# fmt: off
jv = public(JV, 2, "Bessel function of the first kind of order x at y, by SciPy; it has a gradient by y only.", "0.0, [0.0, 1.0] -> [1.         0.76519769]", __name__)
yv = public(YV, 2, "Bessel function of the second kind of order x at y, by SciPy; it has a gradient by y only.", "0.0, [1.0] -> [0.08825696]", __name__)
iv = public(IV, 2, "Modified Bessel function of the first kind of order x at y, by SciPy; it has a gradient by y only.", "0.5, [1.0] -> [0.93767489]", __name__)
kv = public(KV, 2, "Modified Bessel function of the second kind of order x at y, by SciPy; it has a gradient by y only.", "0.5, [1.0] -> [0.4610685]", __name__)
# fmt: on
