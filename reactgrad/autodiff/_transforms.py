"""Transforms of nodes: ``rg.vjp``, ``jvp``, ``hvp``, ``jacobian``, ``hessian``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from reactgrad._errors import DTypeError, GradientError, OutdatedRuleError
from reactgrad.autodiff._custom import MissingRuleError
from reactgrad.autodiff._forward import Tangents
from reactgrad.autodiff._grad import (
    _check_gradient,
    _check_output,
    _check_scalar,
    _check_wanted,
    _gradient_array,
    _ones,
    grad,
)
from reactgrad.autodiff._jacobian import Jacobian, Mode
from reactgrad.autodiff._program import Program
from reactgrad.backend import spec
from reactgrad.build._constants import zeros, zeros_like
from reactgrad.nodes._handle import Handle
from reactgrad.ops import accumulate, alias, multiply
from reactgrad.ops import sum as total


def vjp(y: Any, xs: Any, v: Any, allow_unused: bool = False) -> Any:
    """Return the gradients of ``sum(v * y)``: one pass of reverse mode. See ``rg.vjp``."""
    _check_output(y, "rg.vjp", complex_too=True)
    graph = y._graph
    with graph._lock:
        return grad(y, xs, _along(y, v, "v"), allow_unused)


def jvp(y: Any, xs: Any, ts: Any, allow_unused: bool = False) -> Any:
    """Return the derivative of `y` when `xs` move along `ts`: one pass of forward mode.

    See ``rg.jvp``.
    """
    _check_output(y, "rg.jvp", complex_too=True)
    wanted, given, _ = _along_each(xs, ts, "rg.jvp", "directions in ts", "[ta, tb]")
    graph = y._graph
    with graph._lock:
        for x in wanted:
            _check_wanted(graph, x)
        if len({x._slot for x in wanted}) != len(wanted):
            raise GradientError(
                "rg.jvp was given one node twice in xs. It moves along one direction: add up the "
                "two, rg.jvp(y, x, t1 + t2)."
            )
        directions = _directions(wanted, given)
        serial = graph._scheduler.topology.serial
        key = ("jvp", *[serial[one._slot] for one in (*wanted, *directions)])
        program = graph._programs.made(y._slot, key, lambda: Tangents(y, wanted, directions))
        for x in wanted:
            if not allow_unused and not program.depends_on(x._slot):
                raise _independent(y, x)
        return program.tangent()


def hvp(y: Any, xs: Any, vs: Any, allow_unused: bool = False) -> Any:
    """Return the Hessian of `y` times `vs`: reverse mode over forward mode. See ``rg.hvp``."""
    _check_output(y, "rg.hvp")
    _check_scalar(y, "(weights * y).sum()")
    wanted, given, single = _along_each(xs, vs, "rg.hvp", "vectors in vs", "[va, vb]")
    graph = y._graph
    with graph._lock:
        stand_ins = [_stand_in(y, v, wanted) for v in given]
        given = [v if one is None else one for v, one in zip(given, stand_ins, strict=True)]
        if _hooked(y, wanted):  # the derivative of the gradient after the hooks, as in rg.hessian
            found = tuple(_moved(y, x, wanted, given, allow_unused) for x in wanted)
            return found[0] if single else found
        try:
            slope = jvp(y, wanted, given, allow_unused)
        except MissingRuleError:  # reverse mode twice costs more, but needs no forward rules
            slope = _slope(y, wanted, given, allow_unused)
        moving = [one for one in stand_ins if one is not None]
        # Not the program of rg.grad: this one lives as long as the products.
        program = graph._programs.made(
            slope._slot, "hvp", lambda: Products(slope, _ones(slope), moving)
        )
        found = tuple(program.adjoints_or_zeros([x._slot for x in wanted]))
    return found[0] if single else found


def _stand_in(y: Any, v: Any, xs: Sequence[Any]) -> Any:
    """Return a separate node for a direction of `y` that may depend on `xs`, else ``None``.

    See ``Products``.
    """
    graph = xs[0]._graph
    moves = hasattr(v, "_programs_dict") and (v.parents or any(v is x for x in xs))
    if not moves or v._graph is not graph:
        return None
    serial = graph._scheduler.topology.serial
    with graph.enable_grad():
        return graph._programs.stand_in((serial[y._slot], serial[v._slot]), lambda: alias(v))


class Products(Program):
    """Products of a Hessian, computed as the gradient of the slope.

    Hooks are refused: they are for gradients of the output.

    The product consists of derivatives of the output alone: the directions count as constant when
    the slope is derived. Yet it depends on them, and passes gradients to them like any other node.
    So nodes of their own stand for the directions, to tell them from what the output is computed
    from.
    """

    __slots__ = ("_directions",)

    def __init__(self, slope: Any, seed: Any, stand_ins: Iterable[Any]) -> None:
        serial = slope._graph._scheduler.topology.serial
        self._directions = {v._slot: serial[v._slot] for v in stand_ins}
        super().__init__(slope, seed)

    def come_back(self, graph: Any, record: Any) -> None:
        """Begin as the hollow program of a record; see ``_record``."""
        serial = graph._scheduler.topology.serial
        self._directions = {at: serial[at] for at in record.about}
        super().come_back(graph, record)

    def about(self) -> tuple[int, ...]:
        """Return the nodes that stand for directions and are still there."""
        return tuple([at for at in self._directions if self._is_direction(at)])

    def twin(self, graph: Any) -> Program:
        """Return the same program in a fork of the graph."""
        program: Any = super().twin(graph)
        program._directions = self._directions
        return program

    def _open_edges(self, slot: int) -> tuple[tuple[int, int], ...]:
        return () if self._is_direction(slot) else super()._open_edges(slot)

    def _ways_from(self, slot: int) -> list[tuple[int, int]]:
        return [] if self._is_direction(slot) else super()._ways_from(slot)

    def _is_direction(self, slot: int) -> bool:
        return self._directions.get(slot) == self._graph._scheduler.topology.serial[slot]

    def _hooks_of(self, slot: int) -> tuple[Any, ...]:
        """Return no hooks; raise if there are some, since these would change another gradient than
        the user's.
        """
        if super()._hooks_of(slot):
            name = self._graph._host.label(slot)
            raise OutdatedRuleError(
                f"a hook was registered on {name!r} after this product was asked for, and changes what "
                "it is the derivative of. Ask for it again: rg.hvp(y, x, v)."
            )
        return ()


def _hooked(y: Any, xs: Sequence[Any]) -> bool:
    """Return whether a node with a hook lies between one of `xs` and `y`."""
    hooks, topology = y._graph._host.hooks, y._graph._scheduler.topology
    if not hooks:
        return False
    between = topology.ancestors([y._slot]) & topology.descendants([x._slot for x in xs])
    return not hooks.keys().isdisjoint(between)


def _moved(y: Any, x: Any, xs: Sequence[Any], vs: Sequence[Any], allow_unused: bool) -> Any:
    """Return the derivative of the gradient for `x` when all `xs` move."""
    (gradient,) = grad(y, [x], allow_unused=allow_unused)
    tangent = None if gradient is None else jvp(gradient, xs, vs, True)
    return zeros_like(x._graph, x) if tangent is None else tangent


def _slope(y: Any, xs: Sequence[Any], vs: Sequence[Any], allow_unused: bool) -> Any:
    """Return the derivative of `y` along `vs`, computed from its gradient."""
    pairs = zip(grad(y, xs, allow_unused=allow_unused), _directions(xs, vs), strict=True)
    used = [(g, v) for g, v in pairs if g is not None]
    parts = [total(multiply(g, v)) for g, v in used]
    return accumulate(parts, ())


def jacobian(y: Any, xs: Any, mode: Mode | None = None, allow_unused: bool = False) -> Any:
    """Return the derivative of every element of `y` by every element of `xs`.

    See ``rg.jacobian``.
    """
    _check_output(y, "rg.jacobian")
    wanted, single = _wanted_vars(xs, "rg.jacobian")
    found: list[Any] = []
    with y._graph._lock:
        for x in wanted:
            result, used = _jacobian(y, x, mode, "rg.jacobian")
            if not used and not allow_unused:
                raise _independent(y, x)
            found.append(result if used else None)
    return found[0] if single else tuple(found)


def hessian(y: Any, xs: Any, mode: Mode | None = None, allow_unused: bool = False) -> Any:
    """Return the second derivatives of `y`: Jacobians of its gradient. See ``rg.hessian``."""
    _check_output(y, "rg.hessian")
    _check_scalar(y, "(weights * y).sum()")
    wanted, single = _wanted_vars(xs, "rg.hessian")
    with y._graph._lock:
        gradients = grad(y, wanted, allow_unused=allow_unused)
        rows = tuple(
            tuple(_second(gradient, like, x, mode) for x in wanted)
            for gradient, like in zip(gradients, wanted, strict=True)
        )
    return rows[0][0] if single else rows


def _second(gradient: Any, like: Any, x: Any, mode: Mode | None) -> Any:
    """Return the Jacobian of a gradient for `like`.

    The gradient may be constant or zero everywhere.
    """
    if gradient is None:
        return zeros(x._graph, spec((*like.shape, *x.shape), x.dtype, x.device))
    if gradient.dtype.kind == "c":
        raise DTypeError(
            f"rg.hessian: {like.name!r} is of {gradient.dtype}, so its gradient is complex, and only real "
            "numbers are differentiated. Make it of two inputs, its real and imaginary parts, or use rg.hvp."
        )
    return _jacobian(gradient, x, mode, "rg.hessian")[0]


def _jacobian(y: Any, x: Any, mode: Mode | None, what: str) -> tuple[Any, bool]:
    """Return the Jacobian, zeros where `y` does not depend on `x`, and whether it does."""
    _check_wanted(y._graph, x)
    if mode is not None:
        if mode == "forward" and x.dtype.kind == "c":
            raise GradientError(
                f"{what}(mode='forward'): {x.label!r} is of {x.dtype}, and one direction for each element "
                "does not show both of its parts. Use mode='reverse', or None."
            )
        if mode not in ("forward", "reverse"):
            raise GradientError(
                f"{what}(mode={mode!r}): modes are 'forward', which pays for each element of x, "
                "and 'reverse', which pays for each element of y; None chooses."
            )
        return _by_mode(y, x, mode)
    if x.dtype.kind == "c":  # one direction for each element does not show both of its parts
        return _by_mode(y, x, "reverse")
    modes: tuple[Mode, Mode] = ("forward", "reverse")
    first, second = modes if _size(x) <= _size(y) else modes[::-1]
    if _hooked(y, [x]):
        # Hooks change what reverse mode computes, and a shape must not decide whether they count.
        # They do for a Jacobian; for a Hessian the gradient has passed them already.
        first, second = modes if what == "rg.hessian" else modes[::-1]
    try:
        return _by_mode(y, x, first)
    except MissingRuleError:
        try:
            return _by_mode(y, x, second)
        except MissingRuleError:
            pass
        raise


def _by_mode(y: Any, x: Any, mode: Mode) -> tuple[Any, bool]:
    """Return the Jacobian by one mode, and whether `y` depends on `x`.

    The program is kept and found again.
    """
    graph = y._graph
    key = ("jacobian", mode, graph._scheduler.topology.serial[x._slot])
    program = graph._programs.made(y._slot, key, lambda: Jacobian(y, x, mode))
    return program.jacobian(), program.depends_on(x._slot)


def _size(x: Any) -> int:
    if None in x.shape:
        raise x._unknown_length()
    return prod(x.shape)


def _wanted_vars(xs: Any, what: str) -> tuple[Sequence[Any], bool]:
    """Return the nodes to differentiate for, and whether it is a single one."""
    if isinstance(xs, Handle):
        return [xs], True
    if not isinstance(xs, Iterable):
        raise DTypeError(f"{what} takes Vars to differentiate for, not {type(xs).__name__}.")
    return list(xs), False


def _along_each(
    xs: Any, ts: Any, what: str, words: str, example: str
) -> tuple[Sequence[Any], Sequence[Any], bool]:
    """Return the nodes, the direction of each, and whether one node was given by itself."""
    wanted, single = _wanted_vars(xs, what)
    given = [ts] if single else _several(ts)
    if len(given) != len(wanted):
        raise GradientError(
            f"{what} was given {len(wanted)} nodes in xs and {len(given)} {words}; each node needs one, "
            f"of its shape: {what}(y, [a, b], {example})."
        )
    return wanted, given, single


def _directions(xs: Sequence[Any], ts: Sequence[Any]) -> list[Any]:
    return [_along(x, t, f"the direction for {x.label!r}") for x, t in zip(xs, ts, strict=True)]


def _along(like: Any, given: Any, what: str) -> Any:
    """Return what was given for a node as a Var of the node's shape."""
    if not isinstance(given, Handle):
        return like._graph.const(_gradient_array(like, given, what))
    _check_gradient(like, given, what)
    return given if hasattr(given, "_programs_dict") else alias(given)


def _several(values: Any) -> list[Any]:
    if isinstance(values, Handle) or not isinstance(values, Iterable):
        raise DTypeError(
            f"several nodes move along several directions: pass a sequence of them, one for each "
            f"node, not {type(values).__name__}."
        )
    return list(values)


def _independent(y: Any, x: Any) -> GradientError:
    return GradientError(
        f"{y.label!r} does not depend on {x.label!r} over edges that derivatives pass: the path is "
        "detached, was built under no_grad, goes through integers or comparisons, or there is "
        "none. Leave it out, or pass allow_unused=True if it may have no part in it."
    )
