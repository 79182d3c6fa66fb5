"""A whole population on shared data, in which neurons that compute the same are computed once.

A neuron is identified by what it computes: its functions, its genes, and the neurons it computes
from, which are identified in the same way. Neurons of two genomes that agree in this have the same
values, so they are computed once, whatever their common ancestor was: children share with both
parents, copies are free, and generations share with the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Lock, get_ident
from typing import Any, Final, NamedTuple

import numpy as np

import reactgrad as rg
from reactgrad import extend
from reactgrad.neat._compiled import Neurons
from reactgrad.neat._phenotype import Functions, Neuron, check_config, check_finite, neuron, reading
from reactgrad.neat._program import of_arrays, play_shared
from reactgrad.neat._samples import columns, rows

# The number of values of neurons, some 10 ns each, from which genomes are shared by threads.
_SHARED: Final = 400_000


class Evaluation(NamedTuple):
    """The result of evaluating a population.

    Attributes
    ----------
    outputs : list of array, shape (samples, outputs)
        One for each genome.
    ran : int
        The number of neurons that were computed.
    neurons : int
        The number of neurons in all genomes together: each would run if genomes shared nothing.
    """

    outputs: list[np.ndarray[Any, Any]]
    ran: int
    neurons: int


class Evaluator:
    """Evaluates populations on the same samples, and keeps what the latest one has computed.

    A generation's new neurons are one program of the register machine where numba is installed
    (extra ``jit``), else calls of NumPy; none of them is a node. It keeps the values of the neurons
    of the latest population, each once, 8 bytes a sample; while a population is computed, also
    those of the one before.

    Parameters
    ----------
    X : array_like of shape (samples, inputs)
    config : neat.Config

    Examples
    --------
    >>> import neat as neat_python
    >>> from reactgrad import neat
    >>> from reactgrad.demo import neat_config
    >>> config = neat_config(pop_size=3, num_hidden=2)
    >>> population = neat_python.Population(config, seed=1).population
    >>> evaluator = neat.Evaluator([[0.0, 1.0], [1.0, 1.0]], config)
    >>> result = evaluator(population.values())
    >>> result.ran, result.neurons, result.outputs[0].shape
    (9, 9, (2, 1))
    >>> population[1].nodes[0].bias += 1.0
    >>> evaluator(population.values()).ran
    1
    """

    def __init__(self, X: Any, config: Any) -> None:
        check_config(config)
        self._config = config
        self._keys = tuple(config.genome_config.input_keys)
        given, _ = columns(X, self._keys)
        self._samples = given.shape[1]
        self._neurons = Neurons(self._samples)
        # Each input and neuron has a number (inputs negative ones) and a value for all samples.
        self._inputs = {key: ~i for i, key in enumerate(self._keys)}
        values = {~i: self._neurons.given(column) for i, column in enumerate(given)}
        known: dict[tuple[Any, ...], int] = {}  # by the identity of a neuron
        self._kept = values, known
        self._next = 0
        self._lock = Lock()
        self._thread = 0  # the thread that had the lock last

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle only the arguments that it was made with, and no value."""
        given = [self._kept[0][number].array for number in self._inputs.values()]
        return type(self), (rows(given, self._samples), self._config)

    def __len__(self) -> int:
        """Return the number of neurons whose values are kept: those of the latest population."""
        return len(self._kept[1])

    def __call__(self, genomes: Iterable[Any]) -> Evaluation:
        """Return the outputs of each genome.

        Parameters
        ----------
        genomes : iterable of neat.DefaultGenome, or of pairs of an id and a genome
            As neat-python gives them to a fitness function; or the dict of a population.

        Returns
        -------
        Evaluation

        Raises
        ------
        GenomeError
            If one is no feed-forward network.
        DTypeError
            If one is no genome.
        BusyError
            If it is called by what it is computing. Other threads wait.
        """
        if isinstance(genomes, Mapping):
            genomes = genomes.values()
        elif not isinstance(genomes, Iterable):
            several = "population.population" if hasattr(genomes, "population") else "[genome]"
            raise rg.DTypeError(
                f"evaluate takes several genomes, not {genomes!r:.60}. Give all of them: {several}."
            )
        if self._lock.locked() and self._thread == get_ident():
            raise rg.BusyError(
                "the evaluator was called by what it is computing: a neuron's function, or what gives "
                "its genomes. Make another one for that: neat.Evaluator(X, config)."
            )
        with self._lock:
            self._thread = get_ident()
            try:
                return self._evaluate(genomes)
            except BaseException:
                self._neurons.forget()  # the values of the population before stay
                raise

    def _evaluate(self, genomes: Iterable[Any]) -> Evaluation:
        """Identify the neurons of all genomes, compute the new ones, and keep those of this
        population.
        """
        genomes = [one[1] if isinstance(one, tuple) else one for one in genomes]
        programs = of_arrays(genomes, self._config)
        if programs:
            return self._play(programs)
        functions: Functions = {}
        fresh: dict[tuple[Any, ...], int] = {}
        new: list[tuple[Neuron, list[extend.Row], extend.Row]] = []
        places: list[tuple[int, int]] = []  # for each: the keys of the neuron and of its genome
        alive: set[int] = set()
        former, known = self._kept
        values = former.copy()
        outputs: list[list[int]] = []
        total = 0
        for genome in genomes:
            _, wanted, read = reading(genome, self._config, functions)
            numbers = self._inputs.copy()
            number_of = numbers.__getitem__
            for key, own, genes, links in read:
                told = own, genes, *map(number_of, links)
                try:
                    number = known.get(told) or fresh.get(told)
                except TypeError:  # a gene that cannot be hashed is no number
                    check_finite(genome, key, genes, links)
                    raise
                if number is None:
                    self._next = number = fresh[told] = self._next + 1
                    operands = [values[number_of(source)] for source in links]
                    row = values[number] = self._neurons.new(operands)
                    new.append((neuron(genome, key, own, genes, links), operands, row))
                    places.append((key, genome.key))
                numbers[key] = number
            total += len(numbers) - len(self._inputs)
            alive.update(numbers.values())
            outputs.append([numbers[key] for key in wanted])
        for task, (key, genome_key) in zip(new, places, strict=True):
            try:
                self._neurons.compute(*task)
            except Exception as error:
                activation, aggregation = (
                    getattr(one, "__name__", one)
                    for one in (task[0].activation, task[0].aggregation)
                )
                error.add_note(
                    f"raised by neuron {key} of genome {genome_key}: activation {activation!r}, "
                    f"aggregation {aggregation!r}"
                )
                raise
        self._neurons.finish()
        found = [rows([values[i].array for i in several], self._samples) for several in outputs]
        alive.update(self._inputs.values())
        kept = {number: values[number] for number in alive}
        self._kept = kept, {told: i for told, i in [*known.items(), *fresh.items()] if i in alive}
        return Evaluation(found, len(new), total)

    def _play(self, programs: tuple[Any, ...]) -> Evaluation:
        """Compute genomes that are arrays by one compiled loop, which is faster than to compare them."""
        values, _ = self._kept
        given = np.stack([values[number].array for number in self._inputs.values()])
        out = np.empty((len(programs), self._samples, programs[0].outputs))
        total = sum(one.neurons for one in programs)
        threads = rg.get_num_threads() if total * self._samples >= _SHARED else 1
        ends = [i * len(programs) // threads for i in range(threads + 1)]

        def part(i: int) -> None:
            first, last = ends[i], ends[i + 1]
            play_shared(programs[first:last], given, out[first:last])

        if threads == 1:
            part(0)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(part, range(threads)))
        self._kept = {number: values[number] for number in self._inputs.values()}, {}
        return Evaluation(list(out), total, total)


def evaluate(genomes: Iterable[Any], X: Any, config: Any) -> Evaluation:
    """Evaluate a population on shared data. Neurons that compute the same are computed once.

    Parameters
    ----------
    genomes : iterable of neat.DefaultGenome, or of pairs of an id and a genome; or a dict of them
    X : array_like of shape (samples, inputs)
    config : neat.Config

    Returns
    -------
    Evaluation
        With ``outputs``, one array a genome; ``ran`` and ``neurons``, the numbers of neurons computed
        and of neurons in all.

    See Also
    --------
    Evaluator : Also shares with the population before.

    Examples
    --------
    >>> import neat as neat_python
    >>> from reactgrad import neat
    >>> from reactgrad.demo import neat_config
    >>> config = neat_config(pop_size=3)
    >>> population = neat_python.Population(config, seed=1).population
    >>> result = neat.evaluate([population[1], population[1]], [[0.0, 1.0]], config)
    >>> result.ran, result.neurons
    (1, 2)
    """
    return Evaluator(X, config)(genomes)
