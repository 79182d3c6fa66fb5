"""einsum in all of NumPy's forms: values, dtypes, gradients, order of products, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, of_case, of_law

FORMS: dict[str, list[tuple[int, ...]]] = {
    "ij->": [(3, 4)],
    "ij->ji": [(3, 4)],
    "ji": [(3, 4)],
    "ij": [(3, 4)],
    "ii": [(3, 3)],
    "ii->i": [(3, 3)],
    "iij->j": [(3, 3, 4)],
    "iii->": [(3, 3, 3)],
    "i...->...": [(3, 4, 2)],
    "...": [(3, 4)],
    "...ii": [(2, 3, 3)],
    "...ij->...ji": [(2, 3, 4)],
    "i,i": [(3,), (3,)],
    "i,i->i": [(3,), (3,)],
    "i,j->ij": [(3,), (4,)],
    "i,j->ji": [(3,), (4,)],
    "ij,jk": [(3, 4), (4, 2)],
    "ij,jk->ki": [(3, 4), (4, 2)],
    "ij,kj->ik": [(3, 4), (2, 4)],
    "ji,jk->ik": [(4, 3), (4, 2)],
    "ij,j": [(3, 4), (4,)],
    "i,ij->j": [(3,), (3, 4)],
    "ij,ij->": [(3, 4), (3, 4)],
    "ij,ij->i": [(3, 4), (3, 4)],
    "ij,ij->j": [(3, 4), (3, 4)],
    "ij,ji->ij": [(3, 3), (3, 3)],
    "ij,k->k": [(3, 4), (2,)],
    "ij,kl->": [(3, 4), (2, 2)],
    ",ij->ji": [(), (3, 4)],
    ",": [(), ()],
    "bij,bjk->bik": [(2, 3, 4), (2, 4, 2)],
    "bij,bjk->bki": [(2, 3, 4), (2, 4, 2)],
    "bij,jk->bik": [(2, 3, 4), (4, 2)],
    "bqhd,bkhd->bhqk": [(2, 3, 2, 4), (2, 5, 2, 4)],
    "bhqk,bkhd->bqhd": [(2, 2, 3, 5), (2, 5, 2, 4)],
    "abc,dbe->aced": [(2, 3, 4), (5, 3, 2)],
    "abcd,cdef->abef": [(2, 3, 4, 2), (4, 2, 3, 2)],
    "iij,jkk->ki": [(3, 3, 2), (2, 4, 4)],
    "...ij,...jk->...ik": [(5, 2, 3), (3, 4)],
    "...i,...i->...": [(2, 3, 4), (3, 4)],
    "i...,i...": [(3, 2), (3,)],
    "...,...": [(2, 3, 4), (4,)],
    "i...j,j...->...i": [(2, 3, 4), (4, 3)],
    "ij,jk,kl->il": [(2, 3), (3, 4), (4, 5)],
    "i,i,i->i": [(3,), (3,), (3,)],
    "ab,bc,ca": [(2, 3), (3, 4), (4, 2)],
    "ab,cd,ef->fbd": [(2, 3), (3, 4), (4, 2)],
    "bi,ijk,bj->bk": [(2, 3), (3, 4, 5), (2, 4)],
    "...i,...j,...k->...ijk": [(2, 3), (2, 4), (2, 2)],
    "ii,ij,jj,j->i": [(3, 3), (3, 4), (4, 4), (4,)],
}

# Axes of length 1 beside longer ones with the same letter.
BROADCAST: dict[str, list[tuple[int, ...]]] = {
    "ij,ij->i": [(3, 1), (3, 4)],
    "ij,ij->ij": [(3, 1), (1, 4)],
    "ij,ij->ji": [(3, 4), (1, 4)],
    "ij,ij->": [(3, 1), (1, 4)],
    "ij,jk->ik": [(3, 1), (4, 5)],
    "ij,jk->ki": [(3, 4), (1, 5)],
    "bij,bjk->bik": [(1, 3, 4), (2, 4, 2)],
    "...ij,...jk->...ik": [(5, 1, 2, 3), (4, 3, 4)],
    "i,ij,j": [(1,), (3, 4), (1,)],
}


def case(subscripts: str, shapes: list[tuple[int, ...]], **more: Any) -> Case:
    return Case(
        f"{subscripts} {shapes}",
        lambda *xs: rg.einsum(subscripts, *xs),
        lambda *xs: np.einsum(subscripts, *xs),
        shapes,
        **{"dtypes": "dDfei?", **more},
    )


CASES = [
    *[case(*one) for one in FORMS.items()],
    *[case(*one) for one in BROADCAST.items()],
    case("bi,bi->b", [(3, 4), (3, 4)], empty=[(0, 4), (0, 4)]),
    case("bi,ij->bj", [(3, 4), (4, 2)], empty=[(3, 0), (0, 2)]),
    case("bi,bj->ij", [(3, 4), (3, 2)], empty=[(0, 4), (0, 2)]),
    case("bi,bj,bk->bijk", [(3, 4), (3, 2), (3, 2)]),
    case("bij->b", [(3, 4, 2)], empty=[(3, 0, 2)]),
    case("b...,b...->...b", [(3, 4, 2), (3, 4, 1)]),
    Case(
        "lists",
        lambda x, y: rg.einsum(x, [0, ..., 2], y, [2, 1], [1, ..., 0]),
        lambda x, y: np.einsum(x, [0, ..., 2], y, [2, 1], [1, ..., 0]),
        [(2, 3, 4), (4, 5)],
    ),
    Case(
        "lists without a result",
        lambda x, y: rg.einsum(x, [3, 30], y, [30, 1]),
        lambda x, y: np.einsum(x, [3, 30], y, [30, 1]),
        [(2, 3), (3, 4)],
    ),
    *[
        Case(
            f"optimize={optimize}",
            lambda *xs, o=optimize: rg.einsum("ab,bc,cd,de->ea", *xs, optimize=o),
            lambda *xs, o=optimize: np.einsum("ab,bc,cd,de->ea", *xs, optimize=o),
            [(2, 3), (3, 4), (4, 5), (5, 2)],
        )
        for optimize in (
            *(True, False, "greedy", "optimal", ("greedy", 100)),
            ["einsum_path", (1, 2), (0, 1), (0, 1)],
            ["einsum_path", (0, 1, 3), (0, 1)],
        )
    ],
]


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)


@pytest.mark.slow
@given(st.data())
def test_random_products_are_numpys(data: Any) -> None:
    letters = data.draw(st.sampled_from(["ab", "abc", "abcd"]))
    count = data.draw(st.integers(1, 4))
    terms = [data.draw(st.text(letters, max_size=4)) for _ in range(count)]
    present = sorted(set("".join(terms)))
    result = "".join(data.draw(st.permutations(present)))[: data.draw(st.integers(0, 4))]
    lengths = {one: data.draw(st.integers(1, 3)) for one in letters}
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    arrays = []
    for term in terms:
        a = rng.integers(-3, 4, [lengths[one] for one in term]).astype(float)
        if data.draw(st.booleans()):
            a = a.copy("F")
        arrays.append(a)
    text = f"{','.join(terms)}->{result}"
    g = rg.Graph()
    node = rg.einsum(text, *map(g.input, arrays))
    wanted = np.einsum(text, *arrays)
    assert node.shape == wanted.shape
    np.testing.assert_array_equal(node.value, wanted)  # sums of small integers are exact


# --- what is built, and what runs ---------------------------------------------------------------------


def test_matrix_products_are_matmul_and_products_without_a_sum_multiply() -> None:
    g = rg.Graph()
    a, b, v = g.input(np.ones((2, 3))), g.input(np.ones((3, 4))), g.input(np.ones(3))
    for node, name in (
        (rg.einsum("xy,yz->xz", a, b), "matmul"),
        (rg.einsum("yz,xy->xz", b, a), "matmul"),
        (rg.einsum("xy,y", a, v), "matmul"),
        (rg.einsum("y,y", v, v), "matmul"),
        (rg.einsum("xy,y->xy", a, v), "multiply"),
        (rg.einsum("xy,yz->zx", a, b), "einsum"),
    ):
        assert node.name.startswith(name)


def test_a_change_of_one_operand_runs_only_the_products_with_it() -> None:
    g = rg.Graph()
    a, b, c, d = (g.input(np.ones((n, n + 1))) for n in (2, 3, 4, 5))
    y = rg.einsum("ab,bc,cd,de->ae", a, b, c, d, optimize=["einsum_path", (0, 1), (0, 2), (0, 1)])
    assert len(g.forward(y).ran) == 3
    d.set(np.full((5, 6), 2.0))
    assert len(g.forward(y).ran) == 1
    b.touch()
    assert len(g.forward(y).ran) == 3


def test_shapes_may_change_between_length_1_and_others() -> None:
    g = rg.Graph()
    x, w = g.input(np.ones((1, 4))), g.input(np.arange(8.0).reshape(2, 4))
    y = rg.einsum("ij,ij->j", x, w)
    dx, dw = rg.grad((y * y).sum(), [x, w])
    for shape in ((1, 4), (2, 4), (2, 1), (1, 1)):
        a = np.random.default_rng(0).normal(size=shape)
        x.set(a)
        full = np.broadcast_to(a, (2, 4))
        np.testing.assert_allclose(y.value, (full * w.value).sum(0))
        wide = 2.0 * y.value * w.value
        summed = wide.sum(tuple(i for i in range(2) if shape[i] == 1), keepdims=True)
        np.testing.assert_allclose(dx.value, summed)
        np.testing.assert_allclose(dw.value, 2.0 * y.value * full)


def test_equal_calls_are_one_node_under_reuse() -> None:
    g = rg.Graph()
    a, b = g.input(np.ones((2, 3))), g.input(np.ones((4, 3)))
    with g.reuse():
        first = rg.einsum("ij,kj->ki", a, b)
        assert rg.einsum("xy,zy->zx", a, b) is first
        assert rg.tensordot(b, a, ((1,), (1,))) is not first


# --- dtypes, and what is refused ----------------------------------------------------------------------


def test_dtype_and_casting() -> None:
    g = rg.Graph()
    a, b = np.arange(6).reshape(2, 3), np.arange(3.0) / 4.0
    x, y = g.input(a), g.input(b)
    for dtype in ("float64", "complex128"):
        node = rg.einsum("ij,j", x, y, dtype=dtype)
        np.testing.assert_array_equal(node.value, np.einsum("ij,j", a, b, dtype=dtype))
        assert node.dtype == dtype
    with pytest.raises(rg.DTypeError, match="casting='unsafe'"):
        rg.einsum("ij,j", x, y, dtype="float32")
    low = rg.einsum("ij,j", x, y, dtype="float32", casting="unsafe")
    assert low.dtype == np.float32
    assert rg.einsum("ij->j", g.input(np.ones((300, 2), np.uint8))).value.tolist() == [44, 44]


@pytest.mark.parametrize("subscripts", ["ij,ij->j", "ij,ij->i", "ij,ij->"])
def test_long_sums_of_float32_keep_their_digits(subscripts: str) -> None:
    """NumPy's einsum adds up column by column, and loses a digit of float32 in every tenfold of rows."""
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 100_000, 3), np.float32)
    if subscripts == "ij,ij->i":
        a, b = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    g = rg.Graph()
    node = rg.einsum(subscripts, g.input(a), g.input(b))
    exact = np.einsum(subscripts, a.astype(float), b.astype(float))
    np.testing.assert_allclose(node.value, exact, rtol=2e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: rg.einsum("ij"), "has no operands|for 1 operands"),
        (lambda x: rg.einsum("ij,jk", x), "for 2 operands, and got 1"),
        (lambda x: rg.einsum("ijk", x), "operand 0 has 2 axes.*name 3"),
        (lambda x: rg.einsum("...ijk", x), "operand 0 has 2 axes.*name 3"),
        (lambda x: rg.einsum("i", x), "operand 0 has 2 axes"),
        (lambda x: rg.einsum("i1", x), "'1' is no label"),
        (lambda x: rg.einsum("ij->k", x), "label 'k' of the result"),
        (lambda x: rg.einsum("ij->ii", x), "label 'i' of the result"),
        (lambda x: rg.einsum("i...->i", x), "write ... in the result"),
        (lambda x: rg.einsum("ii", x), "lengths 2 and 3"),
        (lambda x: rg.einsum("ij,ij", x, x.T), "axis .* has length"),
        (lambda x: rg.einsum("ij,jk,kl", x, x, x), "label 'j' has length 3 in one operand, and 2"),
        (lambda x: rg.einsum("ij,ik,il", x, x, x, optimize="fast"), "optimize='fast'"),
        (
            lambda x: rg.einsum("ij,ik,il", x, x, x, optimize=["einsum_path", (0, 1)]),
            "leaves 2 operands of 3",
        ),
        (
            lambda x: rg.einsum("ij,ik,il", x, x, x, optimize=["einsum_path", (0, 3), (0, 1)]),
            "names operands that are not there",
        ),
    ],
)
def test_refusals_say_why(call: Any, message: str) -> None:
    with pytest.raises(rg.ShapeError, match=message):
        call(rg.Graph().input(np.ones((2, 3))))


def test_refusals_of_arguments() -> None:
    x = rg.Graph().input(np.ones((2, 3)))
    with pytest.raises(rg.DTypeError, match="write the subscripts"):
        rg.einsum()
    with pytest.raises(rg.DTypeError, match="list of integers from 0 to 51"):
        rg.einsum(x, [0, 52])
    with pytest.raises(rg.DTypeError, match="followed by the list of its axes"):
        rg.einsum(x)


def test_a_change_of_shape_that_does_not_fit_changes_nothing() -> None:
    g = rg.Graph()
    x, w = g.input(np.ones((2, 3))), g.input(np.ones((4, 3)))
    y = rg.einsum("ij,kj->ki", x, w)
    before = y.value
    with pytest.raises(rg.ShapeError, match="has length"):
        x.set(np.ones((2, 5)))
    assert y.value is before
    square = g.input(np.ones((3, 3)))
    z = rg.einsum("ii->i", square)
    with pytest.raises(rg.ShapeError, match="lengths 3 and 4"):
        square.set(np.ones((3, 4)))
    assert z.value.tolist() == [1.0, 1.0, 1.0]
