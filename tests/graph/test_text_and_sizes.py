"""``str`` of arrays of three and more axes: matrices under their indices, in the order of memory; sizes."""

from __future__ import annotations

import numpy as np
import pytest

import reactgrad as rg

SLICES = """\
(0,0,.,.) = 
     0       1       2
     3       4       5
(0,1,.,.) = 
     6       7       8
     9      10      11
(0,2,.,.) = 
    12      13      14
    15      16      17
(1,0,.,.) = 
    18      19      20
    21      22      23
(1,1,.,.) = 
    24      25      26
    27      28      29
(1,2,.,.) = 
    30      31      32
    33      34      35

 Var(shape=[2, 3, 2, 3], dtype=float32, device=cpu)"""  # noqa: W291

A = np.arange(36, dtype=np.float32).reshape(2, 3, 2, 3)


def test_four_axes() -> None:
    x = rg.Graph().input(A)
    assert str(x) == SLICES
    assert f"{x}" == SLICES


def test_a_stale_node_is_computed_and_repr_computes_nothing() -> None:
    x = rg.Graph().input(A)
    y = x * 1.0
    assert "stale" in repr(y)
    assert "\n" not in repr(y)
    assert y.is_stale
    assert str(y) == SLICES


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_fewer_axes_are_one_line(shape: tuple[int, ...]) -> None:
    x = rg.Graph().input(np.zeros(shape))
    assert str(x) == repr(x)


def test_what_has_no_value_is_one_line() -> None:
    g = rg.Graph()
    unset = g.input(shape=(2, 2, 2))
    assert str(unset) == repr(unset)
    failing = rg.lift(lambda: 1 / 0, shape=(1, 1, 1))
    with g:
        node = failing()
    assert "error" in str(node) or "stale" in str(node)
    assert "\n" not in str(node)


def test_fractions_have_as_many_digits_as_numpy_gives_them() -> None:
    x = rg.Graph().input(np.array([[[0.5, 12.25], [-3.0, np.nan]]]))
    assert str(x).splitlines()[1:3] == ["  0.5    12.25", " -3.       nan"]


def test_whole_numbers_with_infinite_ones() -> None:
    x = rg.Graph().input(np.array([[[1.0, np.inf, np.nan]]]))
    assert str(x).splitlines()[1] == "     1     inf     nan"


def test_large_arrays_are_shortened() -> None:
    x = rg.Graph().input(np.arange(10_000).reshape(10, 10, 100))
    lines = str(x).splitlines()
    assert lines[:5] == [
        "(0,.,.) = ",
        "     0       1       2     ...      97      98      99",
        "   100     101     102     ...     197     198     199",
        "   200     201     202     ...     297     298     299",
        "   ...",
    ]
    assert lines.count("...") == 1
    assert lines[lines.index("...") + 1] == "(7,.,.) = "
    with np.printoptions(threshold=10**6):
        assert len(str(x).splitlines()) == 10 * 11 + 2


def test_no_elements() -> None:
    x = rg.Graph().input(np.zeros((2, 0, 3), bool))
    assert str(x) == " Var(shape=[2, 0, 3], dtype=bool, device=cpu)"


def test_other_dtypes() -> None:
    g = rg.Graph()
    assert "True   False" in str(g.input(np.array([[[True, False]]])))
    assert "1.+2.j" in str(g.input(np.array([[[1 + 2j]]])))


def test_printing_in_a_function_that_runs_reads_nothing() -> None:
    g = rg.Graph()
    x = g.input(A)
    y = x + 1.0
    seen = []

    def look(value: float) -> float:
        seen.append(str(y))
        return value

    trigger = g.input(1.0)
    z = rg.lift(look)(trigger)
    assert z.value == 1.0
    assert "stale" in seen[0]
    assert y.value_version == 0
    _ = y.value
    trigger.set(2.0)
    assert z.value == 2.0
    assert seen[1] == str(y)
    x.set(A + 1.0)
    assert not z.is_stale


def test_sizes_are_known_without_computing() -> None:
    x = rg.Graph().input(A)
    y = x * 2.0
    assert (y.nbytes, y.itemsize, y.numel()) == (144, 4, 36)
    assert y.value_version == 0
    with pytest.raises(rg.ShapeError, match="not known"):
        _ = rg.Graph().input(shape=(None,)).nbytes
