"""Costs of sequences whose labels are not aligned (Graves and others, 2006)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.numpy import _ctc
from reactgrad.nodes._handle import Handle, apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._elementwise import divide, maximum
from reactgrad.ops._layout import expand_dims, squeeze
from reactgrad.ops._operand import in_dtype, node
from reactgrad.ops._reduce import mean, sum
from reactgrad.ops._shapes import common_device
from reactgrad.scheduler import safe_repr

add_kernels(_ctc.register)


def _infer_cost(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(specs[0].shape[1:2], specs[0].dtype, common_device("ctc_loss", specs))


def _infer_slope(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(specs[1].shape, specs[1].dtype, common_device("ctc_loss", specs))


# By probabilities, times the gradient of each sample's cost. It has no rule of its own, as in PyTorch.
SLOPE: Final = Op("ctc_slope", _infer_slope)


def _back(g: Any, ans: Any, *given: Any) -> Any:
    *operands, blank, zero = given
    return apply(SLOPE, (g, *operands), (blank, zero))


def _along(t: Any, ans: Any, *given: Any) -> Any:
    *operands, blank, zero = given
    one = ans._graph.const(np.ones((), ans.dtype))
    slopes = apply(SLOPE, (one * (ans * 0.0 + 1.0), *operands), (blank, zero))
    return sum(slopes * t, (0, 2))


COST: Final = Op("ctc_cost", _infer_cost, (_back, None, None, None), (_along, None, None, None))


def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """Return the cost of sequences of log probabilities, given labels without their places in time.

    Parameters
    ----------
    log_probs : Var or array_like, shape (steps, samples, classes) or (steps, classes)
        Logarithms of probabilities, of ``log_softmax``.
    targets : Var or array_like of int, shape (samples, longest) or (sum of lengths,)
        The classes of each label, padded, or one label after the other.
    input_lengths, target_lengths : Var or array_like of int, shape (samples,)
        The number of steps and of classes of each sample.
    blank : int
        The class that stands for none.
    reduction : {"mean", "sum", "none"}
        The mean is that of the costs over the lengths of their labels.
    zero_infinity : bool
        Whether a label that is too long for its steps costs 0 and has no gradient, in place of infinity.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> even = np.full((3, 1, 2), np.log(0.5))
    >>> with rg.Graph():
    ...     y = rg.nn.functional.ctc_loss(even, [[1]], [3], [1])
    >>> y.value.round(6)  # 6 of 8 ways give the label
    np.float64(0.287682)
    """
    x = node(log_probs, targets, input_lengths, target_lengths)
    graph = x._graph

    def integers(given: Any) -> Any:
        return given if isinstance(given, Handle) else graph.const(np.asarray(given, np.int64))

    wanted, times, lengths = map(integers, (targets, input_lengths, target_lengths))
    if x.dtype.kind != "f":
        raise DTypeError(
            f"ctc_loss: the log probabilities are of {x.dtype}, and they are floats, of log_softmax."
        )
    for word, one in (("targets", wanted), ("input_lengths", times), ("target_lengths", lengths)):
        if one.dtype.kind not in "iu":
            raise DTypeError(f"ctc_loss: the {word} are of {one.dtype}, and they are integers.")
    alone = x.ndim == 2
    if alone:
        x = expand_dims(x, 1)
        wanted = expand_dims(wanted, 0) if wanted.ndim == 1 else wanted
        times, lengths = times.reshape(-1), lengths.reshape(-1)
    if x.ndim != 3 or times.ndim != 1 or lengths.ndim != 1 or wanted.ndim not in (1, 2):
        raise ShapeError(
            f"ctc_loss of shape {x.shape}, targets of shape {wanted.shape} and lengths of shapes {times.shape} and "
            f"{lengths.shape}: they are (steps, samples, classes), (samples, longest) and (samples,)."
        )
    if wanted.ndim == 1:
        wanted = _padded(wanted, target_lengths)
    if isinstance(blank, bool) or not isinstance(blank, int) or blank < 0:
        raise ParameterError(
            f"ctc_loss(blank={safe_repr(blank):.40}): it is the number of a class."
        )
    costs = apply(COST, (x, wanted, times, lengths), (blank, bool(zero_infinity)))
    if reduction == "mean":
        return mean(divide(costs, in_dtype(maximum(lengths, 1), x.dtype)))
    if reduction == "sum":
        return sum(costs)
    if reduction != "none":
        raise ParameterError(
            f"ctc_loss(reduction={safe_repr(reduction):.40}): it is 'mean', 'sum' or 'none'."
        )
    return squeeze(costs, 0) if alone else costs


def _padded(targets: Any, lengths: Any) -> Any:
    """Return labels that stand one after the other as rows, whose lengths are numbers."""
    if isinstance(lengths, Handle):
        raise ShapeError(
            "ctc_loss: labels one after the other, and lengths that are nodes: rows would follow from values. Give "
            "targets of shape (samples, longest), padded by any class."
        )
    numbers = np.asarray(lengths, np.int64).reshape(-1)
    starts = np.cumsum(numbers) - numbers
    longest = int(numbers.max(initial=0))
    at = starts[:, None] + np.arange(longest)
    inside = np.arange(longest) < numbers[:, None]
    return targets[np.where(inside, at, 0)]
