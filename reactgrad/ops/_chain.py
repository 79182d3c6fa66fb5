"""Products of the chain rule in which a factor of 0 wins.

At a pole, at a kink, or where a value has left its dtype, a local derivative is infinite or NaN. Where
no gradient arrives there is none to pass on, whatever the local derivative is (rule D11a): 0 times
infinity is 0 here. Both modes then agree, since each of them meets the same two factors. The rules
of ops whose derivative is finite wherever they are multiply as usual.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Op, Vjp
from reactgrad.ops._shapes import ufunc_loop, ufunc_rule


def _define(name: str, ufunc: np.ufunc, *rules: Vjp) -> Op:
    return Op(
        name,
        ufunc_rule(ufunc),
        rules,
        rules,
        elementwise=True,
        broadcasts=True,
        loop_dtypes=ufunc_loop(ufunc),
    )


# fmt: off
# name, the ufunc that it is where no factor is 0, rule for each operand (of both modes, see ``_elementwise``)
TIMES: Final = _define("chain_times", np.multiply, lambda h, ans, a, b: times(h, b), lambda h, ans, a, b: times(h, a))
OVER: Final = _define("chain_over", np.divide, lambda h, ans, g, x: over(h, x), lambda h, ans, g, x: over(-times(h, ans), x))
# fmt: on


def times(a: Any, b: Any) -> Any:
    """Return ``a * b``, and 0 where either is 0, even if the other one is infinite or NaN."""
    return apply(TIMES, (a, b))


def over(g: Any, x: Any) -> Any:
    """Return ``g / x``, and 0 where `g` is 0, even if `x` is 0 or NaN."""
    return apply(OVER, (g, x))
