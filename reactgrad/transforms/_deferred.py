"""The values of deferred calls: the function is built in a graph apart once its operands' shapes are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reactgrad.autodiff import _transforms as of_nodes
from reactgrad.build._constants import zeros_like
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import Attrs
from reactgrad.ops._astype import astype
from reactgrad.ops._deferred import Deferred
from reactgrad.transforms._trace import Arguments, traced, values

Build = Callable[..., Any]


def call(function: Deferred, inputs: Sequence[Any], attrs: Attrs) -> Any:
    """Return the value of a deferred call, or of a derivative of one."""
    layout, place, _, derived = attrs
    what = function.function.__name__
    build: Build = lambda *operands: function.call(layout, place, operands)  # noqa: E731
    for mode, i in derived:
        build = (_vjp if mode == "vjp" else _jvp)(build, i)

    def on_vars(*operands: Any) -> Any:
        found = build(*operands)
        return found if isinstance(found, Handle) else operands[0]._graph.const(found)

    owner, key = function.function, attrs
    try:
        hash(attrs)
    except TypeError:  # attributes that hold arrays have no hash: nothing is kept for the next call
        owner, key = on_vars, None
    with traced(owner, key, on_vars, Arguments(what, inputs, {})) as result:
        return values(result)


def _moves(x: Any) -> bool:
    return x.dtype.kind in "fc"


def _vjp(build: Build, i: int) -> Build:
    """Return the function for the gradient of one operand, from that of the result and the operands."""

    def pulled(g: Any, *operands: Any) -> Any:
        y, x = build(*operands), operands[i]
        if not (isinstance(y, Handle) and _moves(y) and _moves(x)):
            return zeros_like(x._graph, x)
        found = of_nodes.vjp(y, x, _in_dtype(g, y), allow_unused=True)
        return zeros_like(x._graph, x) if found is None else found

    return pulled


def _jvp(build: Build, i: int) -> Build:
    """Return the function for the tangent of the result, from that of one operand and the operands."""

    def pushed(t: Any, *operands: Any) -> Any:
        y, x = build(*operands), operands[i]
        if not (isinstance(y, Handle) and _moves(y) and _moves(x)):
            return zeros_like(x._graph, y)
        return of_nodes.jvp(y, x, _in_dtype(t, x), allow_unused=True)

    return pushed


def _in_dtype(g: Any, like: Any) -> Any:
    return g if g.dtype == like.dtype else astype(g, like.dtype)
