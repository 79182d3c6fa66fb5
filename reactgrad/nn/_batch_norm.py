"""Batch normalisation, with running statistics that move at calls in train mode and at nothing else."""

from __future__ import annotations

import weakref
from math import prod
from typing import Any, ClassVar

import numpy as np

from reactgrad import ops
from reactgrad._errors import ShapeError
from reactgrad.functions._switch import switch
from reactgrad.nn._building import building
from reactgrad.nn._module import Module
from reactgrad.nn._values import Values
from reactgrad.nodes._handle import Handle, graph_of
from reactgrad.ops import neural, reductions


class _Tracked(Module):
    """Channels by moments of the batch in train mode, by running ones in eval mode."""

    _settings = ("num_features", "eps", "momentum")
    _ndims: ClassVar[tuple[int, ...]]
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def _open(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track: bool,
        dtype: Any,
        bias: bool,
    ) -> None:
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.track_running_stats = track
        make = Values(0, dtype)
        self.weight = make.full((num_features,), 1.0) if affine else None
        self.bias = make.full((num_features,), 0.0) if affine and bias else None
        first = np.zeros(num_features, make.dtype) if track else None
        self.register_buffer("running_mean", first)
        self.register_buffer("running_var", None if first is None else first + first.dtype.type(1))
        self.register_buffer("num_batches_tracked", np.array(0) if track else None)

    def reset_running_stats(self) -> None:
        """Set the running statistics to mean 0 and variance 1."""
        if self.track_running_stats:
            size = self.num_features
            mean = self.running_mean
            mean.graph.set(
                {mean: np.zeros(size), self.running_var: np.ones(size), self.num_batches_tracked: 0}
            )

    def _checked(self, input: Any) -> Any:
        x: Any = input if isinstance(input, Handle) else graph_of(input).const(input)
        name = type(self).__name__
        if x.ndim not in self._ndims:
            axes = " or ".join(map(str, self._ndims))
            raise ShapeError(f"{name} of shape {x.shape}: it takes an input of {axes} axes.")
        channels = x.shape[x.ndim - self._ndims[-1] + 1] if name[0] == "I" else x.shape[1]
        if channels not in (None, self.num_features):
            raise ShapeError(
                f"{name}({self.num_features}) of shape {x.shape}: the input has {channels} channels."
            )
        return x

    def _switched(self, x: Any, now: Any, moments: Any, count: int | None) -> Any:
        """Return what is normal in train mode, else the result by running statistics."""
        call = building()
        if call is not None:
            call.moments.append((weakref.ref(self), *moments, count))
        later = neural.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )
        return switch(self._mode(x.graph), now, later)

    def _mix(self, mean: Any, variance: Any, count: int | None, sets: dict[Any, Any]) -> None:
        """Add to `sets` the running statistics with the moments of one call mixed in."""
        if count == 1:
            raise ShapeError(
                f"{type(self).__name__} in train mode of one number for each channel: it has no variance. Give a "
                "larger batch, or switch to eval mode."
            )
        factor = self._factor(sets)
        if count == 0:  # an empty batch has no moments
            return
        for running, moment in ((self.running_mean, mean), (self.running_var, variance)):
            former = sets.get(running, running.value)
            sets[running] = (1.0 - factor) * former + factor * moment.value

    def _factor(self, sets: dict[Any, Any]) -> float:
        """Return the part of a new moment."""
        return self.momentum or 0.0


class _BatchNorm(_Tracked):
    """Channels by the moments of the batch; see ``BatchNorm1d``."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        self._open(num_features, eps, momentum, affine, track_running_stats, dtype, bias)

    def _factor(self, sets: dict[Any, Any]) -> float:
        tracked = self.num_batches_tracked
        sets[tracked] = number = sets.get(tracked, tracked.value) + 1
        return 1.0 / float(number) if self.momentum is None else self.momentum

    def forward(self, input: Any) -> Any:
        """Return the normalised channels."""
        x = self._checked(input)
        now = neural.batch_norm(x, None, None, self.weight, self.bias, True, eps=self.eps)
        if not self.track_running_stats:
            return now
        lengths = (x.shape[0], *x.shape[2:])
        count = None if None in lengths else prod(lengths)
        return self._switched(x, now, neural.batch_moments(x.detach()), count)


class BatchNorm1d(_BatchNorm):
    """Each channel moved to mean 0 and scaled to variance 1, then ``* weight + bias`` (Ioffe and Szegedy, 2015).

    In train mode by the moments of the batch, which each call mixes into the running ones; in eval mode by
    the running ones. Only calls mix: reads never do, however often, nor does a set of the input of a call
    that was made before. For a loop that sets inputs and does not call, ``net.update_statistics()`` mixes
    the moments as they are now. A call in train mode therefore computes what is needed for the moments.

    Parameters
    ----------
    num_features : int
        The number of channels, the second axis of the input.
    eps : float
        Added to the variance.
    momentum : float, optional
        The part of each new moment; ``None`` for the mean of all.
    affine : bool
        Whether there are a weight and a bias.
    track_running_stats : bool
        ``False`` to use the moments of the batch in both modes.
    dtype
        See ``rg.nn``.
    bias : bool
        ``False`` for a weight alone.

    Attributes
    ----------
    weight, bias : Var or None, shape (num_features,)
    running_mean, running_var, num_batches_tracked : Var or None
        Buffers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     layer = rg.nn.BatchNorm1d(1, momentum=0.5)
    >>> y = layer([[1.0], [3.0]])
    >>> layer.running_mean.value, y.value.round(3).ravel(), layer.running_mean.value
    (array([1.]), array([-1.,  1.]), array([1.]))
    >>> layer.eval().training, y.value.ravel().round(3)
    (False, array([0.   , 1.633]))
    """

    _ndims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """See ``BatchNorm1d``; input of shape (batch, channels, height, width)."""

    _ndims = (4,)


class BatchNorm3d(_BatchNorm):
    """See ``BatchNorm1d``; input of shape (batch, channels, depth, height, width)."""

    _ndims = (5,)


class _InstanceNorm(_Tracked):
    """Channels of each sample by their own moments; see ``InstanceNorm2d``."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        *,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        self._open(num_features, eps, momentum, affine, track_running_stats, dtype, bias)

    def forward(self, input: Any) -> Any:
        """Return the normalised channels."""
        x = self._checked(input)
        alone = x.ndim < self._ndims[-1]
        if alone:
            x = ops.expand_dims(x, 0)
        y = neural.instance_norm(x, self.weight, self.bias, eps=self.eps)
        if self.track_running_stats:
            space = tuple(range(2, x.ndim))
            moments = (
                ops.mean(ops.mean(x.detach(), space), 0),
                ops.mean(reductions.var(x.detach(), space, ddof=1), 0),
            )
            lengths = (0,) if x.shape[0] == 0 else x.shape[2:]
            y = self._switched(x, y, moments, None if None in lengths else prod(lengths))
        return y[0] if alone else y


class InstanceNorm1d(_InstanceNorm):
    """See ``InstanceNorm2d``; input of shape (batch, channels, length)."""

    _ndims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Each channel of each sample moved to mean 0 and scaled to variance 1; see ``rg.instance_norm``.

    Parameters
    ----------
    num_features : int
        The number of channels.
    eps, momentum, dtype, bias
        As for ``BatchNorm1d``.
    affine : bool
        Whether there are a weight and a bias.
    track_running_stats : bool
        Whether eval mode uses running statistics.

    Attributes
    ----------
    weight, bias : Var or None, shape (num_features,)
    """

    _ndims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """See ``InstanceNorm2d``; input of shape (batch, channels, depth, height, width)."""

    _ndims = (4, 5)
