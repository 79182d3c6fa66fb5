"""From genomes to flat programs, which answer one sample without a graph.

They are compiled (``_flat.c``) where there was a compiler when the package was built, else Python
(``_plain``). What is unusual about a genome is left to ``_phenotype``, which names what is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable
from importlib import import_module
from typing import Any, Final

import numpy as np

from reactgrad.neat import _plain
from reactgrad.neat._errors import GenomeError
from reactgrad.neat._phenotype import Neuron, Phenotype, feed_forward, own_name, recurrent
from reactgrad.neat._plain import ACTIVATIONS, AGGREGATIONS, FIRST_AGGREGATION, OWN

try:
    FLAT: Any = import_module("reactgrad.neat._flat")
except ImportError:
    FLAT = None
else:
    FLAT.set_array_type(np.ndarray)

_read: Final[Any] = _plain.read if FLAT is None else FLAT.read

FEED_FORWARD, RECURRENT, EULER, EXPONENTIAL = range(4)

NAMES: Final[dict[int, str]] = {
    **dict(enumerate(ACTIVATIONS)),
    **dict(enumerate(AGGREGATIONS, FIRST_AGGREGATION)),
}
# By name, and by function: those of neat-python, and those of users that were met.
CODES: Final[dict[Any, int]] = {name: code for code, name in NAMES.items()}
CODES[sum] = CODES["sum"]
_MOST_CODES: Final = 1000


def is_compiled() -> bool:
    """Return whether programs are compiled."""
    return FLAT is not None


def are_compiled(programs: Iterable[Any]) -> bool:
    """Return whether all of these programs are compiled."""
    return FLAT is not None and all(type(one) is FLAT.Program for one in programs)


def play(programs: tuple[Any, ...], given: Any, state: Any, out: Any, samples: int) -> None:
    """Compute compiled programs, each for its own samples, one after the other in contiguous arrays.

    `state` has the slots of each sample of each program that has memory.
    """
    FLAT.play(programs, given, state, out, samples)


def of_arrays(genomes: Iterable[Any], config: Any) -> tuple[Any, ...]:
    """Return the feed-forward programs of genomes that are all arrays; else nothing."""
    found: list[Any] = []
    settings = _settings(config)
    for one in genomes:
        genes = getattr(one, "genes", None)
        if FLAT is None or type(genes) is not FLAT.Genes:
            return ()
        program = _read(FEED_FORWARD, genes, genes, *settings) or read(FEED_FORWARD, one, config)
        if program.owns or not program.inputs or type(program) is not FLAT.Program:
            return ()
        found.append(program)
    return tuple(found)


def play_shared(programs: tuple[Any, ...], given: Any, out: Any) -> None:
    """Compute compiled feed-forward programs for the same samples, which lie as columns.

    `out` has the samples of each program, each with its outputs side by side.
    """
    FLAT.play_shared(programs, given, out)


def read(kind: int, genome: Any, config: Any) -> Any:
    """Return the program of a genome.

    Raises
    ------
    GenomeError
        As ``feed_forward`` and ``recurrent`` do.
    DTypeError
        If these are no genome and no config.
    """
    try:
        # Genomes of arrays are read without making genes of them.
        genes = getattr(genome, "genes", None)
        if genes is not None and (FLAT is None or type(genes) is not FLAT.Genes):
            genes = None
        found = _read(
            kind,
            genome.nodes if genes is None else genes,
            genome.connections if genes is None else genes,
            *_settings(config),
        )
    except AttributeError:
        found = None
    if found is not None:
        return found
    phenotype = (recurrent if kind else feed_forward)(genome, config)
    constants = {}
    if kind >= EULER:
        constants = {key: float(genome.nodes[key].time_constant) for key in phenotype.neurons}
    _learn(config)
    return program_of(kind, phenotype, constants)


def _settings(config: Any) -> tuple[Any, ...]:
    """Return what programs are read with: keys, functions by name, and codes of functions."""
    own = config.genome_config
    functions = own.activation_defs.functions, own.aggregation_function_defs.functions
    return own.input_keys, own.output_keys, *functions, CODES


def program_of(kind: int, phenotype: Phenotype, constants: dict[int, float] | None = None) -> Any:
    """Return the program of a phenotype."""
    neurons = phenotype.neurons
    slots = {key: i for i, key in enumerate((*phenotype.inputs, *neurons))}
    known = len(slots)
    for one in neurons.values():
        for source in one.sources:
            slots.setdefault(source, len(slots))
    for key in phenotype.outputs:
        slots.setdefault(key, len(slots))
    rows = tuple(
        [
            (
                key,
                code_of(one.activation),
                code_of(one.aggregation),
                one.genes,
                tuple([slots[source] for source in one.sources]),
                1.0 if constants is None else constants.get(key, 1.0),
            )
            for key, one in neurons.items()
        ]
    )
    resting = tuple(list(slots)[known:])
    out = tuple([slots[key] for key in phenotype.outputs])
    own = [one for row in rows for one in row[1:3] if type(one) is not int]
    if FLAT is None or not _are_simple(own, slots):
        return _plain.make(kind, phenotype.inputs, rows, resting, out)
    links = sum([len(row[4]) for row in rows])
    table = {**{code: code for code in NAMES}, **dict.fromkeys(own, OWN)}
    return FLAT.make(kind, phenotype.inputs, rows, resting, out, links, table)


def _are_simple(functions: list[Any], keys: Iterable[Any]) -> bool:
    """Return whether compiled programs can hold these."""
    return all(isinstance(one, Hashable) for one in functions) and all(
        type(key) is int for key in keys
    )


def phenotype_of(program: Any) -> Phenotype:
    """Return what a program computes, neuron by neuron."""
    keys = program.keys
    neurons = {
        key: Neuron(
            name_of(activation),
            name_of(aggregation),
            genes,
            tuple([keys[slot] for slot in sources]),
        )
        for key, activation, aggregation, genes, sources, _ in program.rows
    }
    outputs = tuple([keys[slot] for slot in program.out])
    return Phenotype(tuple(keys[: program.inputs]), outputs, neurons)


def code_of(function: Any) -> Any:
    """Return the code of a function that has a name of neat-python's; others are returned themselves."""
    code = CODES.get(function) if isinstance(function, Hashable) else None
    if code is None and callable(function):
        name = own_name(function, "activation") or own_name(function, "aggregation")
        code = CODES.get(name)
    return function if code is None or code == OWN else code


def name_of(function: Any) -> Any:
    """Return neat-python's name of a code; functions of users are returned themselves."""
    return NAMES[function] if type(function) is int else function


def _learn(config: Any) -> None:
    """Enter the functions of a config into the table, so that the next genome is read at once."""
    if len(CODES) > _MOST_CODES:
        for function in [one for one, code in CODES.items() if code == OWN]:
            del CODES[function]
    for what, known in (
        ("activation", config.genome_config.activation_defs),
        ("aggregation", config.genome_config.aggregation_function_defs),
    ):
        for function in known.functions.values():
            if isinstance(function, Hashable) and function not in CODES:
                CODES[function] = CODES.get(own_name(function, what), OWN)


def evaluations(program: Any) -> list[tuple[Any, ...]]:
    """Return the neurons in the form of neat-python's ``node_evals``."""
    keys = program.keys
    return [
        (
            key,
            _function_of("activation", activation),
            _function_of("aggregation", aggregation),
            genes[0],
            genes[1],
            [(keys[slot], weight) for slot, weight in zip(sources, genes[2:], strict=True)],
        )
        for key, activation, aggregation, genes, sources, _ in program.rows
    ]


def _function_of(what: str, function: Any) -> Any:
    """Return neat-python's function of a code, ours where neat-python is not installed."""
    if type(function) is not int:
        return function
    module = sys.modules.get(f"neat.{what}s")
    try:
        module = module or import_module(f"neat.{what}s")
    except ImportError:
        return _plain.FUNCTIONS[function]
    return getattr(module, f"{NAMES[function]}_{what}")


def program_of_evaluations(kind: int, inputs: Any, outputs: Any, evaluations: Any) -> Any:
    """Return the program of neat-python's ``node_evals``.

    Raises
    ------
    GenomeError
        If a neuron is there twice or is an input; or if it comes before one of its sources, in a
        feed-forward network.
    """
    neurons: dict[int, Neuron] = {}
    known = set(inputs)
    for key, activation, aggregation, bias, response, links in evaluations:
        sources = tuple([source for source, _ in links])
        late = [source for source in sources if source not in known and kind == FEED_FORWARD]
        if late:
            raise GenomeError(
                f"node_evals: neuron {key} is computed from {late[0]}, which is no input and not computed "
                "before it. Put each neuron behind its sources; RecurrentNetwork takes them in any order."
            )
        if key in neurons or key in inputs:
            raise GenomeError(
                f"node_evals: {key} is there twice, or is an input as well. Give each neuron a key."
            )
        known.add(key)
        genes = float(bias), float(response), *[float(weight) for _, weight in links]
        neurons[key] = Neuron(
            name_of(code_of(activation)), name_of(code_of(aggregation)), genes, sources
        )
    return program_of(kind, Phenotype(tuple(inputs), tuple(outputs), neurons))
