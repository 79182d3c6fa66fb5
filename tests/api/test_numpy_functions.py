"""Every function of NumPy builds nodes, or says why not."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.api.numpy_calls import CALLS, REFUSED, functions, operands
from tests.api.ops_table import table


def leaves_of(result: Any) -> list[Any]:
    if isinstance(result, tuple | list):
        return [one for part in result for one in leaves_of(part)]
    return [result]


# Their results depend on shapes alone, which never change but by another set of the input.
OF_SHAPES = {"np.tril_indices_from", "np.triu_indices_from"}
COMPLEX = {"np.linalg.eig", "np.linalg.eigvals"}
# Elements that are not set.
ANY_VALUES = {"np.empty_like"}


def test_every_function_is_called_here_or_refused() -> None:
    known = set(CALLS) | set(REFUSED)
    assert set(functions()) <= known, sorted(set(functions()) - known)
    assert not set(CALLS) & set(REFUSED)
    assert len(CALLS) >= 340


@pytest.mark.parametrize("name", CALLS)
def test_a_function_of_numpy_builds_nodes_with_its_values(name: str) -> None:
    if not hasattr(np, name.split(".")[1]):
        pytest.skip("this NumPy does not have it")
    arrays = operands()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = leaves_of(CALLS[name](arrays))
    g = rg.Graph()
    found = leaves_of(CALLS[name]({key: g.input(one) for key, one in arrays.items()}))
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        if isinstance(other, np.ndarray | np.generic) and name not in OF_SHAPES:
            assert isinstance(one, rg.Var), "an array has left the graph"
            # Of a matrix of reals they may be complex: the dtype of a node does not depend on values.
            assert name in COMPLEX or one.value.dtype == other.dtype
            assert one.value.shape == other.shape
            if name not in ANY_VALUES:
                np.testing.assert_allclose(one.value, other, rtol=1e-9, atol=1e-12)
        elif isinstance(one, rg.Var):
            np.testing.assert_allclose(one.value, other, rtol=1e-9, atol=1e-12)
        else:
            np.testing.assert_array_equal(one, other)


UNARY = [
    "absolute",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "argmax",
    "argsort",
    "average",
    "bitwise_count",
    "cbrt",
    "ceil",
    "conj",
    "cos",
    "cosh",
    "cumprod",
    "cumsum",
    "deg2rad",
    "diff",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "fix",
    "flip",
    "floor",
    "i0",
    "imag",
    "invert",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "max",
    "mean",
    "median",
    "min",
    "nan_to_num",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nansum",
    "negative",
    "poly",
    "positive",
    "prod",
    "ptp",
    "rad2deg",
    "real",
    "reciprocal",
    "rint",
    "roots",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "sort",
    "spacing",
    "sqrt",
    "square",
    "std",
    "sum",
    "tan",
    "tanh",
    "trapezoid",
    "trunc",
    "unwrap",
    "var",
    "vander",
]
DTYPES = ["?", "b", "B", "i", "e", "f", "F"]
# NumPy has no eigenvalues of half floats.
BEYOND_NUMPY = {("roots", "e")}
# Complex numbers stay complex where NumPy returns reals, or not, by their values.
BY_VALUES = {"poly", "roots"}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_array_has_numpys_dtypes(name: str, dtype: str) -> None:
    function = getattr(np, name, None)
    if function is None:
        pytest.skip("this NumPy does not have it")
    a = np.array([1, 0, 1]).astype(dtype)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted = np.asarray(function(a))
        except TypeError:
            wanted = None
        if (name, dtype) in BEYOND_NUMPY:
            assert wanted is None
            return
        if wanted is None:
            with pytest.raises(rg.ReactgradError):
                function(rg.Graph().input(a)).value
            return
        found = function(rg.Graph().input(a)).value
    assert found.dtype == wanted.dtype or (name in BY_VALUES and found.dtype.kind == "c")
    tolerance = 2e-3 if wanted.dtype == "e" else 1e-6
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


# What each takes beside the node `x` in its first place.
GIVEN: dict[str, Any] = {
    "np.copyto": (1.0,),
    "np.fill_diagonal": (1.0,),
    "np.put_along_axis": ([0], 1.0, 0),
    "np.place": ([True] * 4, [1.0]),
    "np.put": ([0], [1.0]),
    "np.putmask": ([True] * 4, 1.0),
    "np.busday_count": (1.0,),
    "np.busday_offset": (1.0,),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_op_is_refused(name: str, tmp_path: Path) -> None:
    g = rg.Graph()
    x = g.input(np.arange(4.0))
    function = getattr(np, name.removeprefix("np."))
    given = (tmp_path / "x", x) if "save" in name else (x, *GIVEN.get(name, ()))
    with pytest.raises((rg.ReactgradError, TypeError)):
        function(*given)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_the_page_of_functions_is_that_of_the_code() -> None:
    """On purpose? Then `python -m tests.api.ops_table > docs/functions_of_arrays.md`."""
    page = Path(__file__).parents[2] / "docs" / "functions_of_arrays.md"
    assert page.read_text(encoding="utf-8") == table()
