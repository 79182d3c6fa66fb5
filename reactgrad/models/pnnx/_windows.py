"""Pooling, resampling and pixels."""

from __future__ import annotations

from typing import Any

import reactgrad as rg
from reactgrad.models.pnnx._call import Call, converts, rank, shape_of


@converts(*[f"{kind}{n}d" for n in (1, 2, 3) for kind in ("nn.MaxPool", "F.max_pool")])
def _max_pool(call: Call) -> Any:
    function = getattr(rg, f"max_pool{call.op[-2]}d")
    return function(
        call.x(), call("kernel_size"), _stride(call), call("padding", 0), call("dilation", 1),
        bool(call("ceil_mode", False)), return_indices=len(call.one.outputs) > 1,
    )  # fmt: skip


def _stride(call: Call) -> Any:
    return call("stride", None) or None  # an empty tuple stands for none


@converts(*[f"{kind}{n}d" for n in (1, 2, 3) for kind in ("nn.AvgPool", "F.avg_pool")])
def _avg_pool(call: Call) -> Any:
    function = getattr(rg, f"avg_pool{call.op[-2]}d")
    options = {"divisor_override": call("divisor_override", None)} if call.op[-2] != "1" else {}
    return function(
        call.x(), call("kernel_size"), _stride(call), call("padding", 0), bool(call("ceil_mode", False)),
        bool(call("count_include_pad", True)), **options,
    )  # fmt: skip


@converts(*[f"{kind}{n}d" for n in (1, 2) for kind in ("nn.LPPool", "F.lp_pool")])
def _lp_pool(call: Call) -> Any:
    function = getattr(rg, f"lp_pool{call.op[-2]}d")
    return function(
        call.x(),
        call("norm_type"),
        call("kernel_size"),
        _stride(call),
        bool(call("ceil_mode", False)),
    )


@converts(
    *[f"nn.Adaptive{kind}Pool{n}d" for n in (1, 2, 3) for kind in ("Avg", "Max")],
    *[f"F.adaptive_{kind}_pool{n}d" for n in (1, 2, 3) for kind in ("avg", "max")],
)
def _adaptive(call: Call) -> Any:
    kind, n = ("avg" if "vg" in call.op else "max"), int(call.op[-2])
    sizes = call.ints("output_size")
    sizes = sizes * n if len(sizes) == 1 else sizes
    own = shape_of(call.x())[-n:]
    sizes = tuple(
        m if size == 0 else size for size, m in zip(sizes, own, strict=True)
    )  # 0 stands for None
    function = getattr(rg, f"adaptive_{kind}_pool{n}d")
    options = {"return_indices": True} if kind == "max" and len(call.one.outputs) > 1 else {}
    return function(call.x(), sizes, **options)


@converts("nn.Upsample", "F.upsample", "F.interpolate", "F.upsample_nearest", "F.upsample_bilinear",
          "nn.UpsamplingNearest2d", "nn.UpsamplingBilinear2d")  # fmt: skip
def _interpolate(call: Call) -> Any:
    mode, align = call("mode", "nearest"), call("align_corners", None)
    if "earest" in call.op:
        mode = "nearest"
    elif "ilinear" in call.op:
        mode, align = "bilinear", True
    size, factor = call("size", None), call("scale_factor", None)
    n = rank(call.x()) - 2
    if size is not None:
        size = call.ints("size")
        size = size * n if len(size) == 1 else size
        call.affordable([m or 1 for m in (*shape_of(call.x())[:2], *size)])
    elif isinstance(factor, tuple):
        factor = tuple(float(f) for f in factor)
    if factor is not None and size is None:
        many = factor if isinstance(factor, tuple) else (factor,) * n
        call.affordable(
            [int((m or 1) * f) + 1 for m, f in zip(shape_of(call.x())[2:], many, strict=True)]
        )
    return rg.interpolate(
        call.x(), size, None if size is not None else factor, mode,
        None if mode in ("nearest", "area", "nearest-exact") else bool(align),
        call("recompute_scale_factor", None), antialias=bool(call("antialias", False)),
    )  # fmt: skip


@converts("nn.PixelShuffle", "F.pixel_shuffle")
def _pixel_shuffle(call: Call) -> Any:
    return rg.pixel_shuffle(call.x(), call.integer("upscale_factor"))


@converts("nn.PixelUnshuffle", "F.pixel_unshuffle")
def _pixel_unshuffle(call: Call) -> Any:
    return rg.pixel_unshuffle(call.x(), call.integer("downscale_factor"))


@converts("nn.ChannelShuffle", "F.channel_shuffle", "aten::channel_shuffle")
def _channel_shuffle(call: Call) -> Any:
    groups = int(call[1]) if len(call) > 1 else call.integer("groups")
    return rg.flatten(rg.swapaxes(rg.unflatten(call.x(), 1, (groups, -1)), 1, 2), 1, 2)


@converts("nn.Unfold", "F.unfold", "nn.Fold", "F.fold")
def _unfold(call: Call) -> Any:
    given = (call("kernel_size"), call("dilation", 1), call("padding", 0), call("stride", 1))
    if call.op.lower().endswith("unfold"):
        return rg.unfold(call.x(), *given)
    return rg.fold(call.x(), call("output_size"), *given)


@converts("F.grid_sample")
def _grid_sample(call: Call) -> Any:
    return rg.grid_sample(
        call[0],
        call[1],
        call("mode", "bilinear"),
        call("padding_mode", "zeros"),
        bool(call("align_corners", False)),
    )


@converts("F.affine_grid")
def _affine_grid(call: Call) -> Any:
    return rg.affine_grid(
        call[0], call.affordable(call.ints("size")), bool(call("align_corners", False))
    )
