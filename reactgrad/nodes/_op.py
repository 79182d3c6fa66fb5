"""What an op is: a name, a shape rule, derivative rules. Kernels are found by the name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from reactgrad.backend import Spec

Attrs = tuple[Any, ...]
Infer = Callable[[tuple[Spec, ...], Attrs], Spec]
# rule(g, ans, *operands, *attrs): the gradient for one operand, built of ops on Vars
Vjp = Callable[..., Any]
# rule(t, ans, *operands, *attrs): what the tangent of one operand adds to that of the result
Jvp = Callable[..., Any]


class Linear:
    """The forward rule of an operand in which the op is linear; see ``LINEAR``."""

    __slots__ = ()


# The op itself, on the tangent in the operand's place.
LINEAR: Final = Linear()


# All ops by name, for graphs that come from files.
OPS: Final[dict[str, Op]] = {}

# Ops of users' own by name, with what they were made of.
PRIMITIVES: Final[dict[str, Any]] = {}


class Op:
    """One kind of computation on arrays.

    Attributes
    ----------
    name
        Also the name under which kernels are registered.
    infer
        Specs of the operands and the attributes to the spec of the result. Raises a
        ``ReactgradError`` that says why operands do not fit.
    vjps
        For each operand the rule of its gradient; ``None`` where the gradient is zero
        everywhere. No tuple at all: the op has no derivative rules.
    jvps
        The same for tangents, in forward mode: what each operand's tangent adds to that of the
        result. Either mode works without the rules of the other one.
    variadic, variadic_jvp
        Instead of `vjps` and `jvps` for any number of operands:
        ``variadic(i, g, ans, operands, attrs)``.
    elementwise
        Computes each element from the operands' elements at the same (broadcast) place.
    broadcasts
        Gradients may come back in the broadcast shape and are summed to the operand's; tangents
        may come in the operand's shape and are broadcast to the result's.
    view
        ``view(x, *attrs)``: the result as a view of the operand's memory, or ``None`` where its
        layout does not allow one.
    loop_dtypes
        Dtypes in which the kernel wants its operands, for Python numbers among them; by default
        that of the result.
    any_count
        The same attributes fit any number of operands, so that an edit may add or remove some.
    any_number
        Python numbers that do not fit the loop's dtype go to the kernel as they are.
    known
        What ``result`` has found, by ``(*specs, attrs)``.
    """

    __slots__ = (
        "any_count",
        "any_number",
        "broadcasts",
        "elementwise",
        "infer",
        "jvps",
        "known",
        "loop_dtypes",
        "name",
        "variadic",
        "variadic_jvp",
        "view",
        "vjps",
    )

    def __init__(
        self,
        name: str,
        infer: Infer,
        vjps: tuple[Vjp | None, ...] | None = None,
        jvps: tuple[Jvp | Linear | None, ...] | None = None,
        variadic: Callable[[int, Any, Any, tuple[Any, ...], Attrs], Any] | None = None,
        variadic_jvp: Callable[[int, Any, Any, tuple[Any, ...], Attrs], Any] | None = None,
        elementwise: bool = False,
        broadcasts: bool = False,
        view: Callable[..., Any] | None = None,
        loop_dtypes: Callable[[tuple[Spec, ...]], tuple[Any, ...]] | None = None,
        any_count: bool = False,
        any_number: bool = False,
    ) -> None:
        self.name = name
        self.infer = infer
        self.vjps = vjps
        self.jvps = jvps
        self.variadic = variadic
        self.variadic_jvp = variadic_jvp
        self.elementwise = elementwise
        self.broadcasts = broadcasts
        self.view = view
        self.loop_dtypes = loop_dtypes
        self.any_count = any_count
        self.any_number = any_number
        self.known: dict[tuple[Spec | Attrs | None, ...], Spec] = {}
        # The first one keeps the name: what a saved graph says must not change its meaning.
        OPS.setdefault(name, self)

    def __repr__(self) -> str:
        return f"Op({self.name!r})"

    def result(self, specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        """The spec of the result, remembered by the operands' specs."""
        key = (*specs, attrs)
        try:
            found = self.known.get(key)
        except TypeError:  # attributes that hold arrays are not looked up
            return self.infer(specs, attrs)
        if found is None:
            found = self.infer(specs, attrs)
            if len(self.known) > 4096:
                self.known.clear()
            self.known[key] = found
        return found

    @property
    def has_rules(self) -> bool:
        """Whether derivative rules exist."""
        return self.vjps is not None or self.variadic is not None

    @property
    def has_forward_rules(self) -> bool:
        """Whether rules of forward mode exist."""
        return self.jvps is not None or self.variadic_jvp is not None
