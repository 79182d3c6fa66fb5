"""Genomes as arrays for neat-python's own loop: crossover, mutation and distance are compiled (``_genes.h``).

Random numbers come from Python's ``random``, which gives each call of a loop its seed. So a run is
repeated by its seed, and goes on exactly from a checkpoint.
"""

from __future__ import annotations

import random
from array import array
from importlib import import_module
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary, ref

import numpy as np

from reactgrad.neat._program import FLAT


class Rates(NamedTuple):
    """The options of a config that genomes read, in the form that compiled loops take.

    ``structure`` has probabilities and defaults, the keys of the inputs, and those of the outputs.
    """

    structure: tuple[array[float], array[int], array[int]]
    mutation: array[float]
    measure: tuple[float, float, float, float, int, int]
    redraws: int


_known: Final[WeakKeyDictionary[Any, Rates]] = WeakKeyDictionary()
_places: Final[dict[str, int]] = {}
# The config that was asked for last, which is the one of a whole generation.
_latest: tuple[Any, Rates | None] = (lambda: None), None


def place_of(name: str) -> int:
    """Return the place of a function's name in the list of the compiled loops."""
    place = _places.get(name)
    if place is None:
        place = _places[name] = len(FLAT.names)
        FLAT.names.append(name)
    return place


def rates_of(config: Any) -> Rates:
    """Return the rates of a genome config; those that were read before, until ``forget`` is called."""
    global _latest
    latest, rates = _latest
    if rates is not None and latest() is config:
        return rates
    found = _known.get(config)
    if found is None:
        found = _known[config] = _read(config)
    _latest = ref(config), found
    return found


def forget(config: Any) -> None:
    """Read the rates of a config anew the next time."""
    global _latest
    _known.pop(config, None)
    _latest = (lambda: None), None


def _read(config: Any) -> Rates:
    numbers: list[float] = []
    for name in ("weight", "bias", "response", "time_constant"):

        def of(what: str, default: float = 0.0, name: str = name) -> Any:
            return getattr(config, f"{name}_{what}", default)

        numbers += of("mutate_rate"), of("replace_rate"), of("mutate_power")
        kind = str(of("init_type")).lower()
        is_uniform = "uniform" in kind and "gauss" not in kind and "normal" not in kind
        numbers += of("init_mean", 1.0), of("init_stdev"), float(is_uniform)
        numbers += of("min_value", -np.inf), of("max_value", np.inf)
    numbers += config.enabled_mutate_rate, config.enabled_rate_to_true_add
    numbers.append(config.enabled_rate_to_false_add)
    for name in ("activation", "aggregation"):
        options = [place_of(one) for one in getattr(config, f"{name}_options")]
        numbers += getattr(config, f"{name}_mutate_rate"), len(options), *options
    disjoint = config.compatibility_disjoint_coefficient
    excess = getattr(config, "compatibility_excess_coefficient", "auto")
    is_later = hasattr(config, "compatibility_enable_penalty")  # neat-python 2.1
    measure = (
        disjoint,
        disjoint if excess == "auto" else float(excess),
        config.compatibility_weight_coefficient,
        getattr(config, "compatibility_enable_penalty", 1.0),
        int(getattr(config, "compatibility_include_node_genes", True)),
        int(is_later),
    )
    return Rates(
        _structure(config, is_later), array("d", map(float, numbers)), measure, int(is_later)
    )


def _structure(config: Any, prunes: bool) -> tuple[array[float], array[int], array[int]]:
    numbers = [config.node_add_prob, config.node_delete_prob]
    numbers += config.conn_add_prob, config.conn_delete_prob
    numbers += config.single_structural_mutation, config.check_structural_mutation_surer()
    numbers += config.feed_forward, prunes
    default = str(config.enabled_default).lower()
    numbers.append(-1 if default in ("random", "none") else default in ("1", "on", "yes", "true"))
    for name in (config.activation_default, config.aggregation_default):
        numbers.append(-1 if name.lower() in ("random", "none") else place_of(name))
    keys = array("q", config.input_keys), array("q", config.output_keys)
    return array("d", map(float, numbers)), *keys


def packed(genes: list[Any]) -> tuple[bytes, list[str]]:
    """Return genomes as bytes, and the names of the functions at the places in them."""
    return FLAT.pack(genes), FLAT.names


def unpacked(rows: Any, names: list[str]) -> list[Any]:
    """Return the genomes in bytes.

    Raises
    ------
    ValueError
        If they are not whole, or of a machine with another order of bytes.
    """
    return FLAT.unpack(rows, array("q", [place_of(one) for one in names]))


class Genome:
    """A genome of neat-python whose genes lie in arrays.

    It takes the place of ``neat.DefaultGenome`` in populations of ``neat.Population``. ``nodes`` and
    ``connections`` are dicts of neat-python's genes, made when somebody asks for them; what is
    changed in them counts.

    Attributes
    ----------
    key : int
    fitness : float or None
    """

    def __init__(self, key: int) -> None:
        self.key = key
        self.fitness: float | None = None
        self._genes = FLAT.genes()
        self._view: tuple[dict[int, Any], dict[tuple[int, int], Any]] | None = None

    @classmethod
    def of(cls, key: int, genes: Any) -> Genome:
        """Return a genome with these arrays."""
        self = object.__new__(cls)
        self.key, self.fitness, self._genes, self._view = key, None, genes, None
        return self

    # --- genes -------------------------------------------------------------------------------

    @property
    def genes(self) -> Any:
        """The arrays."""
        if self._view is not None:
            self._load(*self._view)
        return self._genes

    @property
    def nodes(self) -> dict[int, Any]:
        """The nodes by key, as neat-python's genes."""
        return self._seen()[0]

    @property
    def connections(self) -> dict[tuple[int, int], Any]:
        """The connections by their two nodes, as neat-python's genes."""
        return self._seen()[1]

    def _seen(self) -> tuple[dict[int, Any], dict[tuple[int, int], Any]]:
        if self._view is None:
            types = import_module("neat.genes")
            nodes: dict[int, Any] = {}
            connections: dict[tuple[int, int], Any] = {}
            rows, links = self._genes.rows()
            for key, bias, response, constant, activation, aggregation in rows:
                node = nodes[key] = types.DefaultNodeGene(key)
                node.bias, node.response, node.time_constant = bias, response, constant
                node.activation = FLAT.names[activation]
                node.aggregation = FLAT.names[aggregation]
            for source, target, innovation, weight, enabled in links:
                link = types.DefaultConnectionGene((source, target), innovation=innovation)
                connections[source, target] = link
                link.weight, link.enabled = weight, enabled
            self._view = nodes, connections
        return self._view

    def _load(self, nodes: dict[int, Any], connections: dict[tuple[int, int], Any]) -> None:
        genes = self._genes = FLAT.genes()
        for key, node in nodes.items():
            places = place_of(node.activation), place_of(node.aggregation)
            constant = getattr(node, "time_constant", 1.0)
            genes.put_node(key, node.bias, node.response, constant, *places)
        for (source, target), link in connections.items():
            genes.put_link(source, target, link.innovation, link.weight, link.enabled)

    def __getstate__(self) -> dict[str, Any]:
        """Return what pickles hold: the rows, and the names of functions, since their places differ."""
        rows, names = packed([self.genes])
        return {"key": self.key, "fitness": self.fitness, "rows": rows, "names": names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take on what a pickle holds."""
        self.key, self.fitness = state["key"], state["fitness"]
        self._view = None
        (self._genes,) = unpacked(state["rows"], state["names"])

    # --- neat-python's genome ----------------------------------------------------------------

    def plain(self) -> Any:
        """Return a ``neat.DefaultGenome`` with copies of the genes."""
        twin = Genome.of(self.key, unpacked(*packed([self.genes]))[0])
        found = import_module("neat.genome").DefaultGenome(self.key)
        found.nodes, found.connections = twin.nodes, twin.connections
        found.fitness = self.fitness
        return found

    def __str__(self) -> str:
        return str(self.plain())

    def size(self) -> tuple[int, int]:
        """Return the numbers of nodes and of enabled connections."""
        nodes, _, enabled = self.genes.size()
        return nodes, enabled

    def get_pruned_copy(self, genome_config: Any) -> Any:
        """Return a ``neat.DefaultGenome`` with the genes that are used."""
        return self.plain().get_pruned_copy(genome_config)

    def configure_new(self, config: Any) -> None:
        """Become a new genome, as the config says."""
        first = import_module("neat.genome").DefaultGenome(self.key)
        first.configure_new(config)
        self._load(first.nodes, first.connections)
        self._view = None

    def configure_crossover(
        self, genome1: Any, genome2: Any, config: Any, fitness_criterion: str | None = None
    ) -> None:
        """Become the child of two genomes."""
        if fitness_criterion == "min":
            is_better = genome1.fitness < genome2.fitness
        else:
            is_better = genome1.fitness > genome2.fitness
        first, second = (genome1, genome2) if is_better else (genome2, genome1)
        seed = random.getrandbits(64)
        self._genes = first.genes.crossover(second.genes, seed, rates_of(config).redraws)
        self._view = None

    def distance(self, other: Any, config: Any) -> float:
        """Return the distance by which genomes are divided into species."""
        out = array("d", (0.0,))
        FLAT.distances(self.genes, [other.genes], rates_of(config).measure, out)
        return out[0]

    def mutate(self, config: Any) -> None:
        """Mutate the structure with the probabilities of the config, then all numbers."""
        rates, genes = rates_of(config), self.genes
        self._view = None
        seed = random.getrandbits(64)
        genes.evolve(*rates.structure, rates.mutation, seed, config, _number, _split)


def _number(config: Any, source: int, target: int) -> int:
    """Return the number of a new connection."""
    return config.innovation_tracker.get_innovation_number(source, target, "add_connection")


def _split(config: Any, source: int, target: int, keys: list[int]) -> tuple[int, int, int] | None:
    """Return the key of a node in the middle of a connection, and the numbers of its own two connections.

    ``None`` if a genome with nodes of these keys has it already.
    """
    tracker = config.innovation_tracker
    if hasattr(tracker, "get_node_split"):  # neat-python 2.1
        found = tracker.get_node_split(source, target, lambda: config.get_new_node_key(keys))
        return None if found[0] in keys else found
    key = config.get_new_node_key(keys)
    first = tracker.get_innovation_number(source, key, "add_node_in")
    return key, first, tracker.get_innovation_number(key, target, "add_node_out")
