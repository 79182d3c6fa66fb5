"""Functions of arrays under PyTorch's names: ``rg.nn.functional``.

They are ``rg``'s own functions, beside a few that have another order, default or axis there: ``linear``,
``cross_entropy``, ``softmax``, ``log_softmax``, ``softmin``, ``layer_norm`` and ``pad`` are as in PyTorch here.
``dropout`` follows the mode of the graph unless ``training=`` is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactgrad import ops
from reactgrad._calls import explain_all as _explain_all
from reactgrad._errors import ParameterError, ShapeError
from reactgrad._habits import absent_from as _absent_from
from reactgrad._names_of_torch import OF_FUNCTIONAL as _OF_FUNCTIONAL
from reactgrad.nn._activations import axis_of_classes
from reactgrad.nn._arrangement import channel_shuffle as channel_shuffle
from reactgrad.nn._distances import pdist as pdist
from reactgrad.nn._distances import (
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from reactgrad.nn._margins import multi_margin_loss as multi_margin_loss
from reactgrad.nn._margins import multilabel_margin_loss as multilabel_margin_loss
from reactgrad.nn._margins import multilabel_soft_margin_loss as multilabel_soft_margin_loss
from reactgrad.nn._padding import bordered
from reactgrad.ops import neural, special
from reactgrad.ops import relu as relu
from reactgrad.ops import sigmoid as sigmoid
from reactgrad.ops import tanh as tanh
from reactgrad.ops._operand import node
from reactgrad.ops.neural import adaptive_avg_pool1d as adaptive_avg_pool1d
from reactgrad.ops.neural import adaptive_avg_pool2d as adaptive_avg_pool2d
from reactgrad.ops.neural import adaptive_avg_pool3d as adaptive_avg_pool3d
from reactgrad.ops.neural import adaptive_max_pool1d as adaptive_max_pool1d
from reactgrad.ops.neural import adaptive_max_pool2d as adaptive_max_pool2d
from reactgrad.ops.neural import adaptive_max_pool3d as adaptive_max_pool3d
from reactgrad.ops.neural import affine_grid as affine_grid
from reactgrad.ops.neural import avg_pool1d as avg_pool1d
from reactgrad.ops.neural import avg_pool2d as avg_pool2d
from reactgrad.ops.neural import avg_pool3d as avg_pool3d
from reactgrad.ops.neural import batch_norm as batch_norm
from reactgrad.ops.neural import bilinear as bilinear
from reactgrad.ops.neural import binary_cross_entropy as binary_cross_entropy
from reactgrad.ops.neural import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from reactgrad.ops.neural import conv1d as conv1d
from reactgrad.ops.neural import conv2d as conv2d
from reactgrad.ops.neural import conv3d as conv3d
from reactgrad.ops.neural import conv_transpose1d as conv_transpose1d
from reactgrad.ops.neural import conv_transpose2d as conv_transpose2d
from reactgrad.ops.neural import conv_transpose3d as conv_transpose3d
from reactgrad.ops.neural import cosine_embedding_loss as cosine_embedding_loss
from reactgrad.ops.neural import cosine_similarity as cosine_similarity
from reactgrad.ops.neural import embedding as embedding
from reactgrad.ops.neural import fold as fold
from reactgrad.ops.neural import gaussian_nll_loss as gaussian_nll_loss
from reactgrad.ops.neural import glu as glu
from reactgrad.ops.neural import grid_sample as grid_sample
from reactgrad.ops.neural import group_norm as group_norm
from reactgrad.ops.neural import hinge_embedding_loss as hinge_embedding_loss
from reactgrad.ops.neural import huber_loss as huber_loss
from reactgrad.ops.neural import instance_norm as instance_norm
from reactgrad.ops.neural import interpolate as interpolate
from reactgrad.ops.neural import kl_div as kl_div
from reactgrad.ops.neural import l1_loss as l1_loss
from reactgrad.ops.neural import local_response_norm as local_response_norm
from reactgrad.ops.neural import lp_pool1d as lp_pool1d
from reactgrad.ops.neural import lp_pool2d as lp_pool2d
from reactgrad.ops.neural import lp_pool3d as lp_pool3d
from reactgrad.ops.neural import margin_ranking_loss as margin_ranking_loss
from reactgrad.ops.neural import max_pool1d as max_pool1d
from reactgrad.ops.neural import max_pool2d as max_pool2d
from reactgrad.ops.neural import max_pool3d as max_pool3d
from reactgrad.ops.neural import mse_loss as mse_loss
from reactgrad.ops.neural import nll_loss as nll_loss
from reactgrad.ops.neural import normalize as normalize
from reactgrad.ops.neural import one_hot as one_hot
from reactgrad.ops.neural import pairwise_distance as pairwise_distance
from reactgrad.ops.neural import pixel_shuffle as pixel_shuffle
from reactgrad.ops.neural import pixel_unshuffle as pixel_unshuffle
from reactgrad.ops.neural import poisson_nll_loss as poisson_nll_loss
from reactgrad.ops.neural import scaled_dot_product_attention as scaled_dot_product_attention
from reactgrad.ops.neural import smooth_l1_loss as smooth_l1_loss
from reactgrad.ops.neural import soft_margin_loss as soft_margin_loss
from reactgrad.ops.neural import triplet_margin_loss as triplet_margin_loss
from reactgrad.ops.neural import unfold as unfold
from reactgrad.ops.neural._ctc import ctc_loss as ctc_loss
from reactgrad.ops.neural._embedding_bag import embedding_bag as embedding_bag
from reactgrad.ops.neural._unpool import max_unpool
from reactgrad.ops.special import celu as celu
from reactgrad.ops.special import elu as elu
from reactgrad.ops.special import gelu as gelu
from reactgrad.ops.special import hardshrink as hardshrink
from reactgrad.ops.special import hardsigmoid as hardsigmoid
from reactgrad.ops.special import hardswish as hardswish
from reactgrad.ops.special import hardtanh as hardtanh
from reactgrad.ops.special import leaky_relu as leaky_relu
from reactgrad.ops.special import mish as mish
from reactgrad.ops.special import prelu as prelu
from reactgrad.ops.special import relu6 as relu6
from reactgrad.ops.special import selu as selu
from reactgrad.ops.special import silu as silu
from reactgrad.ops.special import softplus as softplus
from reactgrad.ops.special import softshrink as softshrink
from reactgrad.ops.special import softsign as softsign
from reactgrad.ops.special import tanhshrink as tanhshrink
from reactgrad.ops.special import threshold as threshold
from reactgrad.random._dropout import alpha_dropout as alpha_dropout
from reactgrad.random._dropout import dropout as dropout
from reactgrad.random._dropout import dropout1d as dropout1d
from reactgrad.random._dropout import dropout2d as dropout2d
from reactgrad.random._dropout import dropout3d as dropout3d
from reactgrad.random._dropout import feature_alpha_dropout as feature_alpha_dropout
from reactgrad.random._fractional_pooling import fractional_max_pool
from reactgrad.random._gumbel_softmax import gumbel_softmax as gumbel_softmax
from reactgrad.random._rrelu import rrelu as rrelu
from reactgrad.scheduler import safe_repr


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Return ``input @ weight.T + bias``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.functional.linear([1.0, 2.0], [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> y.value
    array([1., 2., 3.])
    """
    x = node(input, weight, bias)
    return ops.linear(x, ops.transpose(node(weight, x)), bias)


def max_unpool1d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Any:
    """Return what ``MaxUnpool1d`` does."""
    return max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Any:
    """Return what ``MaxUnpool2d`` does."""
    return max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Any:
    """Return what ``MaxUnpool3d`` does."""
    return max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


def fractional_max_pool2d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Return what ``FractionalMaxPool2d`` does."""
    return fractional_max_pool(
        2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )


def fractional_max_pool3d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Return what ``FractionalMaxPool3d`` does."""
    return fractional_max_pool(
        3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )


def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """Return the mean cost of scores, with classes along axis 1; see ``rg.cross_entropy``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.functional.cross_entropy([[2.0, 0.0], [0.0, 0.0]], [0, 1])
    >>> y.value.round(6)
    np.float64(0.410038)
    """
    x = node(input, target, weight)
    labels = node(target, x)
    return neural.cross_entropy(
        x,
        labels,
        min(1, x.ndim - 1),
        weight=weight,
        ignore_index=ignore_index if labels.dtype.kind in "iu" else None,
        label_smoothing=label_smoothing,
        reduction=reduction,
    )


def softmax(input: Any, dim: int | None = None) -> Any:
    """Return ``rg.softmax`` along an axis; by default 0 for 1 or 3 axes, else 1.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.functional.softmax([[0.0, 0.0]], dim=-1)
    >>> y.value
    array([[0.5, 0.5]])
    """
    x = node(input)
    return ops.softmax(x, axis_of_classes(x) if dim is None else dim)


def log_softmax(input: Any, dim: int | None = None) -> Any:
    """Return ``rg.log_softmax`` along an axis; see ``softmax``."""
    x = node(input)
    return ops.log_softmax(x, axis_of_classes(x) if dim is None else dim)


def logsigmoid(input: Any) -> Any:
    """Return ``rg.log_sigmoid``, the logarithm of the sigmoid, without loss in its tails.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.functional.logsigmoid([-100.0])
    >>> y.value
    array([-100.])
    """
    return special.log_sigmoid(input)


def softmin(input: Any, dim: int | None = None) -> Any:
    """Return ``rg.softmin`` along an axis; see ``softmax``."""
    x = node(input)
    return neural.softmin(x, axis_of_classes(x) if dim is None else dim)


def layer_norm(
    input: Any,
    normalized_shape: Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    """Return rows over the last axes moved to mean 0 and scaled to variance 1, then ``* weight + bias``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.functional.layer_norm([[1.0, 3.0]], (2,), eps=0.0)
    >>> y.value
    array([[-1.,  1.]])
    """
    axes = tuple(range(-len(normalized_shape), 0))
    return ops.layer_norm(input, weight, bias, axis=axes, eps=eps)


def rms_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None
) -> Any:
    """Return rows over the last axes divided by the root of the mean of their squares, then ``* weight``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.functional.rms_norm([[3.0, 3.0]], (2,), eps=0.0)
    >>> y.value
    array([[1., 1.]])
    """
    axes = tuple(range(-len(normalized_shape), 0))
    return neural.rms_norm(input, weight, axis=axes, eps=eps)


_BEYOND = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    """Return `input` with a border: before and behind the last axis, then the axis before it.

    Parameters
    ----------
    input : Var or array_like
    pad : sequence of int
        Two for each axis, the last one first; ``rg.pad`` has NumPy's order. Negative ones take away.
    mode : {"constant", "reflect", "replicate", "circular"}
    value : float, optional
        Of a constant border; 0 by default.

    Raises
    ------
    ShapeError
        If the lengths are no pairs, or more than the axes have.
    DTypeError
        If there is no such mode.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.functional.pad([[1.0, 2.0]], (1, 0))
    >>> y.value
    array([[0., 1., 2.]])
    """
    x = node(input)
    if mode not in _BEYOND:
        raise ParameterError(f"pad(mode={safe_repr(mode):.40}): it is one of {', '.join(_BEYOND)}.")
    if len(pad) % 2 or len(pad) > 2 * x.ndim:
        raise ShapeError(
            f"pad={tuple(pad)} of shape {x.shape}: it has two lengths for each padded axis, the last axis first."
        )
    pairs = [tuple(pad[i : i + 2]) for i in range(0, len(pad), 2)][::-1]
    width = [(0, 0)] * (x.ndim - len(pairs)) + pairs
    options = {"constant_values": value or 0.0} if mode == "constant" else {}
    return bordered(x, width, _BEYOND[mode], **options)


_explain_all(globals(), __name__, "rg.nn.functional")
__getattr__ = _absent_from(__name__, _OF_FUNCTIONAL)
