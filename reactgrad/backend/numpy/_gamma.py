"""Kernels of the gamma function's logarithm and its derivatives.

Accuracy for positive numbers, against 50-digit values: ``gammaln`` within 3 ulps, ``polygamma`` within 10.
For negative ones the error is a few ulps of the largest term of the reflection formula, so that near the
zeros there the digits of the result are those of an absolute error.

Method: polynomials near the zeros, with the zeros as factors, so that no digits cancel; Stirling's series
far out; the reflection formula for negative numbers, with sine and cotangent of exact multiples of pi.
``polygamma`` is Euler and Maclaurin's formula for the Hurwitz zeta function, all of whose terms are
positive. Coefficients: Chebyshev interpolants, computed with mpmath at 50 digits.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._doubles import binder, by_ranges, numbers, on_interval, polynomial

# lgamma(y) / ((y - 1)(y - 2)) for y from 1 to 3.
NEAR = numbers(
    """
    -2.0542420991550905e-10 4.226016675377439e-10 6.705737026247826e-10 -1.3764318718154119e-09
    -2.372580625023415e-09 4.885761922683655e-09 3.613371593815743e-10 -6.830399052794191e-10
    -1.2569945435720683e-08 2.615457216445561e-08 -4.17254430301382e-08 8.75360413423732e-08
    -1.9252286332850674e-07 4.0551922127948146e-07 -8.526588188526563e-07 1.8074775340912791e-06
    -3.847396648270243e-06 8.222342452139818e-06 -1.766166422556033e-05 3.8168863787885225e-05
    -8.30951276372239e-05 0.00018255264185594036 -0.00040570739742046497 0.0009153769220696921
    -0.002108130833958805 0.004998641164703528 -0.012384192193371238 0.03296500062115574
    -0.10031730167435392 0.42278433509846713
    """
)
# The same for y from 3 to 8.
MIDDLE = numbers(
    """
    -3.631506921863987e-11 8.214767440104776e-11 6.821544742948355e-11 -1.5353215742939389e-10
    -4.4867903146960797e-10 1.0181637372230135e-09 -8.515191927268037e-10 1.9557995481725062e-09
    -6.260465277041588e-09 1.4365495206946706e-08 -3.158595620150003e-08 7.289303506287201e-08
    -1.6956210042149568e-07 3.9375177789923016e-07 -9.175626322499385e-07 2.1486485728347565e-06
    -5.058042909586925e-06 1.198079592502552e-05 -2.8590106908677517e-05 6.884457318014323e-05
    -0.00016764138178781168 0.0004140416069024615 -0.001041656702509444 0.0026869967170807547
    -0.007183649765983732 0.020302539366774574 -0.06336905669727538 0.25128977572182326
    """
)
# digamma(x) / (x - root) for x from 1 to 2, and its root in two parts.
PSI_NEAR = numbers(
    """
    -9.720300404202244e-12 2.916093601085364e-11 -2.9161179626023815e-11 8.748420037436287e-11
    -4.1555064115551965e-10 1.2466690231864029e-09 -3.509235492410718e-09 1.0528133851878114e-08
    -3.1807298477301726e-08 9.543261570760428e-08 -2.8621216825577647e-07 8.589062683365892e-07
    -2.578133701610713e-06 7.741234441368395e-06 -2.325823275895313e-05 6.99501882655044e-05
    -0.00021074841284590126 0.0006368880303847901 -0.0019350666647392832 0.005936795278301875
    -0.018550615381739702 0.06013562106019684 -0.21181371064073024 0.9510558760318328
    """
)
ROOT: Final = (1.4616321449683622, 9.549995429965697e-17)
# digamma(x) for x from 2 to 4.5, and from there to 10.
PSI_LOW = numbers(
    """
    -9.014456225891907e-11 2.344341644805484e-10 -4.632394209585803e-11 1.2075488571876083e-10
    -1.864389991250987e-09 4.852065784030724e-09 -1.016638804585188e-08 2.6485489272187833e-08
    -7.155262880552819e-08 1.8666251752977734e-07 -4.857746425873948e-07 1.2704848464084823e-06
    -3.3300353113340564e-06 8.749061425677462e-06 -2.306830563626575e-05 6.112226555849352e-05
    -0.0001630580313588177 0.00043921555308988147 -0.001199768756396474 0.0033469158369572516
    -0.00965087076352652 0.02943794118641674 -0.10012261495243367 0.44974786288697477
    1.016990911068179
    """
)
PSI_HIGH = numbers(
    """
    -2.9051985146459592e-11 7.69493080925677e-11 -2.237900033525604e-11 6.00759287909495e-11
    -6.610256406384654e-10 1.7590789389324313e-09 -3.893572155486158e-09 1.0410727389092143e-08
    -2.8708061318076434e-08 7.710924918852291e-08 -2.0721155764093522e-07 5.60429347515426e-07
    -1.5228826700317348e-06 4.160406801763616e-06 -1.1443546205400678e-05 3.174613793296957e-05
    -8.903021983658544e-05 0.00025323786541829254 -0.0007341161328883093 0.00218529944517271
    -0.00676468999714651 0.022297846465778648 -0.08254072586621644 0.4066678911870634
    1.910453526883736
    """
)

HALF_LOG_2PI: Final = 0.9189385332046728
LOG_PI: Final = math.log(math.pi)

# The Bernoulli numbers B_2, B_4, ... B_30.
BERNOULLI: Final = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798),
    *(-174611 / 330, 854513 / 138, -236364091 / 2730, 8553103 / 6, -23749461029 / 870),
    8615841276005 / 14322,
)
# The coefficients of Stirling's series in 1 / x**2, and those of digamma's, highest power first.
_STIRLING: Final = tuple([b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI[:10], 1)][::-1])
PSI_SERIES: Final = tuple([b / (2 * k) for k, b in enumerate(BERNOULLI[:9], 1)][::-1])
# From here on the terms of the zeta function are summed by Euler and Maclaurin's formula.
_REACH: Final = 10.0


def register(xp: Any, kind: str) -> None:
    """Register them for a namespace with NumPy's protocols."""
    register_binder("gammaln", kind, binder(gammaln))
    register_binder("polygamma", kind, binder(lambda x, n: polygamma(n, x)))


def remainder(x: Any) -> Any:
    """Return what Stirling's formula leaves of the logarithm, for x from 8."""
    return polynomial(_STIRLING, 1.0 / (x * x)) / x


def _stirling(x: Any) -> Any:
    value = (x - 0.5) * (np.log(x) - 1.0) + ((HALF_LOG_2PI - 0.5) + remainder(x))
    return np.where(np.isinf(x), x, value)


def _below_one(x: Any) -> Any:
    t = x - 1.0
    return x * t * polynomial(NEAR, t) - np.log(x)


def _to_three(x: Any) -> Any:
    t = x - 2.0
    return (x - 1.0) * t * polynomial(NEAR, t) + 0.0  # and no -0.0 at 1


def _to_eight(x: Any) -> Any:
    return (x - 1.0) * (x - 2.0) * on_interval(MIDDLE, 3.0, 8.0, x)


def _reflected(x: Any) -> Any:
    sine = np.abs(sinpi(x) * x)
    value = LOG_PI - np.log(sine) - by_ranges(_POSITIVE, -x)
    value = np.where(x > -1e-20, -np.log(np.abs(x)), value)  # the product above has left the dtype
    return np.where(x == np.rint(x), np.inf, value)


def gammaln(x: Any) -> Any:
    """Return the logarithm of the absolute value of the gamma function."""
    return by_ranges(_GAMMALN, x)


_POSITIVE: Final = (
    (1.0, lambda x: np.where(x == 0.0, np.inf, _below_one(x))),
    (3.0, _to_three),
    (8.0, _to_eight),
    (np.inf, _stirling),
)
_GAMMALN: Final = ((0.0, _reflected), *_POSITIVE)


def sinpi(x: Any) -> Any:
    """Return ``sin(pi x)``, exactly 0 at integers."""
    whole = np.rint(x)
    sine = np.sin(np.pi * (x - whole))
    odd = np.rint(whole * 0.5) * 2.0 != whole
    return np.where(odd, -sine, sine) + 0.0  # no -0.0


def cotpi(x: Any) -> Any:
    """Return the cotangent of ``pi x``."""
    part = x - np.rint(x)
    return np.cos(np.pi * part) / np.sin(np.pi * part)


# --- polygamma ----------------------------------------------------------------------------------


def _psi_far(x: Any) -> Any:
    square = 1.0 / (x * x)
    return np.log(x) - 0.5 / x - square * polynomial(PSI_SERIES, square)


def _psi_near(x: Any) -> Any:
    return ((x - ROOT[0]) - ROOT[1]) * on_interval(PSI_NEAR, 1.0, 2.0, x)


def _psi_below_one(x: Any) -> Any:
    # digamma(1 + x) - 1 / x; the sum is not rounded where the root is near.
    near = ((x - (ROOT[0] - 1.0)) - ROOT[1]) * polynomial(PSI_NEAR, x * 2.0 - 1.0)
    return near - 1.0 / x


def _psi_reflected(x: Any) -> Any:
    value = by_ranges(_POSITIVE_PSI, 1.0 - x) - np.pi * cotpi(x)
    return np.where(x == np.rint(x), np.nan, value)


def digamma(x: Any) -> Any:
    """Return the derivative of ``gammaln``."""
    return by_ranges(_DIGAMMA, x)


_POSITIVE_PSI: Final = (
    (1.0, _psi_below_one),
    (2.0, _psi_near),
    (4.5, partial(on_interval, PSI_LOW, 2.0, 4.5)),
    (10.0, partial(on_interval, PSI_HIGH, 4.5, 10.0)),
    (np.inf, _psi_far),
)
_DIGAMMA: Final = ((0.0, _psi_reflected), *_POSITIVE_PSI)


def polygamma(n: int, x: Any) -> Any:
    """Return the derivative of order `n` of ``digamma``."""
    if n == 0:
        return digamma(x)
    return by_ranges(((0.0, partial(_reflected_polygamma, n)), (np.inf, partial(_zeta, n))), x)


def _zeta(n: int, x: Any) -> Any:
    """Return ``(-1)**(n + 1) n! zeta(n + 1, x)`` for positive `x`."""
    s = n + 1
    total, x = np.zeros_like(x), x.copy()
    # From the largest term to the smallest, all of one sign. Elements join the series as they reach it.
    for _ in range(int(_REACH)):
        low = x < _REACH
        if type(x) is np.ndarray and not low.any():
            break
        total = np.where(low, total + _power(x, s, n), total)
        x = np.where(low, x + 1.0, x)
    square, tail = 1.0 / (x * x), np.zeros_like(x)
    for factor in reversed(_euler_maclaurin(s)):
        tail = (tail + factor) * square
    # The integral, half of the first term, and the series, over x**n.
    tail = (1.0 / n + 0.5 / x + tail) * _power(x, n, n)
    found = total + tail
    return found if n % 2 else -found


@lru_cache(maxsize=256)
def _euler_maclaurin(s: int) -> tuple[float, ...]:
    """Return ``B_2k / (2k)! * s (s + 1) ... (s + 2k - 2)``, the factors of ``x**(1 - 2k - s)``."""
    found, rising = [], float(s)
    for k, bernoulli in enumerate(BERNOULLI, 1):
        found.append(bernoulli * rising / math.factorial(2 * k))
        rising *= (s + 2 * k - 1) * (s + 2 * k)
    return tuple(found)


def _power(x: Any, exponent: int, n: int) -> Any:
    """Return ``n! / x**exponent``, without leaving the dtype on the way if the result does not."""
    if n <= 20:
        return float(math.factorial(n)) / x**exponent
    return np.exp(math.lgamma(n + 1.0) - exponent * np.log(x))


def _reflected_polygamma(n: int, x: Any) -> Any:
    cotangent = cotpi(x)
    # Derivatives of the cotangent are polynomials in it, with coefficients of one sign.
    derivative = polynomial(_cotangent(n), cotangent) * np.pi ** (n + 1)
    mirrored = _zeta(n, 1.0 - x)
    value = (-mirrored if n % 2 else mirrored) - derivative
    return np.where(x == np.rint(x), np.inf if n % 2 else -np.inf, value)


@lru_cache(maxsize=256)
def _cotangent(n: int) -> tuple[float, ...]:
    """Return the coefficients, highest first, of the derivative of order `n` of the cotangent, in it."""
    found = [0, 1]  # lowest first
    for _ in range(n):
        slope = [i * c for i, c in enumerate(found)][1:]
        found = [-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return tuple(float(c) for c in reversed(found))
