"""Images at the places of a grid, and the grids of affine maps.

The weight of a pixel is a product of one factor for each axis, and an op has an order for each axis: how often
its factor is differentiated. So the derivatives of ``grid_sample`` by the grid are ``grid_sample`` of other orders.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _sampling
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._deferred import deferred
from reactgrad.ops._join import stack
from reactgrad.ops._layout import known_shape, reshape, swap_last
from reactgrad.ops._matmul import matmul
from reactgrad.ops._reduce import sum
from reactgrad.ops._shapes import common_device, promote
from reactgrad.ops.neural._space import operand
from reactgrad.scheduler import safe_repr

_MODES: Final = ("bilinear", "nearest", "bicubic")
_PADDINGS: Final = ("zeros", "border", "reflection")


def _fits(m: int | None, n: int | None) -> bool:
    return m is None or n is None or m == n


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    x, grid = specs
    axes = len(x.shape) - 2
    if len(grid.shape) != axes + 2 or not _fits(grid.shape[-1], axes):
        raise ShapeError(
            f"grid_sample of {x!r} with grid {safe_repr(grid)}: for images of {axes} axes of space the grid has shape (N, "
            f"{', '.join(('D', 'H', 'W')[3 - axes :])}, {axes}), one place for each pixel of the result."
        )
    if not _fits(x.shape[0], grid.shape[0]):
        raise ShapeError(
            f"grid_sample of {x!r} with grid {safe_repr(grid)}: there are {x.shape[0]} images and {grid.shape[0]} grids (axis "
            "0). Give each image a grid, with rg.broadcast_to for one grid of all."
        )
    if 0 in x.shape[2:]:
        raise ShapeError(f"grid_sample of {x!r}: an image without pixels has none to take.")
    dtype = promote(specs)
    if dtype.kind != "f":
        raise DTypeError(
            f"grid_sample of {x!r} with grid {safe_repr(grid)}: images and places are floats. Convert them with "
            ".astype('float32')."
        )
    return spec(
        (x.shape[0], x.shape[1], *grid.shape[1:-1]), dtype, common_device("grid_sample", specs)
    )


def _infer_back(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    g = specs[0]
    space = attrs[4] if len(specs) == 2 else specs[2].shape[2:]
    return spec((*g.shape[:2], *space), g.dtype, common_device("grid_sample", specs))


def _more(attrs: Attrs, axis: int) -> Attrs:
    """Return the attributes with the order of one axis raised."""
    mode, padding, align, orders = attrs[:4]
    raised = tuple([order + (i == axis) for i, order in enumerate(orders)])
    return mode, padding, align, raised


def _sample(x: Any, grid: Any, attrs: Attrs) -> Any:
    return apply(SAMPLE, (x, grid), attrs[:4])


def _images(g: Any, grid: Any, x: Any, attrs: Attrs) -> Any:
    """Return the transposed map of `g`, in the shape of the images `x`."""
    shape = known_shape(x)
    if shape is None or None in shape[2:]:
        return apply(BACK_LIKE, (g, grid, x), attrs[:4])
    return apply(BACK, (g, grid), (*attrs[:4], shape[2:]))


def _by_grid(g: Any, x: Any, grid: Any, attrs: Attrs) -> Any:
    """Return the gradient of the places: for each the sum over channels of `g` times the slope of the image."""
    axes = len(attrs[3])
    slopes = [sum(g * _sample(x, grid, _more(attrs, axis)), 1) for axis in reversed(range(axes))]
    return stack(slopes, -1)


def _along_grid(t: Any, x: Any, grid: Any, attrs: Attrs) -> Any:
    """Return the change of the result for a change `t` of the places."""
    axes = len(attrs[3])
    parts = [
        t[..., axes - 1 - axis][:, None] * _sample(x, grid, _more(attrs, axis))
        for axis in range(axes)
    ]
    return _added(parts)


def _back_along_grid(t: Any, g: Any, grid: Any, x: Any, attrs: Attrs) -> Any:
    axes = len(attrs[3])
    return _added(
        [
            _images(g * t[..., axes - 1 - axis][:, None], grid, x, _more(attrs, axis))
            for axis in range(axes)
        ]
    )


def _added(parts: list[Any]) -> Any:
    total = parts[0]
    for one in parts[1:]:
        total = total + one
    return total


SAMPLE = Op(
    "grid_sample",
    _infer,
    (
        lambda g, ans, x, grid, *attrs: _images(g, grid, x, attrs),
        lambda g, ans, x, grid, *attrs: _by_grid(g, x, grid, attrs),
    ),
    (LINEAR, lambda t, ans, x, grid, *attrs: _along_grid(t, x, grid, attrs)),
)

BACK = Op(
    "grid_sample_back",
    _infer_back,
    (
        lambda h, ans, g, grid, *attrs: _sample(h, grid, attrs),
        lambda h, ans, g, grid, *attrs: _by_grid(g, h, grid, attrs),
    ),
    (LINEAR, lambda t, ans, g, grid, *attrs: _back_along_grid(t, g, grid, ans, attrs)),
)

BACK_LIKE = Op(
    "grid_sample_back_like",
    _infer_back,
    (
        lambda h, ans, g, grid, x, *attrs: _sample(h, grid, attrs),
        lambda h, ans, g, grid, x, *attrs: _by_grid(g, h, grid, attrs),
        None,
    ),
    (LINEAR, lambda t, ans, g, grid, x, *attrs: _back_along_grid(t, g, grid, x, attrs), None),
)

add_kernels(_sampling.register, on_host(_sampling.NAMES))


@deferred
def grid_sample(
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:
    """Return images at the places of a grid. Arguments are PyTorch's.

    Parameters
    ----------
    input : Var or array_like
        Images of shape (N, C, H, W) or (N, C, D, H, W); floats.
    grid : Var or array_like
        Places of shape (N, h, w, 2) or (N, d, h, w, 3), the one along W first: -1 and 1 are the ends of an axis.
        A place of NaN gives NaN.
    mode : str
        ``"bilinear"`` (over three axes, too), ``"nearest"`` or ``"bicubic"`` (over two axes).
    padding_mode : str
        What lies outside: ``"zeros"``, ``"border"`` (the pixels at the border) or ``"reflection"`` (the image again
        and again, mirrored).
    align_corners : bool, optional
        Whether the ends of an axis are the centres of its first and last pixels, or (by default) their outer edges.

    Returns
    -------
    Var
        Shape (N, C, h, w) or (N, C, d, h, w). Its gradient reaches the images and the grid.

    Raises
    ------
    ShapeError
        If images and grid do not fit.
    DTypeError
        For an unknown mode, or other numbers than floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.grid_sample([[[[1.0, 3.0]]]], [[[[0.0, 0.0], [0.5, 0.0]]]])
    >>> y.value
    array([[[[2., 3.]]]])
    """
    x, places = operand(input), operand(grid)
    axes = x.ndim - 2
    if axes not in (2, 3):
        raise ShapeError(
            f"grid_sample of an array of shape {tuple(x.shape)}: it takes images of shape (N, C, H, W) or (N, C, D, "
            "H, W). Add axes of length 1 with x[None]."
        )
    if mode not in _MODES or (mode == "bicubic" and axes == 3):
        raise ParameterError(
            f"grid_sample: mode={safe_repr(mode):.60} for images of {axes} axes of space; it is bilinear, nearest, or, for two "
            "axes, bicubic."
        )
    if padding_mode not in _PADDINGS:
        raise ParameterError(
            f"grid_sample: padding_mode={safe_repr(padding_mode):.60}; it is one of {', '.join(_PADDINGS)}."
        )
    return _sample(x, places, (mode, padding_mode, bool(align_corners), (0,) * axes))


@deferred
def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    """Return the places for ``grid_sample`` to which affine maps bring the pixels of images.

    Parameters
    ----------
    theta : Var or array_like
        Matrices of shape (N, 2, 3) for images (N, C, H, W), or (N, 3, 4) for (N, C, D, H, W).
    size : tuple of int
        The shape of the images.
    align_corners : bool, optional
        As for ``grid_sample``.

    Returns
    -------
    Var
        Shape (N, H, W, 2) or (N, D, H, W, 3), of the dtype of `theta`.

    Raises
    ------
    ShapeError
        If `theta` and `size` do not fit.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.affine_grid([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]]], (1, 1, 1, 2))
    >>> y.value
    array([[[[-0.5,  0.5],
             [ 0.5,  0.5]]]])
    """
    maps = operand(theta)
    shape = tuple([int(n) for n in size])
    axes = len(shape) - 2
    fits = axes in (2, 3) and maps.ndim == 3
    if not fits or tuple(maps.shape[1:]) != (axes, axes + 1) or not _fits(maps.shape[0], shape[0]):
        raise ShapeError(
            f"affine_grid of theta of shape {tuple(maps.shape)} for images of shape {shape}: theta has shape (N, 2, 3) "
            "for images (N, C, H, W), and (N, 3, 4) for (N, C, D, H, W)."
        )
    rows = np.meshgrid(*[_ends(n, align_corners) for n in shape[2:]], indexing="ij")
    places = np.stack([*reversed(rows), np.ones(shape[2:])], -1).reshape(-1, axes + 1)
    dtype = maps.dtype if maps.dtype.kind == "f" else np.dtype(np.float64)
    moved = matmul(places.astype(dtype), swap_last(maps))
    if 0 in shape:
        return reshape(moved, (shape[0], *shape[2:], axes))
    return reshape(moved, (-1, *shape[2:], axes))


def _ends(n: int, align_corners: bool | None) -> Any:
    """Return the places of the pixels of an axis."""
    if n < 2:
        return np.zeros(n)
    places = np.linspace(-1.0, 1.0, n)
    return places if align_corners else places * ((n - 1) / n)
