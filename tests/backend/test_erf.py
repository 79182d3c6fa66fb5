"""Accuracy, special values and independence of position of the error-function kernels."""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactgrad.backend.numpy import _erf
from reactgrad.backend.numpy._erf import erf, erfc, norm_cdf

Kernel = Callable[[npt.NDArray, npt.NDArray], None]

KERNELS = (erf, erfc, norm_cdf)
BLOCK = _erf._BLOCK

# (kernel, x, value): 50-digit values by mpmath at the float64 x as written, shortened to 25 digits.
# The points sit in the centre, on both sides of where a kernel changes its formula (sqrt(10), 7 and
# 7/sqrt(2)), and in the tails down to the smallest normal number.
FACTS = [
    (erf, 9.332636185032189e-302, 1.053075224527206315820396e-301),
    (erf, 9.313225746154785e-10, 1.050884991041862008692623e-9),
    (erf, 0.0625, 0.07043197772238707805059006),
    (erf, 0.5, 0.5204998778130465376827467),
    (erf, 0.84375, 0.7672256612323416334589782),
    (erf, 1.0, 0.8427007929497148693412206),
    (erf, -1.25, -0.9229001282564582301365235),
    (erf, 2.0, 0.9953222650189527341620693),
    (erf, 2.75, 0.9998993780778803631630956),
    (erf, 3.125, 0.9999901032653747543805314),
    (erf, 3.1622776601683795, 0.9999922557835689559261361),
    (erf, 3.162277660168379, 0.9999922557835689559033861),
    (erf, 3.1875, 0.9999934498492239695318299),
    (erf, -4.0, -0.9999999845827420997199811),
    (erf, 4.9375, 0.9999999999971039734139258),
    (erf, 5.5, 0.999999999999992642152082),
    (erf, 5.75, 0.9999999999999995767863383),
    (erf, 6.0, 0.9999999999999999784802633),
    (erf, -30.0, -1.0),
    (erfc, -28.0, 2.0),
    (erfc, -6.0, 1.999999999999999978480263),
    (erfc, -4.9375, 1.999999999997103973413926),
    (erfc, -2.0, 1.995322265018952734162069),
    (erfc, -1.0, 1.842700792949714869341221),
    (erfc, -0.5, 1.520499877813046537682747),
    (erfc, -9.313225746154785e-10, 1.000000001050884991041862),
    (erfc, 8.673617379884035e-19, 0.9999999999999999990212871),
    (erfc, 0.0625, 0.9295680222776129219494099),
    (erfc, 0.46875, 0.5073865267820620084118239),
    (erfc, 1.0, 0.1572992070502851306587794),
    (erfc, 2.0, 4.677734981047265837930744e-3),
    (erfc, 3.9375, 2.569919061291150573621256e-8),
    (erfc, 4.375, 6.124832953569360158086388e-10),
    (erfc, 4.9375, 2.89602658607421406818929e-12),
    (erfc, 4.949747468305832, 2.559625087771692819901504e-12),
    (erfc, 4.949747468305833, 2.559625087771669872132503e-12),
    (erfc, 4.96875, 2.112124817584000732362626e-12),
    (erfc, 6.03125, 1.47012666344326169785805e-17),
    (erfc, 8.0, 1.122429717298292707996789e-29),
    (erfc, 12.3125, 6.631816066185298632547331e-68),
    (erfc, 20.0, 5.395865611607900928934999e-176),
    (erfc, 26.0, 5.663192408856142846475728e-296),
    (erfc, 26.5, 2.210907664263734275929239e-307),
    (norm_cdf, -37.5, 4.605353009581954843827969e-308),
    (norm_cdf, -37.0625, 5.648494095195327623961753e-301),
    (norm_cdf, -30.0, 4.906713927148187059533809e-198),
    (norm_cdf, -20.03125, 1.470902329788968016000439e-89),
    (norm_cdf, -12.5, 3.732564298877713377225836e-36),
    (norm_cdf, -9.0, 1.128588405953840647735502e-19),
    (norm_cdf, -8.0, 6.220960574271784123515995e-16),
    (norm_cdf, -7.03125, 1.023456811776201474954089e-12),
    (norm_cdf, -7.000000000000001, 1.279812543885826891122087e-12),
    (norm_cdf, -7.0, 1.279812543885835004383624e-12),
    (norm_cdf, -6.999999999999999, 1.27981254388584311764516e-12),
    (norm_cdf, -6.9375, 1.995496621877848786345654e-12),
    (norm_cdf, -6.125, 4.534180326695284488920958e-10),
    (norm_cdf, -4.0, 3.167124183311992125377076e-5),
    (norm_cdf, -2.0, 0.02275013194817920720028264),
    (norm_cdf, -1.0, 0.1586552539314570514147675),
    (norm_cdf, -0.5, 0.3085375387259868963622954),
    (norm_cdf, -0.0625, 0.4750823309707527788047138),
    (norm_cdf, 9.094947017729282e-13, 0.5000000000003628358903383),
    (norm_cdf, 0.25, 0.5987063256829237242408538),
    (norm_cdf, 1.0, 0.8413447460685429485852325),
    (norm_cdf, 1.96875, 0.9755090967357667257341319),
    (norm_cdf, 4.5, 0.9999966023268752699395983),
    (norm_cdf, 7.0, 0.9999999999987201874561142),
    (norm_cdf, 8.25, 0.9999999999999999208027369),
    (norm_cdf, 38.0, 1.0),
]

# The last argument whose result is a normal number, on the side where the function vanishes.
EDGES = {erf: 6.5, erfc: 26.54, norm_cdf: 37.51}


def call(kernel: Kernel, x: npt.ArrayLike, dtype: npt.DTypeLike = np.float64) -> npt.NDArray:
    """The kernel's result in a fresh array, which starts as a value that no kernel returns."""
    x = np.asarray(x, dtype)
    out = np.full_like(x, 77.0)
    assert kernel(x, out) is None
    return out


def exact(kernel: Kernel, x: float) -> mpmath.mpf:
    x = mpmath.mpf(float(x))
    if kernel is norm_cdf:
        return mpmath.erfc(-x / mpmath.sqrt(2)) / 2
    return {erf: mpmath.erf, erfc: mpmath.erfc}[kernel](x)


def errors(kernel: Kernel, x: npt.NDArray) -> tuple[float, float]:
    """The largest absolute and relative error over ``x``."""
    with mpmath.workdps(50):
        pairs = [(mpmath.mpf(float(y)), exact(kernel, v)) for v, y in zip(x, call(kernel, x))]
        absolute = max(abs(y - true) for y, true in pairs)
        relative = max(abs(y / true - 1) for y, true in pairs)
    return float(absolute), float(relative)


def same_bits(left: npt.NDArray, right: npt.NDArray) -> bool:
    """Equal to the last bit and the sign of zero; any two nans are equal."""
    left, right = (np.where(np.isnan(a), 77.0, a) for a in (left, right))
    return left.tobytes() == right.tobytes()


@pytest.mark.parametrize(("kernel", "x", "value"), FACTS)
def test_fact(kernel: Kernel, x: float, value: float) -> None:
    got = float(call(kernel, x))
    assert abs(got - value) <= 1e-15
    assert abs(got - value) <= 1e-13 * abs(value)


@pytest.mark.parametrize(
    ("kernel", "x", "value"), [fact for fact in FACTS if float(np.float32(fact[1])) == fact[1]]
)
def test_fact_in_float32(kernel: Kernel, x: float, value: float) -> None:
    got = call(kernel, x, np.float32)
    assert got.dtype == np.float32
    assert abs(float(got) - value) <= 0.51 * float(np.spacing(np.float32(abs(value))))


# Tighter than the promised 1e-13: a lost digit in the tail should not go unseen.
@pytest.mark.parametrize("kernel", KERNELS)
def test_dense_sweep_over_the_whole_range(kernel: Kernel) -> None:
    edge = EDGES[kernel]
    x = np.linspace(-edge, edge, 3001) + np.random.default_rng(1).uniform(-1e-3, 1e-3, 3001)
    absolute, relative = errors(kernel, np.clip(x, -edge, edge))
    assert absolute <= 1e-15
    assert relative <= 4e-15


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_dense_sweep_over_the_centre(kernel: Kernel) -> None:
    x = np.random.default_rng(2).uniform(-8, 8, 4000)
    absolute, relative = errors(kernel, x)
    assert absolute <= 1e-15
    assert relative <= 4e-15


@pytest.mark.parametrize("kernel", KERNELS)
def test_tiny_arguments(kernel: Kernel) -> None:
    x = 10.0 ** np.random.default_rng(3).uniform(-300, -1, 1000)
    absolute, relative = errors(kernel, np.concatenate([x, -x]))
    assert absolute <= 1e-15
    assert relative <= 1e-15


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_float32_sweep_is_rounded_correctly_but_for_ties(kernel: Kernel) -> None:
    x = np.random.default_rng(4).uniform(-14.5, 14.5, 3000).astype(np.float32)
    got = call(kernel, x, np.float32)
    with mpmath.workdps(50):
        true = np.array([float(exact(kernel, v)) for v in x])
    spacing = np.spacing(np.abs(true).astype(np.float32)).astype(np.float64)
    assert np.all(np.abs(got.astype(np.float64) - true) <= 0.5001 * spacing)


@pytest.mark.parametrize(("kernel", "x"), [(erfc, 26.75), (erfc, 27.0), (norm_cdf, -38.0)])
def test_subnormal_results_underflow_gradually(kernel: Kernel, x: float) -> None:
    true = float(exact(kernel, x))
    assert 5e-324 < true < np.finfo(np.float64).tiny
    assert abs(float(call(kernel, x)) - true) <= 2 * 5e-324


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kernel", "x", "value"),
    [
        (erf, np.inf, 1.0),
        (erf, -np.inf, -1.0),
        (erf, 1e30, 1.0),
        (erf, 0.0, 0.0),
        (erf, -0.0, -0.0),
        (erfc, np.inf, 0.0),
        (erfc, -np.inf, 2.0),
        (erfc, 1e30, 0.0),
        (erfc, 0.0, 1.0),
        (erfc, -0.0, 1.0),
        (norm_cdf, np.inf, 1.0),
        (norm_cdf, -np.inf, 0.0),
        (norm_cdf, -1e30, 0.0),
        (norm_cdf, 0.0, 0.5),
        (norm_cdf, -0.0, 0.5),
    ],
)
def test_special_value_is_exact(
    kernel: Kernel, x: float, value: float, dtype: npt.DTypeLike
) -> None:
    assert same_bits(call(kernel, x, dtype), np.array(value, dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS)
def test_nan_stays_nan_and_alone(kernel: Kernel, dtype: npt.DTypeLike) -> None:
    x = np.array([np.nan, 0.5, -np.nan, 30.0, np.nan])
    got = call(kernel, x, dtype)
    assert np.isnan(got).tolist() == [True, False, True, False, True]
    assert same_bits(got[[1, 3]], call(kernel, x[[1, 3]], dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS)
def test_no_warning_and_no_error_whatever_the_caller_set(
    kernel: Kernel, dtype: npt.DTypeLike
) -> None:
    big = float(np.finfo(dtype).max)
    x = np.array([0.0, 1.0, 5e-324, big, -big, np.inf, -np.inf, np.nan, -13.5, 26.9, -38.2], dtype)
    out = np.empty_like(x)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        kernel(x, out)


@pytest.mark.parametrize("kernel", KERNELS)
def test_range_is_kept(kernel: Kernel) -> None:
    low, high = {erf: (-1.0, 1.0), erfc: (0.0, 2.0), norm_cdf: (0.0, 1.0)}[kernel]
    got = call(kernel, np.linspace(-12, 12, 200_001))
    assert got.min() >= low
    assert got.max() == high


def test_symmetries_are_exact_where_the_formula_has_them() -> None:
    x = np.random.default_rng(5).uniform(0, 12, 5000)
    assert same_bits(call(erf, -x), -call(erf, x))
    assert same_bits(call(erfc, -x), 2.0 - call(erfc, x))
    assert same_bits(call(norm_cdf, x), 1.0 - call(norm_cdf, -x))


arguments = st.one_of(
    st.floats(-8, 8),
    st.floats(-40, 40),
    st.floats(allow_nan=False),
    st.sampled_from([x for _, x, _ in FACTS]),
)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_result_depends_on_the_element_alone(
    kernel: Kernel, dtype: npt.DTypeLike, data: st.DataObject
) -> None:
    with np.errstate(over="ignore", under="ignore"):
        values = np.array(data.draw(st.lists(arguments, min_size=1, max_size=8)), dtype)
    alone = np.array([call(kernel, v, dtype)[()] for v in values], dtype)
    size = data.draw(st.sampled_from([8, 9, 15, 64, 1001, BLOCK, BLOCK + 1, 2 * BLOCK + 7]))
    scale = data.draw(st.sampled_from([0.0, 1.0, 20.0, np.nan]))
    crowd = (np.random.default_rng(6).standard_normal(size) * scale).astype(dtype)
    places = data.draw(st.lists(st.integers(0, size - 1), min_size=8, max_size=8, unique=True))[
        : values.size
    ]
    crowd[places] = values
    assert same_bits(call(kernel, crowd, dtype)[places], alone)


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64, 1000])
@pytest.mark.parametrize("kernel", KERNELS)
def test_block_length_changes_no_bit(
    kernel: Kernel, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(7)
    x = np.concatenate([rng.uniform(-9, 9, 1500), rng.uniform(-40, 40, 500), [np.nan, np.inf]])
    whole = call(kernel, x)
    monkeypatch.setattr(_erf, "_BLOCK", block)
    assert same_bits(call(kernel, x), whole)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS)
def test_any_layout_gives_the_same(kernel: Kernel, dtype: npt.DTypeLike) -> None:
    x = np.random.default_rng(8).uniform(-9, 9, (30, 40)).astype(dtype)
    kept = x.copy()
    want = call(kernel, x.ravel(), dtype).reshape(x.shape)
    # The final `...` keeps a selected number an array.
    everything, steps, column = np.s_[...], np.s_[::2, ::-3], np.s_[:, 5]
    for at in (everything, steps, column, np.s_[3], np.s_[4:5, 6:7], np.s_[2, 9, ...]):
        flat, strided = np.full((30, 40), 77.0, dtype), np.full((30, 80), 77.0, dtype)[:, ::2]
        for base in (flat, strided, np.asfortranarray(flat)):
            kernel(x[at], base[at])
            assert same_bits(base[at], want[at])
        kernel(np.asfortranarray(x)[at], flat[at])
        assert same_bits(flat[at], want[at])
    assert same_bits(x, kept)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_strided_out_is_written_nowhere_else(kernel: Kernel, dtype: npt.DTypeLike) -> None:
    x = np.linspace(-9, 9, 50).astype(dtype)
    base = np.full(100, 77.0, dtype)
    kernel(x, base[::2])
    assert same_bits(base[::2], call(kernel, x, dtype))
    assert np.all(base[1::2] == 77.0)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (), (1,), (1, 1)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_empty_and_single(kernel: Kernel, shape: tuple[int, ...]) -> None:
    out = call(kernel, np.full(shape, 0.75))
    assert out.shape == shape
    assert np.all(np.abs(out - float(exact(kernel, 0.75))) <= 1e-15)


@pytest.mark.parametrize("kernel", KERNELS)
def test_threads_do_not_share_scratch(kernel: Kernel) -> None:
    inputs = [np.random.default_rng(s).uniform(-9, 9, 3 * BLOCK) for s in range(8)]
    want = [call(kernel, x) for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda x: call(kernel, x), inputs))
    assert all(same_bits(g, w) for g, w in zip(got, want))
