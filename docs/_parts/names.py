"""The names that PyTorch and JAX have for the ops: ``python docs/_parts/names.py`` writes ``names.json``.

Both must be installed. The site reads the file, so that it is built without them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("names.json")
# Where a name is another one, or "" where the same name is something else.
TORCH = {
    "absolute": "torch.abs", "astype": "torch.Tensor.to", "power": "torch.pow", "negative": "torch.neg",
    "max": "torch.amax", "min": "torch.amin", "transpose": "torch.permute", "expand_dims": "torch.unsqueeze",
    "norm_cdf": "torch.special.ndtr", "reciprocal": "torch.reciprocal", "split": "torch.tensor_split",
    "array_split": "torch.tensor_split", "append": "torch.cat", "average": "", "repeat": "torch.repeat_interleave",
    "copy": "torch.clone", "cumulative_sum": "torch.cumsum", "cumulative_prod": "torch.cumprod", "ptp": "",
    "equal": "torch.eq", "floor_divide": "torch.floor_divide", "flatten": "torch.flatten", "nanmax": "", "nanmin": "",
    "median": "torch.quantile", "nanmedian": "torch.nanquantile", "percentile": "torch.quantile",
    "nanpercentile": "torch.nanquantile", "trapezoid": "torch.trapezoid", "take": "torch.index_select",
    "take_along_axis": "torch.take_along_dim", "partition": "", "argpartition": "", "invert": "torch.bitwise_not",
    "left_shift": "torch.bitwise_left_shift", "right_shift": "torch.bitwise_right_shift", "rint": "torch.round",
    "mod": "torch.remainder", "fmod": "torch.fmod", "i0": "torch.special.i0", "pow": "torch.pow",
    "acos": "torch.acos", "interp": "", "digitize": "torch.bucketize", "searchsorted": "torch.searchsorted",
    "nonzero": "torch.nonzero", "flatnonzero": "", "resize": "", "linspace": "torch.linspace", "geomspace": "",
    "conv1d": "torch.nn.functional.conv1d", "rnn": "torch.nn.RNN", "lstm": "torch.nn.LSTM", "gru": "torch.nn.GRU",
    "gammaln": "torch.special.gammaln", "lgamma": "torch.lgamma", "broadcast_arrays": "torch.broadcast_tensors",
    "vander": "torch.vander", "matvec": "torch.mv", "astype_like": "", "size": "", "histogram2d": "",
    "global_avg_pool": "torch.nn.AdaptiveAvgPool2d", "global_max_pool": "torch.nn.AdaptiveMaxPool2d",
    "linear": "torch.nn.functional.linear", "swapaxes": "torch.swapaxes", "norm": "torch.linalg.norm",
    "degrees": "torch.rad2deg", "radians": "torch.deg2rad", "fabs": "torch.abs", "expm": "torch.linalg.matrix_exp",
    "log_sigmoid": "torch.nn.functional.logsigmoid", "norm_ppf": "torch.special.ndtri", "around": "torch.round",
    "bessel_i0": "torch.special.i0", "bessel_i0e": "torch.special.i0e", "permute_dims": "torch.permute",
    "unstack": "torch.unbind", "sliding_window_view": "torch.Tensor.unfold", "nancumsum": "",
    "trigamma": "torch.polygamma", "bitwise_invert": "torch.bitwise_not", "segment_sum": "torch.scatter_add",
    "range": "", "delete": "", "insert": "", "select": "", "compress": "", "choose": "", "put": "",
}  # fmt: skip
JAX = {
    "norm_cdf": "jax.scipy.stats.norm.cdf", "norm_pdf": "jax.scipy.stats.norm.pdf", "astype": "jax.numpy.astype",
    "conv1d": "jax.lax.conv", "conv2d": "jax.lax.conv", "conv3d": "jax.lax.conv",
    "cummax": "jax.lax.cummax", "cummin": "jax.lax.cummin", "logcumsumexp": "jax.lax.cumlogsumexp",
    "scaled_dot_product_attention": "jax.nn.dot_product_attention", "trigamma": "jax.scipy.special.polygamma",
    "unbind": "jax.numpy.unstack", "cho_solve": "jax.scipy.linalg.cho_solve", "normalize": "", "linear": "",
    "norm_ppf": "jax.scipy.special.ndtri", "softsign": "jax.nn.soft_sign", "hardtanh": "jax.nn.hard_tanh",
    "hardsigmoid": "jax.nn.hard_sigmoid", "hardswish": "jax.nn.hard_swish", "segment_sum": "jax.ops.segment_sum",
    "segment_max": "jax.ops.segment_max", "segment_min": "jax.ops.segment_min", "topk": "jax.lax.top_k",
    "bessel_i0": "jax.scipy.special.i0",
    "fill_diagonal": "",
}  # fmt: skip
PLACES_TORCH = ("torch", "torch.nn.functional", "torch.special", "torch.linalg", "torch.fft")
PLACES_JAX = (
    *("jax.numpy", "jax.nn", "jax.scipy.special", "jax.numpy.linalg", "jax.scipy.linalg"),
    *("jax.numpy.fft", "jax.lax"),
)


def find(name: str) -> Any:
    """Return what a dotted name stands for, or None."""
    from importlib import import_module

    parts = name.split(".")
    for last in range(len(parts) - 1, 0, -1):
        try:
            found: Any = import_module(".".join(parts[:last]))
        except ImportError:
            continue
        for part in parts[last:]:
            found = getattr(found, part, None)
        return found
    return None


def named(name: str, group: str, others: dict[str, str], places: tuple[str, ...]) -> str:
    """Return another library's name for an op, or nothing."""
    if name in others:
        return others[name] if others[name] and find(others[name]) is not None else ""
    # Linear algebra and Fourier transforms have their own places, which come first for them.
    first = [place for place in places if group in ("linalg", "fft") and place.endswith(group)]
    for place in [*first, *places]:
        if callable(find(f"{place}.{name}")):
            return f"{place}.{name}"
    return ""


def main() -> None:
    root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(root / "docs"), str(root), str(root / "scheduler")]
    import jax.numpy
    import jax.scipy.linalg
    import jax.scipy.special
    import jax.scipy.stats
    import torch

    from _parts.operations import groups

    table = {
        f"{group}.{name}": [
            named(name, group, TORCH, PLACES_TORCH),
            named(name, group, JAX, PLACES_JAX),
        ]
        for group, names in groups().items()
        if group != "random"
        for name in names
    }
    table["versions"] = [torch.__version__.partition("+")[0], jax.__version__]
    FILE.write_text(json.dumps(table, indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
