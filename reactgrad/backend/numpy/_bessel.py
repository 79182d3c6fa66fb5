"""Kernels of the modified Bessel functions of the first kind, of integer order, plain and scaled.

Accuracy against 50-digit values: orders 0 and 1 within 5 ulps, further orders within 20, over the whole range.
Method: polynomials in x to 8 and in 1/x beyond (Chebyshev interpolants computed with mpmath at 50 digits);
ratios of further orders by their continued fraction, all of whose terms are positive, or by the recurrence
where x is large beside the order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._doubles import binder, by_ranges, numbers, on_interval

# exp(-x) times I0(x), I1(x) / x, I0(x) - I1(x) and I1(x) / x - 2 (I0(x) - I1(x)) for x from 0 to 8.
I0_NEAR = numbers(
    """
    -7.470124308225188e-11 3.043004558931688e-10 -6.06296219224003e-10 2.188263125031253e-09
    -9.749390380703055e-09 3.396796972424401e-08 -1.0960760697381337e-07 3.5213153112364e-07
    -1.0942193555307138e-06 3.2498437105714717e-06 -9.245958887727196e-06 2.5183380992816474e-05
    -6.55126191178084e-05 0.000162417920911048 -0.0003829000571102176 0.0008563093357265103
    -0.0018118875472634746 0.003617128473590754 -0.006792399673325518 0.011960077419599882
    -0.019682654727688778 0.030177912103403717 -0.042985949450159 0.056777032011258714
    -0.0695411956175599 0.07927522590772465 -0.08496338091614662 0.08734341617550408
    -0.08904344136075996 0.09451562853995128 -0.11300432688620549 0.2070019212239867
    """
)
I1_NEAR = numbers(
    """
    -5.569735366905358e-12 2.350708556034099e-11 -5.190294158149172e-11 1.9654216751903217e-10
    -8.787840300538333e-10 3.1982297265542376e-09 -1.0908822573192138e-08 3.6836128409817914e-08
    -1.2037821195533036e-07 3.775207046443834e-07 -1.1377300236842814e-06 3.2924355468944774e-06
    -9.132074358863496e-06 2.423471871395591e-05 -6.142640521535543e-05 0.00014842078455454727
    -0.00034117478062035245 0.0007445125009128511 -0.0015388749547793816 0.0030057623821240515
    -0.005534567762007116 0.009583962156944402 -0.015571309256417825 0.02368601695706069
    -0.03367135551995052 0.04467457262129802 -0.055280039227050236 0.06376740371340574
    -0.0684826062058255 0.06805759990951162 -0.06112433802966629 0.044687709875608835
    """
)
IGAP_NEAR = numbers(
    """
    -8.326027910533663e-12 3.591067625944085e-11 -7.986881313958202e-11 3.0895025852351985e-10
    -1.4261100632059612e-09 5.31164931797944e-09 -1.850330094481096e-08 6.39545832990267e-08
    -2.140765427026645e-07 6.875397921477936e-07 -2.122013138440905e-06 6.289415360268378e-06
    -1.7865355332960348e-05 4.8542871809870095e-05 -0.00012592288493789086 0.00031118415990632353
    -0.0007308776985375976 0.0016273255216253015 -0.0034252383924970667 0.006794578230730627
    -0.012659949390130596 0.02207529895116819 -0.035880232306377935 0.054127300499582184
    -0.07544478025282973 0.09671838626297842 -0.11355406402294428 0.12169709233072444
    -0.1189128388615688 0.10620422614518339 -0.08734341617550444 0.06678258102056997
    -0.04725781426997564 0.02825108172155137
    """
)
# (the last one to 3, and from there to 8, where it is small)
IBEND_NEAR = numbers(
    """
    9.433492624613511e-14 -7.453053255589503e-13 5.0778259806224045e-12 -3.641808399448204e-11
    2.505145352417625e-10 -1.6313933448760445e-09 1.0078949659489702e-08 -5.892612682254187e-08
    3.2491016857186767e-07 -1.6834488995647839e-06 8.162714667245624e-06 -3.686638071403014e-05
    0.00015425575778973516 -0.0005942040295454734 0.0020916658281828425 -0.006668937514082982
    0.019051563573185576 -0.04811258193563757 0.1055673216745895 -0.19666608336719787
    0.30112924652892936 -0.3605265863916985 0.3086282600295431 -0.15076218498584823
    """
)
IBEND_MIDDLE = numbers(
    """
    2.2037630220098918e-13 -1.1544226044285567e-12 4.3946878263476134e-12 -2.0804010658830982e-11
    9.842066271938034e-11 -4.300133714669858e-10 1.7882233736155884e-09 -7.110081594682975e-09
    2.689796557031664e-08 -9.654653877483402e-08 3.2801705338502973e-07 -1.0520133981945268e-06
    3.1757075396868788e-06 -8.995348800655225e-06 2.3832618838273785e-05 -5.887299408388468e-05
    0.0001351877371786866 -0.000287815602383899 0.0005671428132754557 -0.0010339085093074318
    0.0017456419763851824 -0.0027344558849336335 0.003968536480528643 -0.005257782920139001
    0.006019931774925255 -0.0048915840000273575
    """
)
# The same without the division, times sqrt(x) to the power 1, 1, 3 and 5, as functions of 1/x to 1/8.
I0_FAR = numbers(
    """
    2.0820835852793106e-11 -5.905024573995148e-11 -1.5066113686101474e-10 4.4789181847911815e-10
    5.122212147228388e-10 -1.5930354799216344e-09 -1.1448789558755036e-09 3.5985362919394714e-09
    2.1053080134403423e-09 -5.91556056510856e-09 -3.905230623712341e-09 7.406235049001522e-09
    7.737147033780934e-09 -5.394456734259438e-09 -1.346629294837396e-08 -6.750552282740284e-09
    7.566352487698237e-09 2.15488936175863e-08 3.932437699533459e-08 8.872214307451732e-08
    2.9735996224521226e-07 1.4838475687894938e-06 1.1143033787545386e-05 0.00013621607439186705
    0.0033605519836678944 0.4021765094450081
    """
)
I1_FAR = numbers(
    """
    -1.9677083272584384e-11 6.135932778393812e-11 1.417650842869536e-10 -4.6561597954216946e-10
    -4.798751536934023e-10 1.657764699456319e-09 1.0715528639398075e-09 -3.75344338735913e-09
    -1.992076551203188e-09 6.202984113000443e-09 3.803814960536081e-09 -7.863004697555056e-09
    -7.816968266767898e-09 5.963645798166707e-09 1.408852075202545e-08 6.737493433374833e-09
    -8.43880090582137e-09 -2.337446787242448e-08 -4.312778920167609e-08 -1.0001282610189342e-07
    -3.4838567401229716e-07 -1.8349101357991557e-06 -1.5038547197358572e-05 -0.00021923576383382282
    -0.009749577193235768 0.38939845902587233
    """
)
IGAP_FAR = numbers(
    """
    2.9519508352331645e-10 -5.323556983748343e-10 -2.4289995435590556e-09 4.8336330408303945e-09
    8.925750338990687e-09 -2.045981703935543e-08 -1.892313238740911e-08 5.3973289617674655e-08
    2.4037465160639158e-08 -1.0058121830891836e-07 -1.3655496336892864e-08 1.4364175580320862e-07
    -1.344589835935709e-08 -1.6954283537811848e-07 4.558481239337984e-08 1.8129929200978759e-07
    -6.50886112316673e-08 -1.9541393925792118e-07 5.0880014772342165e-08 2.227682366582748e-07
    3.244255859632773e-08 -2.233296590529061e-07 -2.188635157766215e-07 5.01734533646699e-09
    2.512448835431151e-07 4.672539955674779e-07 8.519657513039234e-07 2.1678169972294442e-06
    8.164113836032418e-06 4.493600840453611e-05 0.0003739692873425689 0.005313260124286689
    0.20444880670617194
    """
)
IBEND_FAR = numbers(
    """
    1.4931363117247465e-08 -1.9784722058035947e-09 -1.4087131794722962e-07 2.3818036927156444e-08
    6.171485994316176e-07 -1.3315652612500576e-07 -1.670186980913975e-06 4.6275025367114725e-07
    3.1360718405121985e-06 -1.130766472356163e-06 -4.355793483777605e-06 2.0902580043251186e-06
    4.67151559030877e-06 -3.087838786551123e-06 -4.018931688390028e-06 3.833807269117603e-06
    2.945169630326562e-06 -4.2124825268657035e-06 -2.1597807957394894e-06 4.2776678018227e-06
    2.199037914090773e-06 -3.945192555167029e-06 -3.34456584962271e-06 2.40275555622718e-06
    4.974943897884228e-06 2.135903432360692e-06 -2.4321024631757247e-06 -5.9816144920221026e-06
    -9.660514791519887e-06 -1.920260513549558e-05 -5.5741711259740165e-05 -0.00023486849316168863
    -0.001443700530910662 -0.014031088885401876 -0.3119864701835446
    """
)

_REACH: Final = 8.0
# The number of terms after which the continued fraction is exact for |x| to ``_FAR``.
_TERMS: Final = 60
_FAR: Final = 20.0


def register(xp: Any, kind: str) -> None:
    """Register them for a namespace with NumPy's protocols."""
    register_binder("bessel_i", kind, binder(plain))
    register_binder("bessel_ie", kind, binder(scaled))
    register_binder("bessel_ie_gap", kind, binder(gap))
    register_binder("bessel_ie_bend", kind, binder(bend))
    register_binder("bessel_ie_over", kind, binder(over))
    register_binder("bessel_ie_over_slope", kind, binder(over_slope))


def _two_ranges(
    near: tuple[float, ...], far: tuple[float, ...], last: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    def in_far(x: Any) -> Any:
        return on_interval(far, 0.0, 1.0 / _REACH, 1.0 / x) / last(x)

    ranges = ((_REACH, lambda x: on_interval(near, 0.0, _REACH, x)), (np.inf, in_far))
    return lambda x: by_ranges(ranges, x)


_zero: Final = _two_ranges(I0_NEAR, I0_FAR, np.sqrt)
_one_over_x: Final = _two_ranges(I1_NEAR, I1_FAR, lambda x: x * np.sqrt(x))
_difference: Final = _two_ranges(IGAP_NEAR, IGAP_FAR, lambda x: x * np.sqrt(x))
_BEND: Final = (
    (3.0, partial(on_interval, IBEND_NEAR, 0.0, 3.0)),
    (_REACH, partial(on_interval, IBEND_MIDDLE, 3.0, _REACH)),
    (np.inf, lambda x: on_interval(IBEND_FAR, 0.0, 1.0 / _REACH, 1.0 / x) / (x * x * np.sqrt(x))),
)


def _one(x: Any) -> Any:
    ranges = (
        (_REACH, lambda x: x * on_interval(I1_NEAR, 0.0, _REACH, x)),
        (np.inf, lambda x: on_interval(I1_FAR, 0.0, 1.0 / _REACH, 1.0 / x) / np.sqrt(x)),
    )
    return by_ranges(ranges, x)


def gap(x: Any) -> Any:
    """Return ``exp(-|x|) (I0(|x|) - I1(|x|))``."""
    return _difference(np.abs(x))


def bend(x: Any) -> Any:
    """Return the derivative of ``gap`` for positive numbers, and minus that for negative ones."""
    return np.copysign(1.0, x) * by_ranges(_BEND, np.abs(x))


def over(x: Any) -> Any:
    """Return ``exp(-|x|) I1(x) / x``."""
    return _one_over_x(np.abs(x))


def over_slope(x: Any) -> Any:
    """Return the derivative of ``over``."""
    ranges = (
        (_REACH, lambda x: (_one(x) - scaled(x, 3)) * 0.25 - _one_over_x(x)),
        (np.inf, lambda x: (_difference(x) - 2.0 * _one_over_x(x)) / x),
    )
    return np.sign(x) * by_ranges(ranges, np.abs(x))


def scaled(x: Any, order: int) -> Any:
    """Return ``exp(-|x|)`` times the Bessel function."""
    size = np.abs(x)
    if order == 0:
        return _zero(size)
    found = _one(size) if order == 1 else by_ranges(_further(order), size)
    return np.copysign(found, x) if order % 2 else found


def _further(order: int) -> Any:
    far = max(_FAR, float(order * order))
    return (
        (far, lambda x: _by_fraction(x, order, _TERMS + int(2.0 * far))),
        (np.inf, lambda x: _by_recurrence(x, order)),
    )


def _by_fraction(x: Any, order: int, terms: int) -> Any:
    ratio, product = np.zeros_like(x), _zero(x)
    for i in range(order + terms, 0, -1):
        ratio = 1.0 / (2.0 * i / x + ratio)  # I_i / I_(i-1)
        if i <= order:
            product = product * ratio
    return product


def _by_recurrence(x: Any, order: int) -> Any:
    before, found = _zero(x), _one(x)
    for i in range(1, order):
        before, found = found, before - 2.0 * i / x * found
    return found


def plain(x: Any, order: int) -> Any:
    """Return the modified Bessel function of the first kind."""
    root = np.exp(0.5 * np.abs(x))  # the exponential itself would leave the dtype too early
    found = scaled(x, order)
    return np.where(np.isinf(root), np.copysign(root, found), found * root * root)
