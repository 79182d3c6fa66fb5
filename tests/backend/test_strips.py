"""Large arrays by blocks: same bits, same runs, same errors as whole; alone and together (rule E18)."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from sys import maxsize
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.backend import Elementwise, Reduction, Strip, Turn, _registry, find_binder
from reactgrad.backend.blocks import _blockwise, _strips
from reactgrad.values._columns import NEW, UNBOUND
from reactgrad.values._steps import Steps
from reactgrad_scheduler import Scheduler


def whole() -> AbstractContextManager[None]:
    return _strips.configured(threshold=maxsize)


def blockwise(block: int = 7) -> AbstractContextManager[None]:
    return _strips.configured(block=block, threshold=1, effort=0)


@pytest.fixture(autouse=True)
def four_threads() -> Iterator[None]:
    before = rg.get_num_threads()
    rg.set_num_threads(4)
    yield
    rg.set_num_threads(before)


def bits(value: Any) -> tuple[Any, ...]:
    array = np.asarray(value)
    return array.dtype, array.shape, array.tobytes()


def strips_of(graph: rg.Graph) -> list[int]:
    """How many steps each strip has that a plan of this graph holds."""
    plans = [each.plan for each in graph._scheduler.plans._transitions.values()]
    strips = {
        id(step.strip): step.strip
        for plan in plans
        for step in plan.fused or ()
        if isinstance(step, Turn)
    }
    return [len(one.steps) for one in strips.values()]


# --- kernels -----------------------------------------------------------------------------------


DTYPES = ("?", "i4", "i8", "u1", "e", "f", "d")
UNARY = sorted(
    {*_blockwise._CHEAP, *_blockwise._DEAR}
    & {name for name, ufunc in vars(np).items() if isinstance(ufunc, np.ufunc) and ufunc.nin == 1}
    | {"erf", "erfc", "norm_cdf", "sigmoid", "relu"}
)
BINARY = sorted(
    name
    for name in {*_blockwise._CHEAP, *_blockwise._DEAR, "maximum", "minimum"}
    if isinstance(getattr(np, name, None), np.ufunc) and getattr(np, name).nin == 2
)
# A whole array, rows that are apart, columns, backwards, every other element.
LAYOUTS: list[Callable[[Any], Any]] = [
    lambda x: x.copy(),
    lambda x: np.repeat(x, 2, 0)[::2],
    lambda x: x.T.copy().T,
    lambda x: x[:, ::-1].copy()[:, ::-1],
    lambda x: np.repeat(x, 2, 1)[:, ::2],
]


def drawn(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Any:
    kind = np.dtype(dtype).kind
    if kind in "biu":
        return rng.integers(0, 2 if kind == "b" else 5, shape).astype(dtype)
    x = rng.standard_normal(shape) * 3
    x.flat[:3] = 0.0, np.inf, np.nan
    return x.astype(dtype)


def compare(name: str, inputs: Sequence[Any], dtype: Any, block: int) -> None:
    shape = np.broadcast_shapes(*[one.shape for one in inputs])
    results = []
    for mode in (whole(), blockwise(block)):
        with mode, np.errstate(all="ignore"):
            out = np.zeros(shape, dtype)
            step = find_binder(name, "cpu")(inputs, out, ())
            step()
            results.append((type(step) is Elementwise, bits(out)))
    whole_only = any(
        min(one.strides) < 0 or (one.dtype == "e" and not one.flags.c_contiguous) for one in inputs
    )
    assert [apart for apart, _ in results] == [False, not whole_only]
    assert results[0][1] == results[1][1]


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_kernel_of_one_operand_gives_the_same_bits_by_blocks(name: str, dtype: str) -> None:
    example = np.zeros(1, dtype)
    ufunc = getattr(np, name, np.positive if name == "relu" else np.exp)
    try:
        found = ufunc.resolve_dtypes((example.dtype, None))[-1]
    except TypeError:
        pytest.skip("not defined for this dtype")
    rng = np.random.default_rng(0)
    for layout in LAYOUTS:
        x = layout(drawn(rng, dtype, (13, 31)))
        for block in (2, 7, 100):
            compare(name, [x], found, block)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_blocks_of_the_usual_size_give_the_same_bits(name: str, dtype: str) -> None:
    x = drawn(np.random.default_rng(1), dtype, (3, 33_001))
    found = np.dtype("?") if name in ("isnan", "isfinite", "logical_not") else x.dtype
    compare(name, [x], found, _strips.settings.block)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtypes", [("d", "d"), ("f", "f"), ("f", "d"), ("i8", "d"), ("i8", "i8")])
def test_a_kernel_of_two_operands_gives_the_same_bits_by_blocks(
    name: str, dtypes: tuple[str, str]
) -> None:
    ufunc = getattr(np, name)
    try:
        found = ufunc.resolve_dtypes((*map(np.dtype, dtypes), None))[-1]
    except TypeError:
        pytest.skip("not defined for these dtypes")
    rng = np.random.default_rng(0)
    shapes = (
        ((13, 31), (13, 31)),
        ((13, 31), (31,)),
        ((13, 1), (13, 31)),
        ((13, 31), (1,)),
        ((13, 1), (31,)),
    )
    for one, other in shapes:
        x, y = drawn(rng, dtypes[0], one), abs(drawn(rng, dtypes[1], other)).astype(dtypes[1]) + 1
        for block in (2, 7, 100):
            compare(name, [x, y.astype(dtypes[1])], found, block)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (0, 1), (1, 2), ()])
@pytest.mark.parametrize("dtype", ["i4", "?", "f", "d"])
def test_a_reduction_is_near_to_numpy_and_the_same_on_any_number_of_threads(
    name: str, axis: Any, dtype: str
) -> None:
    x = np.random.default_rng(0).integers(0, 100, (5, 7, 11)).astype(dtype)
    expected = np.asarray(getattr(np, name)(x, axis=axis))
    for block in (3, 7, 20, 100):
        seen = set()
        for threads in (1, 2, 4):
            rg.set_num_threads(threads)
            with blockwise(block):
                out = np.zeros(expected.shape, expected.dtype)
                step = find_binder(name, "cpu")([x], out, (axis, False))
                assert type(step) is Reduction
                step()
            np.testing.assert_allclose(out, expected, rtol=1e-5)
            seen.add(bits(out))
        assert len(seen) == 1


@given(
    name=st.sampled_from(["sum", "mean", "max", "min", "sum_to"]),
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=4).map(tuple),
    axes=st.sets(st.integers(0, 3)),
    layout=st.sampled_from(LAYOUTS),
    dtype=st.sampled_from(["?", "u1", "i4", "i8", "f", "d", "g", "F", "D"]),
    block=st.integers(1, 700),
    threads=st.integers(1, 3),
)
def test_a_reduction_alone_gives_the_bits_that_it_gives_in_a_strip(
    name: str,
    shape: tuple[int, ...],
    axes: set[int],
    layout: Callable[[Any], Any],
    dtype: str,
    block: int,
    threads: int,
) -> None:
    rng = np.random.default_rng(0)
    x = drawn(rng, dtype if dtype not in "gFD" else "d", shape).astype(dtype)
    x.flat[:: max(1, x.size // 5)] = 0
    x[tuple(-(n // 2) for n in shape)] *= np.asarray(-0.0 if x.dtype.kind in "fc" else 1, dtype)
    x = layout(x) if x.ndim > 1 else x[:: 1 if block % 2 else -1]
    axis = tuple(sorted(one for one in axes if one < x.ndim))
    reduce = {"max": np.maximum.reduce, "min": np.minimum.reduce, "mean": np.mean}.get(name, np.sum)
    with blockwise(block), np.errstate(all="ignore"):
        expected = np.asarray(reduce(x, axis=axis, keepdims=True))
        seen = []
        for alone in (True, False):
            out = np.zeros(expected.shape, expected.dtype)
            attrs = () if name == "sum_to" else (axis, True)
            step = find_binder(name, "cpu")([x], out, attrs)
            assert type(step) is Reduction or (name == "sum_to" and x.size == out.size)
            rg.set_num_threads(threads if alone else 1)
            beside = Elementwise(np.copyto, [np.zeros(x.shape), np.zeros(x.shape)], 1.0)
            (step if alone or type(step) is not Reduction else Strip((beside, step)).first)()
            seen.append(bits(out))
        assert seen[0] == seen[1]
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["exp", "sigmoid", "sum", "max"])
def test_a_step_that_was_called_holds_no_array_once_it_is_gone(name: str) -> None:
    """Not until the collector comes by: a step and what it keeps from call to call refer one way."""
    x = np.ones((70, 11))
    out = np.zeros(x.shape if name in ("exp", "sigmoid") else 11)
    with blockwise():
        attrs = (0, False) if out.ndim == 1 else ()
        step = find_binder(name, "cpu")([x], out, attrs)
        assert isinstance(step, Elementwise | Reduction)
        gone = [weakref.ref(x), weakref.ref(out)]
        gc.disable()
        try:
            step()
            step()
            del step, x, out
            assert [one() for one in gone] == [None, None]
        finally:
            gc.enable()


@pytest.mark.parametrize(
    ("size", "threads", "count"), [(65536, 2, 2), (65536, 1, 0), (65535, 2, 0)]
)
def test_a_dear_kernel_on_a_large_array_has_a_block_for_each_thread(
    size: int, threads: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def counting(work: Callable[[Any], None], items: Sequence[Any], threads: int) -> None:
        seen.append(len(items))
        for item in items:
            work(item)

    monkeypatch.setattr(_strips, "for_each", counting)
    rg.set_num_threads(threads)
    x, out = np.linspace(0.0, 1.0, size), np.zeros(size)
    with _strips.configured(block=32768, threshold=65536, effort=1048576):
        find_binder("sin", "cpu")([x], out, ())()
        find_binder("negative", "cpu")([x], x.copy(), ())()  # too little work for two
    assert seen == [count] * bool(count)
    np.testing.assert_array_equal(out, np.sin(x))


@pytest.mark.parametrize(
    ("loops", "cost"), [("X86_V4", 3), ("AVX512_SKX", 3), ("X86_V3", 8), (None, 8)]
)
def test_what_an_element_costs_depends_on_the_loops_that_the_processor_gets(
    loops: str | None, cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    introspect = pytest.importorskip("numpy.lib.introspect", reason="NumPy 2.0 has none")
    real = introspect.opt_func_info(func_name="^tanh$", signature="float64")
    assert not real or list(real) == ["tanh"]
    known = {"tanh": {"dd": {"current": loops}}} if loops else {}
    monkeypatch.setattr(introspect, "opt_func_info", lambda **asked: known)
    _blockwise._vectorized.cache_clear()
    try:
        x = np.linspace(0.0, 1.0, 65536)
        with _strips.configured(block=32768, threshold=65536):
            steps = [find_binder(one, "cpu")([x], x.copy(), ()) for one in ("exp", "negative")]
        assert [step.cost for step in steps] == [cost, 1]
    finally:
        _blockwise._vectorized.cache_clear()


def test_half_floats_are_summed_as_before() -> None:
    x = np.full(1000, 0.1, "e")
    with blockwise():
        g = rg.Graph()
        assert g.input(x).sum().item() == np.add.reduce(x)


def test_complex_kernels_whose_bits_depend_on_the_place_are_left_whole() -> None:
    with blockwise():
        x = np.ones(100, "D")
        assert type(find_binder("multiply", "cpu")([x, x], x.copy(), ())) is not Elementwise
        assert type(find_binder("absolute", "cpu")([x], np.zeros(100), ())) is not Elementwise


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0)])
def test_arrays_without_elements(shape: tuple[int, ...]) -> None:
    with blockwise():
        g = rg.Graph()
        x = g.input(np.zeros(shape))
        y = rg.exp(x) + 1.0
        for _ in range(4):
            x.set(np.zeros(shape))
            assert y.value.shape == shape
            assert y.sum().item() == 0.0


# --- strips in graphs --------------------------------------------------------------------------

UNARY_STEPS = (
    rg.exp,
    rg.tanh,
    rg.norm_cdf,
    rg.sigmoid,
    rg.relu,
    lambda x: x.astype("f4"),
    rg.isnan,
)
BINARY_STEPS = (rg.add, rg.multiply, rg.maximum, rg.logaddexp, lambda x, y: rg.where(x > y, x, y))
LEAVES = ((6, 9), (9,), (6, 1), (), (6, 9))


def expression(g: rg.Graph, numbers: Sequence[int]) -> tuple[list[rg.Var], list[rg.Var]]:
    """Nodes made of the same numbers in the same way: chains with views, broadcasting, reductions."""
    leaves = [g.input(np.zeros(shape), name=f"x{i}") for i, shape in enumerate(LEAVES)]
    nodes = list(leaves)
    for number in numbers:
        kind, rest = number % 12, number // 12
        x = nodes[rest % len(nodes)]
        y = nodes[rest // len(nodes) % len(nodes)]
        if kind < 5:
            made = BINARY_STEPS[kind](x, y)
        elif kind < 9:
            made = UNARY_STEPS[rest % len(UNARY_STEPS)](x)
        elif kind == 9:
            made = x.reshape((9, 6)).reshape((6, 9))[::-1] if x.shape == (6, 9) else x * 2
        elif kind == 10:
            axis = (None, 0, 1)[rest % 3] if x.ndim == 2 else None
            made = x.sum(axis=axis, keepdims=axis is not None) if x.dtype.kind == "f" else x
        else:
            once = rg.lift(lambda value: np.asarray(value) * 1)
            made = once(x.detach()) if rest % 3 == 0 else x - 0.5  # no gradient passes it
        nodes.append(made)
    return leaves, nodes


@given(
    numbers=st.lists(st.integers(0, 10_000), min_size=1, max_size=25),
    changes=st.lists(st.sets(st.integers(0, 4), min_size=1), min_size=1, max_size=6),
    gradient=st.booleans(),
)
def test_random_graphs_run_the_same_nodes_by_blocks_and_whole(
    numbers: list[int], changes: list[set[int]], gradient: bool
) -> None:
    """Each change comes five times, so that plans are found, bound and replayed."""
    rng = np.random.default_rng(0)
    sets = [
        {i: rng.standard_normal(LEAVES[i]) for i in change} for change in changes for _ in range(5)
    ]
    seen: list[list[Any]] = []
    for mode in (whole(), blockwise(), blockwise()):
        with mode, np.errstate(all="ignore"):
            rg.set_num_threads(1 + len(seen))
            g = rg.Graph()
            leaves, nodes = expression(g, numbers)
            targets = [nodes[-1], nodes[len(nodes) // 2], nodes[0]]
            if gradient and nodes[-1].shape is not None and nodes[-1].dtype.kind == "f":
                found = rg.grad(nodes[-1].sum(), leaves, allow_unused=True)
                targets += [one for one in found if one is not None]
            story: list[Any] = []
            for given in sets:
                g.set({leaves[i]: array for i, array in given.items()})
                run = g.forward(*targets)
                ran = [v.name for v in run.ran]
                story.append((ran, [(v.name, v.value_version) for v in nodes]))
            exact = not gradient and all(number % 12 != 10 for number in numbers)
            seen.append([story, [bits(v.value) for v in targets], exact])
            g.check_invariants()
    assert seen[0][0] == seen[1][0]  # the same nodes ran, to the same versions
    assert seen[1][:2] == seen[2][:2]  # whatever the number of threads
    if seen[0][2]:  # no sums in it: the same bits as whole
        assert seen[0][1] == seen[1][1]


@given(
    numbers=st.lists(st.integers(0, 10_000), min_size=1, max_size=25),
    changes=st.lists(st.sets(st.integers(0, 4), min_size=1), min_size=1, max_size=4),
    adopt=st.booleans(),
    cutoff=st.none() | st.integers(0, 24),
)
def test_incremental_equals_fresh_bit_for_bit(
    numbers: list[int], changes: list[set[int]], adopt: bool, cutoff: int | None
) -> None:
    """Also where arrays are adopted, so that what reads them is bound anew in a plan that stays."""
    rng = np.random.default_rng(1)
    with blockwise(), np.errstate(all="ignore"):
        g, fresh = rg.Graph(), rg.Graph()
        leaves, nodes = expression(g, numbers)
        if cutoff is not None and cutoff < len(numbers):
            nodes[len(LEAVES) + cutoff].cutoff = "equal"
        last = {i: np.zeros(shape) for i, shape in enumerate(LEAVES)}
        for change in [one for one in changes for _ in range(4)]:
            given = {i: rng.standard_normal(LEAVES[i]) for i in change}
            last.update(given)
            for i, array in given.items():
                leaves[i].set(array, copy=not adopt)
            g.forward(nodes[-1])
            g.check_invariants()
        others, twins = expression(fresh, numbers)
        fresh.set({others[i]: array for i, array in last.items()})
        for node, twin in zip(nodes, twins, strict=True):
            assert bits(node.value) == bits(twin.value)


def chain(x: rg.Var, y: rg.Var) -> rg.Var:
    z = x * 0.5 + y
    for _ in range(3):
        z = rg.tanh(z) * x + z * 0.25
    return rg.exp(z * -0.5) + y * z - x


def read_again(x: rg.Var, *targets: rg.Var) -> None:
    """Until the plan of this read is replayed."""
    for _ in range(5):
        x.set(x.numpy() * 0.5)
        x.graph.forward(*targets)


@pytest.mark.trusting
@pytest.mark.parametrize("missing", [0, 1])
def test_what_is_not_worth_a_second_thread_is_computed_whole_each_step_in_its_turn(
    missing: int,
) -> None:
    work = 2 * 72  # of two cheap kernels
    with _strips.configured(block=9, threshold=1, effort=work + missing):
        g = rg.Graph()
        x = g.input(np.ones((8, 9)))
        y = x * 2.0 + 1.0
        read_again(x, y)
        assert strips_of(g) == [2]
        (plan,) = [t.plan for t in g._scheduler.plans._transitions.values() if t.plan.fused]
        strip = plan.fused[0].strip  # type: ignore[index, union-attr]
        called: list[tuple[str, int]] = []
        for step in strip.steps:
            kernel = step.kernel

            def counting(*arrays: Any, kernel: Any = kernel) -> None:
                called.append((kernel.__name__, arrays[-1].size))
                kernel(*arrays)

            step.kernel = counting
        strip._pass = None
        new = np.arange(72.0).reshape(8, 9)
        x.set(new, copy=False)
        np.testing.assert_array_equal(y.value, new * 2.0 + 1.0)
        whole = [("multiply", 72), ("add", 72)]
        blocks = [("multiply", 9), ("add", 9)] * 8
        assert called == whole if missing else sorted(called) == sorted(blocks)


@pytest.mark.trusting
def test_a_chain_and_its_sums_are_one_strip() -> None:
    with blockwise():
        g = rg.Graph()
        x, y = g.input(np.ones((8, 9))), g.input(np.ones(9))
        z = chain(x, y)
        targets = [z, z.sum(), z.mean(axis=0), z.max(axis=1)]
        read_again(x, *targets)
        assert strips_of(g) == [len(g.last_run.ran)]


@pytest.mark.trusting
@pytest.mark.parametrize("cutoff", [None, "equal"])
def test_an_adopted_array_leaves_all_bound_that_does_not_read_it(
    cutoff: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with blockwise():
        g = rg.Graph()
        x, y = g.input(np.ones((8, 9))), g.input(np.ones((8, 9)))
        chains = [chain(x, y) for _ in range(3)]
        last = rg.concatenate(chains, axis=1) + 1.0
        chains[1].cutoff = cutoff
        beside = y * 3.0
        sums = [one.sum() for one in chains]
        read_again(x, last, beside, *sums)
        read_again(y, last, beside, *sums)
        bound: list[str] = []
        real = Steps._bind

        def counting(store: Any, slots: Any) -> None:
            bound.extend([store.name(s) for s in slots if store._steps[s] in (NEW, UNBOUND)])
            real(store, slots)

        monkeypatch.setattr(Steps, "_bind", counting)
        before = strips_of(g)
        plans = [(t.plan, t.plan.fused) for t in g._scheduler.plans._transitions.values()]
        given = np.full((8, 9), 0.5)
        x.set(given, copy=False)
        g.forward(last, beside, *sums)
        assert sorted(bound) == sorted([v.name for v in x.children])
        assert len(bound) == 15
        assert [plan.fused for plan, _ in plans] == [fused for _, fused in plans]
        assert strips_of(g) == before
        assert bool(before) == (cutoff is None)  # with one nothing is computed ahead
        np.testing.assert_allclose(chains[0].value, chain_of_arrays(given, y.value), rtol=1e-14)
        np.testing.assert_array_equal(last.value[:, :9], chains[0].value + 1.0)


def chain_of_arrays(x: Any, y: Any) -> Any:
    z = x * 0.5 + y
    for _ in range(3):
        z = np.tanh(z) * x + z * 0.25
    return np.exp(z * -0.5) + y * z - x


@pytest.mark.trusting
def test_an_adopted_array_of_another_shape_is_computed_in_other_strips() -> None:
    with blockwise():
        g = rg.Graph()
        x = g.input(np.ones((8, 9)))
        y = g.input(np.ones((4, 9)))
        a, b = rg.exp(x) * 2.0, rg.exp(y) * 3.0
        total = a.sum() + b.sum()
        for _ in range(5):
            x.set(np.ones((8, 9)))
            y.set(np.ones((4, 9)))
            total.value
        assert strips_of(g) == [3, 3]
        for shape in ((4, 9), (8, 9), (2, 2)):
            x.set(np.zeros(shape), copy=False)
            for _ in range(3):
                y.set(np.zeros((4, 9)))
                expected = 2.0 * shape[0] * shape[1] + 3.0 * 36
                assert total.value == pytest.approx(expected)


@pytest.mark.trusting
def test_what_reads_a_sum_is_another_strip_of_the_same_shape() -> None:
    with blockwise():
        g = rg.Graph()
        x = g.input(np.arange(72.0).reshape(8, 9))
        y = rg.exp(x * 0.01)
        z = y / y.sum(axis=1, keepdims=True)
        read_again(x, z, z * 2.0)
        assert strips_of(g) == [3, 2]
        expected = np.exp(x.numpy() * 0.01)
        np.testing.assert_allclose(z.value, expected / expected.sum(1, keepdims=True), rtol=1e-14)


@pytest.mark.trusting
def test_a_strip_goes_past_steps_that_it_does_not_need() -> None:
    with blockwise():
        g = rg.Graph()
        x = g.input(np.ones((8, 9)))
        y = rg.exp(x)
        apart = rg.lift(lambda value: float(np.sum(value)), shape=(), dtype=float)(y)
        z = y * 2.0 + 1.0
        w = z + apart
        read_again(x, z, w)
        assert strips_of(g) == [3]  # but w, which needs the function
        np.testing.assert_array_equal(w.value, 2 * np.exp(x.numpy()) + 1 + np.exp(x.numpy()).sum())


@pytest.mark.trusting
def test_a_view_of_what_is_computed_in_a_strip_is_read_after_it() -> None:
    with blockwise():
        g = rg.Graph()
        x = g.input(np.arange(81.0).reshape(9, 9))
        y = x * 2.0 + 1.0
        z = y + y.T
        read_again(x, z)
        assert strips_of(g) == [2]
        expected = x.numpy() * 2 + 1
        np.testing.assert_array_equal(z.value, expected + expected.T)


@pytest.mark.trusting
def test_values_that_callers_hold_are_left_to_them() -> None:
    with blockwise(4096):
        g = rg.Graph()
        x, y = g.input(np.ones((200, 200))), g.input(np.ones(200))
        z = chain(x, y)
        held = []
        for i in range(5):
            x.set(np.full((200, 200), float(i)))
            held.append((z.value, z.numpy()))
        assert strips_of(g)
        for value, copy in held:
            np.testing.assert_array_equal(value, copy)


@pytest.mark.trusting
@pytest.mark.parametrize("bad", [0, 3, 60])
def test_a_kernel_that_raises_in_a_strip_raises_where_it_stands(bad: int) -> None:
    """With the same errors, versions and values as computed whole."""
    seen: list[Any] = []
    for mode in (whole(), blockwise()):
        with mode:
            g = rg.Graph()
            x, n = g.input(np.full(63, 3)), g.input(np.ones(63, int))
            before = x + 1
            failing = before**n  # refuses negative integers
            after = failing + before
            beside = before * 2
            for i in range(5):
                n.set(np.full(63, i))
                x.set(np.full(63, i))
                g.forward(after, beside)
            assert strips_of(g) == ([4] if seen else [])
            exponents = np.ones(63, int)
            exponents[bad] = -1
            n.set(exponents)
            x.set(np.full(63, 5))
            with pytest.raises(ValueError, match="negative integer powers") as caught:
                g.forward(after, beside)
            run = g.last_run
            nodes = [before, failing, after, beside]
            story = [
                [[v.name for v in some] for some in (run.ran, run.failed)],
                [(v.value_version, v.state) for v in nodes],
                caught.value.__notes__[0].splitlines()[0],
                bits(beside.value),
            ]
            n.set(np.ones(63, int))
            story += [bits(after.value), [v.name for v in g.last_run.ran]]
            g.check_invariants()
            seen.append(story)
    assert seen[0] == seen[1]
    assert len(seen[0][0][0]) == 2
    assert len(seen[0][0][1]) == 1


@pytest.mark.trusting
@pytest.mark.parametrize("cutoff", ["equal", rg.tolerance(atol=1e9)])
def test_what_a_strip_left_half_done_is_not_the_old_value_of_a_later_cutoff(cutoff: Any) -> None:
    with blockwise():
        g = rg.Graph()
        x, n = g.input(np.full(63, 3)), g.input(np.ones(63, int))
        failing = x**n
        beside = x * 2
        after = failing + beside
        for i in range(5):
            g.set({x: np.full(63, i), n: np.full(63, i)})
            after.value
        assert strips_of(g) == [3]
        g.set({x: np.full(63, 7), n: np.where(np.arange(63) == 60, -1, 1)})
        with pytest.raises(ValueError, match="negative integer powers"):
            after.value
        version = after.value_version
        after.cutoff = cutoff
        g.set({x: np.full(63, 8), n: np.ones(63, int)})
        np.testing.assert_array_equal(after.value, np.full(63, 24))
        assert after.value_version == version + 1
        g.check_invariants()


def test_cancelled_between_blocks_the_first_step_ends_and_the_others_have_not_run() -> None:
    x = np.arange(50.0)
    a, b = np.zeros(50), np.zeros(50)
    asked: list[int] = []

    def stopped() -> bool:
        asked.append(1)
        return len(asked) > 3

    rg.set_num_threads(1)
    with blockwise():
        first = find_binder("exp", "cpu")([x], a, ())
        second = find_binder("add", "cpu")([a, x], b, ())
        assert isinstance(first, Elementwise)
        assert isinstance(second, Elementwise)
        strip = Strip((first, second), stopped)
        strip.first()
        np.testing.assert_array_equal(a, np.exp(x))
        assert 0 < np.count_nonzero(b) < 49
        strip.next(1)  # if it is called nevertheless, it does its work
        np.testing.assert_array_equal(b, np.exp(x) + x)


@pytest.mark.trusting
def test_a_run_cancelled_inside_a_strip_is_taken_up_where_it_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with blockwise():
        g = rg.Graph()
        x = g.input(np.ones((8, 9)))
        y = rg.exp(x)
        z = y * 2.0
        w = z + 1.0
        read_again(x, w)
        assert strips_of(g) == [3]
        scheduler = g._scheduler
        assert isinstance(scheduler, Scheduler)

        def cancelling(work: Callable[[Any], None], items: Sequence[Any], threads: int) -> None:
            for at, item in enumerate(items):
                if at == 3:
                    scheduler.cancel()
                work(item)

        monkeypatch.setattr(_strips, "for_each", cancelling)
        x.set(np.zeros((8, 9)))
        with pytest.raises(rg.Cancelled):
            w.value
        assert [v.name for v in g.last_run.ran] == [y.name]
        monkeypatch.undo()
        assert w.value.tolist() == np.full((8, 9), 3.0).tolist()
        assert [v.name for v in g.last_run.ran] == [z.name, w.name]


@pytest.mark.trusting
def test_who_watches_the_clock_sees_each_node_by_itself() -> None:
    with blockwise():
        g = rg.Graph()
        x = g.input(np.ones((8, 9)))
        z = chain(x, x)
        read_again(x, z)
        x.set(np.zeros((8, 9)))
        with g.record() as log:
            g.forward(z)
        assert len(log.runs[0].ran) == len(strips_of(g)) * strips_of(g)[0]


# --- writing over an operand ---------------------------------------------------------------------

ATTRS: dict[str, Callable[[np.dtype[Any]], tuple[Any, ...]]] = {
    "clip": lambda dtype: ("lh",),
    "astype": lambda dtype: (dtype,),
    "accumulate": lambda dtype: ((2, 30), (None, None)),
}
OPERANDS = {
    **dict.fromkeys(("relu", "sigmoid", "astype"), 1),
    **dict.fromkeys(("clip", "where", "tanh_backward", "sigmoid_backward"), 3),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "op",
    [
        pytest.param(op, marks=pytest.mark.fused) if op.endswith("_grad") else op
        for op in sorted({op for op, _ in _registry._overwriting})
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_result_that_is_written_over_an_operand_is_the_same(op: str, dtype: str) -> None:
    ufunc = getattr(np, op, None)
    count = OPERANDS.get(op) or (ufunc.nin if isinstance(ufunc, np.ufunc) else 2)
    attrs = ATTRS.get(op, lambda dtype: ())(np.dtype(dtype))
    draw = np.random.default_rng(0)
    inputs = [(draw.normal(size=(2, 30)) * 3).astype(dtype) for _ in range(count)]
    if dtype[0] in "iu":  # no negative powers of integers
        inputs = [abs(one) for one in inputs]
    tried = 0
    for configured in (whole, blockwise):
        for i in range(count):
            if not _registry.may_overwrite(op, "cpu", i, attrs):
                continue
            with configured():
                there, over = np.empty((2, 30), dtype), inputs[i].copy()
                given = [over if j == i else one for j, one in enumerate(inputs)]
                try:
                    find_binder(op, "cpu")(inputs, there, attrs)()
                except TypeError:  # there is no such function of this dtype with such results
                    continue
                find_binder(op, "cpu")(given, over, attrs)()
                tried += 1
                assert over.tobytes() == there.tobytes()
    assert tried or dtype not in "fd"
