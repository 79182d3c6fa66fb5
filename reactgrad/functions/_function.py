"""Functions with derivative rules of their own: ``class F(rg.Function)``."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from reactgrad._errors import DTypeError, GradientError, ParameterError, ShapeError
from reactgrad.backend import Spec, owner, read_value, spec
from reactgrad.build._functions import call_lifted, outputs
from reactgrad.functions._context import (
    Context,
    NotRun,
    Passed,
    Rule,
    RuleContext,
    distinct,
    take,
    unchanged,
)
from reactgrad.nodes._function_names import remember
from reactgrad.nodes._handle import Handle, graph_of
from reactgrad.nodes._lifted import OPERAND, Lifted, refuse_hidden
from reactgrad.ops import spread
from reactgrad.scheduler import error_text, is_interrupt, safe_repr


class Function:
    """A computation on arrays with derivative rules, to be subclassed: ``class F(rg.Function)``.

    ``forward`` computes on arrays and runs again whenever an argument has changed. ``backward``
    gets and returns Vars: it builds nodes once, which follow the values and can be differentiated
    again. ``jvp`` is the rule of forward mode. ``infer`` returns shapes: with it a graph knows them
    without a run; without it a shape is computed where one is needed. The class has no instances;
    all of these are static methods.

    Parameters
    ----------
    outputs : int, optional
        In the class statement, ``class F(rg.Function, outputs=2)``: how many values ``forward``
        returns, in a tuple. Without it, it returns one.

    Notes
    -----
    The interface is that of ``torch.autograd.Function``. What differs follows from gradients that
    stay alive: ``outputs`` is declared, since nothing is computed when ``apply`` builds the node;
    arrays that ``forward`` gets are read-only; rules run when a gradient is built, not when it is
    computed, so what else they do (printing, or calling ``y.backward()``) is done then, and once;
    ``ctx.saved_tensors`` are nodes, so that what is computed from them follows and higher orders are
    right, or refused where something was saved that is neither argument nor output, or an attribute
    was set that follows from an argument (second orders run forward again, on arguments nearby);
    and what is saved must be of the same kind at every run.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> class Exp(rg.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         result = np.exp(x)
    ...         ctx.save_for_backward(result)
    ...         return result
    ...
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (result,) = ctx.saved_tensors
    ...         return g * result
    >>> x = rg.Graph().input(0.0)
    >>> y = Exp.apply(x)
    >>> dy = rg.grad(y, x)
    >>> d2y = rg.grad(dy, x)
    >>> x.set(1.0)
    >>> y.item(), dy.item(), d2y.item()
    (2.718281828459045, 2.718281828459045, 2.718281828459045)
    """

    _outputs: ClassVar[int | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        raise DTypeError(f"{name} is called as {name}.apply(x, ...); it has no instances.")

    def __init_subclass__(cls, *, outputs: int | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if outputs is not None:
            if isinstance(outputs, bool) or not isinstance(outputs, int) or outputs < 1:
                raise ParameterError(
                    f"class {cls.__name__}(rg.Function, outputs={safe_repr(outputs)}): the number of outputs is "
                    "at least 1."
                )
            cls._outputs = outputs
        if "setup_context" in vars(cls):
            raise DTypeError(
                f"{cls.__name__} has a setup_context: forward takes ctx itself here. Write def "
                "forward(ctx, ...) and save there."
            )
        remember(cls)

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the result from arrays.

        Parameters
        ----------
        ctx
            ``ctx.save_for_backward(...)`` keeps arrays for the rules; other values may be set as
            attributes. ``ctx.needs_input_grad`` says which arguments are nodes.
        *args, **kwargs
            Values of the nodes among the arguments of ``apply``, arrays read-only; the other
            arguments as they are.
        """
        raise NotImplementedError("write forward(ctx, ...) in the subclass")

    @staticmethod
    def infer(*args: Any, **kwargs: Any) -> Any:
        """Return the shapes and dtypes of the results without computing them; optional.

        With it, ops on the result check shapes when they are built, ``.shape`` needs no run, and
        ``rg.grad(fn)`` builds an `fn` that asks for shapes only once. Without it, only values show
        them.

        Parameters
        ----------
        *args, **kwargs
            What forward gets, with a *spec* in place of each node, array and float: it has ``.shape``,
            in which ``None`` stands for a length that is not known yet, and ``.dtype``. Integers that
            are no nodes and other objects come as they are.

        Returns
        -------
        spec, or tuple (shape, dtype)
            One that it was given, for a result of the same shape and dtype; or what it is. With
            ``outputs=``, a tuple with one for each.
        """
        raise NotImplementedError("write infer(...) in the subclass, or leave it out")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Build the gradients of the arguments.

        Parameters
        ----------
        ctx
            ``ctx.saved_tensors``, the attributes that forward has set, and ``ctx.needs_input_grad``:
            for each argument whether its gradient is asked for.
        *grads : Var
            The gradient of each output: zeros where nothing depends on it, or ``None`` after
            ``ctx.set_materialize_grads(False)``.

        Returns
        -------
        Var, None, or tuple of them
            One for each argument of ``apply``, keywords last; ``None`` where it is zero. Those of the
            arguments behind the last Var may be left out.
        """
        raise NotImplementedError("write backward(ctx, ...) in the subclass")

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Build the tangents of the outputs.

        Parameters
        ----------
        ctx
            As in ``backward``.
        *tangents : Var or None
            One for each argument of ``apply``.

        Returns
        -------
        Var, or tuple of Var
            One for each output.
        """
        raise NotImplementedError("write jvp(ctx, ...) in the subclass")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Build a node; nothing is computed.

        Parameters
        ----------
        *args, **kwargs
            Arguments of ``forward`` behind ``ctx``: Vars, and anything else.

        Returns
        -------
        Var, or tuple of Var
            One, or as many as the class says.

        Raises
        ------
        DTypeError
            If forward does not take such arguments, or there is none.
        """
        if cls.forward is Function.forward:
            raise DTypeError(f"{cls.__name__} computes nothing: write def forward(ctx, ...) in it.")
        try:
            bound = _signature(cls.forward).bind(None, *args, **kwargs)
        except TypeError as error:
            raise DTypeError(
                f"{cls.__name__}.apply: {error}. Its forward is "
                f"{cls.__name__}.forward{_signature(cls.forward)}; apply takes all but ctx."
            ) from None
        positional, named = bound.args[1:], bound.kwargs
        values = [*positional, *named.values()]
        for value in values:
            refuse_hidden(cls, value)
        operands = [value for value in values if isinstance(value, Handle)]
        layout = tuple([OPERAND if isinstance(value, Handle) else value for value in values])
        graph = graph_of(operands)
        results = call_lifted(
            graph, Applied(cls, layout, tuple(named)), operands, None, shared=True
        )
        return results[0] if cls._outputs is None else results


_signature = lru_cache(maxsize=1024)(inspect.signature)


class Applied(Lifted):
    """The op of a node that computes a ``Function``.

    Attributes
    ----------
    form
        What forward saves, known and fixed from its first run on.
    """

    __slots__ = ("form",)

    RULE, HOW = "backward", "def backward(ctx, ...) in its class"
    HOW_FORWARD = "def jvp(ctx, ...) in its class"
    function: Any  # the class
    layout: tuple[Any, ...]
    outputs: tuple[None, ...]

    def __init__(
        self, function: type[Function], layout: tuple[Any, ...], keywords: tuple[str, ...]
    ) -> None:
        backward = None if function.backward is Function.backward else function.backward
        jvp = None if function.jvp is Function.jvp else function.jvp
        outputs = (None,) * (function._outputs or 1)
        super().__init__(function, None, backward, layout, keywords, jvp, outputs)
        self.form: Any = None

    def call(self, arguments: list[Any]) -> Passed:
        """Run ``forward`` and return its results with what it leaves on ``ctx``."""
        arguments = distinct(arguments)
        positional, named = self.written(arguments)
        ctx = Context(tuple([value is OPERAND for value in self.layout]))
        result: Any = self.function.forward(ctx, *positional, **named)
        parts = [result] if self.function._outputs is None else self.take_apart(result)
        if parts[0] is result and isinstance(result, tuple):
            raise ShapeError(
                f"{self.name}.forward returned a tuple of {len(result)}. Say so where the class is "
                f"defined, since the nodes are built before it runs: class {self.name}(rg.Function, "
                f"outputs={len(result)})."
            )
        form, saved = take(ctx, arguments, parts, self.form)
        if self.form is None:
            self.form = form
        elif self.form != form:
            raise GradientError(
                f"{self.name}.forward has saved {_form_text(form)} for its rules, and at its first run "
                f"{_form_text(self.form)}. Rules are built once: save the same kinds at every run."
            )
        parts += saved
        # Only `parts` refers to them now, so that results without another owner need no copy.
        del result, saved
        passed = Passed(self.keep_each(parts, arguments))
        passed.attributes = vars(ctx)
        passed.op = self
        return passed

    def gradients(
        self, node: Any, g: Any, arguments: list[Any], needed: list[bool], program: Any
    ) -> Any:
        """Ask the ``backward`` of the class for the gradients of the arguments."""
        rule = Rule(self, node, arguments, program)
        assert self.vjp is not None
        try:
            if any(one is None for one in g) and rule.materializes():
                zero, results = node._graph.const(0.0), outputs(node._graph, node)
                g = [
                    spread(zero, y) if one is None else one
                    for one, y in zip(g, results, strict=True)
                ]
            parts = self.vjp(RuleContext(rule, needed), *g)
        except NotRun:
            return rule.postponed(arguments)
        parts = [*parts] if isinstance(parts, tuple | list) else [parts]
        self._check_count(parts)
        count = len(arguments)
        asked = [one if wanted else None for one, wanted in zip(arguments, needed, strict=True)]
        # Missing gradients at the end are zero.
        return rule.finish((parts + [None] * count)[:count], asked)

    def promised(self, index: int, operands: Sequence[Spec | None]) -> Spec | None:
        """Return what ``infer`` says of an output; ``None`` where it says nothing."""
        cls = self.function
        if cls.infer is Function.infer or index >= len(self.outputs) or None in operands:
            return None
        values, _ = self.arguments(operands)
        values = [_spec_of(value) for value in values]
        count = len(values) - len(self.keywords)
        try:
            result = cls.infer(
                *values[:count], **dict(zip(self.keywords, values[count:], strict=True))
            )
            each: Any = (result,) if cls._outputs is None else result
            if not isinstance(each, tuple | list) or len(each) != len(self.outputs):
                raise ValueError(
                    f"for {len(self.outputs)} outputs infer returned {safe_repr(result):.60}"
                )
            found = each[index]
            if isinstance(found, Spec):
                # A result is never a weak number.
                return spec(found.shape, found.dtype, found.device)
            if not isinstance(found, tuple | list) or len(found) != 2:
                raise TypeError(f"infer returned {type(found).__name__} ({safe_repr(found):.60})")
            shape, dtype = found
            device = operands[0].device if operands and operands[0] is not None else "cpu"
            return spec(tuple(shape), np.dtype(dtype), device)
        except Exception as error:
            if is_interrupt(error):
                raise
            raise ShapeError(
                f"{self.name}.infer, of ({', '.join(map(repr, operands))}): {error_text(error)}. "
                "It returns a spec that it was given, or (shape, dtype) as in ((2, 3), "
                "'float64'); of several outputs a tuple of these."
            ) from error

    def _check_count(self, parts: list[Any]) -> None:
        """Refuse gradients that belong to no argument, and too few gradients."""
        last = max(i for i, value in enumerate(self.layout) if value is OPERAND)
        count, name = len(self.layout), self.name
        if len(parts) <= last:
            raise GradientError(
                f"{name}.backward returned {len(parts)} gradients for {count} arguments. Return one "
                "for each argument of apply, in their order, and None where there is none."
            )
        for i, part in enumerate(parts):
            if part is not None and (i >= count or self.layout[i] is not OPERAND):
                what = "there is no such argument" if i >= count else "that argument is no Var"
                raise GradientError(
                    f"{name}.backward returned a gradient for argument {i + 1}, and {what}. Return "
                    "None there."
                )

    def tangents(self, node: Any, tangents: list[Any], arguments: list[Any], program: Any) -> Any:
        """Ask the ``jvp`` of the class for the tangents of the outputs."""
        rule, results = Rule(self, node, arguments, program), outputs(node._graph, node)
        assert self.jvp is not None
        try:
            parts = self.jvp(RuleContext(rule, [one is not None for one in tangents]), *tangents)
        except NotRun:
            return rule.postponed(results)
        single = self.function._outputs is None
        parts = [parts] if single or not isinstance(parts, tuple | list) else parts
        return rule.finish(parts, results[: len(parts)])

    def still_so(self, read: dict[str, Any], value: Any) -> bool:
        """Return whether ``forward`` has left on ``ctx`` what rules have read there."""
        return not isinstance(value, Passed) or unchanged(value, read)


def _spec_of(value: Any) -> Any:
    """Return what ``infer`` gets in place of an argument."""
    if isinstance(value, float | complex) or owner(value) is not None:
        found = read_value(value, "an argument")[0]
        if found is not None:
            return spec(found.shape, found.dtype, found.device)
    return value


def _form_text(form: Any) -> str:
    words = [kind if kind in ("none", "saved") else f"{kind} {i}" for kind, i in form[1]]
    return f"({', '.join(words)})"
