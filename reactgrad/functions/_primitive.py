"""Ops of the user's own: a shape rule, a kernel, and the derivative rules that are added to them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, GradientError, ReactgradError
from reactgrad.autodiff._custom import checked, fits
from reactgrad.backend import Binder, Spec, register_binder, register_kernel, spec
from reactgrad.nodes._handle import Handle, apply
from reactgrad.nodes._op import LINEAR, OPS, PRIMITIVES, Attrs, Op, RuleOfAll
from reactgrad.ops import _numpy_protocols, known_shape, sum_to
from reactgrad.ops._shapes import broadcast as broadcast_shape
from reactgrad.ops._shapes import common_device, promote
from reactgrad.values._columns import frozen_copy


class NameTakenError(ReactgradError, ValueError):
    """There is an op of this name already."""


class Primitive:
    """An op of the user's own, made by ``primitive``. Called with operands, it builds a node.

    Attributes
    ----------
    op : Op
        The op of the nodes that it builds.
    arity : int
        The number of operands that its kernel names, ``*operands`` being one; its attributes
        follow.
    """

    def __init__(
        self, op: Op, kernel: Callable[..., Any], signature: inspect.Signature, arity: int
    ) -> None:
        self.op = op
        self.arity = arity
        self.words = list(signature.parameters)[arity:]
        self.kernel = kernel
        self.__signature__ = signature
        self.__name__ = op.name
        self.__doc__ = kernel.__doc__

    def __call__(self, *operands: Any, **attributes: Any) -> Any:
        """Return the Var of a new node.

        Raises
        ------
        DTypeError
            If operands or attributes are missing, or there are too many.
        """
        words, count = self.words, len(operands)
        fits = count == self.arity or (self.op.any_count and count >= self.arity - 1)
        if fits and attributes.keys() == set(words):  # a fast path: binding a signature takes long
            attrs = [_fixed(self, word, attributes[word]) for word in words]
            return apply(self.op, operands, tuple(attrs))
        try:
            bound = self.__signature__.bind(*operands, **attributes)
        except TypeError as error:
            raise DTypeError(f"{self!r}: {error}.") from None
        bound.apply_defaults()
        named = bound.arguments
        attrs = [_fixed(self, word, named[word]) for word in words]
        given = [value for name, value in named.items() if name not in words]
        if self.op.any_count:
            given[-1:] = given[-1]
        return apply(self.op, given, tuple(attrs))

    def changed(self, attrs: Attrs, named: Mapping[str, Any]) -> Attrs:
        """Return these attributes with the named ones replaced."""
        all_ = dict(zip(self.words, attrs, strict=True)) | {
            word: _fixed(self, word, value) for word, value in named.items()
        }
        return tuple([all_[word] for word in self.words])

    def __repr__(self) -> str:
        return f"{self.op.name}{self.__signature__}"


# Who defines the op of a name; before there is one, so that what was cut short can be defined again.
_origins: dict[str, tuple[Any, Any]] = {}


def primitive(
    name: str,
    shape_rule: Callable[..., Any],
    *,
    elementwise: bool = False,
    numpy: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Primitive]:
    """Define an op: decorate its kernel with this.

    The op is like any other: shapes are checked before anything is computed, the kernel is bound to
    its operands and to the buffer it writes into, files know it by its name.

    Parameters
    ----------
    name : str
        Of the op; no two have the same. In saved graphs, too: whoever loads one must have imported
        the module that defines it.
    shape_rule : callable
        ``shape_rule(*operands, **attributes)`` returns what is known of the result: the ``Spec`` of
        an operand (with ``shape``, ``dtype``, ``device``), a new one,
        ``rg.extend.spec(shape, dtype, device)``, or what ``rg.extend.broadcast`` says. Lengths may
        be ``None``, not known yet. It raises ``ShapeError`` or ``DTypeError`` where operands do not
        fit.
    elementwise : bool
        Whether each element of the result is computed from those at its place (with broadcasting)
        in the operands. Gradients are then summed to the operands' shapes.
    numpy : callable, optional
        The function of NumPy that builds this op when it is called with a Var.

    Returns
    -------
    callable
        Takes the kernel, ``kernel(x, y, out, *attributes)``, which writes the result for NumPy arrays
        into ``out``, and returns the op. What stands before ``out`` are the operands, what stands
        behind it attributes, which are fixed for a node. A ufunc of NumPy is a kernel without attributes.
        A kernel that returns an array of its own instead is refused when it first runs.
        ``kernel(x, *rest, out, attribute)`` takes any number of operands, which edits may change.
        ``register_kernel`` adds kernels for other devices.

    Raises
    ------
    NameTakenError
        If there is another op of this name. The same kernel, defined again, replaces the former one
        for new nodes.
    DTypeError
        If the kernel has no ``out``.

    Examples
    --------
    See ``rg.extend``.
    """

    def define(kernel: Callable[..., Any]) -> Primitive:
        signature, arity, many = _signature(name, kernel)
        words = list(signature.parameters)[arity:]
        if name in OPS and _origins.get(name) != _origin(kernel):
            raise NameTakenError(f"there is an op {name!r} already; give this one another name.")
        _origins[name] = _origin(kernel)

        def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
            found = shape_rule(*specs, **dict(zip(words, attrs, strict=True)))
            if not isinstance(found, Spec):
                raise DTypeError(
                    f"the shape rule of {name!r} returned {found!r:.60}. Return the Spec of the result: "
                    "that of an operand, or rg.extend.spec(shape, dtype, device)."
                )
            return found if found.weak is None else spec(found.shape, found.dtype, found.device)

        op = Op(name, infer, elementwise=elementwise, broadcasts=elementwise, any_count=many)
        made = Primitive(op, kernel, signature, arity)
        mirrored = kernel if isinstance(kernel, np.ufunc) and numpy is None else numpy
        if mirrored is not None:  # first, since it may refuse
            _numpy_protocols.mirror(mirrored, made)
        PRIMITIVES[name] = made
        OPS[name] = op
        if many:
            register_binder(name, "cpu", partial(_bind_by_name, kernel, words))
        elif isinstance(kernel, np.ufunc):
            register_kernel(name, "cpu", kernel)
        else:
            register_binder(name, "cpu", _binder(name, kernel))
        return made

    return define


def _binder(name: str, kernel: Callable[..., Any]) -> Binder:
    """Return a binder for a kernel.

    Its first run checks that it writes its result and does not return it.
    """
    # Becomes True with the first run that passes the check; later runs call the kernel directly.
    writes = False

    def first(inputs: Sequence[Any], out: Any, attrs: Attrs) -> None:
        nonlocal writes
        found = kernel(*inputs, out, *attrs)
        if isinstance(found, np.ndarray | np.generic) and not np.may_share_memory(found, out):
            raise DTypeError(
                f"the kernel of {name!r} returned its result, which nobody looks at. Write it into `out`: "
                "out[...] = result, or np.exp(x, out)."
            )
        writes = True

    def bind(inputs: Sequence[Any], out: Any, attrs: Attrs) -> Callable[[], object]:
        if writes:
            return partial(kernel, *inputs, out, *attrs)
        return partial(first, inputs, out, attrs)

    return bind


def _bind_by_name(
    kernel: Callable[..., Any], words: Sequence[str], inputs: Sequence[Any], out: Any, attrs: Attrs
) -> Callable[[], object]:
    """Return a call of a kernel that takes any number of operands, and all else by name."""
    return partial(kernel, *inputs, out=out, **dict(zip(words, attrs, strict=True)))


def _fixed(op: Primitive, word: str, value: Any) -> Any:
    """Return an attribute as a value that nothing can change any more."""
    if isinstance(value, Handle):
        raise DTypeError(
            f"{op!r}: {word}= was given a Var; attributes are fixed when the node is built. Put it in front of "
            "`out` in the kernel, as an operand."
        )
    if isinstance(value, np.ndarray):
        return frozen_copy(value)
    return tuple(value) if isinstance(value, list) else value


def broadcast(*specs: Spec, **attributes: Any) -> Spec:
    """Return the spec of an op that broadcasts its operands and promotes their dtypes, as NumPy
    does.

    Raises
    ------
    ShapeError
        If they do not broadcast together.
    """
    return spec(broadcast_shape("this op", specs), promote(specs), common_device("this op", specs))


def _origin(kernel: Any) -> tuple[Any, Any]:
    return getattr(kernel, "__module__", None), getattr(kernel, "__qualname__", kernel)


def _signature(name: str, kernel: Callable[..., Any]) -> tuple[inspect.Signature, int, bool]:
    """Return the signature of a kernel's op, the number of operands it names, and whether the last
    is ``*many``.
    """
    if not callable(kernel):
        raise DTypeError(f"the kernel of {name!r} is {kernel!r:.60}; it is a function.")
    if isinstance(kernel, np.ufunc):
        kind = inspect.Parameter.POSITIONAL_ONLY
        operands = [inspect.Parameter(f"x{i + 1}", kind) for i in range(kernel.nin)]
        return inspect.Signature(operands), kernel.nin, False
    parameters = list(inspect.signature(kernel).parameters.values())
    words = [parameter.name for parameter in parameters]
    at = words.index("out") if "out" in words else 0
    many = at > 0 and parameters[at - 1].kind is inspect.Parameter.VAR_POSITIONAL
    single = parameters[: at - 1] + parameters[at:] if many else parameters
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    by_name = any(p.kind is p.KEYWORD_ONLY for p in parameters)
    if not at or any(p.kind in variable for p in single) or by_name != many:
        raise DTypeError(
            f"the kernel of {name!r} takes ({', '.join(map(str, parameters))}). Write kernel(x, y, out, "
            "attribute): operands one by one, then the array to write into, then attributes; or "
            "kernel(x, *rest, out, attribute) for any number of operands."
        )
    empty = inspect.Parameter.empty
    taken = [p.replace(annotation=empty) for p in parameters if p.name != "out"]
    return inspect.Signature(taken), at, many


def defvjp(op: Primitive, *rules: Callable[..., Any] | None) -> None:
    """Define how gradients pass an op.

    Parameters
    ----------
    op : Primitive
        From ``primitive``.
    *rules : callable or None
        One for each operand: ``rule(g, ans, *operands, *attributes)`` builds its gradient from that
        of the result, `g`; all are Vars. ``None``: it is zero everywhere. Of an op of any number of
        operands the attributes come by name, and the last rule is that of all of ``*rest``:
        ``rule(i, g, ans, *operands, attribute=...)`` for the one at `i` among them.

    Raises
    ------
    GradientError
        If there is not one for each operand.

    Examples
    --------
    See ``rg.extend``.
    """
    _check_rules(op, rules, "defvjp")
    checked_rules = [
        None if rule is None else _checked(op, i, rule) for i, rule in enumerate(rules)
    ]
    if op.op.any_count:
        op.op.variadic = _for_any_count(op, checked_rules)
    else:
        op.op.vjps = tuple(checked_rules)


def _for_any_count(op: Primitive, rules: Sequence[Callable[..., Any] | None]) -> Callable[..., Any]:
    """Return one rule for an op of any number of operands, made of the rules for its named ones."""
    last = op.arity - 1

    def variadic(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
        named = dict(zip(op.words, attrs, strict=True))

        def rule(i: int, g: Any) -> Any:
            found = rules[min(i, last)]
            which = () if i < last else (i - last,)
            return None if found is None else found(*which, g, ans, *operands, **named)

        return rule

    return variadic


def _checked(op: Primitive, i: int, rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule that checks the gradients of `rule` against the operand."""

    def vjp(*given: Any, **named: Any) -> Any:
        # A rule for any number of operands gets the position first.
        which = given[:1] if op.op.any_count and i == op.arity - 1 else ()
        at = i + sum(which)
        part, var = rule(*given, **named), given[len(which) + 2 + at]
        if fits(part, var):
            return part
        if op.op.broadcasts and hasattr(part, "_slot") and _stretches(var, part):
            part = sum_to(part, var)
        return checked(part, var, f"the vjp of {op.op.name!r} for operand {at + 1} ({var.label!r})")

    return vjp


def _stretches(var: Any, part: Any) -> bool:
    """Return whether a value of the shape of `var` broadcasts to that of `part`, as far as that is
    known.
    """
    small, big = known_shape(var), known_shape(part)
    if small is None or big is None:
        return True
    return len(small) <= len(big) and all(
        m == n or m == 1 or m is None or n is None
        for m, n in zip(small[::-1], big[::-1], strict=False)
    )


def defjvp(op: Primitive, *rules: Any) -> None:
    """Define how tangents pass an op, for forward mode.

    Parameters
    ----------
    op : Primitive
        From ``primitive``.
    *rules : callable, "linear" or None
        One for each operand: ``rule(t, ans, *operands, *attributes)`` builds what the operand's
        tangent `t` adds to that of the result; all are Vars. ``"linear"``: the op itself, with `t` in
        the operand's place. ``None``: nothing. For any number of operands as in ``defvjp``, without
        ``"linear"``.

    Raises
    ------
    GradientError
        If there is not one for each operand.

    Examples
    --------
    See ``rg.extend``.
    """
    _check_rules(op, rules, "defjvp", *(() if op.op.any_count else ("linear",)))
    if op.op.any_count:
        op.op.variadic_jvp = _for_any_count(op, rules)
    else:
        op.op.jvps = tuple([LINEAR if rule == "linear" else rule for rule in rules])


def _check_rules(op: Any, rules: tuple[Any, ...], what: str, *words: str) -> None:
    """Raise unless these are rules for an op of the user's own, one for each operand."""
    if not isinstance(op, Primitive):
        raise DTypeError(
            f"{what} takes an op from rg.extend.primitive, not {op!r:.60}. Functions get their rules "
            f"from rg.lift(fn, {what[3:]}=rule)."
        )
    if len(rules) != op.arity:
        raise GradientError(
            f"{what} of {op!r} was given {len(rules)} rules for {op.arity} operands. Give one for each, "
            "None where it is zero."
        )
    for rule in rules:
        if rule is not None and rule not in words and not callable(rule):
            raise DTypeError(f"{what} of {op!r}: {rule!r:.60} is no rule; it is a function.")
