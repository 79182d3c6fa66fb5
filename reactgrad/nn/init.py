"""First values of params, by PyTorch's formulas: ``rg.nn.init``.

Each function sets a Var, or fills an array of NumPy, and returns it. ``rng`` is a seed or a generator of NumPy;
without one the numbers follow from the seed of the graph and the count of such calls on it.

Formulas: Glorot and Bengio (2010), He and others (2015), Saxe and others (2013).
"""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.graph._var import Var
from reactgrad.nodes._handle import current_graph
from reactgrad.scheduler import safe_repr

_counts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def generator(rng: Any, graph: Any) -> np.random.Generator:
    """Return a generator: the given one, one of a seed, or the next one of a graph."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        graph = current_graph() if graph is None else graph
        count = _counts[graph] = _counts.get(graph, 0) + 1
        return np.random.default_rng([graph.seed, count])
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise ParameterError(
            f"rng={safe_repr(rng):.40}: it is a seed, an integer of at least 0, or a generator of NumPy."
        )
    return np.random.default_rng(int(rng))


def _filled(tensor: Any, draw: Any, rng: Any = None) -> Any:
    """Set a leaf, or fill an array, with what ``draw(generator, shape)`` returns."""
    if isinstance(tensor, Var):
        shape = tuple([n or 0 for n in tensor.shape])
        tensor.set(np.asarray(draw(_of(rng, tensor.graph), shape)).astype(tensor.dtype))
        return tensor
    if isinstance(tensor, np.ndarray):
        tensor[...] = draw(_of(rng, None), tensor.shape)
        return tensor
    raise DTypeError(
        f"rg.nn.init sets a Var or fills an array of NumPy, not {safe_repr(tensor):.40}."
    )


class _Later:
    """A generator that is made when the first number is drawn."""

    def __init__(self, rng: Any, graph: Any) -> None:
        self._given = rng, graph

    def __call__(self) -> np.random.Generator:
        return generator(*self._given)


def _of(rng: Any, graph: Any) -> _Later:
    return _Later(rng, graph)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which first weights are larger before this nonlinearity.

    Parameters
    ----------
    nonlinearity : str
        The name of the function: ``"linear"``, ``"conv2d"`` and the like, ``"sigmoid"``, ``"tanh"``, ``"relu"``,
        ``"leaky_relu"`` or ``"selu"``.
    param : float, optional
        The slope of ``"leaky_relu"``.

    Raises
    ------
    DTypeError
        If there is no such name.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.nn.init.calculate_gain("relu")
    1.4142135623730951
    """
    if nonlinearity in ("linear", "sigmoid") or nonlinearity.startswith("conv"):
        return 1.0
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1.0 + slope**2))
    gains = {"tanh": 5.0 / 3.0, "relu": math.sqrt(2.0), "selu": 0.75}
    if nonlinearity not in gains:
        raise ParameterError(
            f"calculate_gain({safe_repr(nonlinearity)}): the names are 'linear', 'conv1d' to 'conv3d', "
            "'sigmoid', 'tanh', "
            "'relu', 'leaky_relu' and 'selu'."
        )
    return gains[nonlinearity]


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return how many numbers an output of a weight sums up, and how many outputs an input has.

    Raises
    ------
    ShapeError
        If there are fewer than two axes.
    """
    if len(shape) < 2:
        raise ShapeError(
            f"a weight of shape {shape} has no fan in and fan out; these formulas are for two axes and more."
        )
    place = math.prod(shape[2:])
    return shape[1] * place, shape[0] * place


def uniform_(
    tensor: Any, a: float = 0.0, b: float = 1.0, *, rng: Any = None, generator: Any = None
) -> Any:
    """Draw evenly from `a` to `b`.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> w = rg.nn.init.uniform_(np.empty(1000), -1.0, 1.0, rng=0)
    >>> bool(w.min() >= -1.0), bool(w.max() < 1.0)
    (True, True)
    """
    return _filled(tensor, lambda rng, shape: rng().uniform(a, b, shape), _seed(rng, generator))


def normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, *, rng: Any = None, generator: Any = None
) -> Any:
    """Draw from the normal distribution."""
    return _filled(tensor, lambda rng, shape: rng().normal(mean, std, shape), _seed(rng, generator))


def trunc_normal_(
    tensor: Any,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    *,
    rng: Any = None,
    generator: Any = None,
) -> Any:
    """Draw from the normal distribution, again where a number is not between `a` and `b`.

    Raises
    ------
    DTypeError
        If hardly any number lies between them.
    """
    if not a < b or max(a - mean, mean - b) > 4.0 * std:
        raise ParameterError(
            f"trunc_normal_ from {a} to {b} of mean {mean}, std {std}: hardly any number lies there."
        )

    def draw(rng: Any, shape: tuple[int, ...]) -> Any:
        made = rng()
        found = made.normal(mean, std, shape)
        while (out := (found < a) | (found > b)).any():
            found = np.where(out, made.normal(mean, std, shape), found)
        return found

    return _filled(tensor, draw, _seed(rng, generator))


def constant_(tensor: Any, val: float) -> Any:
    """Set all elements to one number."""
    return _filled(tensor, lambda rng, shape: np.full(shape, val))


def ones_(tensor: Any) -> Any:
    """Set all elements to 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    """Set all elements to 0."""
    return constant_(tensor, 0.0)


def eye_(tensor: Any) -> Any:
    """Set a matrix to the identity."""
    return _filled(tensor, lambda rng, shape: np.eye(*shape))


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Set the kernel of a convolution to one that passes on as many channels as it can."""

    def draw(rng: Any, shape: tuple[int, ...]) -> Any:
        if not 3 <= len(shape) <= 5 or shape[0] % groups:
            raise ShapeError(
                f"dirac_ of shape {shape} in {groups} groups: it takes the kernel of a convolution, whose channels "
                "the groups divide."
            )
        found = np.zeros(shape)
        rows = shape[0] // groups
        middle = tuple([n // 2 for n in shape[2:]])
        for group in range(groups):
            for i in range(min(rows, shape[1])):
                found[(group * rows + i, i, *middle)] = 1.0
        return found

    return _filled(tensor, draw)


def xavier_uniform_(
    tensor: Any, gain: float = 1.0, *, rng: Any = None, generator: Any = None
) -> Any:
    """Draw evenly up to ``gain * sqrt(6 / (fan_in + fan_out))`` (Glorot and Bengio, 2010)."""
    bound = gain * math.sqrt(6.0 / sum(fans(_shape(tensor))))
    return uniform_(tensor, -bound, bound, rng=_seed(rng, generator))


def xavier_normal_(
    tensor: Any, gain: float = 1.0, *, rng: Any = None, generator: Any = None
) -> Any:
    """Draw normally with deviation ``gain * sqrt(2 / (fan_in + fan_out))`` (Glorot and Bengio, 2010)."""
    return normal_(
        tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(_shape(tensor)))), rng=_seed(rng, generator)
    )


def kaiming_uniform_(
    tensor: Any,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    *,
    rng: Any = None,
    generator: Any = None,
) -> Any:
    """Draw evenly up to ``gain * sqrt(3 / fan)`` (He and others, 2015).

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     w = rg.param(shape=(2, 3))
    >>> bool(abs(rg.nn.init.kaiming_uniform_(w, rng=0).value).max() < 2.0**0.5)
    True
    """
    bound = math.sqrt(3.0) * _deviation(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, rng=_seed(rng, generator))


def kaiming_normal_(
    tensor: Any,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    *,
    rng: Any = None,
    generator: Any = None,
) -> Any:
    """Draw normally with deviation ``gain / sqrt(fan)`` (He and others, 2015)."""
    return normal_(
        tensor, 0.0, _deviation(tensor, a, mode, nonlinearity), rng=_seed(rng, generator)
    )


def _deviation(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ParameterError(f"mode={safe_repr(mode)}: it is 'fan_in' or 'fan_out'.")
    return calculate_gain(nonlinearity, a) / math.sqrt(fans(_shape(tensor))[mode == "fan_out"])


def orthogonal_(tensor: Any, gain: float = 1.0, *, rng: Any = None, generator: Any = None) -> Any:
    """Set rows, or columns if there are fewer, to orthogonal ones of length `gain` (Saxe and others, 2013)."""

    def draw(rng: Any, shape: tuple[int, ...]) -> Any:
        if len(shape) < 2:
            raise ShapeError(f"orthogonal_ of shape {shape}: it takes two axes or more.")
        rows, columns = shape[0], math.prod(shape[1:])
        flat = rng().normal(size=(rows, columns))
        q, r = np.linalg.qr(flat.T if rows < columns else flat)
        q = q * np.sign(np.diagonal(r))
        return gain * (q.T if rows < columns else q).reshape(shape)

    return _filled(tensor, draw, _seed(rng, generator))


def sparse_(
    tensor: Any, sparsity: float, std: float = 0.01, *, rng: Any = None, generator: Any = None
) -> Any:
    """Draw a matrix normally, and set a fraction of each column to 0."""

    def draw(rng: Any, shape: tuple[int, ...]) -> Any:
        if len(shape) != 2:
            raise ShapeError(f"sparse_ of shape {shape}: it takes a matrix.")
        made = rng()
        found = made.normal(0.0, std, shape)
        zeros = math.ceil(sparsity * shape[0])
        for column in range(shape[1]):
            found[made.permutation(shape[0])[:zeros], column] = 0.0
        return found

    return _filled(tensor, draw, _seed(rng, generator))


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple([n or 0 for n in tensor.shape])


def _seed(rng: Any, generator: Any) -> Any:
    return generator if rng is None else rng
