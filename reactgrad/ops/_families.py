"""Families of array functions that are imported when one of their names is first used.

Each family is a package of this folder. Its functions are called ``rg.name``, and where NumPy has the name,
``np.name(...)`` of a Var calls the same function. Where NumPy's signature is another one, the package has an
adapter in its table ``_FOR_NUMPY``, by name. ``reactgrad.linalg`` and ``reactgrad.fft`` are packages of their own;
a function that is called ``rg.name`` and built of theirs stands in ``ELSEWHERE``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from reactgrad.nodes._op import OPS, Op

FAMILIES: Final = {
    "reductions": (
        "all any argmax argmin average amax amin count_nonzero corrcoef cov cummax cummin cumprod cumsum "
        "cumulative_prod cumulative_sum diff ediff1d gradient histogram histogram_bin_edges histogram2d "
        "histogramdd bincount logcumsumexp logsumexp median nanargmax nanargmin nancumprod nancumsum nanmax "
        "nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar norm percentile prod "
        "ptp quantile std trapezoid unwrap var"
    ),
    "products": (
        "cross dot diag diagflat diagonal einsum einsum_path inner kron matrix_transpose matvec outer "
        "tensordot trace tri tril tril_indices_from triu triu_indices_from vander vdot vecdot vecmat"
    ),
    "arrangement": (
        "append array_split atleast_1d atleast_2d atleast_3d block broadcast_arrays column_stack concat copy "
        "delete dsplit dstack fill_diagonal flatten flip fliplr flipud hsplit hstack insert ix_ meshgrid moveaxis "
        "narrow pad permute_dims ravel repeat repeat_interleave resize roll rollaxis rot90 sliding_window_view "
        "swapaxes tile trim_zeros unflatten unstack vsplit vstack"
    ),
    "factories": (
        "arange empty empty_like eye full full_like geomspace identity linspace logspace ones ones_like zeros "
        "zeros_like"
    ),
    "ordering": (
        "argpartition argsort argwhere choose compress digitize extract flatnonzero in1d index_add index_select "
        "interp intersect1d isin lexsort masked_fill nonzero partition piecewise row_gradient scatter "
        "scatter_add searchsorted segment_max segment_mean segment_min segment_sum select setdiff1d setxor1d "
        "sort sort_complex take take_along_axis gather topk union1d unique unique_all unique_counts "
        "unique_inverse unique_values"
    ),
    "special": (
        "acos acosh allclose arccosh arcsinh arctanh around array_equal array_equiv asin asinh atan atan2 "
        "atanh bessel_i0 bessel_i0e beta betainc betaln bitwise_and bitwise_count bitwise_invert "
        "bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor boxcox boxcox1p cbrt "
        "celu convolve copysign correlate deg2rad degrees digamma divmod elu entr erfcinv erfinv exprel "
        "fabs fix float_power fmax fmin fmod frexp gamma gammainc gammaincc gammaln gcd gelu hardshrink "
        "hardsigmoid hardswish hardtanh heaviside i0 i0e i1 i1e invert isclose iscomplex iscomplexobj isinf "
        "isneginf isposinf isreal isrealobj iv jv kv lcm ldexp leaky_relu left_shift lgamma log_ndtr "
        "log_sigmoid logaddexp2 logical_xor logit mish mod modf nan_to_num ndtr ndtri nextafter norm_ppf "
        "poly polyadd polyder polydiv polygamma polyint polymul polysub polyval positive pow prelu rad2deg "
        "radians real_if_close rel_entr relu6 right_shift rint roots round rsqrt selu signbit silu sinc "
        "softplus softshrink softsign spacing tanhshrink threshold trigamma true_divide trunc xlog1py xlogy "
        "yv"
    ),
    "inquiry": (
        "apply_along_axis apply_over_axes common_type diag_indices_from min_scalar_type packbits "
        "ravel_multi_index unpackbits unravel_index"
    ),
    "neural": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
        "adaptive_max_pool3d affine_grid attention_weights avg_pool1d avg_pool2d avg_pool3d batch_moments batch_norm bilinear "
        "binary_cross_entropy binary_cross_entropy_with_logits conv1d conv2d conv3d conv_transpose1d "
        "conv_transpose2d conv_transpose3d cosine_embedding_loss cosine_similarity cross_entropy embedding "
        "fold gaussian_nll_loss global_avg_pool global_max_pool glu grid_sample group_norm gru "
        "hinge_embedding_loss huber_loss instance_norm interpolate kl_div l1_loss local_response_norm "
        "lp_pool1d lp_pool2d lp_pool3d lstm margin_ranking_loss max_pool1d max_pool2d max_pool3d mse_loss nll_loss "
        "normalize one_hot pairwise_distance pixel_shuffle pixel_unshuffle poisson_nll_loss rms_norm rnn "
        "scaled_dot_product_attention smooth_l1_loss soft_margin_loss softmin triplet_margin_loss unfold"
    ),
}

# Functions of NumPy alone, by the family whose table ``_FOR_NUMPY`` has them.
NUMPY_ALONE: Final = {
    "array2string": "inquiry",
    "astype": "inquiry",
    "can_cast": "inquiry",
    "result_type": "inquiry",
    "array_repr": "inquiry",
    "array_str": "inquiry",
    "copyto": "ordering",
    "may_share_memory": "inquiry",
    "place": "ordering",
    "put": "ordering",
    "put_along_axis": "ordering",
    "putmask": "ordering",
    "shares_memory": "inquiry",
}

# The family of each name; a name that stands in two is a mistake that a test finds.
FAMILY_OF: Final = {name: one for one, names in FAMILIES.items() for name in names.split()}

# The modules above this floor of functions that are called as those of families.
ELSEWHERE: Final = {"polyfit": "linalg._polyfit"}

PLACES: Final = {**{name: f"ops.{one}" for name, one in FAMILY_OF.items()}, **ELSEWHERE}

_PACKAGES_OF_NUMPY: Final = {
    "numpy.linalg": "reactgrad.linalg",
    "numpy.fft": "reactgrad.fft",
    "numpy.lib.stride_tricks": "reactgrad.ops.arrangement",
}


def for_numpy(function: Any) -> Callable[..., Any] | None:
    """Return what builds the nodes of a function of NumPy, from the family that has its name; else ``None``."""
    name = function.__name__
    place = _PACKAGES_OF_NUMPY.get(getattr(function, "__module__", None) or "numpy")
    if place is None:
        if name in PLACES:
            place = f"reactgrad.{PLACES[name]}"
        elif name in NUMPY_ALONE:
            place = f"reactgrad.ops.{NUMPY_ALONE[name]}"
        else:
            return None
    package = import_module(place)
    return getattr(package, "_FOR_NUMPY", {}).get(name) or getattr(package, name, None)


def op_named(name: str) -> Op | None:
    """Return the op of this name, which may be that of a family that nothing has used yet; else ``None``."""
    if name not in OPS:
        for place in (*(f"reactgrad.ops.{one}" for one in FAMILIES), *_PACKAGES_OF_NUMPY.values()):
            import_module(place)
    return OPS.get(name)
