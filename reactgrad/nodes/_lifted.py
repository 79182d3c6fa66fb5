"""The op of a node that calls a Python function, some of whose arguments are nodes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from enum import Enum
from types import (
    BuiltinFunctionType,
    CoroutineType,
    EllipsisType,
    FunctionType,
    MethodType,
    NoneType,
)
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ImplicitValueError, ShapeError
from reactgrad.backend import AWAITED, Spec, is_one_shot, node_in, refuse_one_shot
from reactgrad.nodes._cutoff import Tolerance
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import Output, output
from reactgrad.nodes._references import OF_A_CALL


class Lifted:
    """The op of a node that calls a Python function.

    Attributes
    ----------
    function : callable
        The function, called with the operands' values, read-only.
    declared : Spec or None
        The spec of the result that the user promised, if any.
    vjp : callable or None
        ``vjp(g, ans, *operands)`` returns the gradients of the operands, built of ops on Vars.
    jvp : callable or None
        ``jvp(ts, ans, *operands)`` returns the tangent of the result, likewise.
    layout : tuple or None
        All arguments in the order written, with ``OPERAND`` in the place of each operand; ``None``
        if all arguments are positional operands.
    keywords : tuple of str
        The names of the last arguments, which were passed by keyword.
    outputs : tuple of (Spec or None), or None
        The promised spec of each output, if the function has several. The value is then the tuple
        of them, and each is a node of its own (see ``nodes._op``).
    """

    __slots__ = ("declared", "function", "jvp", "keywords", "layout", "name", "outputs", "vjp")

    UNSAVED = ""  # for a node that has no form in a file: why, and what to do
    INNER = False  # True for a node that a call builds besides its result
    # For messages: the name of the rule, and the ways to give one.
    RULE, HOW, HOW_FORWARD = "vjp", "rg.lift(fn, vjp=rule)", "rg.lift(fn, jvp=rule)"

    def __init__(
        self,
        function: Callable[..., Any],
        declared: Spec | None,
        vjp: Callable[..., Any] | None,
        layout: tuple[Any, ...] | None,
        keywords: tuple[str, ...],
        jvp: Callable[..., Any] | None = None,
        outputs: tuple[Spec | None, ...] | None = None,
    ) -> None:
        self.function = function
        self.declared = declared
        self.vjp = vjp
        self.jvp = jvp
        self.outputs = outputs
        self.layout = layout
        self.keywords = keywords
        self.name = getattr(function, "__name__", type(function).__name__).strip("<>")

    @property
    def has_rules(self) -> bool:
        """True if gradients pass."""
        return self.vjp is not None

    @property
    def has_forward_rules(self) -> bool:
        """True if tangents pass."""
        return self.jvp is not None

    def definition(self) -> Any:
        """Return a key, equal for two calls that may share a node; ``None`` if no other call may."""
        fixed = () if self.layout is None else tuple(map(_fixed, self.layout))
        if None in fixed:
            return None
        functions = map(as_itself, (self.function, self.vjp, self.jvp))
        written = (self.layout is None, fixed, self.keywords)
        return (type(self), *functions, self.declared, self.outputs, *written)

    def call(self, arguments: list[Any]) -> Any:
        """Call the function and make its result safe to keep."""
        positional, named = self.written(arguments)
        result = self.function(*positional, **named)
        if self.outputs is not None:
            parts = self.take_apart(result)
            # `keep_each` counts references to see who else has a part: `parts` must be the last.
            del result
            return self.keep_each(parts, arguments)
        if type(result) is np.ndarray:
            return self.keep(result, arguments)
        return self.check(result)

    def written(self, arguments: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Return positional and keyword arguments as they were written, with the operands' values."""
        if self.layout is None:
            return arguments, {}
        values, _ = self.arguments(arguments)
        split = len(values) - len(self.keywords)
        return values[:split], dict(zip(self.keywords, values[split:], strict=True))

    def take_apart(self, result: Any) -> list[Any]:
        """Return the outputs in a new list.

        Raises
        ------
        ShapeError
            If there are more or fewer than were promised.
        """
        assert self.outputs is not None
        promised = len(self.outputs)
        if not isinstance(result, tuple | list) or len(result) != promised:
            what = (
                f"{len(result)} values"
                if isinstance(result, tuple | list)
                else type(result).__name__
            )
            raise ShapeError(
                f"function {self.name!r} was built with outputs={promised} and returned {what}. "
                f"Return a tuple of {promised}, or say outputs= as many as there are."
            )
        return list(result)

    def keep_each(self, parts: list[Any], arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Return several results, made safe to keep; `parts` is emptied and refilled with them."""
        for i in range(len(parts)):
            part, parts[i] = parts[i], None  # the list must not count as another reference
            array = type(part) is np.ndarray
            parts[i] = self.keep(part, arguments) if array else self.check(part)
        return tuple(parts)

    def check(self, result: Any) -> Any:
        """Return a result that is no array as it is.

        Raises
        ------
        DTypeError
            If it is a Var or holds one, an iterator that its first reader would use up, or a coroutine.
        """
        kind = type(result)
        if kind not in _USUAL and is_one_shot(result):
            if kind is CoroutineType:
                result.close()  # else Python warns that it was never awaited
            instead = (
                "write def instead of async def, and asyncio.run(...) in it"
                if kind in AWAITED or hasattr(kind, "__anext__")
                else "return a list"
            )
            raise DTypeError(
                f"function {self.name!r} returned a {kind.__name__}, which gives what is in it to its "
                f"first reader alone, and a value may have many: {instead}."
            )
        if kind not in _HOLDING_NOTHING:
            _refuse_nodes_of(f"function {self.name!r}", result)
        return result

    def arguments(self, operands: Sequence[Any]) -> tuple[list[Any], list[int]]:
        """Return all arguments as they were written, and the places of the operands among them."""
        if self.layout is None:
            return list(operands), list(range(len(operands)))
        rest = iter(operands)
        values = [next(rest) if v is OPERAND else v for v in self.layout]
        return values, [i for i, v in enumerate(self.layout) if v is OPERAND]

    def gradients(
        self, node: Any, g: Any, arguments: list[Any], needed: list[bool], program: Any
    ) -> Any:
        """Return the result of the gradient rule: the gradients of all arguments.

        Parameters
        ----------
        node
            The Var of the node.
        g
            The gradient of the value; for several outputs a tuple, with ``None`` for those that
            nothing depends on.
        arguments
            The arguments as they were written, with Vars for the operands.
        needed
            For each argument whether its gradient is asked for.
        program
            The program that asks; see ``autodiff._program``.
        """
        assert self.vjp is not None
        return self.vjp(g, self._answer(node), *arguments)

    def tangents(self, node: Any, tangents: list[Any], arguments: list[Any], program: Any) -> Any:
        """Return the result of the forward rule: the tangent of the value, or of each output.

        `tangents` are those of the arguments, ``None`` where there is none.
        """
        assert self.jvp is not None
        return self.jvp(tuple(tangents), self._answer(node), *arguments)

    def _answer(self, node: Any) -> Any:
        """Return what rules get as `ans`: the node, or the nodes of its outputs."""
        if self.outputs is None:
            return node
        return node._graph._outputs(node)

    def promised(self, index: int, operands: Sequence[Spec | None]) -> Spec | None:
        """Return the spec of an output as far as it is known before the function has run.

        `operands` are the specs of the operands; a subclass may infer the output's spec from them.
        """
        assert self.outputs is not None
        return self.outputs[index] if index < len(self.outputs) else None

    def output(self, index: int) -> Output:
        """Return the op of the node of one output.

        Numbers past the outputs stand for values that the function has saved beside them.
        """
        assert self.outputs is not None
        declared = self.outputs[index] if index < len(self.outputs) else None
        return output(self.name, index, declared)

    def again(self, operands: Sequence[Any]) -> Any:
        """Return a new node that calls the function with the values of other operands."""
        return operands[0]._graph._call_lifted(self, operands, None)

    @staticmethod
    def keep(result: Any, arguments: Sequence[Any]) -> Any:
        """Return the array that a function returned, copied unless nobody else can change it.

        The result is a read-only view, so a caller cannot make it writable again.
        """
        if result.dtype.kind == "O":
            _refuse_nodes_of("a function", result)
        # No more references than this call itself makes, so nothing else refers to the array.
        if result.base is None and sys.getrefcount(result) <= OF_A_CALL:
            result.flags.writeable = False
            return result.view()
        # A read-only array is shared without a copy only if it is (a view of) an operand's value,
        # which never changes: of any other one somebody may have a writable view.
        if result.flags.writeable or not any(result is a or result.base is a for a in arguments):
            result = result.copy()
            result.flags.writeable = False
            return result.view()
        return result


def _refuse_nodes_of(who: str, result: Any) -> None:
    """Raise ``ImplicitValueError`` if a result is a node, or a container that holds one."""
    node = node_in(result)
    if node is not None:
        which = f"a {type(result).__name__} that holds the Var" if node is not result else "the Var"
        raise ImplicitValueError(
            f"{who} returned {which} {node.label!r}, which is not a value: what it computes would never be looked at "
            "again. Return v.value, or build the node outside of the function."
        )


def refuse_hidden(function: Any, value: Any) -> None:
    """Raise if a container holds Vars: the function would not run again when they change.

    Raises
    ------
    DTypeError
        If `value` is a list, tuple, set or dict that holds a Var, or can be read only once.
    """
    if isinstance(value, Handle):
        return
    parts: Any = ()
    if isinstance(value, list | tuple | set | frozenset):
        parts = value
    elif isinstance(value, dict):
        parts = value.values()
    for part in parts:
        if isinstance(part, Handle):
            name = getattr(function, "__name__", "the function")
            raise DTypeError(
                f"{name} was given a {type(value).__name__} that holds the Var {part.name!r}; it "  # type: ignore[attr-defined]
                "would not run again when that changes. Pass Vars as arguments of their own, "
                "f(a, b), with rg.lift(lambda *values: fn(list(values))) where the function wants "
                "a list, or join arrays with rg.stack."
            )
    if type(value) not in _FIXED:
        refuse_one_shot(f"an argument of {getattr(function, '__name__', 'the function')}", value)


OPERAND = object()  # in a layout: the place of an operand


_NUMBERS = (bool, int, float, complex)

# Types whose values can be read any number of times. A test of the type first, because asking whether
# a value is an iterator takes longer.
_USUAL = frozenset(
    (*_NUMBERS, NoneType, str, bytes, tuple, list, dict, set, frozenset, np.float64, np.float32)
)


# Types of results in which there is no node.
_HOLDING_NOTHING = frozenset((*_NUMBERS, NoneType, str, bytes, np.float64, np.float32))


_CONSTANTS = (str, bytes, NoneType, EllipsisType)


# Types of fixed arguments that hold nothing.
_FIXED = frozenset((*_NUMBERS, *_CONSTANTS))


_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType)


class _Itself:
    """A key for one object that is equal only to a key for the same object, by identity."""

    __slots__ = ("one",)

    def __init__(self, one: object) -> None:
        self.one = one

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.one is other.one

    def __hash__(self) -> int:
        return id(self.one)


def as_itself(function: Any) -> Any:
    """Return a key for a function or cutoff.

    Callable objects of other classes may define ``==`` in their own way, so they count as the same
    only by identity.
    """
    plain = function is None or isinstance(function, (*_FUNCTIONS, Tolerance))
    return function if plain else _Itself(function)


def _fixed(argument: Any) -> Any:
    """Return a key for an argument that is no Var; ``None`` if the argument may change in place."""
    if argument is OPERAND:
        return OPERAND
    kind = type(argument)
    if kind in _NUMBERS:
        return (kind, repr(argument))  # by text, because -0.0 == 0.0 and nan != nan
    if isinstance(argument, np.generic):
        return None if argument.dtype.hasobject else (argument.dtype.str, argument.tobytes())
    if kind in _CONSTANTS:
        return (kind, argument)
    if kind is range:
        return (kind, argument.start, argument.stop, argument.step)
    if isinstance(argument, (*_FUNCTIONS, np.dtype, Enum, type, np.ufunc)):
        return as_itself(argument)
    if kind is tuple:
        parts = tuple(map(_fixed, argument))
        return None if None in parts else parts
    return None


class Refused(Lifted):
    """The op that stands in for a gradient that cannot be built: reading it raises ``refusal``."""

    __slots__ = ("refusal",)

    def __init__(self, refusal: Exception) -> None:
        def gradient() -> None:
            raise refusal.with_traceback(None)

        super().__init__(gradient, None, None, None, ())
        self.refusal = refusal
