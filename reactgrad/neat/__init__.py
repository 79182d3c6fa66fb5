"""Networks whose topology evolves: genomes of neat-python as live graphs, evaluated and trained.

``Network.create(genome, config)``
    One network: ``activate`` it for one sample or many, ``update`` it to a mutated genome, ``fork`` it
    for a child; ``net[key]`` is the node of a neuron. ``FeedForwardNetwork`` is the same with the
    attributes of neat-python's, ``RecurrentNetwork`` has memory.
``evaluate(genomes, X, config)``
    A whole population on shared samples, with numba on ``rg.get_num_threads()`` threads; an ``Evaluator``
    also shares with the population before.
``SharedGenes(graph)``
    Weights that networks of several genomes in one graph share.
``Networks(genomes, config)``
    A population of networks, each with observations of its own, also with memory: one call a step.
``fit(genome, X, y, config)``
    Trains weights, biases and responses by gradient: of a genome or of a population, also with memory.
``Training(X, y)``
    Gradient steps beside evolution, for ``Population``.
``Substrate``, ``EvolvableSubstrate``
    HyperNEAT and ES-HyperNEAT: a genome paints the weights of a network.
``NoveltyArchive``, ``MapElites``
    What a search has found, by behaviour.
``GenomeError``
    Raised for a genome that is no network; names the fault and the gene.

``Population(config)``
    neat-python's loop with genomes as arrays, in this process or over others.
``Islands(config, count)``
    Populations that evolve apart, and between which the best genomes migrate.
``CTRNN``, ``IZNN``
    Networks of continuous time and of spiking neurons, as neat-python's.

All of them take the genomes and configs of neat-python (extra ``neat``). ``Config``, ``DefaultGenome``,
``StdOutReporter``, ``Checkpointer`` and the like are neat-python's own, and ``nn``, ``ctrnn`` and ``iznn`` hold the
networks from here. So ``from reactgrad import neat`` in place of ``import neat`` is enough.

One sample is answered by a loop that was compiled with the package, without any graph; with numba (extra ``jit``)
neurons in graphs are compiled loops.

``rg.load`` of a graph that holds neurons needs ``import reactgrad.neat`` first; it gives the graph, not
the network.

- ``_phenotype``: the neurons that a genome expresses, read without neat-python.
- ``_weigh``, ``_activations``, ``_aggregations``: the ops of neurons, with neat-python's formulas.
- ``_compiled``, ``_loops``: the same as loops compiled by numba, bound to nodes or called without any.
- ``_neuron``: a neuron as nodes, or its value alone.
- ``_samples``: samples as columns, outputs as rows.
- ``_keys``: the names of nodes, and nodes by the keys of a genome.
- ``_opening``: the flat program that becomes a graph when somebody asks for it.
- ``_program``, ``_flat.c``, ``_playing.h``, ``_plain``: networks as flat programs that answer one sample,
  compiled or in Python.
- ``_network``: ``Network``, a feed-forward network that follows its genome. ``_feed_forward``: the same as
  neat-python's class.
- ``_shared``: networks in one graph, and ``SharedGenes``.
- ``_recurrent``: ``RecurrentNetwork``, step by step, or unrolled over a sequence.
- ``_time``, ``_spikes``: ``CTRNN`` and ``IZNN``.
- ``_evaluate``: populations, in which neurons that compute the same are computed once.
- ``_networks``: ``Networks``, a population in which each network has its own observations.
- ``_population``, ``_genome``, ``_genes.h``, ``_species``: populations whose genomes are arrays.
- ``_scores``: their fitness, here or over other processes. ``_rows``, ``_rows.h``: genomes as bytes.
  ``_saving``: populations as bytes. ``_islands``: ``Islands``.
- ``_fit``: gradient steps on the numbers of genomes. ``_lesson``: what they learn from. ``_slopes``,
  ``_training.h``: gradients of flat programs. ``_training``: gradients beside evolution.
- ``_substrate``, ``_evolvable``, ``_query``: HyperNEAT and ES-HyperNEAT.
- ``_archives``: novelty search and MAP-Elites.
- ``_formula``, ``_drawing``: a network as a formula and as a picture.
- ``_names``: the names of neat-python that stand here, too.
- ``_errors``: ``GenomeError``.
"""

from reactgrad._calls import explained as _explained
from reactgrad.neat._archives import Elite as Elite
from reactgrad.neat._archives import MapElites as MapElites
from reactgrad.neat._archives import NoveltyArchive as NoveltyArchive
from reactgrad.neat._drawing import Drawing as Drawing
from reactgrad.neat._errors import GenomeError as GenomeError
from reactgrad.neat._evaluate import Evaluation as Evaluation
from reactgrad.neat._evaluate import Evaluator as Evaluator
from reactgrad.neat._evaluate import evaluate as evaluate
from reactgrad.neat._evolvable import EvolvableSubstrate as EvolvableSubstrate
from reactgrad.neat._feed_forward import FeedForwardNetwork as FeedForwardNetwork
from reactgrad.neat._fit import Fit as Fit
from reactgrad.neat._fit import fit as fit
from reactgrad.neat._islands import Islands as Islands
from reactgrad.neat._names import find as _find
from reactgrad.neat._network import Network as Network
from reactgrad.neat._networks import Networks as Networks
from reactgrad.neat._phenotype import Neuron as Neuron
from reactgrad.neat._phenotype import Phenotype as Phenotype
from reactgrad.neat._population import Population as Population
from reactgrad.neat._recurrent import RecurrentNetwork as RecurrentNetwork
from reactgrad.neat._recurrent import Unrolled as Unrolled
from reactgrad.neat._shared import SharedGenes as SharedGenes
from reactgrad.neat._spikes import IZNN as IZNN
from reactgrad.neat._spikes import IZNeuron as IZNeuron
from reactgrad.neat._substrate import Substrate as Substrate
from reactgrad.neat._time import CTRNN as CTRNN
from reactgrad.neat._time import CTRNNNodeEval as CTRNNNodeEval
from reactgrad.neat._training import Training as Training

# For `help`, which shows of a package what is defined in it, or named here.
__all__ = (
    "CTRNN",
    "IZNN",
    "CTRNNNodeEval",
    "Drawing",
    "Elite",
    "Evaluation",
    "Evaluator",
    "EvolvableSubstrate",
    "FeedForwardNetwork",
    "Fit",
    "GenomeError",
    "IZNeuron",
    "Islands",
    "MapElites",
    "Network",
    "Networks",
    "Neuron",
    "NoveltyArchive",
    "Phenotype",
    "Population",
    "RecurrentNetwork",
    "SharedGenes",
    "Substrate",
    "Training",
    "Unrolled",
    "evaluate",
    "fit",
)

evaluate = _explained("neat.evaluate", evaluate, __name__)
fit = _explained("neat.fit", fit, __name__)
__getattr__ = _find
