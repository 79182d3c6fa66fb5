"""The laws that every op on arrays obeys, checked on one line of a table a call.

A family has a table of ``Case`` and one test for each law::

    CASES = [
        Case("cumsum", lambda x: rg.cumsum(x, axis=1), lambda x: np.cumsum(x, axis=1), [(3, 4)]),
        ...,
    ]


    @pytest.mark.parametrize("law", LAWS, ids=of_law)
    @pytest.mark.parametrize("case", CASES, ids=of_case)
    def test_laws(case: Case, law: Law) -> None:
        law(case)
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import reactgrad as rg

DTYPES = {
    "e": "float16",
    "f": "float32",
    "d": "float64",
    "i": "int32",
    "?": "bool",
    "D": "complex128",
}
# Relative and absolute tolerance by dtype; a case may state others.
TOLERANCE = {"e": 4e-3, "f": 1e-5, "F": 1e-5, "d": 1e-12, "D": 1e-12}


@dataclass(frozen=True)
class Case:
    """One call of an op.

    Attributes
    ----------
    name
        What tests are called.
    call
        Builds the node, or a tuple of nodes, from Vars.
    oracle
        The same on NumPy arrays.
    shapes
        The shapes of the operands.
    draw
        ``draw(rng, shape)`` returns the float64 elements of an operand; standard normal numbers by default.
        One function for all operands, or one for each.
    dtypes
        Characters of the dtypes that the values are checked in.
    order
        To which order gradients are checked; 0 for an op without.
    modes
        The modes of differentiation that are checked.
    unknown
        Whether the first length of each operand may be unknown when the node is built.
    empty
        Shapes of operands without elements, or ``None`` where the op refuses them, as NumPy does.
    tolerance
        By character of the dtype, where another one than ``TOLERANCE`` is right; say why beside it.
    late
        Why the case needs axes when the node is built.
    fixed
        Why a set of operands with other lengths may be refused: what the caller wrote holds one.
    """

    name: str
    call: Callable[..., Any]
    oracle: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    draw: Any = None
    dtypes: str = "dfei"
    order: int = 2
    modes: tuple[str, ...] = ("forward", "reverse")
    unknown: bool = True
    empty: Sequence[tuple[int, ...]] | None = None
    tolerance: dict[str, float] = field(default_factory=dict)
    fixed: str = ""
    late: str = ""

    def operands(self, seed: int = 0, dtype: str = "d", shapes: Any = None) -> list[np.ndarray]:
        """Return operands of a dtype; the same ones for the same seed."""
        rng = np.random.default_rng(seed)
        shapes = self.shapes if shapes is None else shapes
        draws = self.draw if isinstance(self.draw, list | tuple) else [self.draw] * len(shapes)
        found = []
        for shape, draw in zip(shapes, draws, strict=True):
            real = rng.standard_normal(shape) if draw is None else draw(rng, shape)
            if dtype == "i":
                real = np.round(np.asarray(real) * 4.0)
            if dtype in "FD":
                real = real + 1j * rng.standard_normal(shape)
            found.append(np.asarray(real > 0 if dtype == "?" else real).astype(dtype))
        return found


def tuple_of(value: Any) -> tuple[Any, ...]:
    """Return several results as a tuple, a single one as a tuple of one."""
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def agree(found: Any, wanted: Any, case: Case, dtype: str) -> None:
    """Check values, shapes and dtypes of all results."""
    found, wanted = tuple_of(found), tuple_of(wanted)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        other = np.asarray(other)
        assert np.asarray(one).dtype == other.dtype, (one, other)
        assert np.shape(one) == other.shape
        rtol = case.tolerance.get(dtype, TOLERANCE.get(dtype, 1e-12))
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


def quiet(call: Callable[..., Any], *operands: Any) -> Any:
    """Call the oracle without NumPy's warnings, which nodes do not give."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*operands)


def values_of(results: Any) -> tuple[Any, ...]:
    return tuple(one.value for one in tuple_of(results))


def values_and_specs(case: Case) -> None:
    """In every dtype: NumPy's values, and shape and dtype known before anything has run."""
    for dtype in case.dtypes:
        operands = case.operands(1, dtype)
        g = rg.Graph()
        results = tuple_of(case.call(*[g.input(one) for one in operands]))
        before = [(one.shape, one.dtype) for one in results]
        found = tuple(one.value for one in results)
        agree(found, quiet(case.oracle, *operands), case, dtype)
        for (shape, kind), value in zip(before, found, strict=True):
            assert kind == value.dtype
            assert len(shape) == value.ndim
            assert all(n in (None, m) for n, m in zip(shape, value.shape, strict=True))


def follows_changes(case: Case) -> None:
    """After a set a read has the bits of a new graph; the former value and the operand stay as they were."""
    dtype = case.dtypes[0]
    first, second = case.operands(2, dtype), case.operands(3, dtype)
    g = rg.Graph()
    leaves = [g.input(one) for one in first]
    results = case.call(*leaves)
    kept = values_of(results)
    copies = [np.array(one) for one in kept]
    for i in range(len(leaves)):
        leaves[i].set(second[i])
        mixed = [*second[: i + 1], *first[i + 1 :]]
        fresh = rg.Graph()
        wanted = values_of(case.call(*[fresh.input(one) for one in mixed]))
        for one, other in zip(values_of(results), wanted, strict=True):
            np.testing.assert_array_equal(one, other)
    for one, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(one, copy)
    for leaf, one in zip(leaves, second, strict=True):
        np.testing.assert_array_equal(leaf.value, one)
    g.check_invariants()


def any_layout(case: Case) -> None:
    """Operands that do not lie in one piece have the same values."""
    dtype = case.dtypes[0]
    operands = case.operands(4, dtype)
    wanted = quiet(case.oracle, *operands)
    g = rg.Graph()
    apart = []
    for one in operands:
        wide = np.repeat(one, 2, axis=-1) if one.ndim else one
        leaf = g.input(wide)
        apart.append(leaf[..., ::2] if one.ndim else leaf)
    agree(values_of(case.call(*apart)), wanted, case, dtype)
    turned = [g.input(one.T.copy()).T for one in operands]
    agree(values_of(case.call(*turned)), wanted, case, dtype)


def total_of(results: Any) -> Any:
    """Return a real number that depends on every element of the results that are not integers."""
    floats = [one for one in tuple_of(results) if one.dtype.kind in "fc"]
    return rg.real(sum((one * one).sum() for one in floats[1:]) + (floats[0] * floats[0]).sum())


def slopes_of(case: Case, results: Any, leaves: list[Any]) -> tuple[Any, ...]:
    """Return the gradients of ``total_of``, ``None`` where there are none."""
    return rg.grad(total_of(results), leaves, allow_unused=True) if case.order else ()


def fresh(case: Case, operands: list[np.ndarray]) -> tuple[list[Any], list[Any]]:
    """Return the values and the gradients of a new graph."""
    g = rg.Graph()
    leaves = [g.input(one) for one in operands]
    results = tuple_of(case.call(*leaves))
    slopes = slopes_of(case, results, leaves)
    return [one.value for one in results], [one if one is None else one.value for one in slopes]


def agree_with_fresh(
    case: Case, results: Any, slopes: Any, wanted: tuple[list[Any], list[Any]]
) -> None:
    """Check that nodes have the values of a new graph, and gradients near to its ones."""
    agree(values_of(results), tuple(wanted[0]), case, case.dtypes[0])
    for slope, other in zip(slopes, wanted[1], strict=True):
        if slope is not None:
            other = np.zeros(slope.value.shape) if other is None else other
            np.testing.assert_allclose(slope.value, other, rtol=1e-11, atol=1e-11)


def with_lengths(case: Case, lengths: dict[int, int], *, everywhere: bool) -> Any:
    """Return the shapes with other first lengths, or with these exchanged on all axes."""
    return [
        tuple(lengths.get(n, n) if everywhere or not i else n for i, n in enumerate(shape))
        for shape in case.shapes
    ]


def other_shapes(case: Case, *, only_first: bool = False) -> list[list[np.ndarray]]:
    """Return operands with other lengths that a new graph accepts.

    Operands that share a length share the other one, too: first lengths alone, then those on all axes, then
    second ones.
    """
    firsts = sorted({shape[0] for shape in case.shapes if shape} - {1})
    seconds = sorted({shape[1] for shape in case.shapes if len(shape) > 1} - {1})
    ways = [(firsts, False), *[([n], False) for n in firsts]]
    if not only_first:
        ways += [(firsts, True), *[([n], True) for n in {*firsts, *seconds}]]
    found: list[list[np.ndarray]] = []
    tried = [list(case.shapes)]
    for lengths, everywhere in ways:
        for more in (lambda n: n + 1, lambda n: 2 * n, lambda n: n + 3):
            shapes = with_lengths(case, {n: more(n) for n in lengths}, everywhere=everywhere)
            if shapes in tried:
                continue
            tried.append(shapes)
            try:
                operands = case.operands(6, case.dtypes[0], shapes)
                quiet(fresh, case, operands)
            except Exception:  # these lengths do not fit together
                continue
            found.append(operands)
            break
    return found


def unknown_lengths(case: Case) -> None:
    """Built before the first lengths are known: the same values and gradients, for two lengths in turn."""
    if not case.unknown:
        return
    dtype = case.dtypes[0]
    g = rg.Graph()
    leaves = [
        g.input(shape=(None, *shape[1:]) if shape else (), dtype=DTYPES[dtype])
        for shape in case.shapes
    ]
    results = case.call(*leaves)
    slopes = slopes_of(case, results, leaves)
    others = [] if case.fixed else other_shapes(case, only_first=True)
    for operands in (case.operands(5, dtype), *others, case.operands(6, dtype)):
        g.set(dict(zip(leaves, operands, strict=True)))
        agree_with_fresh(case, results, slopes, fresh(case, operands))
        if not any(
            operands is one for one in others
        ):  # oracles may be written for the case's lengths
            agree(values_of(results), quiet(case.oracle, *operands), case, dtype)


def late_axes(case: Case) -> None:
    """Built before the numbers of axes are known: nothing runs, and then the same values and gradients."""
    if not case.dtypes or case.late:
        return
    dtype = case.dtypes[0]
    g = rg.Graph()
    leaves = [g.input() for _ in case.shapes]
    try:
        results = tuple_of(case.call(*leaves))
    except rg.ShapeError as error:
        if "how many results" not in str(error):
            raise
        return
    assert not g.last_run.ran
    slopes = None
    for seed in (5, 6):
        operands = case.operands(seed, dtype)
        g.set(dict(zip(leaves, operands, strict=True)))
        wanted = fresh(case, operands)
        if slopes is None:
            slopes = slopes_of(case, results, leaves)
        agree_with_fresh(case, results, slopes, wanted)


def follows_shapes(case: Case) -> None:
    """Operands of other lengths, set after all was built and read, have what a new graph gives for them."""
    if not any(case.shapes):
        return
    dtype = case.dtypes[0]
    first, others = case.operands(5, dtype), other_shapes(case)
    assert others or case.fixed, "no other lengths fit: say in `fixed` what the caller wrote"
    if case.empty is not None and list(map(len, case.empty)) == list(map(len, case.shapes)):
        others.append(case.operands(6, dtype, case.empty))
    g = rg.Graph()
    leaves = [g.input(one) for one in first]
    results = case.call(*leaves)
    slopes = slopes_of(case, results, leaves)
    wanted = fresh(case, first)
    agree_with_fresh(case, results, slopes, wanted)
    for operands in others:
        try:
            g.set(dict(zip(leaves, operands, strict=True)))
        except rg.ShapeError:
            if not case.fixed:
                raise
        else:
            wanted = fresh(case, operands)
        agree_with_fresh(case, results, slopes, wanted)
    g.set(dict(zip(leaves, first, strict=True)))
    agree_with_fresh(case, results, slopes, fresh(case, first))
    g.check_invariants()


def no_elements(case: Case) -> None:
    """Operands without elements have NumPy's result."""
    if case.empty is None:
        return
    operands = case.operands(0, "d", case.empty)
    g = rg.Graph()
    agree(
        values_of(case.call(*[g.input(one) for one in operands])),
        quiet(case.oracle, *operands),
        case,
        "d",
    )


def gradients(case: Case) -> None:
    """Derivatives agree with central differences, to the case's order, in both modes."""
    if case.order == 0:
        return
    complex_only = case.dtypes[0] in "FD"
    operands = case.operands(7, "D" if complex_only else "d")

    def joined(*leaves: Any) -> Any:
        floats = [one for one in tuple_of(case.call(*leaves)) if one.dtype.kind in "fc"]
        flat = [one.reshape(-1) for one in floats]
        return flat[0] if len(flat) == 1 else rg.concatenate(flat)

    rg.testing.check_grads(
        joined, operands, order=case.order, modes=case.modes, rtol=1e-5, atol=1e-5
    )


def gradients_keep_dtypes(case: Case) -> None:
    """The gradient of float32 and float16 operands has their dtype, and is near that in float64."""
    if case.order == 0:
        return
    for dtype in set(case.dtypes) & set("fe"):
        operands = case.operands(8, dtype)
        found = []
        for char in (dtype, "d"):
            g = rg.Graph()
            leaves = [g.param(one.astype(char)) for one in operands]
            floats = [one for one in tuple_of(case.call(*leaves)) if one.dtype.kind in "fc"]
            total = floats[0].sum()
            total = rg.real(total) if total.dtype.kind == "c" else total
            slopes = rg.grad(total, leaves, allow_unused=True)
            found.append([None if one is None else one.value for one in slopes])
        for one, other in zip(*found, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                assert one.dtype == np.dtype(dtype)
                rtol = 10 * case.tolerance.get(dtype, TOLERANCE[dtype])
                np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


def files(case: Case) -> None:
    """A saved graph computes the same values after it is loaded."""
    operands = case.operands(9, case.dtypes[0])
    g = rg.Graph()
    leaves = [g.input(one, name=f"leaf_{i}") for i, one in enumerate(operands)]
    results = tuple_of(case.call(*leaves))
    for i, one in enumerate(results):
        one.name = f"result_{i}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.safetensors"
        g.save(path)
        again = rg.load(path)
    for i, one in enumerate(operands):
        again[f"leaf_{i}"].set(one)  # so that all is computed anew
    for i, one in enumerate(results):
        np.testing.assert_array_equal(again[f"result_{i}"].value, one.value)


Law = Callable[[Case], None]
LAWS: list[Law] = [
    values_and_specs,
    follows_changes,
    any_layout,
    unknown_lengths,
    late_axes,
    follows_shapes,
    no_elements,
    gradients,
    gradients_keep_dtypes,
    files,
]


def of_law(law: Law) -> str:
    return law.__name__


def of_case(case: Case) -> str:
    return case.name
