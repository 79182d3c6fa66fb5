"""How accurate elementwise ops and their derivatives are, in ulps: ``python -m bench.accuracy``.

An ulp is the distance of neighbouring numbers of a dtype. float16 is measured at all of its values,
float32 at random ones beside float64, float64 beside mpmath with 50 digits. Half of the random ones have any
exponent. Results that are no finite normal number of the dtype are left out, in float16 only those that are
not finite.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import mpmath
import numpy as np

import reactgrad as rg

Function = Callable[..., Any]


class _Doubles:
    """The functions of mpmath's names on arrays of float64."""

    exp, log, sqrt, sin, cos, tan, sinh, cosh, tanh = (
        *(np.exp, np.log, np.sqrt, np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh),
    )
    asin, acos, atan, atan2, expm1, log1p, hypot = (
        *(np.arcsin, np.arccos, np.arctan, np.arctan2, np.expm1, np.log1p, np.hypot),
    )
    erf, erfc = (np.vectorize(f, otypes=[float]) for f in (math.erf, math.erfc))
    pi = math.pi


def _sigmoid_slope(m: Any, x: Any) -> Any:
    return 1 / (2 + 2 * m.cosh(x))


def _bell(m: Any, x: Any) -> Any:
    return m.exp(-x * x / 2) / m.sqrt(2 * m.pi)


# name: the value and its first and second derivative, of a module with the functions and of x; where the
# formula is defined; the largest |x| that is measured (beyond, a formula leaves float64, or digits of x
# itself are missing).
UNARY: Final[dict[str, tuple[Function, Function, Function, Function, float]]] = {
    "exp": (
        lambda m, x: m.exp(x),
        lambda m, x: m.exp(x),
        lambda m, x: m.exp(x),
        lambda x: x == x,
        700.0,
    ),
    "exp2": (
        lambda m, x: m.exp(x * m.log(2)),
        lambda m, x: m.exp(x * m.log(2)) * m.log(2),
        lambda m, x: m.exp(x * m.log(2)) * m.log(2) ** 2,
        lambda x: x == x,
        1000.0,
    ),
    "expm1": (
        lambda m, x: m.expm1(x),
        lambda m, x: m.exp(x),
        lambda m, x: m.exp(x),
        lambda x: x == x,
        700.0,
    ),
    "log": (
        lambda m, x: m.log(x),
        lambda m, x: 1 / x,
        lambda m, x: -1 / x / x,
        lambda x: x > 0,
        1e300,
    ),
    "log2": (
        lambda m, x: m.log(x) / m.log(2),
        lambda m, x: 1 / m.log(2) / x,
        lambda m, x: -1 / m.log(2) / x / x,
        lambda x: x > 0,
        1e300,
    ),
    "log10": (
        lambda m, x: m.log(x) / m.log(10),
        lambda m, x: 1 / m.log(10) / x,
        lambda m, x: -1 / m.log(10) / x / x,
        lambda x: x > 0,
        1e300,
    ),
    "log1p": (
        lambda m, x: m.log1p(x),
        lambda m, x: 1 / (1 + x),
        lambda m, x: -1 / (1 + x) / (1 + x),
        lambda x: x > -1,
        1e300,
    ),
    "sqrt": (
        lambda m, x: m.sqrt(x),
        lambda m, x: 1 / m.sqrt(x) / 2,
        lambda m, x: -1 / m.sqrt(x) / x / 4,
        lambda x: x > 0,
        1e300,
    ),
    "square": (
        lambda m, x: x * x,
        lambda m, x: 2 * x,
        lambda m, x: 2 + 0 * x,
        lambda x: x == x,
        1e150,
    ),
    "reciprocal": (
        lambda m, x: 1 / x,
        lambda m, x: -1 / x / x,
        lambda m, x: 2 / x / x / x,
        lambda x: abs(x) > 0,
        1e300,
    ),
    "sin": (
        lambda m, x: m.sin(x),
        lambda m, x: m.cos(x),
        lambda m, x: -m.sin(x),
        lambda x: x == x,
        1e4,
    ),
    "cos": (
        lambda m, x: m.cos(x),
        lambda m, x: -m.sin(x),
        lambda m, x: -m.cos(x),
        lambda x: x == x,
        1e4,
    ),
    "tan": (
        lambda m, x: m.tan(x),
        lambda m, x: 1 + m.tan(x) ** 2,
        lambda m, x: 2 * m.tan(x) * (1 + m.tan(x) ** 2),
        lambda x: x == x,
        1e4,
    ),
    "arcsin": (
        lambda m, x: m.asin(x),
        lambda m, x: 1 / m.sqrt((1 - x) * (1 + x)),
        lambda m, x: x / m.sqrt((1 - x) * (1 + x)) / ((1 - x) * (1 + x)),
        lambda x: abs(x) < 1,
        1.0,
    ),
    "arccos": (
        lambda m, x: m.acos(x),
        lambda m, x: -1 / m.sqrt((1 - x) * (1 + x)),
        lambda m, x: -x / m.sqrt((1 - x) * (1 + x)) / ((1 - x) * (1 + x)),
        lambda x: abs(x) < 1,
        1.0,
    ),
    "arctan": (
        lambda m, x: m.atan(x),
        lambda m, x: 1 / (1 + x * x),
        lambda m, x: -2 * x / (1 + x * x) / (1 + x * x),
        lambda x: x == x,
        1e70,
    ),
    "sinh": (
        lambda m, x: m.sinh(x),
        lambda m, x: m.cosh(x),
        lambda m, x: m.sinh(x),
        lambda x: x == x,
        700.0,
    ),
    "cosh": (
        lambda m, x: m.cosh(x),
        lambda m, x: m.sinh(x),
        lambda m, x: m.cosh(x),
        lambda x: x == x,
        700.0,
    ),
    "tanh": (
        lambda m, x: m.tanh(x),
        lambda m, x: 1 / m.cosh(x) ** 2,
        lambda m, x: -2 * m.tanh(x) / m.cosh(x) ** 2,
        lambda x: x == x,
        300.0,
    ),
    "sigmoid": (
        lambda m, x: 1 / (1 + m.exp(-x)),
        _sigmoid_slope,
        lambda m, x: -m.tanh(x / 2) * _sigmoid_slope(m, x),
        lambda x: x == x,
        700.0,
    ),
    "erf": (
        lambda m, x: m.erf(x),
        lambda m, x: 2 / m.sqrt(m.pi) * m.exp(-x * x),
        lambda m, x: -4 * x / m.sqrt(m.pi) * m.exp(-x * x),
        lambda x: x == x,
        26.0,
    ),
    "erfc": (
        lambda m, x: m.erfc(x),
        lambda m, x: -2 / m.sqrt(m.pi) * m.exp(-x * x),
        lambda m, x: 4 * x / m.sqrt(m.pi) * m.exp(-x * x),
        lambda x: x == x,
        26.0,
    ),
    "norm_cdf": (
        lambda m, x: m.erfc(-x / m.sqrt(2)) / 2,
        _bell,
        lambda m, x: -x * _bell(m, x),
        lambda x: x == x,
        37.0,
    ),
    "norm_pdf": (
        _bell,
        lambda m, x: -x * _bell(m, x),
        lambda m, x: (x - 1) * (x + 1) * _bell(m, x),
        lambda x: abs(abs(x) - 1) > 0.5,  # where the second derivative is not near 0
        37.0,
    ),
}

# name: the value; derivatives by a and by b; second ones by a twice, by a and b, by b twice; where the
# formula is defined.
BINARY: Final[dict[str, tuple[list[Any], Function]]] = {
    "multiply": (
        [lambda m, a, b: a * b, lambda m, a, b: b, lambda m, a, b: a, None, None, None],
        lambda a, b: a == a,
    ),
    "divide": (
        [
            lambda m, a, b: a / b,
            lambda m, a, b: 1 / b,
            lambda m, a, b: -a / b / b,
            None,
            lambda m, a, b: -1 / b / b,
            lambda m, a, b: 2 * a / b / b / b,
        ],
        lambda a, b: (abs(b) > 0) & (abs(a) > 0),
    ),
    "hypot": (
        [
            lambda m, a, b: m.hypot(a, b),
            lambda m, a, b: a / m.hypot(a, b),
            lambda m, a, b: b / m.hypot(a, b),
            lambda m, a, b: (b / m.hypot(a, b)) ** 2 / m.hypot(a, b),
            lambda m, a, b: -(a / m.hypot(a, b)) * (b / m.hypot(a, b)) / m.hypot(a, b),
            lambda m, a, b: (a / m.hypot(a, b)) ** 2 / m.hypot(a, b),
        ],
        lambda a, b: (abs(b) > 0) & (abs(a) > 0),
    ),
    "arctan2": (
        [
            lambda m, a, b: m.atan2(a, b),
            lambda m, a, b: b / m.hypot(a, b) / m.hypot(a, b),
            lambda m, a, b: -a / m.hypot(a, b) / m.hypot(a, b),
            lambda m, a, b: (
                -2 * (a / m.hypot(a, b)) * (b / m.hypot(a, b)) / m.hypot(a, b) / m.hypot(a, b)
            ),
            None,
            lambda m, a, b: (
                2 * (a / m.hypot(a, b)) * (b / m.hypot(a, b)) / m.hypot(a, b) / m.hypot(a, b)
            ),
        ],
        lambda a, b: (abs(b) > 0) & (abs(a) > 0),
    ),
    "logaddexp": (
        [
            lambda m, a, b: m.log(2 * m.cosh((a - b) / 2)) + (a + b) / 2,
            lambda m, a, b: 1 / (1 + m.exp(b - a)),
            lambda m, a, b: 1 / (1 + m.exp(a - b)),
            lambda m, a, b: _sigmoid_slope(m, a - b),
            lambda m, a, b: -_sigmoid_slope(m, a - b),
            lambda m, a, b: _sigmoid_slope(m, a - b),
        ],
        lambda a, b: (a > 0) & (b > 0) & (abs(a - b) < 80),
    ),
    "power": (
        [
            lambda m, a, b: m.exp(b * m.log(a)),
            lambda m, a, b: b * m.exp((b - 1) * m.log(a)),
            lambda m, a, b: m.log(a) * m.exp(b * m.log(a)),
            None,
            None,
            lambda m, a, b: m.log(a) ** 2 * m.exp(b * m.log(a)),
        ],
        lambda a, b: (a > 0.01) & (a < 100.0) & (abs(b) > 0) & (abs(b) < 8.0),
    ),
}


# Nearer to the largest number an error of one ulp gives infinity.
MOST: Final = 0.9


class Row(NamedTuple):
    """The largest errors of an op, in ulps: of the value, and of first and second derivatives."""

    op: str
    dtype: str
    value: float
    first: float
    second: float


def points(dtype: str, count: int, operands: int) -> list[Any]:
    """Return values at which to measure."""
    rng = np.random.default_rng(0)
    if dtype == "float16" and operands == 1:
        return [np.arange(1 << 16, dtype=np.uint16).view(np.float16)]
    found: list[Any] = []
    for _ in range(operands):
        half = count // 2
        near = rng.normal(size=half) * rng.choice([0.1, 1.0, 10.0], half)
        bits = rng.bytes(np.dtype(dtype).itemsize * (count - half))
        far = np.frombuffer(bits, dtype)
        found.append(rng.permutation(np.concatenate([near.astype(dtype), far])))
    return found


def derivatives(f: Function, args: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Yield which derivative it is, by its place in ``BINARY``, and its values, from each mode."""
    g = rg.Graph()
    xs = [g.param(a) for a in args]
    ones = [np.ones_like(a) for a in args]
    y = f(*xs)
    yield 0, y.value
    places = {(0,): 1, (1,): 2, (0, 0): 3, (0, 1): 4, (1, 0): 4, (1, 1): 5}
    if len(xs) == 1:
        places = {(0,): 1, (0, 0): 2}

    def slopes(of: Any, i: int) -> list[Any]:
        by = rg.grad(of, xs[i], gradient=ones[0], allow_unused=True)
        return [
            one for one in (by, rg.jvp(of, xs[i], ones[i], allow_unused=True)) if one is not None
        ]

    for i in range(len(xs)):
        for slope in slopes(y, i):
            yield places[i,], slope.value
            for j in range(len(xs)):
                for second in slopes(slope, j):
                    yield places[i, j], second.value


def errors(found: Any, exact: Any) -> float:
    """Return the largest error in ulps of the dtype of `found`; `exact` has more digits."""
    dtype = found.dtype
    limits = np.finfo(dtype)
    rounded = np.array([float(one) for one in exact]) if exact.dtype == object else exact
    size = abs(rounded)
    least = float(limits.smallest_subnormal if dtype == np.float16 else limits.tiny)
    seen = (size <= MOST * float(limits.max)) & (size >= least)
    if not seen.any():
        return 0.0
    spacing = np.spacing(size[seen].astype(dtype)).astype(np.float64)
    return float(
        (abs((found[seen].astype(exact.dtype) - exact[seen]).astype(float)) / spacing).max()
    )


def measure(name: str, dtype: str, count: int) -> Row:
    """Return the errors of an op, the largest of both modes and all operands."""
    unary = name in UNARY
    args = points(dtype, count, 1 if unary else 2)
    with np.errstate(all="ignore"):
        if unary:
            *formulas, defined, most = UNARY[name]
            keep = np.isfinite(args[0]) & (abs(args[0].astype("f8")) <= most)
            keep &= defined(np.where(keep, args[0], 0.5).astype("f8"))
        else:
            formulas, defined = BINARY[name]
            keep = np.isfinite(args[0]) & np.isfinite(args[1])
            keep &= defined(*[a.astype("f8") for a in args])
        # What has left the dtype has no derivative to compare with.
        value = abs(formulas[0](_Doubles, *[np.where(keep, a, 0.5).astype("f8") for a in args]))
        limits = np.finfo(args[0].dtype)
        keep &= value <= MOST * float(limits.max)
        if not unary:
            keep &= value >= float(limits.tiny)
            for a in args:
                keep &= abs(a) >= limits.tiny
        args = [a[keep] for a in args]
        wide = [a.astype("f8") for a in args]
        worst = {"value": 0.0, "first": 0.0, "second": 0.0}
        exact: dict[int, Any] = {}
        for at, found in derivatives(getattr(rg, name), args):
            formula = formulas[at]
            if formula is None:
                continue
            if at not in exact:
                exact[at] = _exact(formula, wide, dtype == "float64")
            order = ("value", "first", "second")[at if unary else (at > 0) + (at > 2)]
            worst[order] = max(worst[order], errors(found, exact[at]))
    return Row(name, dtype, **worst)


def _exact(formula: Function, args: Sequence[Any], digits: bool) -> Any:
    if not digits:
        return formula(_Doubles, *args) + 0.0 * args[0]
    with mpmath.workdps(50):
        numbers = [
            formula(mpmath, *map(mpmath.mpf, map(float, each))) for each in zip(*args, strict=True)
        ]
        return np.array([mpmath.mpf(one) for one in numbers] + [None], dtype=object)[:-1]


COUNTS: Final = {"float16": 60_000, "float32": 250_000, "float64": 2_000}


def main() -> None:
    """Print the table of ``docs/accuracy.md``."""
    sys.stdout.write("| op | float16 | float32 | float64 |\n|---|---|---|---|\n")
    for name in (*UNARY, *BINARY):
        rows = [measure(name, dtype, count) for dtype, count in COUNTS.items()]
        cells = [f"{row.value:.1f} / {row.first:.1f} / {row.second:.1f}" for row in rows]
        sys.stdout.write(f"| `{name}` | {' | '.join(cells)} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
