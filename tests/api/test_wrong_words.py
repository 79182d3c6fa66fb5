"""A wrong word or number as an argument raises what NumPy raises for the same call: `except` goes on to work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

X = np.arange(12.0).reshape(3, 4)
V = np.array([0.5, 1.0, 2.0, 4.0])
S = np.array([[2.0, 1.0], [1.0, 3.0]])

# NumPy raises for each of these, and a Var in the place of the array does, too.
CALLS: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "sum, axis": (lambda x: np.sum(x, axis=2), X),
    "sum, axis twice": (lambda x: np.sum(x, axis=(0, 0)), X),
    "sum, axis is a word": (lambda x: np.sum(x, axis="rows"), X),
    "std, ddof is no number": (lambda x: np.std(x, ddof=(0, 0)), X),
    "std, ddof and correction": (lambda x: np.std(x, ddof=1, correction=1), X),
    "argmax, axis": (lambda x: np.argmax(x, axis=-3), X),
    "cumsum, axis": (lambda x: np.cumsum(x, axis=2), X),
    "cumulative_sum, axes": (lambda x: np.cumulative_sum(x, axis=(0, 0)), X),
    "cumulative_sum, no axis": (lambda x: np.cumulative_sum(x), X),
    "diff, n": (lambda x: np.diff(x, n=-1), X),
    "gradient, edge_order": (lambda x: np.gradient(x, edge_order=3), V),
    "quantile, method": (lambda x: np.quantile(x, 0.5, method="bogus"), X),
    "quantile, q": (lambda x: np.quantile(x, 1.5), X),
    "quantile, weights": (lambda x: np.quantile(x, 0.5, weights=[1.0] * 4), V),
    "percentile, q": (lambda x: np.percentile(x, -1), X),
    "histogram, bins": (lambda x: np.histogram(x, 0), X),
    "histogram, rule": (lambda x: np.histogram(x, "bogus"), X),
    "histogram, range": (lambda x: np.histogram(x, 3, range=(2, 1)), X),
    "cov, ddof": (lambda x: np.cov(x, ddof=0.5), X),
    "bincount, minlength": (lambda x: np.bincount(x.astype(int), minlength=-1), V),
    "sort, kind": (lambda x: np.sort(x, kind="bogus"), X),
    "sort, order": (lambda x: np.sort(x, order="bogus"), X),
    "argsort, axis": (lambda x: np.argsort(x, axis=2), X),
    "partition, kind": (lambda x: np.partition(x, 1, kind="bogus"), X),
    "partition, place": (lambda x: np.partition(x, 9), X),
    "searchsorted, side": (lambda x: np.searchsorted(x, 1.0, side="bogus"), V),
    "take, mode": (lambda x: np.take(x, [0], mode="bogus"), V),
    "choose, mode": (lambda x: np.choose(x.astype(int) % 2, [[0], [1]], mode="bogus"), V),
    "isin, kind": (lambda x: np.isin(x, [1.0], kind="bogus"), V),
    "unique, axes": (lambda x: np.unique(x, axis=(0, 0)), X),
    "where, one value": (lambda x: np.where(x > 0, x), X),
    "reshape, order": (lambda x: np.reshape(x, (4, 3), order="bogus"), X),
    "reshape, length": (lambda x: np.reshape(x, (5, -1)), X),
    "ravel, order": (lambda x: np.ravel(x, order="bogus"), X),
    "copy, order": (lambda x: np.copy(x, order="bogus"), X),
    "zeros_like, order": (lambda x: np.zeros_like(x, order="bogus"), X),
    "full_like, order": (lambda x: np.full_like(x, 2.0, order="bogus"), X),
    "ones_like, device": (lambda x: np.ones_like(x, device="bogus"), X),
    "size, axis": (lambda x: np.size(x, axis=2), X),
    "concatenate, casting": (lambda x: np.concatenate([x, x], casting="bogus"), X),
    "concatenate, axis": (lambda x: np.concatenate([x, x], axis=2), X),
    "stack, casting": (lambda x: np.stack([x, x], casting="bogus"), X),
    "array_split, parts": (lambda x: np.array_split(x, 0), X),
    "split, parts": (lambda x: np.split(x, 5), X),
    "moveaxis": (lambda x: np.moveaxis(x, 0, 2), X),
    "pad, mode": (lambda x: np.pad(x, 1, mode="bogus"), X),
    "pad, another mode's word": (lambda x: np.pad(x, 1, mode="edge", constant_values=1), X),
    "pad, width": (lambda x: np.pad(x, -1), X),
    "tile": (lambda x: np.tile(x, -1), X),
    "repeat": (lambda x: np.repeat(x, -1), X),
    "meshgrid, indexing": (lambda x: np.meshgrid(x, x, indexing="bogus"), V),
    "trim_zeros": (lambda x: np.trim_zeros(x, trim="bogus"), V),
    "interp, period": (lambda x: np.interp(x, V, V, period=0.0), V),
    "interp, period is no number": (lambda x: np.interp(x, V, V, period=(1, 2)), V),
    "convolve, mode": (lambda x: np.convolve(x, V, "bogus"), V),
    "correlate, mode": (lambda x: np.correlate(x, V, "bogus"), V),
    "nan_to_num": (lambda x: np.nan_to_num(x, nan=(0, 0)), X),
    "einsum, subscripts": (lambda x: np.einsum("ij,jk", x), X),
    "einsum, axes": (lambda x: np.einsum(x, [0, 99]), X),
    "tensordot, axes": (lambda x: np.tensordot(x, X, axes=([0], [0, 1])), X),
    "ufunc, casting": (lambda x: np.add(x, 1.0, casting="bogus"), X),
    "ufunc, order": (lambda x: np.exp(x, order="bogus"), X),
    "norm, ord": (lambda x: np.linalg.norm(x, ord="bogus"), X),
    "norm, ord of a vector": (lambda x: np.linalg.norm(x, ord="fro"), V),
    "norm, axes": (lambda x: np.linalg.norm(x, axis=(0, 1, 2)), X),
    "cond": (lambda x: np.linalg.cond(x, "bogus"), S),
    "qr, mode": (lambda x: np.linalg.qr(x, mode="bogus"), S),
    "eigh, UPLO": (lambda x: np.linalg.eigh(x, UPLO="X"), S),
    "pinv, both limits": (lambda x: np.linalg.pinv(x, rcond=0.1, rtol=0.1), S),
    "matrix_rank, both limits": (lambda x: np.linalg.matrix_rank(x, tol=0.1, rtol=0.1), S),
    "matrix_power": (lambda x: np.linalg.matrix_power(x, 1.5), S),
    "tensorinv": (lambda x: np.linalg.tensorinv(x, ind=0), S),
    "fft, n": (lambda x: np.fft.fft(x, n=-1), V),
    "fft, norm": (lambda x: np.fft.fft(x, norm="bogus"), V),
    "fft, axis": (lambda x: np.fft.fft(x, axis=1), V),
    "fft2, axes": (lambda x: np.fft.fft2(x, axes=(0, 2)), X),
}


def raised(call: Callable[[Any], Any], x: Any) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its class is what is tested
        found = call(x)
        (
            found[0] if isinstance(found, tuple | list) else found
        ).value  # what fails at its first read
    return caught.value


@pytest.mark.parametrize("name", CALLS)
def test_numpys_class_is_a_base_of_ours(name: str) -> None:
    call, array = CALLS[name]
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call(array)
    error = raised(call, rg.Graph().input(array))
    assert isinstance(error, rg.ReactgradError)
    assert isinstance(error, caught.type), (type(error), caught.type)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: rg.pad(x, 1, mode="bogus"),
        lambda x: rg.gelu(x, approximate="bogus"),
        lambda x: rg.mse_loss(x, x, reduction="bogus"),
        lambda x: rg.random.normal(shape=(-1,)),
        lambda x: rg.nn.Dropout(2.0),
        lambda x: rg.optim.SGD([x], lr=-1.0),
        lambda x: rg.GradScaler(growth_factor=0.5),
        lambda x: rg.tolerance(-1.0),
        lambda x: x.observe(print, kind="bogus"),
        lambda x: rg.implicit_values("bogus"),
        lambda x: rg.Graph(max_bytes=-1),
        lambda x: rg.Graph(rng=-1),
        lambda x: rg.linalg.solve_triangular(x, x, trans="bogus"),
    ],
)
def test_a_wrong_value_is_a_value_error_and_stays_a_type_error(call: Callable[[Any], Any]) -> None:
    g = rg.Graph()
    with g, pytest.raises(rg.ParameterError) as caught:
        call(g.param(S))
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, rg.DTypeError)


def test_a_wrong_dtype_is_no_value_error() -> None:
    x = rg.Graph().input(X > 0)
    with pytest.raises(rg.DTypeError) as caught:
        rg.grad(x, x)
    assert not isinstance(caught.value, ValueError)


def test_size_along_axes_is_numpys() -> None:
    x = rg.Graph().input(X)
    assert (np.size(x, 0), np.size(x, axis=-1), np.size(x, (0, 1)), np.size(x)) == (3, 4, 12, 12)
