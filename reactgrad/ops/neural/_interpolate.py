"""Images stretched to another size."""

from __future__ import annotations

from typing import Any, Final

from reactgrad._errors import ParameterError, ShapeError
from reactgrad.backend.numpy._taps import Rule
from reactgrad.ops._deferred import deferred
from reactgrad.ops.neural._resampling import resample
from reactgrad.ops.neural._space import each, operand
from reactgrad.scheduler import safe_repr

# By mode: the rule of each axis, and the numbers of axes of space that it is for.
_MODES: Final = {
    "nearest": ("nearest", (1, 2, 3)),
    "nearest-exact": ("nearest-exact", (1, 2, 3)),
    "area": ("parts", (1, 2, 3)),
    "linear": ("linear", (1,)),
    "bilinear": ("linear", (2,)),
    "trilinear": ("linear", (3,)),
    "bicubic": ("cubic", (2,)),
}


@deferred
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    """Return images stretched to another size. Arguments are PyTorch's.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, L), (N, C, H, W) or (N, C, D, H, W).
    size : int or tuple of int, optional
        The new size, one number for all axes of space or one for each. Either this or `scale_factor` is given.
    scale_factor : float or tuple of float, optional
        By how much each axis becomes longer; the length is rounded down.
    mode : str
        ``"nearest"``, ``"nearest-exact"``, ``"area"`` (means of equal parts), ``"linear"`` (L), ``"bilinear"``
        (H, W), ``"trilinear"`` (D, H, W), ``"bicubic"`` (H, W). All are products of one map for each axis.
    align_corners : bool, optional
        Whether the first and the last elements keep their places, in the linear and the cubic modes; else the
        edges of pixels do.
    recompute_scale_factor : bool, optional
        Whether places follow from the new size, and not from `scale_factor`.
    antialias : bool
        Whether an image that becomes smaller is smoothed first, in the modes ``"bilinear"`` and ``"bicubic"``.

    Returns
    -------
    Var
        Of the dtype of `input`; integers give float64, except in the nearest modes.

    Raises
    ------
    ShapeError
        If the images have another number of axes, or the new size has no elements.
    DTypeError
        For an unknown mode, or arguments that do not go together.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.interpolate([[[0.0, 3.0]]], size=3, mode="linear", align_corners=True)
    >>> y.value
    array([[[0. , 1.5, 3. ]]])
    """
    x = operand(input)
    if not isinstance(mode, str) or mode not in _MODES:
        raise ParameterError(
            f"interpolate: mode={safe_repr(mode):.60}; it is one of {', '.join(_MODES)}."
        )
    kind, wanted = _MODES[mode]
    axes = x.ndim - 2
    if axes not in wanted:
        shapes = " or ".join(
            ["(N, C, L)", "(N, C, H, W)", "(N, C, D, H, W)"][n - 1] for n in wanted
        )
        raise ShapeError(
            f"interpolate of an array of shape {tuple(x.shape)} with mode={safe_repr(mode)}: it takes images of shape "
            f"{shapes}. The other modes are {', '.join(m for m in _MODES if m != mode)}."
        )
    smooth = kind in ("linear", "cubic")
    if align_corners is not None and not smooth:
        raise ParameterError(
            f"interpolate: align_corners={align_corners} with mode={safe_repr(mode)}; only the linear and the cubic modes "
            "have it. Leave it out."
        )
    if antialias and not (smooth and axes == 2):
        raise ParameterError(
            f"interpolate: antialias=True with mode={safe_repr(mode)}; only bilinear and bicubic have it. Leave it out."
        )
    lengths, scales = _sizes(x, axes, size, scale_factor)
    if recompute_scale_factor:
        if size is not None:
            raise ParameterError(
                "interpolate: recompute_scale_factor=True with size=; there is no scale_factor to find again. Leave "
                "one of them out."
            )
        scales = tuple([-one for one in scales])  # for the lengths only: see ``stretched_length``
    rest: tuple[Any, ...] = (bool(align_corners), bool(antialias)) if smooth else ()
    if kind.startswith("nearest"):
        rest = (kind == "nearest" and axes == 2,)
    rules: tuple[Rule, ...] = tuple(
        [(kind, length, scale, *rest) for length, scale in zip(lengths, scales, strict=True)]
    )
    return resample(x, rules)


def _sizes(x: Any, axes: int, size: Any, scale_factor: Any) -> tuple[Any, Any]:
    """Return the new length of each axis, or ``None``, and its scale, or ``None``."""
    if (size is None) == (scale_factor is None):
        raise ParameterError(
            f"interpolate: size={safe_repr(size)} and scale_factor={safe_repr(scale_factor)}; exactly one of them says how large the "
            "result is."
        )
    if size is not None:
        return each("interpolate", "size", size, axes), (None,) * axes
    many = scale_factor if isinstance(scale_factor, tuple | list) else (scale_factor,) * axes
    if len(many) != axes:
        raise ShapeError(
            f"interpolate: scale_factor={safe_repr(scale_factor):.60} has {len(many)} numbers for {axes} "
            f"{'axis' if axes == 1 else 'axes'} of space; write one number, or one for each axis."
        )
    for one in many:
        if isinstance(one, bool) or not hasattr(one, "__float__") or not float(one) > 0.0:
            raise ParameterError(
                f"interpolate: scale_factor={safe_repr(scale_factor):.60}; it is a positive number, or one for each axis, "
                "fixed when the node is built."
            )
    return (None,) * axes, tuple([float(one) for one in many])
