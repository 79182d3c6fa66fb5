"""``reactgrad`` as a namespace of the array API standard: each function in the standard's own form.

The oracle is array-api-strict. What writes into arrays (``__setitem__`` and the like) has no place here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

strict = pytest.importorskip("array_api_strict", reason="array-api-strict is in the dev extra")

F = np.array([[0.5, -1.25, 2.0], [3.5, 0.25, -0.75]])
G = np.array([[1.5, 0.5, -2.0], [0.25, 4.0, 1.0]])
P = np.abs(F) * 0.2 + 0.1  # between 0 and 1
V, W = F[0], G[1]
K, J = np.array([[5, -3, 2], [7, 0, -1]]), np.array([[2, 1, 3], [1, 2, 1]])
B, C = F > 0, G > 0.5
Z = F + 1j * G
M = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 5.0]])

Call = Callable[..., Any]


def unary(x: Any) -> Call:
    return lambda n, name: getattr(n, name)(n.asarray(x))


def binary(x: Any, y: Any) -> Call:
    return lambda n, name: getattr(n, name)(n.asarray(x), n.asarray(y))


CALLS: dict[str, list[Call]] = {
    # elementwise
    **{
        name: [unary(F)]
        for name in ("abs", "ceil", "exp", "expm1", "floor", "negative", "positive")
    },
    **{
        name: [unary(F)]
        for name in ("round", "sign", "signbit", "sin", "sinh", "square", "tan", "tanh")
    },
    **{
        name: [unary(P)]
        for name in ("acos", "asin", "atan", "atanh", "log", "log10", "log1p", "log2")
    },
    **{
        name: [unary(F)] for name in ("asinh", "cos", "cosh", "trunc", "isfinite", "isinf", "isnan")
    },
    **{name: [unary(P)] for name in ("sqrt", "reciprocal")},
    "acosh": [unary(P + 1.0)],
    "conj": [unary(Z)],
    "imag": [unary(Z)],
    "real": [unary(Z)],
    **{
        name: [binary(F, G), binary(K, J)]
        for name in ("add", "subtract", "multiply", "maximum", "minimum")
    },
    **{name: [binary(F, G), binary(K, J)] for name in ("equal", "not_equal", "less", "less_equal")},
    **{
        name: [binary(F, G), binary(K, J)]
        for name in ("greater", "greater_equal", "floor_divide", "remainder")
    },
    **{
        name: [binary(F, G)]
        for name in ("atan2", "divide", "copysign", "hypot", "logaddexp", "nextafter")
    },
    "pow": [binary(P, G), binary(K, J)],
    **{name: [binary(K, J), binary(B, C)] for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    "bitwise_invert": [unary(K), unary(B)],
    **{name: [binary(J, J)] for name in ("bitwise_left_shift", "bitwise_right_shift")},
    **{name: [binary(B, C)] for name in ("logical_and", "logical_or", "logical_xor")},
    "logical_not": [unary(B)],
    "clip": [
        lambda n, _: n.clip(n.asarray(F), -1.0, 1.0),
        lambda n, _: n.clip(n.asarray(F), max=0.5),
        lambda n, _: n.clip(n.asarray(F), min=n.asarray(G)),
    ],
    # reductions
    **{
        name: [
            lambda n, name: getattr(n, name)(n.asarray(F)),
            lambda n, name: getattr(n, name)(n.asarray(F), axis=1, keepdims=True),
            lambda n, name: getattr(n, name)(n.asarray(F), axis=(0, 1)),
        ]
        for name in ("max", "min", "mean", "sum", "prod", "std", "var", "all", "any")
    },
    **{
        name: [
            lambda n, name: getattr(n, name)(n.asarray(F)),
            lambda n, name: getattr(n, name)(n.asarray(F), axis=1, keepdims=True),
        ]
        for name in ("argmax", "argmin")
    },
    "count_nonzero": [
        lambda n, _: n.count_nonzero(n.asarray(K)),
        lambda n, _: n.count_nonzero(n.asarray(K), axis=0, keepdims=True),
    ],
    "cumulative_sum": [
        lambda n, _: n.cumulative_sum(n.asarray(F), axis=1),
        lambda n, _: n.cumulative_sum(n.asarray(V), include_initial=True),
    ],
    "cumulative_prod": [
        lambda n, _: n.cumulative_prod(n.asarray(F), axis=0, dtype=n.float64),
        lambda n, _: n.cumulative_prod(n.asarray(V), include_initial=True),
    ],
    "diff": [
        lambda n, _: n.diff(n.asarray(F), axis=0),
        lambda n, _: n.diff(n.asarray(V), n=2, prepend=n.asarray([1.0])),
    ],
    # arrays in other shapes
    "broadcast_to": [lambda n, _: n.broadcast_to(n.asarray(V), (2, 3))],
    "broadcast_arrays": [lambda n, _: n.broadcast_arrays(n.asarray(V), n.asarray(F))],
    "concat": [
        lambda n, _: n.concat([n.asarray(F), n.asarray(G)], axis=1),
        lambda n, _: n.concat([n.asarray(F), n.asarray(V)], axis=None),
    ],
    "expand_dims": [
        lambda n, _: n.expand_dims(n.asarray(F), axis=1),
        lambda n, _: n.expand_dims(n.asarray(F), axis=-1),
    ],
    "flip": [lambda n, _: n.flip(n.asarray(F)), lambda n, _: n.flip(n.asarray(F), axis=(1,))],
    "matrix_transpose": [unary(F)],
    "meshgrid": [
        lambda n, _: n.meshgrid(n.asarray(V), n.asarray(W)),
        lambda n, _: n.meshgrid(n.asarray(V), n.asarray(W), indexing="ij"),
    ],
    "moveaxis": [lambda n, _: n.moveaxis(n.asarray(F), 0, -1)],
    "permute_dims": [
        lambda n, _: n.permute_dims(n.asarray(F), (1, 0)),
        lambda n, _: n.permute_dims(n.asarray(F), axes=(1, 0)),
    ],
    "repeat": [
        lambda n, _: n.repeat(n.asarray(F), 2),
        lambda n, _: n.repeat(n.asarray(F), n.asarray([1, 2]), axis=0),
    ],
    "reshape": [
        lambda n, _: n.reshape(n.asarray(F), (3, -1)),
        lambda n, _: n.reshape(n.asarray(F), shape=(6,), copy=True),
    ],
    "roll": [
        lambda n, _: n.roll(n.asarray(F), 1),
        lambda n, _: n.roll(n.asarray(F), (1, -1), axis=(0, 1)),
    ],
    "squeeze": [
        lambda n, _: n.squeeze(n.asarray(F[:, :1]), axis=1),
        lambda n, _: n.squeeze(n.asarray(F[:1, :1]), axis=(0, 1)),
    ],
    "stack": [lambda n, _: n.stack([n.asarray(F), n.asarray(G)], axis=1)],
    "tile": [lambda n, _: n.tile(n.asarray(F), (2, 1, 2))],
    "tril": [lambda n, _: n.tril(n.asarray(F), k=1)],
    "triu": [lambda n, _: n.triu(n.asarray(F), k=-1)],
    "unstack": [lambda n, _: n.unstack(n.asarray(F), axis=1)],
    # choosing, sorting, sets
    "argsort": [
        lambda n, _: n.argsort(n.asarray(F), axis=0),
        lambda n, _: n.argsort(n.asarray(J), descending=True, stable=True),
    ],
    "sort": [
        lambda n, _: n.sort(n.asarray(F), axis=0),
        lambda n, _: n.sort(n.asarray(F), descending=True, stable=False),
    ],
    "nonzero": [lambda n, _: n.nonzero(n.asarray(K))],
    "searchsorted": [
        lambda n, _: n.searchsorted(n.asarray(np.sort(V)), n.asarray(W), side="right"),
        lambda n, _: n.searchsorted(n.asarray(V), n.asarray(W), sorter=n.argsort(n.asarray(V))),
    ],
    "take": [lambda n, _: n.take(n.asarray(F), n.asarray([1, 0, 1]), axis=1)],
    "take_along_axis": [
        lambda n, _: n.take_along_axis(n.asarray(F), n.asarray([[1, 0], [2, 2]]), axis=1)
    ],
    "unique_all": [lambda n, _: n.unique_all(n.asarray(J))],
    "unique_counts": [lambda n, _: n.unique_counts(n.asarray(J))],
    "unique_inverse": [lambda n, _: n.unique_inverse(n.asarray(J))],
    "unique_values": [lambda n, _: n.unique_values(n.asarray(J))],
    "isin": [
        lambda n, _: n.isin(n.asarray(K), n.asarray(J)),
        lambda n, _: n.isin(n.asarray(K), n.asarray([7])),
    ],
    "where": [lambda n, _: n.where(n.asarray(B), n.asarray(F), n.asarray(G))],
    # products
    "matmul": [lambda n, _: n.matmul(n.asarray(F), n.asarray(G.T))],
    "tensordot": [
        lambda n, _: n.tensordot(n.asarray(F), n.asarray(G.T), axes=1),
        lambda n, _: n.tensordot(n.asarray(F), n.asarray(G), axes=((0, 1), (0, 1))),
    ],
    "vecdot": [
        lambda n, _: n.vecdot(n.asarray(F), n.asarray(G)),
        lambda n, _: n.vecdot(n.asarray(F), n.asarray(G), axis=-2),
    ],
    # new arrays
    "arange": [
        lambda n, _: n.arange(5),
        lambda n, _: n.arange(1.0, 4.0, 0.5),
        lambda n, _: n.arange(0, 6, 2, dtype=n.int32),
    ],
    "asarray": [
        lambda n, _: n.asarray([[1, 2], [3, 4]]),
        lambda n, _: n.asarray(True),
        lambda n, _: n.asarray(1, dtype=n.float32),
    ],
    "empty": [lambda n, _: n.zeros_like(n.empty((2, 3)))],
    "empty_like": [lambda n, _: n.zeros_like(n.empty_like(n.asarray(F), dtype=n.int32))],
    "eye": [lambda n, _: n.eye(3), lambda n, _: n.eye(2, 4, k=1, dtype=n.float32)],
    "from_dlpack": [lambda n, _: n.from_dlpack(np.array(F))],
    "full": [lambda n, _: n.full((2, 2), 3), lambda n, _: n.full(3, 1.5, dtype=n.float32)],
    "full_like": [
        lambda n, _: n.full_like(n.asarray(F), 2.0),
        lambda n, _: n.full_like(n.asarray(F), 2, dtype=n.int64),
    ],
    "linspace": [
        lambda n, _: n.linspace(0, 1, 5),
        lambda n, _: n.linspace(0.0, 2.0, num=4, dtype=n.float32, endpoint=False),
    ],
    "ones": [lambda n, _: n.ones((2, 3)), lambda n, _: n.ones(2, dtype=n.int8)],
    "ones_like": [
        lambda n, _: n.ones_like(n.asarray(F)),
        lambda n, _: n.ones_like(n.asarray(F), dtype=n.bool),
    ],
    "zeros": [lambda n, _: n.zeros((2, 3)), lambda n, _: n.zeros(2, dtype=n.complex64)],
    "zeros_like": [
        lambda n, _: n.zeros_like(n.asarray(F)),
        lambda n, _: n.zeros_like(n.asarray(F), dtype=n.uint8),
    ],
    # dtypes
    "astype": [
        lambda n, _: n.astype(n.asarray(F), n.float32),
        lambda n, _: n.astype(n.asarray(K), n.int16, copy=False),
    ],
}
PLAIN: dict[str, list[Call]] = {
    "broadcast_shapes": [lambda n: n.broadcast_shapes((3, 1), (4,))],
    "can_cast": [
        lambda n: n.can_cast(n.int8, n.int16),
        lambda n: n.can_cast(n.asarray(F), n.float32),
    ],
    "finfo": [
        lambda n: n.finfo(n.float32).eps,
        lambda n: n.finfo(n.asarray(F)).max,
        lambda n: (n.finfo(n.float64).bits, n.finfo(n.float64).smallest_normal),
    ],
    "iinfo": [lambda n: (n.iinfo(n.int8).min, n.iinfo(n.uint16).max, n.iinfo(n.asarray(K)).bits)],
    "isdtype": [
        lambda n: n.isdtype(n.float32, "real floating"),
        lambda n: n.isdtype(n.int8, ("bool", "integral")),
        lambda n: n.isdtype(n.bool, "numeric"),
    ],
    "result_type": [
        lambda n: str(n.result_type(n.int8, n.uint8)).rpartition(".")[2],
        lambda n: str(n.result_type(n.asarray(F), n.float32)).rpartition(".")[2],
    ],
    "__array_namespace_info__": [
        lambda n: sorted(n.__array_namespace_info__().dtypes()),
        lambda n: sorted(n.__array_namespace_info__().dtypes(kind="integral")),
        lambda n: n.__array_namespace_info__().capabilities(),
        lambda n: sorted(n.__array_namespace_info__().default_dtypes()),
    ],
}
LINALG: dict[str, list[Call]] = {
    "cholesky": [
        lambda n: n.linalg.cholesky(n.asarray(M)),
        lambda n: n.linalg.cholesky(n.asarray(M), upper=True),
    ],
    "cross": [lambda n: n.linalg.cross(n.asarray(F), n.asarray(G), axis=-1)],
    "det": [lambda n: n.linalg.det(n.asarray(M))],
    "diagonal": [lambda n: n.linalg.diagonal(n.asarray(M), offset=1)],
    "eig": [lambda n: n.sort(n.abs(n.linalg.eig(n.asarray(M)).eigenvalues))],
    "eigvals": [lambda n: n.sort(n.abs(n.linalg.eigvals(n.asarray(M))))],
    "eigh": [
        lambda n: n.linalg.eigh(n.asarray(M)).eigenvalues,
        lambda n: n.abs(n.linalg.eigh(n.asarray(M))[1]),
    ],
    "eigvalsh": [lambda n: n.linalg.eigvalsh(n.asarray(M))],
    "inv": [lambda n: n.linalg.inv(n.asarray(M))],
    "matmul": [lambda n: n.linalg.matmul(n.asarray(M), n.asarray(V))],
    "matrix_norm": [
        lambda n: n.linalg.matrix_norm(n.asarray(M)),
        lambda n: n.linalg.matrix_norm(n.asarray(M), ord="nuc", keepdims=True),
        lambda n: n.linalg.matrix_norm(n.asarray(M), ord=-1),
    ],
    "matrix_power": [lambda n: n.linalg.matrix_power(n.asarray(M), -2)],
    "matrix_rank": [lambda n: n.linalg.matrix_rank(n.asarray(M), rtol=0.1)],
    "matrix_transpose": [lambda n: n.linalg.matrix_transpose(n.asarray(F))],
    "outer": [lambda n: n.linalg.outer(n.asarray(V), n.asarray(W))],
    "pinv": [
        lambda n: n.linalg.pinv(n.asarray(F)),
        lambda n: n.linalg.pinv(n.asarray(F), rtol=1e-3),
    ],
    "qr": [
        lambda n: n.abs(n.linalg.qr(n.asarray(M)).R),
        lambda n: n.abs(n.linalg.qr(n.asarray(F.T), mode="complete").Q),
    ],
    "slogdet": [lambda n: tuple(n.linalg.slogdet(n.asarray(M)))],
    "solve": [lambda n: n.linalg.solve(n.asarray(M), n.asarray(V))],
    "svd": [
        lambda n: n.linalg.svd(n.asarray(F)).S,
        lambda n: n.abs(n.linalg.svd(n.asarray(F), full_matrices=False).U),
    ],
    "svdvals": [lambda n: n.linalg.svdvals(n.asarray(F))],
    "tensordot": [lambda n: n.linalg.tensordot(n.asarray(F), n.asarray(G.T), axes=1)],
    "trace": [
        lambda n: n.linalg.trace(n.asarray(M), offset=1),
        lambda n: n.linalg.trace(n.asarray(M), dtype=n.float32),
    ],
    "vecdot": [lambda n: n.linalg.vecdot(n.asarray(F), n.asarray(G), axis=-1)],
    "vector_norm": [
        lambda n: n.linalg.vector_norm(n.asarray(F)),
        lambda n: n.linalg.vector_norm(n.asarray(F), axis=1, keepdims=True, ord=1),
        lambda n: n.linalg.vector_norm(n.asarray(F), axis=(0, 1), ord=3.5),
    ],
}
FFT: dict[str, list[Call]] = {
    **{
        name: [
            lambda n, name: getattr(n.fft, name)(n.asarray(Z)),
            lambda n, name: getattr(n.fft, name)(n.asarray(Z), n=4, axis=0, norm="ortho"),
        ]
        for name in ("fft", "ifft", "hfft", "irfft")
    },
    **{
        name: [
            lambda n, name: getattr(n.fft, name)(n.asarray(F)),
            lambda n, name: getattr(n.fft, name)(n.asarray(F), n=5, axis=-1, norm="forward"),
        ]
        for name in ("rfft", "ihfft")
    },
    **{
        name: [lambda n, name: getattr(n.fft, name)(n.asarray(Z), axes=(0, 1))]
        for name in ("fftn", "ifftn", "irfftn")
    },
    "rfftn": [lambda n, _: n.fft.rfftn(n.asarray(F), s=(2, 4), axes=(0, 1))],
    **{name: [lambda n, name: getattr(n.fft, name)(4, d=0.5)] for name in ("fftfreq", "rfftfreq")},
    **{
        name: [lambda n, name: getattr(n.fft, name)(n.asarray(V), axes=0)]
        for name in ("fftshift", "ifftshift")
    },
}
# Names of array-api-strict itself.
OWN = {
    *("Device", "ArrayAPIStrictFlags", "set_array_api_strict_flags", "get_array_api_strict_flags"),
    *("reset_array_api_strict_flags",),
}
NAMES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128", "e", "inf", "nan", "newaxis", "pi"),
]


def agree(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            agree(one, other)
        return
    value = np.from_dlpack(theirs) if theirs.dtype != strict.bool else np.asarray(theirs)
    assert isinstance(ours, rg.Var)
    assert ours.dtype.name == str(theirs.dtype).rpartition(".")[2]
    assert np.shape(ours.value) == theirs.shape
    np.testing.assert_allclose(ours.value, value, rtol=1e-9, atol=1e-12)


def test_every_name_of_the_standard_is_there_and_in_a_table() -> None:
    tables = {*CALLS, *PLAIN, *NAMES}
    there = {name for name in strict.__all__ if name not in OWN | {"linalg", "fft", "__version__"}}
    assert there <= {*tables, "__array_api_version__"}
    assert all(hasattr(rg, name) for name in tables)
    assert rg.__array_api_version__ == "2024.12"
    assert set(strict.linalg.__all__) <= {*LINALG}
    assert set(strict.fft.__all__) == {*FFT}


@pytest.mark.parametrize("name", CALLS)
def test_functions(name: str) -> None:
    with np.errstate(all="ignore"):
        for call in CALLS[name]:
            with rg.Graph():
                agree(call(rg, name), call(strict, name))


@pytest.mark.parametrize("name", PLAIN)
def test_dtypes_and_answers(name: str) -> None:
    for call in PLAIN[name]:
        assert call(rg) == call(strict)


@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra(name: str) -> None:
    for call in LINALG[name]:
        with rg.Graph():
            agree(call(rg), call(strict))


@pytest.mark.parametrize("name", FFT)
def test_transforms(name: str) -> None:
    for call in FFT[name]:
        with rg.Graph():
            agree(call(rg, name), call(strict, name))


def test_operators_and_attributes() -> None:
    g = rg.Graph()
    x, y = g.input(F), g.input(G)
    i, j = g.input(K), g.input(J)
    a, b, k, m = map(strict.asarray, (F, G, K, J))
    for call in (
        lambda x, y, i, j: x + y - x * y / 2.0,
        lambda x, y, i, j: abs(x) ** y,
        lambda x, y, i, j: x // y + x % y,
        lambda x, y, i, j: (i << j) ^ (i >> j) | (i & j),
        lambda x, y, i, j: ~i,
        lambda x, y, i, j: +x,
        lambda x, y, i, j: -x,
        lambda x, y, i, j: x @ y.T,
        lambda x, y, i, j: x.mT,
        lambda x, y, i, j: (x <= y) != (x > y),
        lambda x, y, i, j: x[1:, ::-1],
        lambda x, y, i, j: x[..., None, 0],
        lambda x, y, i, j: 2 - x + 3.5 * y % 2.0,
        lambda x, y, i, j: (3 * i) % 2 + (j - 1),
    ):
        agree(call(x, y, i, j), call(a, b, k, m))
    assert (x.ndim, x.shape, x.size, x.dtype) == (2, (2, 3), 6, rg.float64)
    assert x.device == rg.__array_namespace_info__().default_device() == "cpu"
    assert x.to_device("cpu") is x
    assert x.__array_namespace__() is rg
    assert x.__array_namespace__(api_version="2023.12") is rg
    with pytest.raises(rg.DTypeError, match=r"2024\.12"):
        x.__array_namespace__(api_version="1999.12")


def test_code_for_any_namespace_builds_live_nodes() -> None:
    def normalised(x: Any) -> Any:
        xp = x.__array_namespace__()
        x = xp.astype(x, xp.float64)
        return (x - xp.mean(x, axis=0, keepdims=True)) / xp.std(
            x, axis=0, keepdims=True, correction=1
        )

    g = rg.Graph()
    x = g.param(F)
    y = normalised(x)
    agree(y, normalised(strict.asarray(F)))
    x.set(G)
    agree(y, normalised(strict.asarray(G)))
    assert rg.grad((y**3).sum(), x).shape == F.shape


def test_asarray() -> None:
    g = rg.Graph()
    x = g.input(V)
    assert rg.asarray(x) is x
    assert rg.asarray(x, dtype=rg.float32).dtype == rg.float32
    stacked = rg.asarray([x, x * 2.0])
    assert stacked.shape == (2, 3)
    assert stacked.graph is g
    with g:
        assert rg.asarray(np.float32(2.0)).dtype == rg.float32
        half = rg.asarray(1.0) + g.input(np.ones(2, np.float32))
        assert half.dtype == rg.float64  # an array without axes is no Python number
        with pytest.raises(rg.DTypeError, match="copy"):
            rg.asarray([1.0], copy=False)
        with pytest.raises(rg.DTypeError, match="no number and no array"):
            rg.asarray(object())
