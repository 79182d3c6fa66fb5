"""Channels that become space, and back: each is the gradient of the other one."""

from __future__ import annotations

from typing import Any

from reactgrad._calls import whole
from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._deferred import deferred
from reactgrad.ops.neural._space import operand


def _infer_shuffle(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (x,), (r,) = specs, attrs
    *lead, channels, h, w = x.shape
    if channels is not None and channels % (r * r):
        raise ShapeError(
            f"pixel_shuffle of {x!r} by {r}: the number of channels, {channels}, must be a multiple of {r * r}."
        )
    made = None if channels is None else channels // (r * r)
    return spec((*lead, made, _times(h, r), _times(w, r)), x.dtype, x.device)


def _infer_unshuffle(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (x,), (r,) = specs, attrs
    *lead, channels, h, w = x.shape
    for n in (h, w):
        if n is not None and n % r:
            raise ShapeError(
                f"pixel_unshuffle of {x!r} by {r}: height and width must be multiples of {r}."
            )
    made = None if channels is None else channels * r * r
    return spec((*lead, made, _over(h, r), _over(w, r)), x.dtype, x.device)


def _times(n: int | None, r: int) -> int | None:
    return None if n is None else n * r


def _over(n: int | None, r: int) -> int | None:
    return None if n is None else n // r


SHUFFLE = Op(
    "pixel_shuffle",
    _infer_shuffle,
    (lambda g, ans, x, r: apply(UNSHUFFLE, (g,), (r,)),),
    (LINEAR,),
)

UNSHUFFLE = Op(
    "pixel_unshuffle",
    _infer_unshuffle,
    (lambda g, ans, x, r: apply(SHUFFLE, (g,), (r,)),),
    (LINEAR,),
)


def _images(name: str, x: Any) -> Any:
    x = operand(x)
    if x.ndim < 3:
        raise ShapeError(
            f"{name} of an array of shape {tuple(x.shape)}: it takes images, (..., C, H, W). Add axes of length 1 "
            "with x[None]."
        )
    return x


@deferred
def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """Return images in which ``upscale_factor ** 2`` channels at a time have become the pixels of a larger image.

    Parameters
    ----------
    input : Var or array_like
        Shape (..., C * r * r, H, W), where r is the factor.
    upscale_factor : int
        r.

    Returns
    -------
    Var
        Shape (..., C, H * r, W * r).

    Raises
    ------
    ShapeError
        If the number of channels is no multiple of r * r.
    DTypeError
        If r is no integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.pixel_shuffle([[[1.0]], [[2.0]], [[3.0]], [[4.0]]], 2)
    >>> y.value
    array([[[1., 2.],
            [3., 4.]]])
    """
    r = whole("pixel_shuffle", "upscale_factor", upscale_factor, 1)
    return apply(SHUFFLE, (_images("pixel_shuffle", input),), (r,))


@deferred
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """Return images whose pixels have become channels: the reverse of ``pixel_shuffle``.

    Parameters
    ----------
    input : Var or array_like
        Shape (..., C, H * r, W * r), where r is the factor.
    downscale_factor : int
        r.

    Returns
    -------
    Var
        Shape (..., C * r * r, H, W).

    Raises
    ------
    ShapeError
        If height or width is no multiple of r.
    DTypeError
        If r is no integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.pixel_unshuffle([[[1.0, 2.0], [3.0, 4.0]]], 2)
    >>> y.value.tolist()
    [[[1.0]], [[2.0]], [[3.0]], [[4.0]]]
    """
    r = whole("pixel_unshuffle", "downscale_factor", downscale_factor, 1)
    return apply(UNSHUFFLE, (_images("pixel_unshuffle", input),), (r,))
