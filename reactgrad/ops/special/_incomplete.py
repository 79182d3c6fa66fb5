"""The gamma function and the incomplete ones: probabilities of gamma and Poisson distributions."""

from __future__ import annotations

from typing import Any, Final

from reactgrad._errors import GradientError
from reactgrad.backend.numpy import _gammainc
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Vjp
from reactgrad.ops._chain import times
from reactgrad.ops._elementwise import log, negative, public
from reactgrad.ops.special._form import smooth, with_kernels
from reactgrad.ops.special._gamma import digamma


def by_parameter(name: str, parameter: str, call: str) -> Vjp:
    """Return the rule of an operand by which a function has no derivative in elementary functions."""

    def rule(g: Any, ans: Any, *operands: Any) -> Any:
        raise GradientError(
            f"{name} has a derivative by x only; that by {parameter} is no elementary function. Detach it, {call}, or "
            "wrap a formula of your own in rg.lift(..., vjp=...)."
        )

    return rule


def _incomplete(name: str, sign: Any) -> Any:
    return smooth(
        name,
        by_parameter(name, "a", f"{name}(a.detach(), x)"),
        lambda g, ans, a, x: times(g, sign(apply(DENSITY, (a, x)))),
    )


GAMMA: Final = smooth("gamma", lambda g, ans, x: times(g, ans * digamma(x)))
GAMMAINC: Final = _incomplete("gammainc", lambda found: found)
GAMMAINCC: Final = _incomplete("gammaincc", negative)
DENSITY: Final = smooth(
    "gamma_density",
    lambda g, ans, a, x: times(g, ans * (log(x) - digamma(a))),
    lambda g, ans, a, x: times(g, ans * ((a - 1.0) / x - 1.0)),
)
with_kernels(_gammainc.register, 300.0, GAMMA, GAMMAINC, GAMMAINCC, DENSITY)

# fmt: off
gamma     = public(GAMMA,     1, "Gamma function; NaN at negative integers.", "[5.0, 0.5] -> [24.          1.77245385]", __name__)
gammainc  = public(GAMMAINC,  2, "Regularized lower incomplete gamma function, the probability below y of a gamma distribution with shape x; it has a gradient by y only.", "[2.0], 3.0 -> [0.80085173]", __name__)
gammaincc = public(GAMMAINCC, 2, "Regularized upper incomplete gamma function, 1 - gammainc without loss of digits where it is small; it has a gradient by y only.", "[2.0], 3.0 -> [0.19914827]", __name__)
# fmt: on
