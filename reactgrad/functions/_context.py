"""The ``ctx`` of a ``Function``: what ``forward`` leaves for its rules, and how they see it.

``forward`` runs on arrays, again at every change. The rules run on Vars, once, and build nodes that
follow. So what was saved becomes nodes: arguments and outputs are the nodes they came from, other
arrays become further outputs of the function. Everything else that ``forward`` sets on ``ctx`` is a
plain value for the rule that reads it; when that value changes, the gradient is built again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from reactgrad._errors import (
    DTypeError,
    GradientError,
    OutdatedRuleError,
    ReactgradError,
    UnsetError,
)
from reactgrad.backend import owner
from reactgrad.build._functions import call_lifted, output_of
from reactgrad.functions._perturbed import nearby
from reactgrad.nodes._cutoff import equal
from reactgrad.nodes._function_names import remember
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._lifted import OPERAND, Lifted
from reactgrad.ops import spread
from reactgrad.scheduler import safe_repr

# The origin of a saved value: ("argument", position among the operands), ("output", position),
# ("saved", position among those that are neither), or ("none", 0).
Place = tuple[str, int]


class NotRun(Exception):
    """A rule asks for what ``forward`` leaves on ``ctx``, but ``forward`` has not run and cannot
    run now.
    """


class ContextError(ReactgradError, AttributeError):
    """``ctx`` has no attribute of this name."""


_ELSEWHERE = {
    "mark_dirty": "forward gets read-only arrays and changes none of them. Return the new value.",
    "mark_non_differentiable": (
        "nothing is computed for outputs that no gradient comes from. Detach the output where none "
        "shall pass: y.detach()."
    ),
    "save_for_forward": "what ctx.save_for_backward keeps is there in jvp, too.",
    "saved_variables": "it is called ctx.saved_tensors.",
}


class Passed(tuple[Any, ...]):
    """The value of a function's node: its outputs, followed by what it has saved.

    Attributes
    ----------
    attributes : dict
        What ``forward`` has set on ``ctx``.
    op
        The op that has computed it.
    """

    attributes: dict[str, Any]
    op: Any


class Context:
    """The ``ctx`` of ``forward``, which keeps what the rules will need.

    All other names are the user's.
    """

    __slots__ = ("__dict__", "_reactgrad")

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self._reactgrad = _Kept(needs)

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each argument, true if a gradient may be asked for: if the argument is a node."""
        return self._reactgrad.needs

    def save_for_backward(self, *values: Any) -> None:
        """Keep arrays for the rules, which get them from ``saved_tensors`` as nodes that follow.

        Each run must save the same kinds of values: an argument, an output, something else, or
        ``None``.

        Raises
        ------
        DTypeError
            If one is no array, number or ``None``.
        """
        for value in values:
            if value is not None and type(value) not in _NUMBERS and owner(value) is None:
                raise DTypeError(
                    f"ctx.save_for_backward was given {type(value).__name__} ({safe_repr(value):.60}): it keeps "
                    "arrays and numbers. Set other objects as attributes, ctx.name = value."
                )
        self._reactgrad.saved = list(values)

    def set_materialize_grads(self, on: bool) -> None:
        """Give the rules zeros (the default) or ``None`` for outputs that have no gradient."""
        self._reactgrad.materialize = bool(on)

    def __getattr__(self, name: str) -> Any:
        raise _missing(name, "forward has not set it")


class _Kept:
    """The settings and saved values of a ``Context``."""

    __slots__ = ("materialize", "needs", "saved")

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs = needs
        self.saved: list[Any] = []
        self.materialize = True


def take(
    ctx: Context, arguments: Sequence[Any], outputs: Sequence[Any], former: Any
) -> tuple[Any, list[Any]]:
    """Return the origins of the saved values, and those values that are neither argument nor
    output.

    Values keep the origins of the `former` form where these fit, since one object may have several
    origins.
    """
    kept = ctx._reactgrad
    places: list[Place] = []
    others: list[Any] = []
    expected = () if former is None else former[1]
    for i, value in enumerate(kept.saved):
        if i < len(expected) and _comes_from(value, expected[i], arguments, outputs):
            place = expected[i]
        else:
            place = _find(value, arguments, outputs) or ("saved", len(others))
        if place[0] == "saved":
            others.append(value)
        places.append(place)
    kept.saved = []
    return (kept.materialize, tuple(places)), others


class RuleContext:
    """The ``ctx`` of ``backward`` and ``jvp``. All other names are what ``forward`` has set."""

    __slots__ = ("_reactgrad", "needs_input_grad")

    def __init__(self, rule: Rule, needed: Sequence[bool]) -> None:
        self._reactgrad = rule
        self.needs_input_grad = tuple(needed)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The values that ``forward`` has saved, as Vars; ``None`` for ``None``."""
        return self._reactgrad.saved()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python asks for one of its protocols
            raise AttributeError(name)
        return self._reactgrad.attribute(name)


class Rule:
    """One use of a function's rule, by a program that builds derivatives.

    Parameters
    ----------
    op, node
        The function's op, and the Var of its node.
    arguments
        The arguments as they were written, with Vars for the operands.
    program
        The program that asks; see ``autodiff._program``.
    """

    __slots__ = ("_arguments", "_node", "_op", "_program", "_read")

    def __init__(self, op: Any, node: Any, arguments: list[Any], program: Any) -> None:
        self._op = op
        self._node = node
        self._arguments = arguments
        self._program = program
        self._read: dict[str, Any] = {}

    def saved(self) -> tuple[Any, ...]:
        """Return what ``forward`` has saved, as Vars."""
        return tuple([self._var(*place) for place in self._form()[1]])

    def materializes(self) -> bool:
        """Return whether zeros stand for missing gradients."""
        return self._form()[0]

    def attribute(self, name: str) -> Any:
        """Return what ``forward`` has set on ``ctx`` under this name, and note that the rule
        depends on it.
        """
        left = self._left()
        if name not in left:
            raise _missing(name, f"forward has set {', '.join(left) or 'nothing'} on ctx")
        value = left[name]
        if not isinstance(value, np.generic) and owner(value) is not None:
            raise GradientError(
                f"ctx.{name} is an array, which would not follow when forward runs again. Save it with "
                "ctx.save_for_backward(...), and the rule finds it in ctx.saved_tensors as a node."
            )
        # A fixed argument that forward passed on never changes.
        if not any(value is fixed for fixed in self._op.layout):
            self._read[name] = value
        return value

    def _var(self, kind: str, which: int) -> Any:
        """Return the Var of a saved value, by its origin."""
        if kind == "none":
            return None
        if kind == "argument":
            places = [i for i, fixed in enumerate(self._op.layout) if fixed is OPERAND]
            return self._arguments[places[which]]
        beside = len(self._op.outputs) if kind == "saved" else 0
        return output_of(self._node._graph, self._node, beside + which)

    def _form(self) -> Any:
        if self._op.form is None:
            self._left()  # makes `forward` run
        return self._op.form

    def _left(self) -> dict[str, Any]:
        """Return what ``forward`` has set on ``ctx`` in its last run."""
        program, slot = self._program, self._node._slot
        try:
            value = program.look(slot, Passed)
        except UnsetError:  # an operand has no value yet, for example while a subgraph is built
            raise NotRun from None
        if isinstance(value, Passed):
            return value.attributes
        known = program.seen.get(slot)
        if known is None or known[1] is None:
            raise NotRun
        return known[0]

    def postponed(self, like: Sequence[Any]) -> list[Any]:
        """Return stand-ins for the derivatives of these Vars until ``forward`` has run."""
        self._program.postpone(self._node._slot)
        return [self._later(var) if hasattr(var, "_slot") else None for var in like]

    def _later(self, var: Any) -> Any:
        """Return a node in the shape of `var` that runs after ``forward``, and raises until the
        rule is asked again.
        """
        graph, name = self._node._graph, self._op.name

        def derivative(*_: Any) -> None:
            raise OutdatedRuleError(
                f"{name} is new in what is differentiated here, and its forward had not run when its "
                "rule was asked. Read the gradient outside of functions that are running, and "
                "differentiate it again once all inputs have values."
            )

        declared = graph._host.specs[var._slot]
        # Computed from the function's node, so that `forward` runs before it.
        return call_lifted(
            graph,
            Lifted(derivative, declared, derivative, None, (), derivative),
            [self._node],
            None,
        )

    def finish(self, parts: Sequence[Any], like: Sequence[Any]) -> list[Any]:
        """Return the derivatives, guarded by what the rule has read: they raise once that has
        changed.

        `like` holds the Vars that they belong to, ``None`` where none is asked for. A ``None`` that
        the rule returned becomes guarded zeros, since it may be right only for now.
        """
        if not self._read:
            return list(parts)
        self._program.saw(self._node._slot, self._left(), self._read)
        operands = [one for one in self._arguments if isinstance(one, Handle)]
        return [
            part
            if part is None and var is None
            else _guarded(part, self._node, self._read, operands, var)
            for part, var in zip_longest(parts, like)
        ]


def _guarded(
    part: Any,
    node: Any,
    read: dict[str, Any],
    operands: Sequence[Any],
    like: Any,
    beside: int | None = None,
) -> Any:
    """Return `part`, or zeros in the shape of `like`, that are valid while what a rule has read
    still holds.

    With `beside`, they are also checked for whether what was read follows from this operand.
    """
    graph = node._graph
    if part is None:
        part = spread(graph.const(0.0), like)
    elif not isinstance(part, Handle):
        part = graph.const(part)
    declared = graph._host.specs[part._slot]
    if declared is not None and (declared.weak is not None or not declared.known):
        declared = None
    layout = (OPERAND, OPERAND, read, beside, *[OPERAND] * len(operands))
    op = Lifted(as_built, declared, _as_built_vjp, layout, (), _as_built_jvp)
    return call_lifted(graph, op, [part, node.detach(), *operands], None)


def as_built(
    part: Any, passed: Any, read: dict[str, Any], beside: int | None, *operands: Any
) -> Any:
    """Return `part` if ``forward`` has left on ``ctx`` what its rule was built with; else raise.

    Its derivatives are guarded in the same way: zero by the function's `operands` where `part` does
    not depend on them. That is right while what was read does not follow from the operands either,
    near their values: a sign or a count does not, a norm does.
    """
    if not unchanged(passed, read):
        raise OutdatedRuleError(
            f"a rule was built with ctx.{', ctx.'.join(read)}, and forward has set other values since. "
            "Gradients are built anew when they are read outside of functions that are running. A node "
            "that was taken out of a rule or a hook is not: build on what rg.grad(y, x) returns. A rule "
            "that only uses saved arrays always follows: ctx.save_for_backward(...)."
        )
    if beside is not None:
        above, below = [
            unlike(passed.op.call(_beside(operands, beside, way)), read) for way in (1, -1)
        ]
        # Both ways, since one of them may cross a jump.
        follows = [name for name in above if name in below]
        if follows:
            places = [i for i, fixed in enumerate(passed.op.layout) if fixed is OPERAND]
            raise GradientError(
                f"{passed.op.name}: its rule uses ctx.{follows[0]}, which forward computes of argument "
                f"{places[beside] + 1}. No gradient passes what is set on ctx, so what is built "
                "with it cannot be differentiated again: it would be wrong without a word. Save arguments "
                "and results with ctx.save_for_backward(...), and compute the rest of them in the rule."
            )
    return part


# Saved graphs name these functions; remembered ones can be loaded without `trust=`.
remember(as_built)


def _beside(operands: Sequence[Any], which: int, way: int) -> list[Any]:
    """Return these values with one of them moved."""
    return [nearby(one, way) if i == which else one for i, one in enumerate(operands)]


def unchanged(passed: Passed, read: dict[str, Any]) -> bool:
    """Return whether ``forward`` has left these attributes on ``ctx``."""
    return not unlike(passed, read)


def unlike(passed: Passed, read: dict[str, Any]) -> list[str]:
    """Return the names of those attributes that ``forward`` has left otherwise, or not at all."""
    now = passed.attributes
    return [
        name
        for name, value in read.items()
        if name not in now
        or not (now[name] is value or (type(now[name]) is type(value) and equal(now[name], value)))
    ]


def _as_built_vjp(
    g: Any, ans: Any, part: Any, passed: Any, read: Any, beside: Any, *operands: Any
) -> Any:
    """Return the gradients of ``as_built``, guarded in the same way."""
    node = passed.base
    by_part = _guarded(g, node, read, operands, part)
    zeros = [
        _guarded(None, node, read, operands, one, _doubted(read, i))
        for i, one in enumerate(operands)
    ]
    return by_part, None, None, None, *zeros


def _as_built_jvp(
    ts: Any, ans: Any, part: Any, passed: Any, read: Any, beside: Any, *operands: Any
) -> Any:
    """Return the tangent of ``as_built``, guarded in the same way."""
    node = passed.base
    found = _guarded(ts[0], node, read, operands, ans)
    for i, tangent in enumerate(ts[4:]):
        if tangent is not None and _doubted(read, i) is not None:
            found = _guarded(found, node, read, operands, ans, i)
    return found


def _doubted(read: dict[str, Any], operand: int) -> int | None:
    """Return the operand if what was read may change gradually with it, else ``None``."""
    steady = all(isinstance(value, _IN_STEPS) for value in read.values())
    return None if steady else operand


for _rule in (_as_built_vjp, _as_built_jvp):
    remember(_rule)
del _rule

# Types of values that change by jumps, if at all.
_IN_STEPS = (int, bool, str, bytes, np.integer, np.bool_, type(None))
_NUMBERS = (int, float, complex, bool)
# Python shares the objects of these numbers, so identity says nothing about their origin.
_SHARED = (int, bool)


def _comes_from(value: Any, place: Place, arguments: Sequence[Any], outputs: Sequence[Any]) -> bool:
    """Return whether a saved value may have this origin."""
    kind, which = place
    if kind == "argument" or kind == "output":
        return value is (arguments if kind == "argument" else outputs)[which]
    return (value is None) == (kind == "none")


def _find(value: Any, arguments: Sequence[Any], outputs: Sequence[Any]) -> Place | None:
    """Return the origin of a saved value that is an argument, an output or ``None``; else ``None``."""
    if value is None:
        return ("none", 0)
    if type(value) not in _SHARED:
        for kind, values in (("argument", arguments), ("output", outputs)):
            places = [which for which, one in enumerate(values) if one is value]
            # Of two arguments that are one object neither is certain; saved as an array it is right
            if places:
                return None if kind == "argument" and len(places) > 1 else (kind, places[0])
    return None


def distinct(arguments: Sequence[Any]) -> list[Any]:
    """Return the same values as distinct objects, so that the identity of a saved value tells its
    origin.
    """
    seen: set[int] = set()
    found: list[Any] = []
    for value in arguments:
        if id(value) in seen:
            if isinstance(value, np.ndarray):
                value = value.view()
            elif isinstance(value, np.generic):
                value = np.array(value)[()]
            elif type(value) in (float, complex):
                value = value * 1.0
        seen.add(id(value))
        found.append(value)
    return found


def _missing(name: str, why: str) -> ContextError:
    return ContextError(f"ctx has no {name!r}: {_ELSEWHERE.get(name, why + '.')}")
