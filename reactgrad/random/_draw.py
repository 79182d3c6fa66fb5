"""Draws as nodes: their ops, shapes and keys.

A distribution with gradients is a function of *standard* draws, which have no parameters, and the last node
carries the key once more, so that ``touch`` of the result finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from math import prod
from typing import Any, TypeVar

import numpy as np

from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.backend import Spec, add_kernels, read_dtype, spec
from reactgrad.backend.numpy import _random
from reactgrad.build._key import new_key
from reactgrad.nodes._handle import Handle, apply, graph_of
from reactgrad.nodes._op import CONST, Attrs, Op
from reactgrad.ops import astype, log
from reactgrad.ops._chain import times
from reactgrad.ops._layout import spread_like
from reactgrad.ops._shapes import broadcast, common_device
from reactgrad.scheduler import safe_repr

add_kernels(_random.register, _random.register_standard)

Shape = tuple[int, ...] | None
F = TypeVar("F", bound=Callable[..., Any])


def shape_of(name: str, shape: Any, size: Any) -> Shape:
    """Return a shape argument as a tuple, ``None`` if there is none.

    Raises
    ------
    DTypeError
        If it holds other than integers of at least 0, or both names of it are given.
    """
    if size is not None:
        if shape is not None:
            raise ParameterError(
                f"rg.random.{name}: shape= and size= are the same; give one of them."
            )
        shape = size
    if shape is None:
        return None
    many = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    if not all(_is_length(one) for one in many):
        raise ParameterError(
            f"rg.random.{name}: the shape is {safe_repr(shape):.60}; it is an integer or a tuple of integers of at "
            f"least 0. {_order(name)}"
        )
    return tuple(int(one) for one in many)


def _order(name: str) -> str:
    """Return what messages say where arguments stand in another order, with a call of this function."""
    given = _PARAMETERS.get(name)
    if given is None:
        return f"Write it by name, as in {name}(..., size=(2, 3))."
    if not given:
        return f"Its only parameter is the shape: {name}((2, 3))."
    return (
        f"The shape comes before parameters that have defaults; write the parameters by name, as in {name}((2, 3), "
        f"{given}), or all by NumPy's names: {name}({given}, size=(2, 3))."
    )


# The parameters, with their defaults, of the distributions whose shape stands first.
_PARAMETERS: dict[str, str] = {}


def _is_length(one: Any) -> bool:
    return isinstance(one, int | np.integer) and not isinstance(one, bool) and bool(one >= 0)


def _is_zero(one: Any) -> bool:
    return isinstance(one, int) and one == 0


def shape_first(function: F) -> F:
    """Let a distribution refuse what looks like NumPy's order: a bare number, and parameters by position.

    ``normal(0, 1)`` would have no elements, and ``normal(10, 2)`` ten of mean 2.
    """
    name = function.__name__
    parameters = signature(function).parameters.items()
    _PARAMETERS[name] = ", ".join(
        [f"{key}={one.default}" for key, one in parameters if key not in ("shape", "dtype", "size")]
    )

    @wraps(function)
    def checked(*args: Any, **named: Any) -> Any:
        first = args[0] if args else None
        bare = not isinstance(first, tuple | list | None)
        if bare and (len(args) > 1 or "size" in named or _is_zero(first)):
            given = ", ".join([f"{safe_repr(one):.30}" for one in args])
            raise DTypeError(
                f"rg.random.{name}({given}, ...): is the first argument a shape, or a parameter? {_order(name)}"
            )
        return function(*args, **named)

    return checked  # type: ignore[return-value]


def fits(name: str, shape: tuple[int | None, ...], common: tuple[int | None, ...]) -> None:
    """Check that parameters of a common shape broadcast to that of the draws.

    Raises
    ------
    ShapeError
        If they do not.
    """
    known = (*(1,) * (len(shape) - len(common)), *common)
    if len(known) > len(shape) or any(
        n not in (1, None, m) for n, m in zip(known, shape, strict=True)
    ):
        raise ShapeError(
            f"rg.random.{name} of shape {shape}: its parameters have the shape {common} together, which does not "
            "broadcast to it. Leave the shape out, or give the parameters axes of length 1."
        )


def float_dtype(name: str, dtype: Any, parameters: Sequence[Any]) -> np.dtype[Any]:
    """Return the dtype of a draw: as given, else that of its parameters if these are arrays, else float64.

    Raises
    ------
    DTypeError
        If it holds no real floats.
    """
    if dtype is None:
        kinds = [one.dtype for one in parameters if hasattr(one, "dtype") and not _is_number(one)]
        found = np.result_type(*kinds) if kinds else np.dtype(np.float64)
        return found if found.kind == "f" else np.dtype(np.float64)
    found = read_dtype(f"rg.random.{name}", dtype)
    if found.kind != "f":
        raise DTypeError(f"rg.random.{name}(dtype={found}): draws of this kind are real floats.")
    return found


def _is_number(one: Any) -> bool:
    found = one._graph._host.specs[one._slot] if isinstance(one, Handle) else None
    return found is not None and found.weak is not None


def is_const(one: Any) -> bool:
    """Return whether a node is a constant, which keeps its shape."""
    return one._graph._host.ops[one._slot] is CONST


# --- ops ---------------------------------------------------------------------------------------


def _infer_draw(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    shape, dtype = attrs[1], np.dtype(attrs[2])
    found = broadcast(attrs[0], specs[1:])
    if shape is None:
        shape = found
    else:
        if shape and shape[-1] is None:
            shape = (*shape[:-1], *found[-1:])
        fits(attrs[0], shape, found)
    return spec(shape, dtype, _device(specs))


def _device(specs: tuple[Spec, ...]) -> str:
    """Return the device of a draw: that of its operands, or else that of its key."""
    return (
        common_device("a draw", specs[1:])
        if any(s.weak is None for s in specs[1:])
        else specs[0].device
    )


# Attributes: the method of a generator, shape, dtype, lane. Without a shape it is that of a second operand, which is
# there for its shape only; where the shape ends with None, its last length is that of the operand.
STANDARD = Op("standard_draw", _infer_draw, (None,), (None,), key=0)
STANDARD_LIKE = Op("standard_draw_like", _infer_draw, (None, None), (None, None), key=0)


def _infer_method(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    core, operands, inner = attrs[3], specs[1:], ()
    if core:  # the first or last operand holds categories along its last axis
        at = core - 1 if core > 0 else core
        inner = operands[at].shape[-1:]
        operands = [
            spec(one.shape[:-1], one.dtype, one.device) if one is operands[at] else one
            for one in operands
        ]
    outer = _infer_draw((specs[0], *operands), attrs).shape
    return spec((*outer, *inner), np.dtype(attrs[2]), _device(specs))


# Attributes: the method, shape, dtype, the operand with categories (1: the first, -1: the last, 0: none), options
# of the method, lane.
METHOD = Op("method_draw", _infer_method, key=0)


def _gamma_rule(g: Any, ans: Any, key: Any, alpha: Any, *attrs: Any) -> Any:
    return times(g, apply(GAMMA_SLOPE, (ans, alpha)))


GAMMA = Op(
    "gamma_draw", _infer_method, (None, _gamma_rule), (None, _gamma_rule), broadcasts=True, key=0
)

# Has no rule: the derivative of the quadrature by which it is computed is not written.
GAMMA_SLOPE = Op(
    "gamma_slope",
    lambda specs, attrs: spec(broadcast("gamma_slope", specs), specs[0].dtype, specs[0].device),
    elementwise=True,
)


def _infer_permutation(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    length = specs[1].shape[0] if len(specs) > 1 else attrs[0]
    return spec((length,), np.dtype(np.int64), _device(specs))


PERMUTATION = Op("permutation_draw", _infer_permutation, key=0)


def _infer_choice(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return _choice_of(specs, specs[1:], *attrs)


def _infer_choice_along(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    axis, *rest = attrs
    return _choice_of(specs, specs[2:], specs[1].shape[axis], *rest)


def _choice_of(
    specs: tuple[Spec, ...],
    weights: tuple[Spec, ...],
    length: int | None,
    shape: tuple[int, ...],
    replace: bool,
) -> Spec:
    for one in weights:
        if len(one.shape) != 1 or (None not in (length, *one.shape) and one.shape != (length,)):
            raise ShapeError(
                f"rg.random.choice(p=...) of shape {one.shape}: it is one probability for each of the {length} parts."
            )
    count = prod(shape)
    if length is not None and count > length and not (replace and length):
        raise ShapeError(
            f"rg.random.choice of {count} of {length} parts"
            + (
                ": there is none to draw."
                if replace
                else ", each at most once: draw fewer, or with replace=True."
            )
        )
    return spec(shape, np.dtype(np.int64), _device(specs))


# Numbers below the first attribute; the second operand, if there is one, holds their probabilities.
CHOICE = Op("choice_draw", _infer_choice, key=0)

# Numbers below the length that the second operand has along the axis in the first attribute.
CHOICE_ALONG = Op("choice_draw_along", _infer_choice_along, key=0)


def _infer_named(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    if len(attrs) > 1:
        name, shape = attrs
        found = specs[0].shape
        if len(found) != len(shape) or any(
            None not in (n, m) and n != m for n, m in zip(found, shape, strict=True)
        ):
            raise ShapeError(
                f"rg.random.{name} of shape {shape}: its parameters together give draws of shape {found}. Leave the "
                "shape out if it is to follow the parameters, or give it the axes that these have."
            )
    return specs[0]


# The result of a function of draws, with the key for `touch`. Attributes: the distribution's name, and the shape that
# the caller has asked for, if any: parameters that are set to another shape must still broadcast to it.
DRAW = Op(
    "draw",
    _infer_named,
    (lambda g, ans, x, key, *attrs: g, None),
    (lambda t, ans, x, key, *attrs: t, None),
    view=lambda x, *attrs: x,
    key=1,
)


def standard(method: str, key: Any, shape: Any, dtype: Any, lane: int = 0, like: Any = None) -> Any:
    """Return a draw without parameters; a shape that is ``None``, or ends with it, follows that of `like`."""
    if like is None:
        return apply(STANDARD, (key,), (method, shape, dtype, lane))
    return apply(STANDARD_LIKE, (key, like), (method, shape, dtype, lane))


def standard_gammas(key: Any, alpha: Any, shape: Any, dtype: Any, lane: int = 0) -> Any:
    """Return draws of the gamma distribution of scale 1, with gradient by `alpha`."""
    return apply(GAMMA, (key, alpha), ("standard_gamma", shape, dtype, 0, (), lane))


def drawn(name: str, value: Any, key: Any, shape: Any = None) -> Any:
    """Return the result of a function of draws as a draw, which ``touch`` draws anew."""
    return apply(DRAW, (value, key), (name,) if shape is None else (name, shape))


# The lanes of exponential draws beside gamma draws begin here.
_SECOND = 2


class Draw:
    """One call of a distribution with gradients: its key, shape and dtype.

    Attributes
    ----------
    parameters
        As nodes or Python numbers, in the dtype of the draw.
    asked
        The shape that the caller has given, ``None`` without one. A last length that is ``None`` follows `like`.
    like
        A node whose shape the draws have where the caller has given none; ``None`` if that cannot change.
    shape
        That of the draws; ``None`` where it is that of `like`.
    """

    __slots__ = ("asked", "dtype", "key", "like", "name", "parameters", "shape")

    def __init__(
        self, name: str, shape: Any, size: Any, dtype: Any, *parameters: Any, graph: Any = None
    ) -> None:
        self.name = name
        self.dtype = float_dtype(name, dtype, parameters)
        graph = graph_of(parameters) if graph is None else graph
        self.parameters = [self.read(graph, one) for one in parameters]
        self.asked: Any = shape_of(name, shape, size)
        self.shape: Any = None
        self.like: Any = None
        self.key = new_key(graph)
        common = self._common(graph)
        if self.asked is None:
            self.follow(self.parameters, common)
        else:
            self.shape = self.asked
            if common is not None:
                fits(name, self.shape, common)

    def read(self, graph: Any, one: Any) -> Any:
        """Return a parameter in the dtype of the draw; Python numbers stay."""
        if isinstance(one, int | float) and not isinstance(one, bool):
            return one
        node: Any = one if isinstance(one, Handle) else graph.const(np.asarray(one))
        return node if node.dtype == self.dtype or _is_number(node) else astype(node, self.dtype)

    def _common(self, graph: Any) -> Any:
        """Return the shape to which the parameters broadcast, ``None`` where it is not known."""
        nodes = [one for one in self.parameters if isinstance(one, Handle)]
        specs = [graph._host.specs[one._slot] for one in nodes]
        return None if None in specs else broadcast(f"rg.random.{self.name}", specs)

    def follow(self, nodes: Sequence[Any], common: Any) -> None:
        """Let the draws have the shape to which nodes broadcast, now `common`, also when that changes."""
        arrays = [one for one in nodes if isinstance(one, Handle) and not _is_number(one)]
        if all(is_const(one) for one in arrays):
            self.shape, self.like = common, None
            return
        self.shape, self.like = None, arrays[0]
        for one in arrays[1:]:
            self.like = self.like + one

    def among(self, outer: Shape, like: Any) -> None:
        """Let the draws be vectors as long as the last axis of `like`: `outer` of them, or as many as `like` holds.

        Raises
        ------
        ShapeError
            If `like` does not broadcast to that.
        """
        if outer is None:
            self.follow([like], like.shape)
            return
        self.asked = self.shape = (*outer, None)
        self.like = like
        fits(self.name, outer, like.shape[:-1])

    def standard(self, method: str, lane: int = 0) -> Any:
        """Return a draw without parameters."""
        return standard(method, self.key, self.shape, self.dtype, lane, self.like)

    def gammas(self, alpha: Any, lane: int = 0) -> Any:
        """Return draws of the gamma distribution of scale 1."""
        return standard_gammas(self.key, self._for_each(alpha), self.shape, self.dtype, lane)

    def _for_each(self, alpha: Any) -> Any:
        """Return a parameter in the shape of the draws, since each of them draws for itself."""
        if self.shape is not None or alpha is self.like or len(self.parameters) == 1:
            return alpha
        return spread_like(
            alpha if isinstance(alpha, Handle) else self.key._graph.const(alpha), self.like
        )

    def log_gammas(self, alpha: Any, lane: int = 0) -> Any:
        """Return logarithms of draws of the gamma distribution, also where these are smaller than any float.

        A draw for ``alpha + 1``, times a uniform draw to the power ``1 / alpha``, is one for `alpha` (Marsaglia and
        Tsang, A simple method for generating gamma variables, 2000, section 6); minus the logarithm of a uniform draw
        is an exponential one. Of half floats they are float32, since the logarithms leave the half floats.
        """
        dtype = np.promote_types(self.dtype, np.float32)
        if dtype != self.dtype and isinstance(alpha, Handle):
            alpha = astype(alpha, dtype)
        above = standard_gammas(self.key, self._for_each(alpha + 1.0), self.shape, dtype, lane)
        u = standard("standard_exponential", self.key, self.shape, dtype, lane + _SECOND, self.like)
        return log(above) - u / alpha

    def rounded(self, value: Any) -> Any:
        """Return a value in the dtype of the draw."""
        return value if value.dtype == self.dtype else astype(value, self.dtype)

    def of(self, value: Any, shape: Any = None) -> Any:
        """Return the result as a draw, of another shape than the draws where one is given."""
        return drawn(self.name, value, self.key, self.asked if shape is None else shape)
