"""Networks whose topology evolves: genomes of neat-python as live graphs, evaluated and trained.

``Network.create(genome, config)`` and its ``activate``, ``update``, ``fork`` for one network,
``RecurrentNetwork.create`` for one with memory; ``evaluate(genomes, X, config)`` for a population;
``fit`` trains a genome by gradient; ``GenomeError`` says what is wrong with one.

- ``_phenotype``                  what a genome expresses, read without neat-python
- ``_weigh``, ``_activations``, ``_aggregations``  what neurons compute, with neat-python's formulas
- ``_neuron``, ``_samples``       a neuron as nodes; samples as columns
- ``_network``                    ``Network``: a feed-forward network that follows its genome
- ``_recurrent``                  ``RecurrentNetwork``: step by step, or unrolled over a sequence
- ``_evaluate``                   populations, in which what relatives compute alike is computed once
- ``_fit``                        gradient steps on the numbers of a genome
"""

from reactgrad.neat._errors import GenomeError as GenomeError
from reactgrad.neat._evaluate import Evaluation as Evaluation
from reactgrad.neat._evaluate import Evaluator as Evaluator
from reactgrad.neat._evaluate import evaluate as evaluate
from reactgrad.neat._fit import Fit as Fit
from reactgrad.neat._fit import fit as fit
from reactgrad.neat._network import FeedForwardNetwork as FeedForwardNetwork
from reactgrad.neat._network import Network as Network
from reactgrad.neat._phenotype import Neuron as Neuron
from reactgrad.neat._phenotype import Phenotype as Phenotype
from reactgrad.neat._recurrent import RecurrentNetwork as RecurrentNetwork
from reactgrad.neat._recurrent import Unrolled as Unrolled
