"""Derivatives by rules of the user, checked against the values that they belong to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from reactgrad._errors import DeviceError, DTypeError, GradientError, GraphError, ShapeError
from reactgrad.backend import Spec, read_value, spec
from reactgrad.build._functions import outputs
from reactgrad.core._handles import handle
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import CONST, LINEAR, Attrs, Op
from reactgrad.ops import Share, astype, no_shares, shares
from reactgrad.scheduler import safe_repr


def custom_gradients(
    program: Any, slot: int, g: Any, operands: tuple[Any, ...], edges: Sequence[int]
) -> dict[int, Any]:
    """Return what the rule of a Python function contributes to its operands at these positions."""
    graph = program._graph
    op = graph._host.ops[slot]
    arguments, places = op.arguments(operands)
    needed = [False] * len(arguments)
    for i in edges:
        needed[places[i]] = True
    if op.outputs is not None:
        g = _of_outputs(graph, slot, op, g)
    parts = _asked(program, slot, op.gradients, handle(graph, slot), g, arguments, needed, program)
    name = graph._host.label(slot)
    parts = _one_for_each(op, name, parts, len(arguments))
    return {
        i: checked(
            parts[places[i]],
            operands[i],
            f"the {op.RULE} of node {name!r} for operand {i + 1} ({operands[i].label!r})",
        )
        for i in edges
    }


def custom_tangents(
    program: Any, slot: int, operands: tuple[Any, ...], tangents: dict[int, Any]
) -> Iterator[Any]:
    """Yield the result of a function's forward rule: its tangent, or the share of each output.

    `tangents` holds the tangents of the operands that move, by position.
    """
    graph = program._graph
    op, node = graph._host.ops[slot], handle(graph, slot)
    arguments, places = op.arguments(operands)
    moving: list[Any] = [None] * len(arguments)
    for i, tangent in tangents.items():
        moving[places[i]] = tangent
    parts = _asked(program, slot, op.tangents, node, moving, arguments, program)
    who = f"the jvp of node {node.label!r}"
    if op.outputs is None:
        if parts is not None:
            yield checked(parts, node, who, TANGENT)
        return
    results = outputs(graph, node)
    if not isinstance(parts, tuple | list) or len(parts) != len(results):
        returned = len(parts) if isinstance(parts, tuple | list) else type(parts).__name__
        raise GradientError(
            f"{who} returned {returned} tangents for {len(results)} outputs. Return one for each, None "
            "where there is none."
        )
    for i, (part, y) in enumerate(zip(parts, results, strict=True)):
        if part is not None:
            yield Share(checked(part, y, f"{who} for output {i + 1}", TANGENT), i)


def _asked(program: Any, slot: int, rule: Callable[..., Any], *arguments: Any) -> Any:
    """Call a user's rule, which may not read values, and return its result."""
    graph = program._graph
    asking, asked = graph._programs.asking, (program, slot)

    def refuse(read: int) -> None:
        host = graph._host
        if host.ops[read] is CONST:
            return
        raise GradientError(
            f"the rule of node {host.label(slot)!r} ({host.describe_op(slot)}) read the value of "
            f"{host.label(read)!r}. A rule is built once, as nodes, for all values to come, so what it "
            "reads would stay as it is now. Compute with the Var instead (rg.where instead of if); what "
            "only forward can know, that of an rg.Function may leave for backward as an attribute, "
            "ctx.flag = ...: the rule is built anew when that changes."
        )

    try:
        asking.append(asked)
        return asked_before_reads(graph, refuse, rule, *arguments)
    finally:
        # It is missing if an interrupt came before the append.
        if asking[-1:] == [asked]:
            asking.pop()


def asked_before_reads(
    graph: Any, check: Callable[[int], None], function: Callable[..., Any], *arguments: Any
) -> Any:
    """Call a function.

    Call `check` before each value that the function reads in this thread, except inside of nodes
    that run.
    """
    thread, former = threading.get_ident(), graph._may_read

    def may_read(slot: int) -> None:
        if thread == threading.get_ident() and not graph._computing:
            check(slot)
        if former is not None:
            former(slot)

    hidden = _handed_under(may_read, graph)
    # Each attribute is restored in this frame, where setting it has succeeded: it needs no more stack.
    try:
        try:
            graph._may_read, graph._handed = may_read, hidden
            return function(*arguments)
        finally:
            graph._may_read = former
            graph._handed = _handed_under(former, graph)
    except BaseException:  # once more, for an error in the `finally` itself
        graph._may_read = former
        graph._handed = _handed_under(former, graph)
        raise


def _handed_under(check: Callable[[int], None] | None, graph: Any) -> dict[int, Any]:
    """Return the values that were handed out, hidden if a check is asked before each read."""
    return graph._host.handed if check is None else _OnlyAsked(graph._host.handed)


class _OnlyAsked(dict[int, Any]):
    """Hides the values that were handed out, so that each read takes the slow path.

    The slow path calls the check, and finds the values through ``get``.
    """

    __slots__ = ("_handed",)

    def __init__(self, handed: dict[int, Any]) -> None:
        super().__init__()
        self._handed = handed

    def get(self, slot: int, default: Any = None) -> Any:  # type: ignore[override]
        return self._handed.get(slot, default)

    def setdefault(self, slot: int, value: Any) -> Any:  # type: ignore[override]
        return self._handed.setdefault(slot, value)


def _of_outputs(graph: Any, slot: int, op: Any, g: Any) -> tuple[Any, ...]:
    """Return the gradients of all outputs, ``None`` for those that nothing depends on."""
    given = shares(g)
    count = len(op.outputs)
    check_outputs(graph, slot, max(given))
    return tuple([given.get(i) for i in range(count)])


def check_outputs(graph: Any, slot: int, which: int) -> None:
    """Raise ``GradientError`` if position `which` is not an output but something that ``forward``
    has saved.
    """
    if which >= len(graph._host.ops[slot].outputs):
        raise GradientError(
            f"the derivative of node {graph._host.label(slot)!r} uses an array that its forward has "
            "saved and that is neither an argument nor an output, so it cannot be differentiated "
            "again. Save arguments and outputs only and compute the rest from them in the rule; or "
            "return that array as one more output; or detach it in the rule, saved.detach(), where it "
            "counts as constant."
        )


def _one_for_each(op: Any, name: str, parts: Any, count: int) -> Sequence[Any]:
    """Return what a rule returned as one gradient for each operand; raise if there are more or
    fewer.
    """
    if count == 1 and not isinstance(parts, tuple | list):
        return (parts,)
    if not isinstance(parts, tuple | list) or len(parts) != count:
        returned = len(parts) if isinstance(parts, tuple | list) else type(parts).__name__
        raise GradientError(
            f"the {op.RULE} of function {op.name!r} (node {name!r}) returned {returned} gradients for "
            f"{count} operands. Return one for each, None where there is none."
        )
    return parts


# The word for a kind of derivative, and whose shape it must have.
Kind = tuple[str, str]
GRADIENT: Kind = ("gradient", "operand's")
TANGENT: Kind = ("tangent", "result's")


def fits(part: Any, var: Any) -> bool:
    """Return whether a derivative that was returned for `var` is a node of the same known shape and
    dtype.
    """
    graph = var._graph
    if getattr(part, "_graph", None) is not graph:
        return False
    specs = graph._host.specs
    found = specs[var._slot]
    return found is not None and specs[part._slot] is found and found.dtype.kind == "f"


def checked(part: Any, var: Any, who: str, kind: Kind = GRADIENT) -> Any:
    """Return a derivative that `who` has returned for `var`, in the dtype of `var`.

    Shapes and dtypes that are only known once it is computed are checked then, each time.

    Raises
    ------
    ShapeError, DTypeError, DeviceError, GraphError
        If it cannot be one.
    """
    if part is None:
        return None
    graph = var._graph
    if not hasattr(part, "_slot"):
        if isinstance(part, Collection) and not hasattr(part, "dtype"):
            seen = None  # also one that holds a Var
        else:
            seen = read_value(part, who)[0]
        if seen is None:
            raise DTypeError(
                f"{who} returned {type(part).__name__} ({safe_repr(part):.60}). A {kind[0]} is a Var, built of "
                "ops; or an array or number where it is constant, or None where it is zero."
            )
        part = graph.const(part)
    if part._graph is not graph:
        raise GraphError(f"{who} returned a Var of another graph.")
    if getattr(graph._host.ops[var._slot], "outputs", None) is not None:
        raise no_shares()
    given, wanted = (graph._host.specs[one._slot] for one in (part, var))
    if given is None or wanted is None:
        return apply(CHECKED, (part, var), (who, kind))
    _check(given, wanted, who, kind)
    return part if given.dtype == wanted.dtype else astype(part, wanted.dtype)


def _check(given: Spec, wanted: Spec, who: str, kind: Kind) -> None:
    """Raise if a derivative of one spec cannot belong to a value of the other."""
    word, owner = kind
    if len(given.shape) != len(wanted.shape) or any(
        m != n and m is not None and n is not None
        for m, n in zip(given.shape, wanted.shape, strict=True)
    ):
        raise ShapeError(
            f"{who} returned a {word} of shape {given.shape}; it must have the {owner}, "
            f"{wanted.shape}. Sum over axes that were broadcast, or reshape."
        )
    if given.dtype.kind != "f":
        raise DTypeError(f"{who} returned a {word} of {given.dtype}; {word}s are floats.")
    if given.device != wanted.device and given.weak is None and wanted.weak is None:
        raise DeviceError(
            f"{who} returned a {word} on {given.device}; it must be on the {owner} device, "
            f"{wanted.device}. Compute it from the Vars that the rule is given."
        )


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    """Return the spec of a checked derivative: its shape, in the dtype of its value."""
    given, wanted = specs
    _check(given, wanted, *attrs)
    return spec(given.shape, wanted.dtype, wanted.device)


# Returns the first operand, after a check that it is a derivative for the second one.
CHECKED = Op("checked", _infer, (lambda g, ans, part, var, who, kind: g, None), (LINEAR, None))


class MissingRuleError(GradientError):
    """A node on the way has no derivative rule for the mode that was asked for."""

    __module__, __qualname__ = "reactgrad", "GradientError"  # users know it by that name

    def __reduce__(self) -> tuple[Any, ...]:
        return GradientError, self.args, vars(self)


def no_rule(graph: Any, slot: int) -> MissingRuleError:
    """Return the error for a node that no gradient passes."""
    host = graph._host
    op = host.ops[slot]
    return MissingRuleError(
        f"node {host.label(slot)!r} ({host.describe_op(slot)}) has no derivative rule, so no "
        f"gradient passes it. Give one, {getattr(op, 'HOW', 'rg.extend.defvjp(op, rule)')}, or detach "
        "its operands, x.detach(), if none shall pass."
    )
