"""Products in lower precision: the blocks of ``rg.autocast``, and the policy for each op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ContextDecorator
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from reactgrad._errors import DTypeError
from reactgrad.flow._mode import is_grad_enabled, refuse_generators
from reactgrad.nodes._handle import Handle
from reactgrad.ops._astype import ASTYPE
from reactgrad.scheduler import safe_repr

F = TypeVar("F", bound=Callable[..., Any])

# What happens to the operands of an op: rounded to the short dtype, or half floats made float32. Ops that are
# not here take their operands as they come. The list is that of ``torch.autocast("cpu")``; composed functions
# follow the ops that they are made of.
LOWER, FULL = "lower", "float32"
_PRODUCTS: Final = """
    matmul linear einsum conv conv_bias conv_transpose
"""
# Of a recurrent layer the weights by which states are multiplied, wherever that is an operand: derivatives are
# those by the rounded ones.
_WEIGHTS: Final[Mapping[str, int]] = {
    "rnn_tape": 2,
    "rnn_states": 3,
    "gru_tape": 2,
    "gru_states": 3,
    "lstm_tape": 3,
    "lstm_states": 4,
    "lstm_cell": 4,
}
_PRECISE: Final = """
    prod quantile quantile_along inv det slogdet cholesky solve solve_triangular lstsq pinv matrix_rank qr svd
    svdvals eig eigvals eigh eigvalsh expm fft ifft rfft irfft binary_cross_entropy grid_sample
"""
# On GPUs, where half floats are stored, also what loses digits or range in them, as ``torch.autocast("cuda")``.
_PRECISE_IN_HALF: Final = """
    softmax log_softmax logsumexp exp expm1 exp2 log log1p log2 log10 power square reciprocal rsqrt arccos arcsin
    cosh sinh tan erfinv softplus sum cumsum cumprod norm standardize standardize_kept vdot
"""
POLICY: Final[Mapping[str, str]] = {
    **dict.fromkeys((*_PRODUCTS.split(), *_WEIGHTS), LOWER),
    **dict.fromkeys(_PRECISE.split(), FULL),
}
_ON_GPUS: Final = frozenset(_PRECISE_IN_HALF.split())
_HOST: Final = ("", "cpu")
_SHORT: Final = ("bfloat16", "float16")


class Cast:
    """One open block, with the rounded nodes that it has made.

    Attributes
    ----------
    dtype : str
        ``"bfloat16"`` or ``"float16"``.
    """

    __slots__ = ("_made", "dtype")

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        # A param that is used ten times is rounded once: slot and serial, by node and grad mode, of each graph.
        self._made: WeakKeyDictionary[Any, dict[Any, tuple[int, int]]] = WeakKeyDictionary()

    def operands(self, graph: Any, op: Any, operands: Sequence[Any], attrs: Any) -> Sequence[Any]:
        """Return the operands in the precision in which an op takes them."""
        if graph._programs.building is not None:  # gradients are those of what was built
            return operands
        name = op.name
        policy = POLICY.get(name)
        if policy is None:
            on_gpu = name in _ON_GPUS and any(
                _float_of(graph, one)[1] not in _HOST for one in operands
            )
            if not on_gpu:
                return operands
            policy = FULL
        cast = self._lower if policy is LOWER else _full
        if name == "einsum" and not _sums(attrs[0]):  # an outer product: nothing is added up
            return operands
        at = _WEIGHTS.get(name)
        return [cast(graph, one) if at in (None, i) else one for i, one in enumerate(operands)]

    def _lower(self, graph: Any, one: Any) -> Any:
        dtype, device = _float_of(graph, one)
        if dtype is None:
            return one
        if device != "cpu" and self.dtype == "float16":  # GPUs compute with half floats
            return one if dtype.char == "e" else self._once(graph, one, _to_half)
        return self._once(graph, one, partial(_rounded, self.dtype))

    def _once(self, graph: Any, one: Any, make: Callable[[Any, Any], Any]) -> Any:
        if type(one) is not graph._var:
            return make(graph, one)
        topology, source = graph._scheduler.topology, one._slot
        made = self._made.setdefault(graph, {})
        key = (source, topology.serial[source], is_grad_enabled(graph))
        slot, serial = made.get(key, (source, None))
        if topology.serial[slot] == serial and slot not in graph._host.removed:
            return graph._handle(slot)
        found = make(graph, one)
        made[key] = found._slot, topology.serial[found._slot]
        return found


def _sums(subscripts: str) -> bool:
    inputs, _, output = subscripts.partition("->")
    return any(one.isalpha() and one not in output for one in inputs)


def _float_of(graph: Any, one: Any) -> tuple[Any, str]:
    """Return the dtype of an operand that is cast, and its device; ``None`` for one that is not.

    Only half floats and float32 are: who writes float64 means it.
    """
    if isinstance(one, Handle):
        found = graph._host.specs[one._slot] if one._graph is graph else None
        if found is None or found.weak is not None or found.dtype.char not in "ef":
            return None, ""
        return found.dtype, found.device
    dtype = getattr(one, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.char not in "ef":
        return None, ""
    return dtype, graph.device


def _rounded(to: str, graph: Any, one: Any) -> Any:
    from reactgrad.ops.special._precision import ROUND_TO

    return graph._apply(ROUND_TO, (_full(graph, one),), (to,))


def _to_half(graph: Any, one: Any) -> Any:
    return graph._apply(ASTYPE, (one,), (np.dtype(np.float16),))


def _full(graph: Any, one: Any) -> Any:
    """Return half floats as float32, others as they are."""
    dtype, _ = _float_of(graph, one)
    half = dtype is not None and dtype.char == "e"
    return graph._apply(ASTYPE, (one,), (np.dtype(np.float32),)) if half else one


# The open blocks of all threads, for a cheap check; that of this task.
open_casts: list[Cast] = []
_mine: ContextVar[tuple[Cast | None, ...]] = ContextVar("reactgrad_autocast", default=())


def cast_here() -> Cast | None:
    """Return the innermost open block of this task, ``None`` if it is none, or switched off."""
    mine = _mine.get()
    return mine[-1] if mine else None


def precision_here() -> str | None:
    """Return the dtype of the innermost open block of this task: what is built depends on it."""
    cast = cast_here() if open_casts else None
    return None if cast is None else cast.dtype


class autocast(ContextDecorator):
    """Compute products in lower precision, in a ``with`` block or a decorated function.

    Ops that are built in the block follow a policy. Operands of matrix products, linear layers and convolutions
    are rounded to `dtype`; losses, decompositions, transforms and products of many numbers take half floats as
    float32; all others take their operands as they come. The table is that of ``torch.autocast("cpu")``. Only
    half floats and float32 are rounded. The switch holds for this thread or task; blocks may be nested, and
    ``enabled=False`` switches it off inside.

    There is no dtype bfloat16 here. On the host operands are rounded to the nearest bfloat16 number (ties to
    even) or float16 number, stored as float32 and multiplied in float32, so results are of float32: on a CPU,
    half floats are hundreds of times slower. On a GPU, ``"float16"`` multiplies half floats, and the product is
    of float16.

    Gradients pass the rounding as the identity, and are computed from the rounded operands, in float32. They
    are the same wherever they are asked for: a block around ``backward`` changes nothing.

    Parameters
    ----------
    dtype : str
        ``"bfloat16"`` or ``"float16"``.
    enabled : bool
        False to compute in full precision inside of another block.

    Raises
    ------
    DTypeError
        For another dtype.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(np.array([1.001, 1.0], np.float32))
    >>> with rg.autocast("bfloat16"):
    ...     y = x @ np.ones(2, np.float32)
    >>> y.dtype, y.item()
    (dtype('float32'), 2.0)
    """

    def __init__(self, dtype: Any = "bfloat16", enabled: bool = True) -> None:
        name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", safe_repr(dtype))
        name = {"bf16": "bfloat16", "f2": "float16", "half": "float16"}.get(name, name)
        if name not in _SHORT:
            raise DTypeError(
                f"rg.autocast({safe_repr(dtype):.60}): write 'bfloat16' or 'float16'. What is built "
                "outside of a block, "
                "or inside of rg.autocast(enabled=False), is computed in its own dtype."
            )
        if not isinstance(enabled, bool | np.bool_):
            raise DTypeError(f"rg.autocast(enabled={safe_repr(enabled):.60}): write True or False.")
        self.dtype = name
        self.enabled = bool(enabled)

    def __call__(self, function: F) -> F:
        refuse_generators(function)
        return super().__call__(function)

    def __enter__(self) -> Self:
        cast = Cast(self.dtype) if self.enabled else None
        if cast is not None:
            open_casts.append(cast)
        _mine.set((*_mine.get(), cast))
        return self

    def __exit__(self, *exc: object) -> None:
        *others, cast = _mine.get()
        _mine.set(tuple(others))
        if cast is not None:
            open_casts.remove(cast)
