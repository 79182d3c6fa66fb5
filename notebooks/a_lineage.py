# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A lineage
#
# In neuro-evolution a child is its parent with a mutation or two. Most of its neurons have the same inputs as the
# parent's, so on the same data they have the same activations. `reactgrad.neat` turns genomes of neat-python into
# live graphs. A child is a fork of its parent's network: it shares every activation, and computes only the neurons
# that the mutation reaches.
#
# This is the story of one family in three generations. Needs `pip install "reactgrad[neat]"`.

# %%
import copy
import random
import time

import neat as neat_python
import networkx as nx
import numpy as np
from IPython.display import HTML

from reactgrad import neat
from reactgrad.demo import neat_config

# %% [markdown]
# ## 1. The founder
#
# Ada has four inputs and two outputs, and has grown for a while: neat-python's own mutations have split
# connections and added others. The data, 500 samples, are the same for all.

# %%
config = neat_config(num_inputs=4, num_outputs=2, activation_options="sigmoid tanh")
genome = neat_python.Population(config, seed=1).population[1]
random.seed(11)
for _ in range(9):
    genome.mutate_add_node(config.genome_config)
    genome.mutate_add_connection(config.genome_config)
X = np.random.default_rng(0).normal(size=(500, 4))

genomes = {"Ada": genome}
networks = {"Ada": neat.Network.create(genome, config)}
outputs = networks["Ada"].activate(X)
print(f"{len(networks['Ada'].phenotype.neurons)} neurons, outputs of shape {outputs.shape}")
print("each ran once:", sorted(networks["Ada"].ran) == sorted(networks["Ada"].phenotype.neurons))
theirs = neat_python.nn.FeedForwardNetwork.create(genome, config)
expected = np.array([theirs.activate(row) for row in X])
print("neat-python agrees:", np.allclose(outputs, expected, rtol=1e-12, atol=0))

# %% [markdown]
# Inputs are on the left, neurons with their keys; 0 and 1 are the outputs. Green ones ran, grey ones were kept.
# Positive weights are blue, negative ones orange.

# %%
networks["Ada"].draw(ran=networks["Ada"].ran)

# %% [markdown]
# ## 2. Birth
#
# A child's genome is a copy that a mutation changes. `fork(genome)` gives its network, and computes nothing. The
# genomes alone say what should be stale: the neurons whose genes or wiring differ, and everything that they lead
# to. So each birth is checked against networkx, and neat-python computes the child from scratch.


# %%
def affected(parent, child):
    """The neurons that differ from the parent's, and those behind them."""
    old, new = parent.phenotype.neurons, child.phenotype.neurons
    changed = [key for key in new if old.get(key) != new[key]]
    wiring = nx.DiGraph([(source, key) for key in new for source in new[key].sources])
    wiring.add_nodes_from(new)
    return set(changed).union(*[nx.descendants(wiring, key) for key in changed])


family = []  # name, parent, what happened, neurons, ran


def birth(name, parent, what, mutate):
    genome = genomes[name] = copy.deepcopy(genomes[parent])
    told = mutate(genome)
    net = networks[name] = networks[parent].fork(genome)
    keys = list(net.phenotype.neurons)
    stale = {key for key in keys if net[key].is_stale}
    outputs = net.activate(X)
    theirs = neat_python.nn.FeedForwardNetwork.create(genome, config)
    expected = np.array([theirs.activate(row) for row in X])
    print(f"{name}, child of {parent}: {what} {told}")
    print(f"  stale {sorted(stale)}, ran {sorted(net.ran)}: {len(net.ran)} of {len(keys)} neurons")
    print("  as networkx says:", stale == set(net.ran) == affected(networks[parent], net))
    print("  neat-python agrees:", np.allclose(outputs, expected, rtol=1e-12, atol=0))
    family.append((name, parent, what, len(keys), len(net.ran)))
    return net.draw(ran=net.ran, parent=networks[parent])


def expressed(genome):
    """The connections that the network of a genome has."""
    neurons = neat.Network.create(genome, config).phenotype.neurons
    return [(source, key) for key in neurons for source in neurons[key].sources]


def reweigh(genome):
    key = random.choice(expressed(genome))
    genome.connections[key].weight += 0.5
    return f"{key[0]} -> {key[1]}"


def split(genome):
    """By neat-python, again until it has taken a connection that is switched on."""
    before = set(expressed(genome))
    split = set()
    while not split:
        trial = copy.deepcopy(genome)
        trial.mutate_add_node(config.genome_config)
        split = before - set(expressed(trial))
    (new,) = set(trial.nodes) - set(genome.nodes)
    genome.nodes, genome.connections = trial.nodes, trial.connections
    ((source, key),) = split
    return f"{source} -> {key}: {new}"


# %% [markdown]
# ## 3. The children
#
# Bea differs in one weight.

# %%
birth("Bea", "Ada", "another weight on", reweigh)

# %% [markdown]
# In Cal, neat-python splits a connection: a new neuron (bold) with two new connections; the old one (dotted) is
# switched off.

# %%
birth("Cal", "Ada", "a new neuron on", split)

# %% [markdown]
# ## 4. The grandchildren
#
# Bea has two children, and so has Cal. Their mutations: a new connection, another bias, one connection less,
# another activation function.


# %%
def connect(genome):
    known = set(genome.connections)
    while set(genome.connections) == known:
        genome.mutate_add_connection(config.genome_config)
    (key,) = set(genome.connections) - known
    return f"{key[0]} -> {key[1]}"


birth("Dot", "Bea", "a new connection", connect)


# %%
def rebias(genome):
    key = random.choice([key for key in genome.nodes if key > 1])
    genome.nodes[key].bias -= 1.0
    return f"{key}"


birth("Eli", "Bea", "another bias in neuron", rebias)


# %%
def disconnect(genome):
    key = random.choice(expressed(genome))
    genome.connections[key].enabled = False
    return f"{key[0]} -> {key[1]}"


birth("Fay", "Cal", "switched off", disconnect)


# %%
def bend(genome):
    genome.nodes[1].activation = "tanh"
    return "1"


birth("Gus", "Cal", "tanh instead of sigmoid in neuron", bend)

# %% [markdown]
# No mutation has touched a parent: Ada is as she was, and has nothing to compute.

# %%
again = networks["Ada"].activate(X)
print("the outputs of before:", np.array_equal(again, outputs), "- ran:", networks["Ada"].ran)

# %% [markdown]
# ## 5. What it cost
#
# Counted in neurons, beside computing every child as a whole:

# %%
print(f"{'':<5}{'parent':<8}{'ran':>4}{'of':>4}  what happened")
for name, parent, what, count, ran in family:
    print(f"{name:<5}{parent:<8}{ran:>4}{count:>4}  {what}")
ran, count = sum(row[4] for row in family), sum(row[3] for row in family)
print(f"together {ran} of {count} neurons, with {len(X)} samples each")

# %% [markdown]
# Counted in CPU time, on the machine that ran this notebook, the best of some repeats: a fork with its update and
# its outputs; a new network of the same genome with its outputs; and neat-python. Networks as small as these are
# cheap to compute, so the fork and the edit are a large part of the price of a child.


# %%
def best(what, repeats=5):
    times = []
    for _ in range(repeats):
        began = time.process_time()
        what()
        times.append(time.process_time() - began)
    return f"{min(times) * 1e3:.2f} ms"


rows = ""
for name, parent, *_ in family:
    genome, of = genomes[name], networks[parent]
    net = neat_python.nn.FeedForwardNetwork.create(genome, config)
    cells = (
        name,
        best(lambda of=of, genome=genome: of.fork(genome).activate(X)),
        best(lambda genome=genome: neat.Network.create(genome, config).activate(X)),
        best(lambda net=net: [net.activate(row) for row in X]),
    )
    rows += "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
heads = ("", "fork of the parent", "new network", "neat-python")
HTML(f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>{rows}</table>")

# %% [markdown]
# ## 6. The history of a neuron
#
# Every neuron is a node, with a version and with an answer to why it ran:

# %%
key = networks["Bea"].ran[0]
for name, net in networks.items():
    print(f"{name}: neuron {key} at version {net[key].value_version}")

twin = networks["Ada"].fork(genomes["Bea"])  # not read yet
print(twin.graph.why(f"neuron {key}"))

# %% [markdown]
# For a whole population on shared data, `neat.evaluate(genomes, X, config)` finds by itself what relatives compute
# alike. `reactgrad demo neat` evolves XOR.

# %%
result = neat.evaluate(list(genomes.values()), X, config)
print(f"{result.ran} of the family's {result.neurons} neurons, Ada's included")
same = [
    np.allclose(found, net.outputs.value, rtol=1e-12, atol=0)
    for found, net in zip(result.outputs, networks.values(), strict=True)
]
print("the same outputs:", all(same))
