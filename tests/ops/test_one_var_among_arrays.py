"""Outside of ``with g:`` any operand may be the Var that says in which graph a call builds; the others are arrays."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.api.ops_table import functions
from tests.ops.case import tuple_of

RNG = np.random.default_rng(0)
A, B = RNG.uniform(0.2, 0.8, (2, 3)), RNG.uniform(0.2, 0.8, (2, 3))
M, S = RNG.uniform(0.2, 0.8, (3, 3)) + 2.0 * np.eye(3), np.linspace(0.1, 0.9, 3)
V, W, P = S[::-1].copy(), S + 1.0, np.arange(1.0, 5.0)
K, J, T = np.array([[1, 2, 3], [3, 1, 2]]), np.array([2, 0, 1]), A > 0.5
IMAGE = RNG.standard_normal((2, 4, 5, 5))
ROW, CUBE = IMAGE[:, :, 0], RNG.standard_normal((2, 4, 3, 3, 3))
ONE = np.array(1.0)

Calls = dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]


def plain(names: str, *operands: Any) -> Calls:
    """Return calls of functions that take these operands, one after the other."""
    found = {}
    for name in names.split():
        space, _, own = name.rpartition(".")
        found[name] = (getattr(getattr(rg, space) if space else rg, own), operands)
    return found


def reduced(names: str) -> Calls:
    def call(name: str) -> Callable[..., Any]:
        return lambda x, initial, where: getattr(rg, name)(x, 1, initial=initial, where=where)

    return {name: (call(name), (A, ONE, T)) for name in names.split()}


def masked(names: str) -> Calls:
    def call(name: str) -> Callable[..., Any]:
        return lambda x, where: getattr(rg, name)(x, 1, where=where)

    return {name: (call(name), (A, T)) for name in names.split()}


def layer(name: str, hidden: int, gates: int, state: Any) -> Calls:
    h = np.zeros((2, hidden))
    shapes = ((gates * hidden, 4), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,))
    weights = [RNG.standard_normal(one) for one in shapes]
    count = state(h, h)
    function = getattr(rg, name)

    def call(x: Any, *rest: Any) -> Any:
        states, others = rest[: len(count)], rest[len(count) :]
        return function(x, states if len(count) > 1 else states[0], *others)

    return {name: (call, (RNG.standard_normal((5, 2, 4)), *count, *weights))}


CALLS: Calls = {
    **plain(
        "add arctan2 divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and "
        "logical_or maximum minimum multiply not_equal power remainder subtract allclose array_equal array_equiv atan2 "
        "beta betaln boxcox boxcox1p gammainc gammaincc iv jv kv rel_entr yv "
        "copysign divmod float_power fmax fmin fmod heaviside isclose logaddexp2 logical_xor mod nextafter "
        "pow true_divide xlog1py xlogy cosine_similarity mse_loss kl_div huber_loss l1_loss smooth_l1_loss "
        "hinge_embedding_loss soft_margin_loss poisson_nll_loss pairwise_distance binary_cross_entropy "
        "binary_cross_entropy_with_logits in1d isin intersect1d setdiff1d setxor1d union1d append full_like",
        *(A, B),
    ),
    **plain(
        "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor gcd lcm left_shift right_shift",
        *(K, K),
    ),
    **plain("clip", A, ONE * 0.3, ONE * 0.6),
    **plain("layer_norm", A, W, S),
    **plain("linear", A, M, S),
    **plain("matmul dot", A, M),
    **plain("betainc", A, B, B),
    **plain("ldexp", A, K),
    **plain("where", T, A, B),
    **reduced("max min sum amax amin nanmax nanmin prod"),
    **masked("mean all any std var"),
    "std of a mean": (
        lambda x, m: rg.std(x, 1, mean=m, keepdims=True),
        (A, A.mean(1, keepdims=True)),
    ),
    "var of a mean": (
        lambda x, m: rg.var(x, 1, mean=m, keepdims=True),
        (A, A.mean(1, keepdims=True)),
    ),
    "logsumexp": (lambda a, b: rg.logsumexp(a, b=b), (A, B)),
    "average": (lambda a, w: rg.average(a, weights=w), (A, B)),
    "bincount": (lambda a, w: rg.bincount(a, w), (J, S)),
    "cov": (lambda m, y: rg.cov(m, y), (A, B)),
    "cov of weights": (lambda m, f, a: rg.cov(m, fweights=f, aweights=a), (A, J + 1, S)),
    "corrcoef": (rg.corrcoef, (A, B)),
    "diff": (lambda a, p, q: rg.diff(a, 1, 1, p, q), (A, A[:, :1], B[:, :2])),
    **plain("ediff1d", S, V, W),
    "gradient": (lambda f, h: rg.gradient(f, h), (S, np.array([0.0, 1.0, 3.0]))),
    "histogram": (lambda a, b, w: rg.histogram(a, b, weights=w), (S, np.array([0.0, 0.5, 1.0]), V)),
    "histogram_bin_edges": (rg.histogram_bin_edges, (S, np.array([0.0, 0.5, 1.0]))),
    "histogram2d": (lambda x, y, w: rg.histogram2d(x, y, 2, weights=w), (S, V, W)),
    "histogramdd": (lambda x, w: rg.histogramdd(x, 2, weights=w), (A.T, W)),
    **plain("quantile nanquantile percentile nanpercentile", A, S),
    "quantile of weights": (
        lambda a, q, w: rg.quantile(a, q, weights=w, method="inverted_cdf"),
        (A, S, B),
    ),
    **plain("trapezoid", A, B),
    "trapezoid of steps": (lambda y, dx: rg.trapezoid(y, dx=dx), (A, ONE)),
    **plain("cross vdot inner kron outer vecdot linalg.cross", A, B),
    **plain("matvec", M, S),
    **plain("vecmat", S, M),
    "tensordot": (lambda a, b: rg.tensordot(a, b, 1), (A, M)),
    "einsum": (lambda a, b: rg.einsum("ij,jk->ik", a, b), (A, M)),
    "delete": (lambda a: rg.delete(a, np.array([1])), (S,)),  # places are fixed
    "insert": (lambda a, v: rg.insert(a, 1, v), (S, ONE)),
    "repeat": (lambda a, n: rg.repeat(a, n), (S, J)),
    "repeat_interleave": (lambda a, n: rg.repeat_interleave(a, n), (S, J)),
    "pad": (lambda a, v: rg.pad(a, 1, constant_values=v), (S, ONE)),
    **plain("linspace geomspace logspace", ONE, ONE * 3.0),
    "choose": (lambda a, x, y: rg.choose(a, [x, y]), (np.array([1, 0, 1]), S, V)),
    **plain("compress extract", np.array([True, False, True]), S),
    **plain("digitize", A, S),
    **plain("searchsorted", S, A),
    "searchsorted of an order": (lambda a, v, o: rg.searchsorted(a, v, sorter=o), (V, A, J)),
    "gather": (lambda x, i: rg.gather(x, 1, i), (A, K % 3)),
    "index_add": (lambda x, i, s: rg.index_add(x, 0, i, s), (S, J, V)),
    "index_select": (lambda x, i: rg.index_select(x, 0, i), (S, J)),
    "interp": (lambda x, xp, fp: rg.interp(x, xp, fp), (A, S, V)),
    "interp beyond": (lambda x, xp, fp, a, b: rg.interp(x, xp, fp, a, b), (A, S, V, ONE, ONE)),
    **plain("masked_fill", A, T, ONE),
    "piecewise": (lambda x, c: rg.piecewise(x, [c], [1.0, lambda x: x * 2]), (A, T)),
    "scatter": (lambda x, i, s: rg.scatter(x, 0, i, s), (S, J, V)),
    "scatter_add": (lambda x, i, s: rg.scatter_add(x, 0, i, s), (S, J, V)),
    **{
        f"segment_{how}": (lambda d, i, how=how: getattr(rg, f"segment_{how}")(d, i, 3), (S, J))
        for how in ("sum", "mean", "max", "min")
    },
    "select": (lambda c, d, x, y, z: rg.select([c, d], [x, y], z), (T, ~T, A, B, ONE)),
    **plain("take", S, J),
    "take_along_axis": (lambda a, i: rg.take_along_axis(a, i, 1), (A, K % 3)),
    **plain("convolve correlate polyadd polydiv polymul polysub polyval", P, S),
    "polyfit": (lambda x, y, w: rg.polyfit(x, y, 1, w=w), (S, V, W)),
    "polyint": (lambda p, k: rg.polyint(p, 1, k), (P, ONE)),
    **plain("prelu", A, S),
    # --- networks ---
    "batch_norm": (
        lambda x, m, v, w, b: rg.batch_norm(x, m, v, w, b, training=False),
        (ROW, P, P, P, P),
    ),
    **plain("bilinear", A, B, RNG.standard_normal((4, 3, 3)), P),
    "binary_cross_entropy of weights": (
        lambda x, t, w: rg.binary_cross_entropy(x, t, weight=w),
        (A, B, W),
    ),
    "binary_cross_entropy_with_logits of weights": (
        lambda x, t, w, p: rg.binary_cross_entropy_with_logits(x, t, weight=w, pos_weight=p),
        (A, B, W, S),
    ),
    "mse_loss of weights": (lambda x, t, w: rg.mse_loss(x, t, weight=w), (A, B, B)),
    **plain("conv1d", ROW, RNG.standard_normal((3, 4, 2)), S),
    **plain("conv2d", IMAGE, RNG.standard_normal((3, 4, 2, 2)), S),
    **plain("conv3d", CUBE, RNG.standard_normal((3, 4, 2, 2, 2)), S),
    **plain("conv_transpose1d", ROW, RNG.standard_normal((4, 3, 2)), S),
    **plain("conv_transpose2d", IMAGE, RNG.standard_normal((4, 3, 2, 2)), S),
    **plain("conv_transpose3d", CUBE, RNG.standard_normal((4, 3, 2, 2, 2)), S),
    "cross_entropy": (lambda x, t, w: rg.cross_entropy(x, t, weight=w), (A, np.array([2, 0]), W)),
    "cross_entropy of shares": (lambda x, t, w: rg.cross_entropy(x, t, weight=w), (A, B, W)),
    "nll_loss": (lambda x, t, w: rg.nll_loss(x, t, weight=w), (A, np.array([2, 0]), W)),
    **plain("gaussian_nll_loss triplet_margin_loss", A, B, B + 0.1),
    **plain("margin_ranking_loss", A, B, np.sign(A - 0.5)),
    **plain("cosine_embedding_loss", A, B, np.array([1.0, -1.0])),
    "dropout": (lambda x, t: rg.dropout(x, 0.5, t), (A, np.array(True))),
    **plain("embedding", J, M),
    **plain("grid_sample", IMAGE, RNG.uniform(-1.0, 1.0, (2, 3, 3, 2))),
    "group_norm": (lambda x, w, b: rg.group_norm(x, 2, w, b), (IMAGE, P, P)),
    "instance_norm": (lambda x, w, b: rg.instance_norm(x, weight=w, bias=b), (IMAGE, P, P)),
    **plain("rms_norm", A, W),
    **plain("scaled_dot_product_attention attention_weights", M, M, M, M)
    | {"attention_weights": (lambda q, k, m: rg.attention_weights(q, k, m), (M, M, M))},
    **layer("rnn", 3, 1, lambda h, c: (h,)),
    **layer("gru", 3, 3, lambda h, c: (h,)),
    **layer("lstm", 3, 4, lambda h, c: (h, c)),
    # --- linear algebra ---
    "linalg.cho_solve": (lambda c, b: rg.linalg.cho_solve((c, True), b), (M, S)),
    **plain("linalg.lstsq linalg.solve linalg.tensorsolve", M, S),
    "linalg.solve_triangular": (lambda a, b: rg.linalg.solve_triangular(a, b), (M, S)),
    **plain("linalg.matrix_rank linalg.pinv", M, ONE * 1e-3),
    "linalg.pinv of rtol": (lambda a, r: rg.linalg.pinv(a, rtol=r), (M, ONE * 1e-3)),
    **plain("linalg.matmul linalg.tensordot", M, M),
    **plain("linalg.outer linalg.vecdot", S, V),
    "linalg.multi_dot": (lambda a, b, c: rg.linalg.multi_dot([a, b, c]), (A, M, M)),
    "linalg.block_diag": (rg.linalg.block_diag, (A, M)),
    # --- draws ---
    **{
        f"random.{name}": (lambda a, b, name=name: getattr(rg.random, name)(None, a, b), (A, A + B))
        for name in ("normal", "uniform")
    },
    "random.gamma": (lambda a, b: rg.random.gamma(a, scale=b), (A, B)),
    "random.choice": (lambda a, p: rg.random.choice(a, p=p), (S, V / V.sum())),
    "random.integers": (rg.random.integers, (J, J + 3)),
    "random.multinomial": (rg.random.multinomial, (J[:1], V / V.sum())),
    "random.multivariate_normal": (rg.random.multivariate_normal, (S, M @ M.T)),
    # --- joins and places ---
    "concatenate": (lambda a, b: rg.concatenate([a, b]), (A, B)),
    "block": (lambda a, b: rg.block([[a, b]]), (A, B)),
    "stack": (lambda a, b: rg.stack([a, b]), (A, B)),
    "meshgrid": (rg.meshgrid, (S, V)),
    "broadcast_arrays": (rg.broadcast_arrays, (A, S)),
    "lexsort": (lambda a, b: rg.lexsort([a, b]), (S, V)),
    **plain("column_stack", [A, B])
    | {"column_stack": (lambda a, b: rg.column_stack([a, b]), (A, B))},
}


@pytest.mark.parametrize(
    ("name", "i"),
    [(name, i) for name, (_, operands) in CALLS.items() for i in range(len(operands))],
)
def test_any_operand_may_be_the_var(name: str, i: int) -> None:
    call, operands = CALLS[name]
    g = rg.Graph()
    given = [g.input(one) if i == k else one for k, one in enumerate(operands)]
    found = [one for one in tuple_of(call(*given)) if isinstance(one, rg.Var)]
    assert all(one.graph is g for one in found)
    for one in found:
        assert one.value is not None
    with g:
        wanted = [one for one in tuple_of(call(*operands)) if isinstance(one, rg.Var)]
    if not name.startswith(("random.", "dropout")):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one.value, other.value)


PUTS = "set add subtract multiply divide power min max"


@pytest.mark.parametrize("how", PUTS.split())
def test_places_take_numbers_arrays_and_vars(how: str) -> None:
    x = rg.Graph().input([1.0, 2.0, 3.0])
    for values in (2.0, np.float64(2.0), np.array([2.0]), [2.0], x[1:2], [x[1]]):
        assert getattr(x.at[1:2], how)(values).graph is x.graph


def operands_of(function: Any) -> list[str]:
    """Return the operands that a docstring names."""
    text = inspect.getdoc(function) or ""
    found = re.search(r"Parameters\n-+\n(.*?)(\n\n[A-Z]\w+\n---|\Z)", text, re.DOTALL)
    rows = re.findall(r"^(\S.*?) : (.*)$", found.group(1), re.MULTILINE) if found else []
    return [one for names, kind in rows if "array_like" in kind for one in names.split(", ")]


def test_every_function_of_two_operands_is_called() -> None:
    want = {
        f"{group}.{name}" if group in ("linalg", "fft", "random") else name
        for group, found in functions().items()
        for name, one in found.items()
        if len(operands_of(one)) > 1
    }
    assert sorted(want - CALLS.keys()) == []
