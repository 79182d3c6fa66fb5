"""The laws of special functions and activations, with SciPy and formulas as oracles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, of_case, of_law


def positive(rng: Any, shape: Any) -> Any:
    return rng.random(shape) * 4.0 + 0.2


def inside(rng: Any, shape: Any) -> Any:
    return rng.random(shape) * 1.8 - 0.9


def probability(rng: Any, shape: Any) -> Any:
    return rng.random(shape) * 0.9 + 0.05


def apart(rng: Any, shape: Any) -> Any:
    """Numbers at some distance of 0, 1/2, 1 and 3, where functions bend."""
    return rng.choice([-4.3, -2.2, -0.8, -0.2, 0.2, 0.8, 2.2, 4.3], shape) + rng.random(shape) * 0.1


def half(f: Any) -> Any:
    """Return an oracle of SciPy or NumPy in float64, rounded to the dtype that exp has for the operands."""

    def oracle(*operands: Any) -> Any:
        dtype = np.exp(np.zeros((), np.result_type(*operands))).dtype
        return np.asarray(f(*[np.asarray(one, "f8") for one in operands]), dtype)

    return oracle


def sigmoid(x: Any) -> Any:
    return special.expit(x)


def softplus(x: Any) -> Any:
    return np.logaddexp(x, 0.0)


def elu(x: Any, alpha: float = 1.0, scale: float = 1.0, width: float = 1.0) -> Any:
    return scale * np.where(x > 0, x, alpha * np.expm1(x / width))


A = (3, 4)
UNARY: dict[str, tuple[Any, Any, Any]] = {
    "silu": (rg.silu, lambda x: x * sigmoid(x), None),
    "mish": (rg.mish, lambda x: x * np.tanh(softplus(x)), None),
    "gelu": (rg.gelu, lambda x: x * special.ndtr(x), None),
    "gelu tanh": (
        lambda x: rg.gelu(x, approximate="tanh"),
        lambda x: x * sigmoid(np.sqrt(8 / np.pi) * (x + 0.044715 * x**3)),
        None,
    ),
    "softplus": (rg.softplus, softplus, None),
    "softplus sharp": (lambda x: rg.softplus(x, 3.0), lambda x: softplus(x * 3.0) / 3.0, None),
    "softplus threshold": (
        lambda x: rg.softplus(x, 2.0, 1.0),
        lambda x: np.where(x * 2.0 > 1.0, x, softplus(x * 2.0) / 2.0),
        apart,
    ),
    "log_sigmoid": (rg.log_sigmoid, lambda x: -softplus(-x), None),
    "elu": (lambda x: rg.elu(x, 0.5), lambda x: elu(x, 0.5), apart),
    "selu": (rg.selu, lambda x: elu(x, 1.6732632423543772, 1.0507009873554805), apart),
    "celu": (lambda x: rg.celu(x, 2.0), lambda x: elu(x, 2.0, 1.0, 2.0), apart),
    "hardtanh": (rg.hardtanh, lambda x: np.clip(x, -1, 1), apart),
    "relu6": (rg.relu6, lambda x: np.clip(x, 0, 6), apart),
    "hardsigmoid": (rg.hardsigmoid, lambda x: np.clip(x + 3, 0, 6) / 6, apart),
    "hardswish": (rg.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6, apart),
    "leaky_relu": (lambda x: rg.leaky_relu(x, 0.1), lambda x: np.where(x > 0, x, 0.1 * x), apart),
    "softshrink": (
        rg.softshrink,
        lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0.0),
        apart,
    ),
    "hardshrink": (rg.hardshrink, lambda x: np.where(np.abs(x) > 0.5, x, 0.0), apart),
    "threshold": (
        lambda x: rg.threshold(x, 0.5, 9.0),
        lambda x: np.where(x > 0.5, x, 9.0),
        apart,
    ),
    "softsign": (rg.softsign, lambda x: x / (1 + np.abs(x)), apart),
    "tanhshrink": (rg.tanhshrink, lambda x: x - np.tanh(x), None),
    "logit": (rg.logit, special.logit, probability),
    "logit eps": (lambda x: rg.logit(x, 0.2), lambda x: special.logit(np.clip(x, 0.2, 0.8)), None),
    "rsqrt": (rg.rsqrt, lambda x: 1 / np.sqrt(x), positive),
    "sinc": (np.sinc, np.sinc, apart),
    "i0": (np.i0, special.i0, None),
    "i0e": (rg.i0e, special.i0e, apart),
    "i1": (rg.i1, special.i1, None),
    "i1e": (rg.i1e, special.i1e, apart),
    "gammaln": (rg.gammaln, special.gammaln, positive),
    "gammaln below 0": (rg.lgamma, special.gammaln, lambda rng, shape: -0.3 - rng.integers(0, 4, shape)),
    "digamma": (rg.digamma, special.digamma, positive),
    "trigamma": (rg.trigamma, lambda x: special.polygamma(1, x), positive),
    "polygamma": (lambda x: rg.polygamma(2, x), lambda x: special.polygamma(2, x), positive),
    "erfinv": (rg.erfinv, special.erfinv, inside),
    "erfcinv": (rg.erfcinv, special.erfcinv, probability),
    "ndtr": (rg.ndtr, special.ndtr, None),
    "ndtri": (rg.ndtri, special.ndtri, probability),
    "norm_ppf": (rg.norm_ppf, special.ndtri, probability),
    "log_ndtr": (rg.log_ndtr, special.log_ndtr, None),
}  # fmt: skip
BINARY: dict[str, tuple[Any, Any, Any]] = {
    "xlogy": (rg.xlogy, special.xlogy, positive),
    "xlog1py": (rg.xlog1py, special.xlog1py, positive),
    "beta": (rg.beta, special.beta, positive),
    "betaln": (rg.betaln, special.betaln, positive),
    "prelu": (rg.prelu, lambda x, w: np.where(x > 0, x, x * w), apart),
}
# The oracle's own errors: SciPy's near the zeros, and a difference of two numbers.
LOOSE = {"d": 1e-11, "f": 1e-5, "e": 4e-3}
INCOMPLETE = [positive, positive, probability]
CASES = [
    *[
        Case(name, f, half(oracle), [A], draw, empty=[(0, 4)], tolerance=LOOSE)
        for name, (f, oracle, draw) in UNARY.items()
    ],
    *[
        Case(name, f, half(oracle), [A, (4,)], draw, empty=[(0, 4), (4,)], tolerance=LOOSE)
        for name, (f, oracle, draw) in BINARY.items()
    ],
    Case("complex sinc", np.sinc, np.sinc, [A], dtypes="D"),
    Case(
        "betainc",
        lambda x: rg.betainc(2.5, 1.5, x),
        half(lambda x: special.betainc(2.5, 1.5, x)),
        [A],
        probability,
        "dfe",
        tolerance=LOOSE,
    ),
    Case(
        "betainc of all",
        rg.betainc,
        half(special.betainc),
        [A, (4,), ()],
        INCOMPLETE,
        "df",
        order=0,
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)
