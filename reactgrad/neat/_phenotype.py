"""From a genome to what it expresses: the neurons, and what each is computed from.

Genomes and configs of neat-python (or anything like them) are read without importing it. A
phenotype is immutable, and two of them can be compared neuron by neuron.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final, NamedTuple

from reactgrad import DTypeError
from reactgrad.neat._activations import ACTIVATIONS
from reactgrad.neat._aggregations import AGGREGATIONS
from reactgrad.neat._errors import GenomeError, UnknownFunctionError

# For each node its sources with weights, in the genome's order.
Links = dict[int, dict[int, float]]
# From neat-python's names of an activation and an aggregation to the entries of a ``Neuron``.
Functions = dict[tuple[str, str], tuple[Any, Any]]
# A neuron's key, functions, genes, and links.
Read = tuple[int, tuple[Any, Any], tuple[float, ...], dict[int, float]]
_NONE: Final[dict[int, float]] = {}
_FLOATS: Final = frozenset((float,))


class Neuron(NamedTuple):
    """The computation of a neuron.

    Attributes
    ----------
    activation, aggregation : str or callable
        neat-python's name, or a user's own function.
    genes : tuple of float
        Bias, response, and the weight of each source.
    sources : tuple of int
        The keys of the neurons and inputs that it is connected from, in the genome's order.
    """

    activation: str | Callable[[float], float]
    aggregation: str | Callable[[list[float]], float]
    genes: tuple[float, ...]
    sources: tuple[int, ...]

    @property
    def takes_in(self) -> tuple[Any, ...]:
        """Its aggregation and its sources, without the numbers."""
        return self.aggregation, self.sources


@dataclass(frozen=True)
class Phenotype:
    """The neurons of a network, by key; in a feed-forward network each after its sources."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    neurons: dict[int, Neuron]


def feed_forward(genome: Any, config: Any) -> Phenotype:
    """Return the phenotype that neat-python's ``FeedForwardNetwork`` computes.

    It has the outputs and all nodes from which enabled connections lead to them. A neuron without
    any connection is constant, as in neat-python: the activation of its bias.

    Raises
    ------
    GenomeError
        If enabled connections that lead to an output form a cycle (neat-python gives 0 for an output
        behind one), a connection begins at a node that is missing, or a gene holds no finite number
        or an unknown function.
    DTypeError
        If these are no genome and no config.
    """
    inputs, outputs, read = reading(genome, config, {})
    return Phenotype(inputs, outputs, _neurons(genome, read))


def reading(
    genome: Any, config: Any, functions: Functions
) -> tuple[tuple[int, ...], tuple[int, ...], Iterator[Read]]:
    """Return inputs, outputs, and an iterator over what was read of the neurons, sources first.

    It does not check that genes are finite: see ``neuron``. `functions` holds functions of the
    config that were looked up before; new ones are added.
    """
    inputs, outputs = _pins(genome, config)
    incoming: Links = defaultdict(dict)
    for (source, target), gene in genome.connections.items():
        if gene.enabled:
            incoming[target][source] = gene.weight
    order = _behind_their_sources(genome, inputs, outputs, incoming)
    return inputs, outputs, _read(genome, config, order, incoming, functions)


def recurrent(genome: Any, config: Any) -> Phenotype:
    """Return the phenotype that neat-python's ``RecurrentNetwork`` computes at each step.

    As there, a node that no enabled connection leads to is no neuron: it stays 0, whatever its
    bias. All connections, also disabled ones, decide which nodes are needed for an output.

    Raises
    ------
    GenomeError
        As for ``feed_forward``; cycles are welcome.
    DTypeError
        If these are no genome and no config.
    """
    inputs, outputs = _pins(genome, config)
    leading: Links = {}
    for source, target in genome.connections:
        leading.setdefault(target, {})[source] = 0.0
    required = _required(inputs, outputs, leading)
    incoming: Links = {}
    for (source, target), gene in genome.connections.items():
        if gene.enabled and (target in required or source in required):
            incoming.setdefault(target, {})[source] = gene.weight
    for target, links in incoming.items():
        for source in links:
            if source not in inputs and source not in genome.nodes:
                raise _missing(genome, config, source, target)
    read = _read(genome, config, incoming, incoming, {})
    return Phenotype(inputs, outputs, _neurons(genome, read))


def spiking(genome: Any, config: Any) -> tuple[list[int], list[int], dict[int, tuple[Any, ...]]]:
    """Return inputs, outputs, and the arguments of the spiking neurons, as neat-python's ``IZNN`` has them.

    All nodes from which connections lead to an output are neurons; connections that are enabled
    carry spikes.

    Raises
    ------
    GenomeError
        If a connection begins at a node that is missing, or a gene holds no finite number.
    DTypeError
        If these are no genome and no config.
    """
    inputs, outputs = _pins(genome, config)
    leading: Links = {}
    for source, target in genome.connections:
        leading.setdefault(target, {})[source] = 0.0
    required = _required(inputs, outputs, leading)
    incoming: dict[int, list[tuple[int, float]]] = {key: [] for key in required}
    for (source, target), gene in genome.connections.items():
        if gene.enabled and target in required:
            if source not in required and source not in inputs:
                raise _missing(genome, config, source, target)
            incoming[target].append((source, gene.weight))
    found: dict[int, tuple[Any, ...]] = {}
    for key in required:
        gene = genome.nodes.get(key)
        if gene is None:
            if key in outputs:
                raise GenomeError(f"genome {genome.key} has no gene for its output {key}.")
            target = next(b for b, all_ in leading.items() if key in all_)
            raise _missing(genome, config, key, target)
        numbers = gene.bias, gene.a, gene.b, gene.c, gene.d
        weights = [weight for _, weight in incoming[key]]
        words = ["the bias", "a", "b", "c", "d"]
        words += [f"the weight of {source} -> {key}" for source, _ in incoming[key]]
        _check_finite(genome, key, words, (*numbers, *weights))
        found[key] = (*numbers, incoming[key])
    return list(inputs), list(outputs), found


def _pins(genome: Any, config: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the keys of the inputs and of the outputs."""
    if hasattr(genome, "genome_config"):
        raise DTypeError(
            "a config stands where the genome should be. Write (genome, config), as in neat-python."
        )
    if isinstance(genome, tuple):
        raise DTypeError(
            f"{genome!r:.60} is no genome. A fitness function of neat-python is given pairs of an id and a "
            "genome; take the genome out: for key, genome in genomes: ..."
        )
    if not hasattr(genome, "nodes") or not hasattr(genome, "connections"):
        raise DTypeError(
            f"{genome!r:.60} is no genome: it has no nodes and connections. Give a neat.DefaultGenome."
        )
    check_config(config)
    return tuple(config.genome_config.input_keys), tuple(config.genome_config.output_keys)


def check_config(config: Any) -> None:
    """Raise ``DTypeError`` if this is no config of neat-python."""
    if isinstance(config, str | os.PathLike):
        raise DTypeError(
            f"{os.fspath(config)!r} stands where the config should be. If it is the path of one, read it: "
            "neat.Config(neat.DefaultGenome, neat.DefaultReproduction, neat.DefaultSpeciesSet, neat.DefaultStagnation, "
            "path)."
        )
    if not hasattr(config, "genome_config"):
        raise DTypeError(
            f"{type(config).__name__} stands where the config should be: it has no genome_config. Give "
            "the neat.Config that the genome was made with, as the last one."
        )


def _required(inputs: Iterable[int], outputs: Iterable[int], incoming: Links) -> set[int]:
    """Return the outputs and the nodes from which connections lead to them."""
    pins, found = set(inputs), set(outputs)
    pending = list(found)
    while pending:
        for source in incoming.get(pending.pop(), ()):
            if source not in found and source not in pins:
                found.add(source)
                pending.append(source)
    return found


def _behind_their_sources(
    genome: Any, inputs: Iterable[int], outputs: Iterable[int], incoming: Links
) -> list[int]:
    """Return the nodes that lead to the outputs, sources first.

    Raises
    ------
    GenomeError
        If there is a cycle.
    """
    done: dict[int, None] = dict.fromkeys(inputs)
    for output in outputs:
        if output in done:
            continue
        # The present path, outermost first, each node with the links that are left. No recursion:
        # genomes may be deep.
        path = {output: None}
        pending = [iter(incoming.get(output, _NONE))]
        while pending:
            for source in pending[-1]:
                if source not in done:
                    if source in path:
                        keys = list(path)
                        cycle = [source, *reversed(keys[keys.index(source) :])]
                        raise GenomeError(
                            f"genome {genome.key}: the enabled connections "
                            f"{' -> '.join(map(str, cycle))} form a cycle, which a feed-forward network "
                            "has no value for. Disable one of them, or use RecurrentNetwork."
                        )
                    path[source] = None
                    pending.append(iter(incoming.get(source, _NONE)))
                    break
            else:
                pending.pop()
                done[path.popitem()[0]] = None
    for key in inputs:
        del done[key]
    return list(done)


def _read(
    genome: Any, config: Any, keys: Iterable[int], incoming: Links, functions: Functions
) -> Iterator[Read]:
    """Yield the neurons of these keys, in this order."""
    for key in keys:
        links = incoming.get(key, _NONE)
        gene = genome.nodes.get(key)
        if gene is None:
            if key in config.genome_config.input_keys:
                source = next(iter(links))
                raise GenomeError(
                    f"genome {genome.key}: the connection {source} -> {key} ends at an input. Inputs are "
                    "given, not computed; let it end at a node, or disable it."
                )
            if key in config.genome_config.output_keys:
                raise GenomeError(f"genome {genome.key} has no gene for its output {key}.")
            raise _missing(
                genome, config, key, next((b for b, all_ in incoming.items() if key in all_), key)
            )
        names = gene.activation, gene.aggregation
        own = functions.get(names)
        if own is None:
            own = functions[names] = (
                _function(genome, config, key, "activation", gene.activation),
                _function(genome, config, key, "aggregation", gene.aggregation),
            )
        yield key, own, (gene.bias, gene.response, *links.values()), links


def _neurons(genome: Any, read: Iterable[Read]) -> dict[int, Neuron]:
    return {one[0]: neuron(genome, *one) for one in read}


def neuron(
    genome: Any, key: int, own: tuple[Any, Any], genes: tuple[float, ...], links: dict[int, float]
) -> Neuron:
    """Return the neuron that was read, after a check that its genes are finite."""
    # A fast check: one NaN or infinity makes the sum one, too. So may an overflow, so the slow
    # check decides.
    try:
        finite = math.isfinite(sum(genes))
    except (TypeError, OverflowError):
        finite = False
    if not finite:
        check_finite(genome, key, genes, links)
    if not _FLOATS.issuperset(map(type, genes)):
        genes = tuple(map(float, genes))
    return Neuron(*own, genes, tuple(links))


def check_finite(genome: Any, key: int, genes: tuple[float, ...], links: Iterable[int]) -> None:
    """Raise ``GenomeError`` if one of the genes of a neuron is no finite number."""
    words = ["the bias", "the response", *[f"the weight of {source} -> {key}" for source in links]]
    _check_finite(genome, key, words, genes)


def _check_finite(genome: Any, key: int, words: list[str], genes: tuple[Any, ...]) -> None:
    for word, number in zip(words, genes, strict=True):
        try:
            finite = math.isfinite(number) and isinstance(number, Real)
        except (TypeError, OverflowError):
            finite = False
        if not finite:
            raise GenomeError(
                f"genome {genome.key}: {word} of node {key} is {number!r:.60}. Genes are finite numbers."
            )


_OURS = {"activation": ACTIVATIONS.keys(), "aggregation": {"sum", *AGGREGATIONS}}


def _function(genome: Any, config: Any, key: int, what: str, name: str) -> Any:
    """Return neat-python's name of a function, or the function itself if it is a user's own."""
    settings = config.genome_config
    known = settings.activation_defs if what == "activation" else settings.aggregation_function_defs
    if not known.is_valid(name):
        raise UnknownFunctionError(
            f"genome {genome.key}: the {what} of node {key} is {name!r}, which the config does not know "
            f"(it knows: {', '.join(known.functions)}). Add it, config.genome_config.add_{what}"
            f"({name!r}, function)."
        )
    function = known.get(name)
    return own_name(function, what) or function


def own_name(function: Any, what: str) -> str | None:
    """Return neat-python's name of one of its functions, of `what` kind; ``None`` for others."""
    if getattr(function, "__module__", None) != f"neat.{what}s":
        return None
    name = function.__name__.removesuffix(f"_{what}")
    return name if name in _OURS[what] else None


def _missing(genome: Any, config: Any, source: int, target: int) -> GenomeError:
    """Return the error for a connection whose source does not exist."""
    link = f"genome {genome.key}: the connection {source} -> {target} begins at"
    if source < 0:
        keys = ", ".join(map(str, config.genome_config.input_keys)) or "none"
        return GenomeError(
            f"{link} the input {source}, and the inputs of the config are {keys}. Give the config that "
            "the genome was made with."
        )
    return GenomeError(
        f"{link} node {source}, which has no gene. Add one to genome.nodes, or disable the connection."
    )
