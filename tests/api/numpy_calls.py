"""One call of each function of NumPy, and the reasons why some have no op.

The operands: `x` and `y` (3, 4) of floats, `v` and `w` of 4 floats, `p` positive floats in order, `n` (3, 4) and `k` of
integers, `b` (3, 4) of booleans, `m` an invertible (3, 3), `s` a symmetric positive definite (3, 3), `z` complex.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def operands() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    m = rng.standard_normal((3, 3)) + 3.0 * np.eye(3)
    return {
        "x": rng.standard_normal((3, 4)),
        "y": rng.standard_normal((3, 4)) + 2.0,
        "v": np.array([0.5, -1.0, 2.0, 0.25]),
        "w": np.array([1.5, 0.0, -2.0, 3.0]),
        "p": np.array([0.1, 0.4, 0.9, 1.6]),
        "n": rng.integers(0, 9, (3, 4)),
        "k": np.array([2, 0, 1, 2]),
        "b": rng.random((3, 4)) < 0.5,
        "m": m,
        "s": m @ m.T,
        "z": rng.standard_normal(4) + 1j * rng.standard_normal(4),
    }


Call = Callable[[dict[str, Any]], Any]

# Functions of one, of two floats, of booleans or integers: by name alone.
UNARY = (
    "abs absolute acosh around asinh atan arctan arcsinh cbrt ceil conj conjugate cos cosh deg2rad degrees exp exp2 "
    "expm1 fabs fix floor i0 isfinite isinf isnan isneginf isposinf isreal iscomplex logical_not modf nan_to_num "
    "negative positive rad2deg radians real imag angle reciprocal rint round sign signbit sin sinc sinh spacing "
    "square tan tanh trunc frexp sum mean std var max min amax amin ptp prod cumsum cumprod cumulative_sum "
    "all any argmax argmin count_nonzero median nanmax nanmin nanmean nanmedian nanstd nanvar nansum nanprod "
    "nancumsum nancumprod nanargmax nanargmin sort argsort unique ravel transpose flip fliplr flipud rot90 diff "
    "ediff1d nonzero flatnonzero argwhere squeeze copy tril triu diagonal trace corrcoef cov atleast_1d atleast_2d "
    "atleast_3d matrix_transpose ndim shape size diff unstack sort_complex isrealobj iscomplexobj "
    "real_if_close zeros_like ones_like empty_like"
)
BINARY = (
    "add subtract multiply divide true_divide arctan2 atan2 copysign equal not_equal less less_equal greater "
    "greater_equal fmax fmin maximum minimum hypot logaddexp logaddexp2 nextafter heaviside logical_and "
    "logical_or logical_xor floor_divide remainder mod fmod divmod float_power isclose allclose array_equal "
    "array_equiv inner vdot vecdot outer kron append union1d intersect1d setdiff1d setxor1d broadcast_arrays"
)
JOINING = "hstack vstack dstack column_stack concatenate concat stack"
POSITIVE = "arccos acos arccosh acosh arcsin asin arctanh atanh log log2 log10 log1p sqrt"
INTEGERS = "bitwise_and bitwise_or bitwise_xor gcd lcm left_shift right_shift bitwise_left_shift bitwise_right_shift"
ONE_INTEGER = "invert bitwise_invert bitwise_not bitwise_count"
OF_A_MATRIX = (
    "inv det slogdet cond eig eigvals matrix_rank norm pinv qr svd svdvals trace diagonal matrix_norm "
    "vector_norm matrix_transpose"
)
OF_A_SERIES = "fft ifft rfft irfft hfft ihfft fftn ifftn rfftn irfftn fftshift ifftshift"


def _on(function: Any, *keys: str) -> Call:
    """Return the call of a function on these operands."""
    return lambda operands: function(*[operands[key] for key in keys])


def _joining(function: Any) -> Call:
    return lambda operands: function([operands["x"], operands["y"]])


def _calls() -> dict[str, Call]:
    found: dict[str, Call] = {}
    for names, keys in (
        (UNARY, "x"),
        (BINARY, "xy"),
        (POSITIVE, "p"),
        (INTEGERS, "nk"),
        (ONE_INTEGER, "n"),
    ):
        found |= {f"np.{name}": _on(getattr(np, name), *keys) for name in names.split()}
    found |= {f"np.{name}": _joining(getattr(np, name)) for name in JOINING.split()}
    for names, key in (("fft2 ifft2 rfft2 irfft2", "x"), (OF_A_SERIES, "v")):
        found |= {f"np.fft.{name}": _on(getattr(np.fft, name), key) for name in names.split()}
    for names, key in (("cholesky eigh eigvalsh", "s"), (OF_A_MATRIX, "m")):
        found |= {f"np.linalg.{name}": _on(getattr(np.linalg, name), key) for name in names.split()}
    return found


CALLS: dict[str, Call] = {
    **_calls(),
    "np.apply_along_axis": lambda d: np.apply_along_axis(np.sum, 1, d["x"]),
    "np.apply_over_axes": lambda d: np.apply_over_axes(np.sum, d["x"], [0, 1]),
    "np.argpartition": lambda d: np.argpartition(d["v"], 2)[2],
    "np.array2string": lambda d: np.array2string(d["v"]),
    "np.array_repr": lambda d: np.array_repr(d["v"]),
    "np.array_str": lambda d: np.array_str(d["v"]),
    "np.array_split": lambda d: np.array_split(d["x"], 2, axis=1),
    "np.astype": lambda d: np.astype(d["x"], np.float32),
    "np.average": lambda d: np.average(d["x"], axis=1, weights=d["p"]),
    "np.bincount": lambda d: np.bincount(d["k"]),
    "np.block": lambda d: np.block([[d["x"], d["y"]], [d["y"], d["x"]]]),
    "np.broadcast_to": lambda d: np.broadcast_to(d["v"], (3, 4)),
    "np.can_cast": lambda d: np.can_cast(d["x"], np.float64),
    "np.choose": lambda d: np.choose(d["k"], [d["v"], d["w"], d["p"]]),
    "np.clip": lambda d: np.clip(d["x"], -0.5, 0.5),
    "np.common_type": lambda d: np.common_type(d["x"], d["n"]),
    "np.compress": lambda d: np.compress(np.array([True, False, True]), d["x"], axis=0),
    "np.convolve": lambda d: np.convolve(d["v"], d["p"]),
    "np.correlate": lambda d: np.correlate(d["v"], d["p"], "full"),
    "np.cross": lambda d: np.cross(d["v"][:3], d["w"][:3]),
    "np.cumulative_prod": lambda d: np.cumulative_prod(d["v"]),
    "np.cumulative_sum": lambda d: np.cumulative_sum(d["v"]),
    "np.delete": lambda d: np.delete(d["x"], 1, axis=0),
    "np.diag": lambda d: np.diag(d["v"]),
    "np.diag_indices_from": lambda d: np.diag_indices_from(d["m"]),
    "np.diagflat": lambda d: np.diagflat(d["v"]),
    "np.digitize": lambda d: np.digitize(d["x"], d["p"]),
    "np.dot": lambda d: np.dot(d["x"], d["v"]),
    "np.dsplit": lambda d: np.dsplit(d["x"].reshape(1, 3, 4), 2),
    "np.einsum": lambda d: np.einsum("ij,j->i", d["x"], d["v"]),
    "np.einsum_path": lambda d: np.einsum_path("ij,j->i", d["x"], d["v"])[0],
    "np.expand_dims": lambda d: np.expand_dims(d["x"], 1),
    "np.extract": lambda d: np.extract(d["b"], d["x"]),
    "np.full_like": lambda d: np.full_like(d["x"], 2.5),
    "np.geomspace": lambda d: np.geomspace(d["p"], 10.0 * d["p"], 5),
    "np.gradient": lambda d: np.gradient(d["x"]),
    "np.histogram": lambda d: np.histogram(d["x"], 4),
    "np.histogram2d": lambda d: np.histogram2d(d["v"], d["w"], 3),
    "np.histogram_bin_edges": lambda d: np.histogram_bin_edges(d["x"], 4),
    "np.histogramdd": lambda d: np.histogramdd(d["x"], 2)[0],
    "np.hsplit": lambda d: np.hsplit(d["x"], 2),
    "np.insert": lambda d: np.insert(d["x"], 1, d["v"], axis=0),
    "np.interp": lambda d: np.interp(d["v"], d["p"], d["w"]),
    "np.isin": lambda d: np.isin(d["n"], d["k"]),
    "np.ix_": lambda d: np.ix_(d["k"], d["k"]),
    "np.ldexp": lambda d: np.ldexp(d["v"], d["k"]),
    "np.lexsort": lambda d: np.lexsort((d["v"], d["w"])),
    "np.linspace": lambda d: np.linspace(d["v"], d["w"], 5),
    "np.logspace": lambda d: np.logspace(d["v"], d["w"], 5),
    "np.matmul": lambda d: np.matmul(d["x"], d["v"]),
    "np.matvec": lambda d: np.matvec(d["x"], d["v"]),
    "np.may_share_memory": lambda d: np.may_share_memory(d["x"], d["y"]),
    "np.meshgrid": lambda d: np.meshgrid(d["v"], d["w"]),
    "np.min_scalar_type": lambda d: np.min_scalar_type(d["x"]),
    "np.moveaxis": lambda d: np.moveaxis(d["x"], 0, 1),
    "np.nanpercentile": lambda d: np.nanpercentile(d["x"], 30.0, axis=0),
    "np.nanquantile": lambda d: np.nanquantile(d["x"], 0.3, axis=0),
    "np.packbits": lambda d: np.packbits(d["b"]),
    "np.pad": lambda d: np.pad(d["x"], 1),
    "np.partition": lambda d: np.partition(d["v"], 2)[2],
    "np.percentile": lambda d: np.percentile(d["x"], 30.0, axis=0),
    "np.permute_dims": lambda d: np.permute_dims(d["x"], (1, 0)),
    "np.piecewise": lambda d: np.piecewise(
        d["x"], [d["x"] < 0, d["x"] >= 0], [lambda t: -t, lambda t: 2 * t]
    ),
    "np.poly": lambda d: np.poly(d["v"]),
    "np.polyadd": lambda d: np.polyadd(d["v"], d["w"]),
    "np.polyder": lambda d: np.polyder(d["v"]),
    "np.polydiv": lambda d: np.polydiv(d["w"], d["p"][:2]),
    "np.polyfit": lambda d: np.polyfit(d["p"], d["v"], 2),
    "np.polyint": lambda d: np.polyint(d["v"]),
    "np.polymul": lambda d: np.polymul(d["v"], d["w"]),
    "np.polysub": lambda d: np.polysub(d["v"], d["w"]),
    "np.polyval": lambda d: np.polyval(d["v"], d["w"]),
    "np.pow": lambda d: np.pow(d["y"] * d["y"], d["x"]),
    "np.power": lambda d: np.power(d["y"] * d["y"], d["x"]),
    "np.quantile": lambda d: np.quantile(d["x"], 0.3, axis=0),
    "np.ravel_multi_index": lambda d: np.ravel_multi_index((d["k"], d["k"]), (3, 4)),
    "np.repeat": lambda d: np.repeat(d["x"], 2, axis=0),
    "np.reshape": lambda d: np.reshape(d["x"], (4, 3)),
    "np.resize": lambda d: np.resize(d["x"], (5, 4)),
    "np.result_type": lambda d: np.result_type(d["x"], d["n"]),
    "np.roll": lambda d: np.roll(d["x"], 1, axis=0),
    "np.rollaxis": lambda d: np.rollaxis(d["x"], 1),
    "np.roots": lambda d: np.sort(abs(np.roots(d["p"]))),
    "np.searchsorted": lambda d: np.searchsorted(d["p"], d["v"]),
    "np.select": lambda d: np.select([d["b"]], [d["x"]], 0.0),
    "np.shares_memory": lambda d: np.shares_memory(d["x"], d["y"]),
    "np.split": lambda d: np.split(d["x"], 2, axis=1),
    "np.swapaxes": lambda d: np.swapaxes(d["x"], 0, 1),
    "np.take": lambda d: np.take(d["x"], d["k"], axis=0),
    "np.take_along_axis": lambda d: np.take_along_axis(d["x"], d["k"][None, :], axis=0),
    "np.tensordot": lambda d: np.tensordot(d["x"], d["y"], axes=([1], [1])),
    "np.tile": lambda d: np.tile(d["v"], (2, 2)),
    "np.trapezoid": lambda d: np.trapezoid(d["x"], d["p"]),
    "np.tril_indices_from": lambda d: np.tril_indices_from(d["m"]),
    "np.trim_zeros": lambda d: np.trim_zeros(d["k"]),
    "np.triu_indices_from": lambda d: np.triu_indices_from(d["m"]),
    "np.unique_all": lambda d: np.unique_all(d["n"]),
    "np.unique_counts": lambda d: np.unique_counts(d["n"]),
    "np.unique_inverse": lambda d: np.unique_inverse(d["n"]),
    "np.unique_values": lambda d: np.sort(np.unique_values(d["n"])),
    "np.unpackbits": lambda d: np.unpackbits(np.packbits(d["b"])),
    "np.unravel_index": lambda d: np.unravel_index(d["k"], (3, 4)),
    "np.unwrap": lambda d: np.unwrap(4.0 * d["v"]),
    "np.vander": lambda d: np.vander(d["v"], 3),
    "np.vecmat": lambda d: np.vecmat(d["v"][:3], d["x"]),
    "np.vsplit": lambda d: np.vsplit(d["x"], 3),
    "np.where": lambda d: np.where(d["b"], d["x"], d["y"]),
    "np.fft.fftshift": lambda d: np.fft.fftshift(d["v"]),
    "np.linalg.cross": lambda d: np.linalg.cross(d["v"][:3], d["w"][:3]),
    "np.linalg.lstsq": lambda d: np.linalg.lstsq(d["x"].T, d["v"]),
    "np.linalg.matmul": lambda d: np.linalg.matmul(d["m"], d["s"]),
    "np.linalg.matrix_power": lambda d: np.linalg.matrix_power(d["m"], 3),
    "np.linalg.multi_dot": lambda d: np.linalg.multi_dot([d["m"], d["x"], d["v"]]),
    "np.linalg.outer": lambda d: np.linalg.outer(d["v"], d["w"]),
    "np.linalg.solve": lambda d: np.linalg.solve(d["m"], d["x"]),
    "np.linalg.tensordot": lambda d: np.linalg.tensordot(d["m"], d["s"]),
    "np.linalg.tensorinv": lambda d: np.linalg.tensorinv(d["m"], ind=1),
    "np.linalg.tensorsolve": lambda d: np.linalg.tensorsolve(d["m"], d["v"][:3]),
    "np.linalg.vecdot": lambda d: np.linalg.vecdot(d["v"], d["w"]),
}

# Functions that have no op, with the reason; the documentation lists them.
_IN_PLACE = "copyto fill_diagonal place put put_along_axis putmask"
_FILES = "save savetxt savez savez_compressed"
_DATES = "busday_count busday_offset is_busday datetime_as_string isnat"
_REASONS = {
    _IN_PLACE: "writes into its argument: use x.at[index].set(v), rg.where",
    _FILES: "writes a value to a file: pass x.value, or save the graph",
    _DATES: "works on dates, which are no arrays of numbers: use rg.lift",
}
REFUSED: dict[str, str] = {
    f"np.{name}": reason for names, reason in _REASONS.items() for name in names.split()
}


def functions() -> list[str]:
    """Return all functions of NumPy that ask their arguments: ufuncs, and those with the array protocol."""
    found = []
    for space, prefix in ((np, "np"), (np.linalg, "np.linalg"), (np.fft, "np.fft")):
        for name in dir(space):
            one = getattr(space, name)
            # numexpr, which pandas imports, writes another name of one of them there.
            known = name[0] != "_" and name != "expm1x"
            if known and (isinstance(one, np.ufunc) or hasattr(one, "_implementation")):
                found.append(f"{prefix}.{name}")
    return sorted(found)
