"""ES-HyperNEAT: a genome also decides where neurons are (Risi and Stanley, 2012)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import reactgrad as rg
from reactgrad._attributes import OwnAttributes
from reactgrad.neat._activations import ACTIVATIONS
from reactgrad.neat._network import Network
from reactgrad.neat._phenotype import Neuron, Phenotype, check_config
from reactgrad.neat._query import pairs_with, query_of
from reactgrad.neat._recurrent import RecurrentNetwork
from reactgrad.neat._substrate import expressed, places

Array = np.ndarray[Any, Any]
Point = tuple[float, float]
# From points, of shape (n, 4), to weights.
Paint = Callable[[Array], Array]


class Squares(NamedTuple):
    """The squares of some quadtrees, level by level: a row each.

    Attributes
    ----------
    at : array of shape (n, 2)
        The middle.
    start : array of int
        Which of the points that the trees were grown for.
    width : array
        Half of the side.
    weight : array
        What the CPPN paints between the start and the middle.
    first : array of int
        The row of the first of its four parts, -1 if there is none.
    """

    at: Array
    start: Array
    width: Array
    weight: Array
    first: Array


class EvolvableSubstrate(OwnAttributes):
    """Inputs and outputs at places in the square from -1 to 1; a genome decides on all between them.

    Hidden neurons are placed where the pattern that the CPPN paints has information: where a quadtree of
    its weights is deep, in bands of equal weight. Each level of the trees of all neurons is one query of the CPPN.

    Parameters
    ----------
    inputs, outputs : array_like of shape (neurons, 2)
    initial_depth, max_depth : int
        To which the square is divided in any case, and at most.
    division_threshold : float
        Squares whose parts vary more than this are divided further.
    variance_threshold : float
        Squares that vary more than this are not taken as one.
    band_threshold : float
        A connection differs by more than this from those on both sides of it.
    iteration_level : int
        How often neurons are sought from those that were found.
    recurrent : bool
        By default connections only lead upwards, to larger second coordinates, so that networks are
        feed-forward. True for those of all directions, and networks with memory.
    threshold, max_weight, activation
        As in ``Substrate``.

    Examples
    --------
    >>> import neat as neat_python
    >>> from reactgrad import neat
    >>> from reactgrad.demo import neat_config
    >>> config = neat_config(num_inputs=5, activation_default="sin", activation_options="sin")
    >>> cppn = neat_python.Population(config, seed=4).population[1]
    >>> substrate = neat.EvolvableSubstrate([[-1.0, -1.0], [1.0, -1.0]], [[0.0, 1.0]])
    >>> net = substrate.network(cppn, config)
    >>> len(net.activate([1.0, 0.0])), len(net.phenotype.neurons) > 1
    (1, True)
    """

    def __init__(
        self,
        inputs: Any,
        outputs: Any,
        *,
        initial_depth: int = 1,
        max_depth: int = 2,
        division_threshold: float = 0.5,
        variance_threshold: float = 0.03,
        band_threshold: float = 0.3,
        iteration_level: int = 1,
        recurrent: bool = False,
        threshold: float = 0.2,
        max_weight: float = 5.0,
        activation: str = "tanh",
    ) -> None:
        self.inputs, self.outputs = places(inputs), places(outputs)
        if self.inputs.shape[1] != 2 or self.outputs.shape[1] != 2:
            raise rg.ShapeError(
                "EvolvableSubstrate divides a square: give each place two coordinates, not "
                f"{self.inputs.shape[1]} and {self.outputs.shape[1]}."
            )
        if activation not in ACTIVATIONS:
            raise rg.ParameterError(
                f"EvolvableSubstrate(activation={activation!r:.60}): neat-python has {', '.join(ACTIVATIONS)}."
            )
        if not 1 <= initial_depth <= max_depth:
            raise rg.ParameterError(
                f"EvolvableSubstrate(initial_depth={initial_depth!r}, max_depth={max_depth!r}): depths are 1 or "
                "more, and the first is at most the second."
            )
        self.initial_depth, self.max_depth = initial_depth, max_depth
        self.division_threshold = division_threshold
        self.variance_threshold, self.band_threshold = variance_threshold, band_threshold
        self.iteration_level, self.recurrent = iteration_level, recurrent
        self.threshold, self.max_weight, self.activation = threshold, max_weight, activation

    def __repr__(self) -> str:
        return (
            f"<EvolvableSubstrate: {len(self.inputs)} inputs, {len(self.outputs)} outputs, depth "
            f"{self.max_depth}>"
        )

    def connections(self, genome: Any, config: Any) -> dict[tuple[Point, Point], float]:
        """Return the weights that a CPPN paints, by the two ends; only those on a way from input to output."""
        check_config(config)
        query, inputs = query_of(genome, config), len(config.genome_config.input_keys)

        def paint(points: Array) -> Array:
            answers = query(pairs_with(points, inputs))[:, 0]
            return expressed(answers, self.threshold, self.max_weight)

        links: dict[tuple[Point, Point], float] = {}
        starts = _points(self.inputs)
        hidden: dict[Point, None] = {}
        for _ in range(self.iteration_level + 1):
            if not starts:
                break
            found = self._grow(paint, np.array(starts), outgoing=True)
            links.update(found)
            ends = dict.fromkeys(end for _, end in found)
            starts = [one for one in ends if one not in hidden]
            hidden.update(ends)
        links.update(self._grow(paint, self.outputs, outgoing=False))
        return _on_a_way(links, _points(self.inputs), _points(self.outputs))

    def network(self, genome: Any, config: Any) -> Any:
        """Return the network that a genome paints: a ``Network``, or a ``RecurrentNetwork``.

        Its inputs have the keys -1, -2, ..., its outputs 0, 1, ..., hidden neurons the next ones.

        Parameters
        ----------
        genome : neat.DefaultGenome
        config : neat.Config
        """
        links = self.connections(genome, config)
        keys = {one: -1 - i for i, one in enumerate(_points(self.inputs))}
        outputs = {one: i for i, one in enumerate(_points(self.outputs))}
        keys.update(outputs)
        for pair in links:
            for end in pair:
                keys.setdefault(end, len(keys) - len(self.inputs))
        into: dict[int, list[tuple[int, float]]] = {key: [] for key in outputs.values()}
        for (source, target), weight in links.items():
            into.setdefault(keys[target], []).append((keys[source], weight))
        neurons = {
            key: Neuron(
                self.activation,
                "sum",
                (0.0, 1.0, *[weight for _, weight in some]),
                tuple([source for source, _ in some]),
            )
            for key, some in into.items()
        }
        inputs = tuple([-1 - i for i in range(len(self.inputs))])
        if self.recurrent:
            return RecurrentNetwork.of(Phenotype(inputs, tuple(outputs.values()), neurons))
        height = {key: at[1] for at, key in keys.items()}
        ordered = {key: neurons[key] for key in sorted(neurons, key=height.__getitem__)}
        return Network(Phenotype(inputs, tuple(outputs.values()), ordered), None)

    # --- quadtrees ----------------------------------------------------------------------------

    def _grow(
        self, paint: Paint, starts: Array, outgoing: bool
    ) -> dict[tuple[Point, Point], float]:
        """Return the connections from, or to, some points that their quadtrees express."""
        levels = self._divide(paint, starts, outgoing)
        widths, picked = self._extract(levels)
        if not len(picked):
            return {}
        at, start, weight = picked[:, :2], picked[:, 2].astype(int), picked[:, 3]
        aside = []
        for move in ((-1.0, 0.0), (1.0, 0.0), (0.0, -1.0), (0.0, 1.0)):
            moved = at + widths[:, None] * np.array(move)
            aside.append(paint(_between(starts[start], moved, outgoing)))
        left, right, top, bottom = [np.abs(weight - one) for one in aside]
        band = np.maximum(np.minimum(top, bottom), np.minimum(left, right))
        taken = (band > self.band_threshold) & (weight != 0.0)
        if not self.recurrent:
            rises = at[:, 1] - starts[start, 1]
            taken &= rises > 0.0 if outgoing else rises < 0.0
        found: dict[tuple[Point, Point], float] = {}
        for i in np.flatnonzero(taken).tolist():
            one, other = _point(starts[start[i]]), _point(at[i])
            found[(one, other) if outgoing else (other, one)] = float(weight[i])
        return found

    def _divide(self, paint: Paint, starts: Array, outgoing: bool) -> list[Squares]:
        """Return quadtrees over the square, one for each point, level by level."""
        count = len(starts)
        levels = [
            Squares(
                np.zeros((count, 2)),
                np.arange(count),
                np.ones(count),
                np.zeros(count),
                np.full(count, -1),
            )
        ]
        corners = np.array([(-1.0, -1.0), (-1.0, 1.0), (1.0, 1.0), (1.0, -1.0)])
        going = np.arange(count)
        for depth in range(1, self.max_depth + 1):
            last = levels[-1]
            half = last.width[going] / 2.0
            at = (last.at[going][:, None] + half[:, None, None] * corners).reshape(-1, 2)
            start = np.repeat(last.start[going], 4)
            weight = paint(_between(starts[start], at, outgoing))
            last.first[going] = 4 * np.arange(len(going))
            width, first = np.repeat(half, 4), np.full(len(at), -1)
            levels.append(Squares(at, start, width, weight, first))
            varies = weight.reshape(-1, 4).var(axis=1) > self.division_threshold
            divides = np.full(len(going), True) if depth < self.initial_depth else varies
            going = np.flatnonzero(np.repeat(divides, 4))
            if not len(going):
                break
        return levels

    def _extract(self, levels: list[Squares]) -> tuple[Array, Array]:
        """Return squares that are taken as one: the widths around, and rows of middle, start and weight."""
        variances = _variances(levels)
        taken: list[Array] = []
        widths: list[Array] = []
        going = np.arange(len(levels[0].at))
        for depth, (outer, inner) in enumerate(itertools.pairwise(levels)):
            divided = going[outer.first[going] >= 0]
            parts = (outer.first[divided][:, None] + np.arange(4)).ravel()
            around = np.repeat(outer.width[divided], 4)
            varies = variances[depth + 1][parts] > self.variance_threshold
            one = parts[~varies]
            taken.append(np.column_stack([inner.at[one], inner.start[one], inner.weight[one]]))
            widths.append(around[~varies])
            going = parts[varies]
        return np.concatenate(widths), np.concatenate(taken)


def _variances(levels: list[Squares]) -> list[Array]:
    """Return the variance of the weights of the undivided squares in each square."""
    sums = [(one.weight.copy(), one.weight**2, np.ones(len(one.weight))) for one in levels]
    for depth in reversed(range(len(levels) - 1)):
        first = levels[depth].first
        divided = np.flatnonzero(first >= 0)
        for mine, theirs in zip(sums[depth], sums[depth + 1], strict=True):
            mine[divided] = theirs.reshape(-1, 4).sum(axis=1)[first[divided] // 4]
    return [np.maximum(square / n - (total / n) ** 2, 0.0) for total, square, n in sums]


def _between(starts: Array, ends: Array, outgoing: bool) -> Array:
    """Return the coordinates of source and target."""
    return np.concatenate([starts, ends] if outgoing else [ends, starts], axis=1)


def _point(at: Array) -> Point:
    return float(at[0]), float(at[1])


def _points(at: Array) -> list[Point]:
    return [_point(one) for one in at]


def _on_a_way(
    links: dict[tuple[Point, Point], float], inputs: list[Point], outputs: list[Point]
) -> dict[tuple[Point, Point], float]:
    """Return the connections that are on a way from an input to an output."""
    onward: dict[Point, list[Point]] = {}
    backward: dict[Point, list[Point]] = {}
    for source, target in links:
        onward.setdefault(source, []).append(target)
        backward.setdefault(target, []).append(source)
    reached, leading = _reached(inputs, onward), _reached(outputs, backward)
    return {
        pair: weight
        for pair, weight in links.items()
        if pair[0] in reached and pair[1] in leading and pair[1] not in inputs
    }


def _reached(starts: list[Point], ways: dict[Point, list[Point]]) -> set[Point]:
    found, pending = set(starts), list(starts)
    while pending:
        for one in ways.get(pending.pop(), ()):
            if one not in found:
                found.add(one)
                pending.append(one)
    return found
