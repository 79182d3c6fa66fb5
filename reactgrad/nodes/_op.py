"""The ops of nodes: ``Op`` computes arrays, a ``Leaf`` is given its value, an ``Output`` is one of a function.

An ``Op`` has a name, a shape rule and derivative rules; its kernels are found by its name. A node that
calls a Python function has an op of ``_lifted``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from reactgrad._errors import UnsetError
from reactgrad.backend import Spec

Attrs = tuple[Any, ...]
Infer = Callable[[tuple[Spec, ...], Attrs], Any]  # a Spec, or None; rules of other ops know which
# rule(g, ans, *operands, *attrs): the gradient for one operand, built of ops on Vars
Vjp = Callable[..., Any]
# rule(t, ans, *operands, *attrs): the contribution of one operand's tangent to that of the result
Jvp = Callable[..., Any]
# rule(i, g): the same for operand `i` of any number
RuleOfAll = Callable[[int, Any], Any]


class Linear:
    """The class of ``LINEAR``, the forward rule of an operand in which the op is linear."""

    __slots__ = ()


# The rule: apply the op itself, with the tangent in the operand's place.
LINEAR: Final = Linear()


# All ops by name, for graphs that come from files.
OPS: Final[dict[str, Op]] = {}

# Ops of users' own by name, as the ``Primitive`` that each was made by.
PRIMITIVES: Final[dict[str, Any]] = {}


class Op:
    """One kind of computation on arrays.

    Attributes
    ----------
    name
        The op's name, under which its kernels are registered, too.
    infer
        The shape rule: from the operands' specs and the attributes to the result's spec. It raises
        a ``ReactgradError`` that says why operands do not fit. ``None`` for a result whose shape depends
        on the operands' values: its kernel gets ``None`` for ``out`` and returns a new array.
    vjps
        The rule of the gradient of each operand; ``None`` in place of a rule where the gradient is
        zero everywhere. ``None`` in place of the tuple if the op has no derivative rules.
    jvps
        The same for tangents, in forward mode: each rule gives the contribution of one operand's
        tangent. Either mode works without the rules of the other one.
    variadic, variadic_jvp
        For any number of operands, in place of `vjps` and `jvps`: ``variadic(ans, operands, attrs)``
        returns the rule of all of them, ``rule(i, g)``. What they share is found once.
    elementwise
        True if each element is computed from the operands' elements at the same (broadcast) place.
    broadcasts
        True if gradients may come back in the broadcast shape and are summed to the operand's, and
        tangents may come in the operand's shape and are broadcast to the result's.
    view
        ``view(x, *attrs)`` returns the result as a view of the operand's memory, or ``None`` where
        the operand's layout does not allow one. Of more operands than one it is a view of the first,
        and gets the shapes of the others: ``view(x, *shapes, *attrs)``.
    view_of_all
        True if such a view shows all elements of the operand: there is none where the result has fewer.
    loop_dtypes
        The dtypes in which the kernel takes its operands, used to convert Python numbers among
        them; by default the dtype of the result.
    any_count
        True if the same attributes fit any number of operands, so that an edit may add or remove
        some.
    any_number
        True if Python numbers that do not fit the loop's dtype go to the kernel as they are.
    takes_numbers
        True if all Python numbers do, for an op without a shape rule.
    key
        For a draw of random numbers: the position of the operand that is its key, which ``touch`` replaces.
    known
        Results of ``result`` so far, by ``(*specs, attrs)``.
    templates, keeps
        What its rules have built so far, and whether that may be kept: see ``autodiff/_templates``.
    """

    __slots__ = (
        "any_count",
        "any_number",
        "broadcasts",
        "elementwise",
        "infer",
        "jvps",
        "keeps",
        "key",
        "known",
        "loop_dtypes",
        "name",
        "takes_numbers",
        "templates",
        "variadic",
        "variadic_jvp",
        "view",
        "view_of_all",
        "vjps",
    )

    def __init__(
        self,
        name: str,
        infer: Infer,
        vjps: tuple[Vjp | None, ...] | None = None,
        jvps: tuple[Jvp | Linear | None, ...] | None = None,
        variadic: Callable[[Any, tuple[Any, ...], Attrs], RuleOfAll] | None = None,
        variadic_jvp: Callable[[Any, tuple[Any, ...], Attrs], RuleOfAll] | None = None,
        elementwise: bool = False,
        broadcasts: bool = False,
        view: Callable[..., Any] | None = None,
        view_of_all: bool = False,
        loop_dtypes: Callable[[tuple[Spec, ...]], tuple[Any, ...]] | None = None,
        any_count: bool = False,
        any_number: bool = False,
        key: int | None = None,
        takes_numbers: bool = False,
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
        self.view_of_all = view_of_all
        self.loop_dtypes = loop_dtypes
        self.any_count = any_count
        self.any_number = any_number
        self.key = key
        self.takes_numbers = takes_numbers
        self.known: dict[tuple[Spec | Attrs | None, ...], Spec] = {}
        self.templates: dict[Any, Any] = {}
        self.keeps: bool | None = None
        # The first op keeps the name: a name in a saved graph must not change its meaning.
        OPS.setdefault(name, self)

    def __repr__(self) -> str:
        return f"Op({self.name!r})"

    def result(self, specs: tuple[Spec, ...], attrs: Attrs) -> Any:
        """Return the spec of the result, remembered by the operands' specs and the attributes.

        ``None`` if only the operands' values show it.
        """
        key = (*specs, attrs)
        try:
            found = self.known.get(key)
        except TypeError:  # attributes that hold arrays cannot be hashed
            return self.infer(specs, attrs)
        if found is None:
            found = self.infer(specs, attrs)
            if found is None:
                return None
            if len(self.known) > 4096:  # shapes that change for ever must not fill the memory
                self.known.clear()
            self.known[key] = found
        return found

    @property
    def has_rules(self) -> bool:
        """True if the op has rules for gradients."""
        return self.vjps is not None or self.variadic is not None

    @property
    def has_forward_rules(self) -> bool:
        """True if the op has rules for tangents."""
        return self.jvps is not None or self.variadic_jvp is not None


class Leaf:
    """The op of a node whose value is given.

    Attributes
    ----------
    missing : str
        The message of the error if the value is read before it was given.
    """

    __slots__ = ("missing", "name")

    def __init__(self, name: str, missing: str = "") -> None:
        self.name = name
        self.missing = missing or (
            f"this {name} has no value yet; give it one with .set(value) before reading what depends on "
            "it."
        )

    def call(self, arguments: list[Any]) -> Any:
        """Raise ``UnsetError``: this is called only for a leaf that has no value."""
        raise UnsetError(self.missing)


INPUT: Final = Leaf("input")
PARAM: Final = Leaf("param")
CONST: Final = Leaf("const")
SEED: Final = Leaf("seed")  # the gradient that a backward was given
MODE: Final = Leaf("mode")  # whether the graph is in train mode
KEY: Final = Leaf("key")  # where a draw of random numbers begins in their stream
FEED: Final = Leaf(  # a value that a subgraph was called with
    "feed",
    "a subgraph is built without values, since it is used again with other ones, and its function has "
    "read the value of an argument, or the shape of a node that only its value shows (declare it: "
    "rg.lift(fn, shape=..., dtype=...), infer in an rg.Function). Use .shape and .dtype, rg.where or "
    "rg.switch instead of if, and rg.lift for what needs values.",
)


class Output:
    """The op of a node that takes one output of its only operand; made by ``output``.

    A function with several outputs is one node whose value is a tuple, and one more node for each output,
    which takes its part of that tuple. So the function runs once for all outputs, and each of them has its
    own version, cutoff, name and consumers.

    Derivatives go the same way. The gradient of the function's node is a tuple, too; the gradients of the
    outputs are its *shares*. The tuple's node only records which shares there are; rules use the shares
    themselves.

    Attributes
    ----------
    of
        The name of the function.
    index
        The place of this output among the function's outputs.
    declared
        The spec that the function promised for it, or ``None``.
    """

    __slots__ = ("declared", "index", "name", "of")

    has_rules = has_forward_rules = True  # its derivative is a share of the function's

    def __init__(self, function: str, index: int, declared: Spec | None) -> None:
        self.of = function
        self.name = f"{function}[{index}]"
        self.index = index
        self.declared = declared

    def call(self, arguments: list[Any]) -> Any:
        """Return the output. The function's own node has already made it safe to keep."""
        return arguments[0][self.index]


@lru_cache(maxsize=4096)
def output(function: str, index: int, declared: Spec | None = None) -> Output:
    """Return the op of output `index` of functions of this name."""
    return Output(function, index, declared)
