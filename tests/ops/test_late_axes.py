"""Building computes nothing, also on operands whose number of axes only a value shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

ROW = np.array([0.5, -1.5, 2.0, 3.0, 0.25])
OTHER_ROW = np.array([2.0, 1.0, -0.5, 4.0, 1.5, 0.75, -2.0])
SQUARE = np.array([[0.5, -1.5, 2.0], [3.0, 0.25, -4.0], [1.0, 6.0, -2.5]])
OTHER = np.array([[1.5, 2.5, -3.0, 0.5], [0.75, -0.25, 1.0, 4.0]])
HOLES = np.array([[0.5, np.nan, 2.0], [3.0, 0.25, np.nan]])
IMAGES = np.linspace(-1.0, 2.0, 2 * 3 * 4 * 4).reshape(2, 3, 4, 4) ** 2
OTHER_IMAGES = np.linspace(-2.0, 1.0, 1 * 3 * 2 * 6).reshape(1, 3, 2, 6) ** 3

# A name, the call of a function of rg, the same in NumPy (None: the same call of an array), values.
Case = tuple[str, Callable[[Any], Any], Callable[[Any], Any] | None, Sequence[np.ndarray]]


def numpys(
    name: str, *args: Any, values: Sequence[np.ndarray] = (SQUARE, OTHER), **kw: Any
) -> Case:
    """Return the case of a function that NumPy has, too."""
    return (
        name,
        lambda x: getattr(rg, name)(x, *args, **kw),
        lambda x: getattr(np, name)(x, *args, **kw),
        values,
    )


def of(
    text: str, ours: Callable[[Any], Any], theirs: Any = None, values: Any = (SQUARE, OTHER)
) -> Case:
    return (text, ours, theirs, values)


_ROWS = (ROW, OTHER_ROW)
_IMAGES = (IMAGES, OTHER_IMAGES)
_HOLES = (HOLES, ROW)

REDUCTIONS: list[Case] = [
    numpys("corrcoef"),
    numpys("cov", ddof=0),
    numpys("cov", rowvar=False),
    numpys("cumulative_sum", values=_ROWS),
    numpys("cumulative_sum", axis=-1, include_initial=True),
    numpys("cumulative_prod", axis=0, values=(SQUARE, ROW)),
    numpys("diff", values=(SQUARE, ROW)),
    numpys("diff", axis=0, prepend=0.5, values=(ROW, SQUARE)),
    numpys("diff", 2, append=np.ones((3, 2)), values=(SQUARE, np.ones((3, 4)))),
    numpys("ediff1d", values=(SQUARE, ROW)),
    numpys("gradient", axis=0, values=(ROW, SQUARE)),
    numpys("gradient", 0.5, axis=(0, 1)),
    numpys("nansum", axis=0, values=_HOLES),
    numpys("nanprod", axis=-1, values=_HOLES),
    numpys("nancumsum", values=_HOLES),
    numpys("nancumprod", axis=0, values=_HOLES),
    numpys("nanmean", axis=0, values=_HOLES),
    numpys("nanvar", axis=-1, values=_HOLES),
    numpys("nanstd", keepdims=True, values=_HOLES),
    numpys("nanmedian", values=_HOLES),
    numpys("nanquantile", 0.3, axis=0, values=_HOLES),
    numpys("nanpercentile", [10, 60], values=_HOLES),
    numpys("nanmax", axis=0, values=_HOLES),
    numpys("nanargmax", axis=0, values=_HOLES),
    of("norm", lambda x: rg.norm(x, axis=0), lambda x: np.linalg.norm(x, axis=0), (SQUARE, ROW)),
    of("norm()", rg.norm, np.linalg.norm, (SQUARE, ROW)),
    of("linalg.norm", lambda x: rg.linalg.norm(x, "fro"), lambda x: np.linalg.norm(x, "fro")),
    numpys("trapezoid", values=(SQUARE, ROW)),
    numpys("trapezoid", dx=0.5, axis=0, values=(SQUARE, ROW)),
    *[
        numpys(name, axis=0, values=(SQUARE, ROW))
        for name in (
            *("prod", "var", "std", "ptp", "median", "cumsum", "cumprod"),
            *("all", "any", "argmax", "count_nonzero", "average"),
        )
    ],
    numpys("quantile", 0.4),
    numpys("histogram", 3, (-2.0, 2.0)),
    numpys("unwrap", values=(SQUARE, ROW)),
    of("logsumexp", lambda x: rg.logsumexp(x, 0), lambda x: np.log(np.exp(x).sum(0))),
]

PRODUCTS: list[Case] = [
    numpys("diag", values=(SQUARE, ROW)),
    numpys("diagflat", 1),
    numpys("matrix_transpose"),
    numpys("diagonal"),
    numpys("trace"),
    numpys("tril"),
    numpys("triu", 1),
    numpys("outer", ROW),
    numpys("dot", np.ones(3), values=(SQUARE, SQUARE[0])),
    numpys("inner", np.ones(3), values=(SQUARE, SQUARE[0])),
    numpys("kron", np.ones((2, 2)), values=(SQUARE, ROW)),
    numpys("vander", values=_ROWS),
    numpys("cross", np.array([1.0, 2.0, 3.0]), values=(SQUARE, SQUARE[0])),
    numpys("tensordot", np.ones((3, 3)), 1, values=(SQUARE, SQUARE[0])),
]

ARRANGEMENT: list[Case] = [
    of(
        "column_stack",
        lambda x: rg.column_stack([x, x]),
        lambda x: np.column_stack([x, x]),
        (SQUARE, ROW),
    ),
    of("dstack", lambda x: rg.dstack([x, x]), lambda x: np.dstack([x, x]), (SQUARE, ROW)),
    of("hstack", lambda x: rg.hstack([x, x]), lambda x: np.hstack([x, x]), (SQUARE, ROW)),
    of("vstack", lambda x: rg.vstack([x, x]), lambda x: np.vstack([x, x]), (SQUARE, ROW)),
    of(
        "block",
        lambda x: rg.block([[x, x], [x, x]]),
        lambda x: np.block([[x, x], [x, x]]),
        (SQUARE, ROW),
    ),
    numpys("flip", values=(SQUARE, ROW)),
    numpys("flip", -1, values=(SQUARE, ROW)),
    numpys("fliplr"),
    numpys("flipud", values=(SQUARE, ROW)),
    numpys("rot90"),
    numpys("rot90", 2, (1, 0)),
    numpys("trim_zeros", values=_ROWS),
    numpys("roll", 1, values=(SQUARE, ROW)),
    numpys("roll", 1, 0, values=(SQUARE, ROW)),
    numpys("tile", 2, values=(SQUARE, ROW)),
    numpys("repeat", 2, values=(SQUARE, ROW)),
    numpys("pad", 1, values=(SQUARE, ROW)),
    numpys("moveaxis", 0, -1, values=(SQUARE, IMAGES)),
    numpys("swapaxes", 0, -1, values=(SQUARE, IMAGES)),
    numpys("rollaxis", 1),
    numpys("atleast_1d", values=(SQUARE, ROW)),
    numpys("atleast_2d", values=(SQUARE, ROW)),
    numpys("atleast_3d", values=(SQUARE, ROW)),
    numpys("append", ROW, values=(SQUARE, ROW)),
    numpys("insert", 1, 7.0, values=(SQUARE, ROW)),
    numpys("delete", 1, values=(SQUARE, ROW)),
    numpys("resize", (2, 2), values=(SQUARE, ROW)),
    numpys("ravel", values=(SQUARE, ROW)),
    numpys("expand_dims", 0, values=(SQUARE, ROW)),
    numpys("squeeze", values=(SQUARE[:1], ROW)),
    numpys("transpose", values=(SQUARE, ROW)),
]

FACTORIES: list[Case] = [
    numpys("zeros_like", values=(SQUARE, ROW)),
    numpys("ones_like", "int32", values=(SQUARE, ROW)),
    numpys("full_like", 3.0, values=(SQUARE, ROW)),
    of("empty_like", lambda x: rg.empty_like(x) * 0.0, lambda x: x * 0.0, (SQUARE, ROW)),
]

ORDERING: list[Case] = [
    of("lexsort", lambda x: rg.lexsort([x, x]), lambda x: np.lexsort([x, x]), (SQUARE, ROW)),
    of("lexsort of one", rg.lexsort, np.lexsort),
    numpys("sort_complex", values=(SQUARE, ROW)),
    numpys("sort", values=(SQUARE, ROW)),
    numpys("sort", None, values=(SQUARE, ROW)),
    numpys("argsort", 0, values=(SQUARE, ROW)),
    numpys("flatnonzero", values=(SQUARE, ROW)),
    numpys("argwhere", values=(SQUARE, ROW)),
    numpys("take", [0, 1], values=(SQUARE, ROW)),
    numpys("searchsorted", 0.5, values=(np.sort(ROW), np.sort(OTHER_ROW))),
    numpys("unique", values=(SQUARE, ROW)),
    numpys("isin", [2.0, 3.0], values=(SQUARE, ROW)),
    of(
        "compress",
        lambda x: rg.compress([True, False], x, 0),
        lambda x: np.compress([True, False], x, 0),
        (SQUARE, ROW),
    ),
]

SPECIAL: list[Case] = [
    numpys("convolve", np.array([1.0, 2.0]), values=_ROWS),
    numpys("convolve", np.array([1.0, 2.0]), "same", values=_ROWS),
    numpys("correlate", np.array([1.0, 2.0]), values=_ROWS),
    numpys("float_power", 2, values=(abs(SQUARE), ROW)),
    numpys("poly", values=_ROWS),
    numpys("polyadd", np.array([1.0, 2.0]), values=_ROWS),
    numpys("polysub", np.array([1.0, 2.0]), values=_ROWS),
    numpys("polymul", np.array([1.0, 2.0]), values=_ROWS),
    numpys("polydiv", np.array([1.0, 2.0]), values=_ROWS),
    numpys("polyder", values=_ROWS),
    numpys("polyint", 2, values=_ROWS),
    numpys("polyval", 0.5, values=_ROWS),
    of("roots", lambda x: rg.sort(rg.abs(rg.roots(x))), lambda x: np.sort(abs(np.roots(x))), _ROWS),
    numpys("nan_to_num", values=_HOLES),
    numpys("sinc", values=(SQUARE, ROW)),
    numpys("around", 1, values=(SQUARE, ROW)),
    numpys("real_if_close", values=(SQUARE, ROW)),
]


def _images(name: str, *args: Any, **kw: Any) -> Case:
    return of(name, lambda x: getattr(rg, name)(x, *args, **kw), None, _IMAGES)


_SERIES = (IMAGES.reshape(2, 3, 16), OTHER_IMAGES.reshape(1, 3, 12))
_BLOCKS = (IMAGES.reshape(2, 3, 2, 2, 4), OTHER_IMAGES.reshape(1, 3, 2, 2, 3))


def _with_windows(axes: int) -> list[tuple[str, Any]]:
    pools = ("avg_pool", "max_pool", "adaptive_avg_pool", "adaptive_max_pool")
    return [*[(name, 2) for name in pools], ("conv", np.ones((2, 3, *[1] * axes)))]


NEURAL: list[Case] = [
    _images("batch_norm", training=True),
    _images("instance_norm", np.ones(3)),
    _images("group_norm", 3),
    _images("global_avg_pool"),
    _images("global_max_pool"),
    _images("glu", axis=-1),
    _images("interpolate", scale_factor=2),
    _images("interpolate", (3, 5), mode="bilinear"),
    _images("normalize"),
    _images("rms_norm"),
    *[_images(f"{name}2d", 2) for name in ("avg_pool", "max_pool")],
    *[_images(f"adaptive_{name}_pool2d", 2) for name in ("avg", "max")],
    _images("conv2d", np.ones((2, 3, 1, 1))),
    *[
        of(f"{name}1d", lambda x, name=name, a=a: getattr(rg, f"{name}1d")(x, a), None, _SERIES)
        for name, a in _with_windows(1)
    ],
    *[
        of(f"{name}3d", lambda x, name=name, a=a: getattr(rg, f"{name}3d")(x, a), None, _BLOCKS)
        for name, a in _with_windows(3)
    ],
    of("pixel_shuffle", lambda x: rg.pixel_shuffle(x, 2), None, (IMAGES.reshape(1, 4, 6, 4),)),
    _images("pixel_unshuffle", 2),
    _images("softmax"),
    _images("layer_norm"),
    _images("softmin"),
]

FAMILIES = {
    "reductions": REDUCTIONS,
    "products": PRODUCTS,
    "arrangement": ARRANGEMENT,
    "factories": FACTORIES,
    "ordering": ORDERING,
    "special": SPECIAL,
    "neural": NEURAL,
}
CASES = [
    pytest.param(ours, theirs, values, id=f"{text.split('(')[0]}-{family}-{i}")
    for family, cases in FAMILIES.items()
    for i, (text, ours, theirs, values) in enumerate(cases)
]


def unset(value: np.ndarray) -> tuple[Any, Callable[[np.ndarray], None]]:
    x = rg.Graph().input()
    return x, x.set


def lifted(value: np.ndarray) -> tuple[Any, Callable[[np.ndarray], None]]:
    x = rg.Graph().input(value)
    return rg.lift(lambda a: a * 1.0)(x), x.set


OPERANDS = {"unset": unset, "lifted": lifted}


def parts(found: Any) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def expected(ours: Any, theirs: Any, value: np.ndarray) -> tuple[Any, ...]:
    if theirs is not None:
        return parts(theirs(value))
    x = rg.Graph().input(value)
    return tuple(one.value for one in parts(ours(x)))


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize(("ours", "theirs", "values"), CASES)
def test_building_computes_nothing(ours: Any, theirs: Any, values: Any, operand: str) -> None:
    x, give = OPERANDS[operand](values[0])
    found = parts(ours(x))
    assert not x.graph.last_run.ran
    assert [one.value_version for one in (x, *found)] == [0] * (1 + len(found))
    for value in (*values, values[0]):
        give(value)
        wanted = expected(ours, theirs, value)
        assert len(found) == len(wanted)
        for one, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one.value, want, rtol=1e-12, atol=1e-12)
            assert np.shape(one.value) == np.shape(want)
            assert one.value.dtype == np.asarray(want).dtype


def test_elements_where_a_mask_holds() -> None:
    g = rg.Graph()
    x = g.param(SQUARE)
    v = x[x > 0]
    y = rg.trapezoid(v) + rg.nanmean(rg.diff(v))
    assert not g.last_run.ran
    for value in (SQUARE, OTHER):
        x.set(value)
        chosen = value[value > 0]
        assert y.value == pytest.approx(np.trapezoid(chosen) + np.diff(chosen).mean(), rel=1e-14)


POSITIVE = abs(SQUARE) + 0.5
OTHER_POSITIVE = abs(OTHER) + 0.5

# Functions of one node whose derivatives are compared with those of the same function of a known shape.
SMOOTH: dict[str, Callable[[Any], Any]] = {
    "cov": rg.cov,
    "cumulative_prod": lambda x: rg.cumulative_prod(x, axis=0),
    "diff": lambda x: rg.diff(x, axis=0, prepend=1.0),
    "gradient": lambda x: rg.gradient(x, axis=-1),
    "nanvar": lambda x: rg.nanvar(x, axis=-1),
    "norm": lambda x: rg.norm(x, axis=0),
    "trapezoid": lambda x: rg.trapezoid(x, x),
    "diag": rg.diag,
    "column_stack": lambda x: rg.column_stack([x, x * 2.0]),
    "flip": rg.flip,
    "rot90": lambda x: rg.rot90(x),
    "tensordot": lambda x: rg.tensordot(x, x, ((1,), (1,))),
    "full_like": lambda x: rg.full_like(x, 2.0) * x,
    "float_power": lambda x: rg.float_power(x, 3),
    "polyval": lambda x: rg.polyval(rg.reshape(x, -1), 0.5),
    "convolve": lambda x: rg.convolve(rg.reshape(x, -1), [1.0, 2.0]),
    "rms_norm": rg.rms_norm,
    "nested": lambda x: rg.nanmean(rg.diff(rg.trapezoid(x * x, axis=0))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_those_of_a_known_shape(name: str) -> None:
    function = SMOOTH[name]

    def loss(x: Any) -> Any:
        y = function(x)
        return rg.sum(y * y * y)

    g = rg.Graph()
    x = g.param(POSITIVE)
    late = loss(
        rg.lift(lambda a: a * 1.0, vjp=lambda g, ans, a: (g,), jvp=lambda ts, ans, a: ts[0])(x)
    )
    slope = rg.grad(late, x)
    direction = g.input(POSITIVE * 0.5)
    moved, twice = rg.jvp(late, x, direction), rg.grad(rg.sum(slope * direction), x)
    forward = rg.jvp(rg.sum(slope * direction), x, direction)
    for value in (POSITIVE, OTHER_POSITIVE, POSITIVE):
        g.set({x: value, direction: value * 0.5})
        h = rg.Graph()
        known, along = h.param(value), h.const(value * 0.5)
        straight = loss(known)
        first = rg.grad(straight, known)
        product = rg.sum(first * along)
        wanted = (
            (late, straight),
            (slope, first),
            (moved, rg.jvp(straight, known, along)),
            (twice, rg.grad(product, known)),
            (forward, rg.jvp(product, known, along)),
        )
        for one, want in wanted:
            np.testing.assert_allclose(one.value, want.value, rtol=1e-10, atol=1e-10)


def test_only_the_stale_deferred_node_runs() -> None:
    g = rg.Graph()
    x, z = g.input(SQUARE), g.input(ROW)
    y, w = rg.diff(rg.lift(lambda a: a + 0.0)(x)), rg.diff(rg.lift(lambda a: a + 0.0)(z))
    g.forward(y, w)
    z.set(OTHER_ROW)
    run = g.forward(y, w)
    assert y not in run.ran
    assert w in run.ran
    count = len(g)
    for value in (OTHER, SQUARE, OTHER):
        x.set(value)
        np.testing.assert_array_equal(y.value, np.diff(value))
    assert len(g) == count


def test_a_number_stays_weak() -> None:
    g = rg.Graph()
    y = rg.lift(lambda a: a * a.dtype.type(1))(g.input(ROW.astype("f4")))
    assert rg.trapezoid(y, dx=g.input(0.5)).value.dtype == np.float32


def test_what_is_open_around_the_read_changes_nothing() -> None:
    g = rg.Graph()
    x = g.param(ROW)
    slope = rg.grad(rg.sum(rg.diff(x[x > 0]) ** 2), x)
    with rg.no_grad(), rg.Graph(), rg.autocast("bfloat16"):
        found = slope.value
    chosen = ROW[ROW > 0]
    want = np.zeros(5)
    want[ROW > 0] = 2 * (np.diff(chosen, prepend=chosen[0]) - np.diff(chosen, append=chosen[-1]))
    np.testing.assert_allclose(found, want, rtol=1e-14)


def test_errors_of_the_function_come_when_it_runs() -> None:
    x = rg.Graph().input(name="x")
    y = rg.trapezoid(x, axis=1)
    x.set(ROW)
    with pytest.raises(rg.AxisError, match="trapezoid: axis 1 does not exist"):
        _ = y.value
    x.set(SQUARE)
    np.testing.assert_allclose(y.value, np.trapezoid(SQUARE, axis=1), rtol=1e-14)


def test_a_number_of_results_that_only_the_value_shows_is_refused() -> None:
    x = rg.Graph().input()
    with pytest.raises(rg.ShapeError, match=r"Name the axes: rg\.gradient\(f, axis=0\)"):
        rg.gradient(x)
    with pytest.raises(rg.ShapeError, match=r"rg\.histogramdd\(points, bins=\(10, 10\)\)"):
        rg.histogramdd(x)
    with pytest.raises(rg.ShapeError, match=r"unstack: how many .* rg\.take\(x, i, axis=1\)"):
        rg.unstack(x, axis=1)
    with pytest.raises(rg.ShapeError, match=r"nonzero: how many .* rg\.argwhere\(x\) has a row"):
        rg.nonzero(x)
    assert not x.graph.last_run.ran


def test_histogramdd_of_late_points() -> None:
    x = rg.Graph().input()
    counts, edges = rg.histogramdd(x, (2, 3))
    x.set(SQUARE[:, :2])
    want, sides = np.histogramdd(SQUARE[:, :2], (2, 3))
    np.testing.assert_array_equal(counts.value, want)
    for one, side in zip(edges, sides, strict=True):
        np.testing.assert_allclose(one.value, side, rtol=1e-14)


def test_a_file_keeps_a_deferred_node(tmp_path: Any) -> None:
    g = rg.Graph()
    x = g.input(ROW, name="x")
    y = rg.diff(x[x > 0], prepend=np.array([1.0]))
    y.name = "y"
    g.save(tmp_path / "late.rg")
    h = rg.load(tmp_path / "late.rg")
    h["x"].set(OTHER_ROW)
    np.testing.assert_allclose(h["y"].value, np.diff(OTHER_ROW[OTHER_ROW > 0], prepend=1.0))
