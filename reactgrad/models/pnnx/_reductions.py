"""Reductions over axes, softmax, scans and order."""

from __future__ import annotations

from typing import Any, Final

import reactgrad as rg
from reactgrad.models.pnnx._call import Call, converts, rank

REDUCES: Final = {
    "torch.sum": "sum",
    "torch.mean": "mean",
    "torch.prod": "prod",
    "torch.amax": "max",
    "torch.amin": "min",
    "torch.logsumexp": "logsumexp",
    "torch.all": "all",
    "torch.any": "any",
    "torch.argmax": "argmax",
    "torch.argmin": "argmin",
}


def _keepdim(call: Call) -> bool:
    return bool(call("keepdim", False))


@converts(*REDUCES)
def _reduce(call: Call) -> Any:
    return getattr(rg, REDUCES[call.op])(call.x(), axis=call.axis(), keepdims=_keepdim(call))


@converts("torch.max", "torch.min")
def _extremum(call: Call) -> Any:
    name = call.op[-3:]
    if len(call) == 2:
        return rg.maximum(call[0], call[1]) if name == "max" else rg.minimum(call[0], call[1])
    axis, keep = call.axis(), _keepdim(call)
    found = getattr(rg, name)(call.x(), axis=axis, keepdims=keep)
    if len(call.one.outputs) == 1:
        return found
    return found, getattr(rg, f"arg{name}")(call.x(), axis=axis, keepdims=keep)


@converts("torch.std", "torch.var", "aten::std", "aten::var")
def _spread(call: Call) -> Any:
    if call.op[:4] == "aten" and len(call) != 2:
        raise call.refuse(f"{len(call)} operands")
    if call.op[:4] == "aten":
        return getattr(rg, call.op[-3:])(call[0], ddof=int(call[1]))
    ddof = call("correction", None)
    ddof = (1 if call("unbiased", True) else 0) if ddof is None else ddof
    return getattr(rg, call.op[-3:])(call.x(), axis=call.axis(), ddof=ddof, keepdims=_keepdim(call))


@converts("torch.norm")
def _norm(call: Call) -> Any:
    p, axis = call("p", 2), call.axis()
    p = 2 if p in ("fro", None) else float(p)
    axis = tuple(range(rank(call.x()))) if axis is None else axis
    return rg.linalg.vector_norm(call.x(), axis=axis, ord=p, keepdims=_keepdim(call))


@converts(
    "F.softmax",
    "nn.Softmax",
    "F.log_softmax",
    "nn.LogSoftmax",
    "F.softmin",
    "nn.Softmin",
    "nn.Softmax2d",
)
def _softmax(call: Call) -> Any:
    axis = -3 if call.op == "nn.Softmax2d" else call("dim", None)
    if axis is None:  # PyTorch's rule for files without one
        axis = 0 if rank(call.x()) in (0, 1, 3) else 1
    if "min" in call.op:
        return rg.softmin(call.x(), axis)
    return (rg.log_softmax if "og" in call.op else rg.softmax)(call.x(), axis)


@converts("F.glu", "nn.GLU")
def _glu(call: Call) -> Any:
    return rg.glu(call.x(), call.integer("dim", -1))


@converts("torch.cumsum", "torch.cumprod")
def _scan(call: Call) -> Any:
    return getattr(rg, call.op[6:])(call.x(), axis=call.integer("dim"))


@converts("torch.topk")
def _topk(call: Call) -> Any:
    found = rg.topk(
        call.x(),
        call.integer("k"),
        call.integer("dim", -1),
        call("largest", True),
        call("sorted", True),
    )
    return found if len(call.one.outputs) > 1 else found[0]


@converts("torch.sort", "aten::sort")
def _sort(call: Call) -> Any:
    if call.op[:4] == "aten":
        call.one.params.update(zip(("dim", "descending"), call.values[-2:], strict=True))
    axis, down = call.integer("dim", -1), bool(call("descending", False))
    places = rg.argsort(call.x(), axis=axis, descending=down, stable=True)
    found = rg.take_along_axis(call.x(), places, axis)
    return (found, places) if len(call.one.outputs) > 1 else found


@converts("F.cosine_similarity", "F.pairwise_distance", "aten::cosine_similarity")
def _distance(call: Call) -> Any:
    a, b = call.x("x1", 0), call.x("x2", 1)
    if call.op[:4] == "aten":
        return rg.cosine_similarity(a, b, int(call[2]), float(call[3]))
    if call.op == "F.cosine_similarity":
        return rg.cosine_similarity(a, b, call.integer("dim", 1), call("eps", 1e-8))
    return rg.pairwise_distance(a, b, call("p", 2.0), call("eps", 1e-6), _keepdim(call))
