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
# # Questions to a network
#
# A trained network is usually a file of numbers. To ask it something (what if this label were another one, what if
# this weight were larger, which sample harms it) you write a script that computes everything again. Here the loss,
# its gradients, the predictions and the influence of each sample are *live nodes*. You change one number and read;
# only what follows from the change runs.
#
# ## 1. Data with mistakes
#
# Two crescents. Of 120 labels for training, eight are wrong, and we know which.

# %%
import numpy as np
from IPython.display import SVG

import reactgrad as rg


def crescents(count, seed):
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    angles = np.pi * rng.random(count)
    x = np.where(labels, 1 - np.cos(angles), np.cos(angles))
    y = np.where(labels, 0.5 - np.sin(angles), np.sin(angles))
    return np.stack([x, y], axis=1) + 0.15 * rng.normal(size=(count, 2)), labels


points, truth = crescents(120, 0)
test_points, test_labels = crescents(80, 1)
wrong = np.sort(np.random.default_rng(2).permutation(120)[:8])
given = truth.copy()
given[wrong] = 1 - given[wrong]
print("wrong labels:", wrong)

# %% [markdown]
# ## 2. The network, and all that follows from it
#
# Layers, criterion and optimiser have PyTorch's names. What we will ask for is built once:
#
# - the **loss** and its **gradients**,
# - the **predictions** for the test points,
# - the **influences**: for each training sample, its own gradient times the gradient of the test loss. One small step
#   down the gradient of a sample moves the test loss by minus the learning rate times this number (Pruthi, Liu, Kale
#   and Sundararajan, "Estimating Training Data Influence by Tracing Gradient Descent", 2020). A single forward-mode
#   derivative, `rg.jvp`, has them for all samples.


# %%
class Model:
    def __init__(self):
        self.graph = g = rg.Graph()
        rng = np.random.default_rng(0)
        with g:
            self.net = rg.nn.Sequential(
                rg.nn.Linear(2, 16, rng=rng),
                rg.nn.Tanh(),
                rg.nn.Linear(16, 16, rng=rng),
                rg.nn.Tanh(),
                rg.nn.Linear(16, 2, rng=rng),
            )
        self.labels = g.input(given, name="labels")
        self.labels.cutoff = "equal"  # the same labels again change nothing
        params = list(self.net.parameters())
        costs = rg.cross_entropy(self.net(g.input(points, name="points")), self.labels)
        self.loss = costs.mean()
        self.gradients = rg.grad(self.loss, params)
        scores = self.net(g.input(test_points, name="test points"))
        self.predictions = rg.argmax(scores, axis=1)
        self.test_loss = rg.cross_entropy(scores, test_labels).mean()
        self.influences = rg.jvp(costs, params, rg.grad(self.test_loss, params))
        self.outputs = [
            self.loss,
            *self.gradients,
            self.predictions,
            self.test_loss,
            self.influences,
        ]


model = Model()
print(model.net)
everything = len(model.graph.forward(*model.outputs).ran)
print(everything, "nodes run when nothing is known yet")

# %% [markdown]
# ## 3. Training

# %%
optimizer = rg.optim.Adam(model.net.named_parameters(), lr=0.02)
# Two copies of the graph and of the optimiser before the first step, for later. They share all values.
start, first_state = model.graph.fork(), optimizer.state_dict()
history = []
for _step in range(100):
    optimizer.zero_grad()
    model.loss.backward()
    history.append(model.loss.item())
    optimizer.step()
right = (model.predictions.value == test_labels).mean()
print(f"loss {history[0]:.2f} -> {model.loss.item():.2f}; {right:.0%} of the test points are right")

# %% [markdown]
# ## 4. What if ...
#
# Each change is made in a fork, so the model stays as it is. The last column compares every output with a model that
# is built and computed from nothing.


# %%
def ask(title, change):
    model.graph.forward(*model.outputs)
    with model.graph.whatif() as fork:
        change(fork)
        outputs = [fork[node] for node in model.outputs]
        ran = len(fork.forward(*outputs).ran)
        fresh = Model()
        fresh.labels.set(fork[model.labels].value)
        old = zip(fresh.net.parameters(), model.net.parameters(), strict=True)
        fresh.graph.set({new: fork[one].value for new, one in old})
        same = all(
            np.array_equal(one.value, other.value)
            for one, other in zip(outputs, fresh.outputs, strict=True)
        )
        moved = int((fork[model.predictions].value != model.predictions.value).sum())
        print(
            f"{title:32} ran {ran:3} of {everything}; loss {model.loss.item():.4f} -> "
            f"{fork[model.loss].item():.4f}; predictions moved {moved:2}; as a fresh model: {same}"
        )


def label(fork):
    changed = fork[model.labels].value.copy()
    changed[0] = 1 - changed[0]
    fork[model.labels].set(changed)


def weight(number):
    def change(fork):
        param = fork[model.net[number].weight]
        changed = param.value.copy()
        changed[0, 0] += 1.0
        param.set(changed)

    return change


def layer(fork):
    layer = model.net[2]
    fork.set({fork[layer.weight]: layer.weight.value * 0.5, fork[layer.bias]: np.zeros(16)})


ask("one label were another", label)
ask("the labels were set once more", lambda fork: fork[model.labels].set(given))
ask("one weight of the last layer", weight(4))
ask("one weight of the first layer", weight(0))
ask("the middle layer were halved", layer)

# %% [markdown]
# A label reaches no layer, so no layer runs forward for it; the test points do not run at all. A weight of the last
# layer leaves the layers before it alone.
#
# ## 5. Which samples harm?
#
# The samples with the lowest influence are those that, if learned a little more, would make the test loss worse.
# Crosses are the wrong labels, which the network does not know of; the larger a mark, the more harmful the sample.


# %%
def picture(influences, labels):
    worst = -min(influences)
    marks = []
    for i, (x, y) in enumerate(points):
        left, top, color = (
            60 + 150 * (x + 1),
            170 - 110 * y,
            "#1b6ca8" if labels[i] else "#d1782c",
        )
        size = 3 + 9 * max(-influences[i], 0.0) / worst
        if labels[i] == truth[i]:
            marks.append(f'<circle cx="{left:.1f}" cy="{top:.1f}" r="{size:.1f}" fill="{color}"/>')
        else:
            marks += [
                f'<path d="M{left - size:.1f},{top - size * turn:.1f} l{2 * size:.1f},{2 * size * turn:.1f}" '
                f'stroke="{color}" stroke-width="3"/>'
                for turn in (1, -1)
            ]
    return SVG(
        '<svg xmlns="http://www.w3.org/2000/svg" width="640" height="290">'
        '<rect width="100%" height="100%" fill="#fff"/>' + "".join(marks) + "</svg>"
    )


doubted = np.argsort(model.influences.value)[:8]
found = np.intersect1d(doubted, wrong)
print(len(found), "of the 8 most harmful samples have a wrong label")
picture(model.influences.value, given)

# %% [markdown]
# Is that number true? We make the small step for one sample, in a fork, and look.

# %%
sample, rate = int(doubted[0]), 1e-5
one = np.zeros(len(points))
one[sample] = 1.0
costs = rg.cross_entropy(model.net(points), given)
slopes = rg.grad(costs, list(model.net.parameters()), gradient=one)
with model.graph.whatif() as fork:
    steps = zip(model.net.parameters(), slopes, strict=True)
    fork.set({fork[param]: param.value - rate * slope.value for param, slope in steps})
    moved = fork[model.test_loss].item() - model.test_loss.item()
foretold = -rate * model.influences.value[sample]
print(f"the test loss moves by {moved / rate:.3f} a unit of rate, foretold {foretold / rate:.3f}")

# %% [markdown]
# ## 6. Correct a label, and the influences follow
#
# We look up the most harmful sample, as a person would, and correct its label if it is wrong. Then we read the
# influences again: the others have changed little, this one is harmless now. The network is not trained again; what
# runs is what follows from a label.

# %%
checked, corrected = [], []
for _ in range(10):
    order = np.argsort(model.influences.value)
    sample = next(int(i) for i in order if i not in checked)
    checked.append(sample)
    if model.labels.value[sample] != truth[sample]:
        before = model.influences.value[sample]
        labels = model.labels.value.copy()
        labels[sample] = truth[sample]
        model.labels.set(labels)
        ran = len(model.graph.forward(*model.outputs).ran)
        after = model.influences.value[sample]
        corrected.append(sample)
        print(f"sample {sample:3}: influence {before:6.2f} -> {after:5.2f}, ran {ran} nodes")
print(f"looked up {len(checked)}, corrected {len(corrected)} of {len(wrong)}")

# %% [markdown]
# Training goes on from here with the better labels. In a fork it also goes on with the old ones, to compare:


# %%
def go_on(graph, loss, state, rate, steps):
    """Train in a graph that is a fork, and return the losses."""
    named = [(path, graph[param]) for path, param in model.net.named_parameters()]
    optimizer = rg.optim.Adam(named)
    optimizer.load_state_dict(state)  # its moments; it goes on as if it had always been here
    optimizer.param_groups[0]["lr"] = rate
    losses = []
    for _step in range(steps):
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses


state = optimizer.state_dict()
for title, labels in (("wrong labels", given), ("corrected labels", model.labels.value)):
    with model.graph.whatif({"labels": labels}) as fork:
        go_on(fork, fork[model.loss], state, 0.02, 200)
        right = (fork[model.predictions].value == test_labels).mean()
        print(f"{title:17} {right:.1%} of the test points are right")

# %% [markdown]
# ## 7. What if the learning rate had been another one?
#
# `start` is a fork from before the first step. A fork of it for each rate, with the optimiser's state of that time:
# three histories from one beginning. The model itself does not move.

# %%
version = model.loss.value_version
rates = {
    rate: go_on(branch := start.fork(), branch[model.loss], first_state, rate, 100)
    for rate in (0.002, 0.02, 0.2)
}
assert model.loss.value_version == version
assert np.allclose(rates[0.02], history)
for rate, losses in rates.items():
    print(f"rate {rate:5}: loss {losses[0]:.2f} -> {losses[-1]:.2f}")

WIDE, TALL = 640, 240
curves = []
for (rate, losses), color in zip(rates.items(), ("#1b6ca8", "#2c9c5a", "#d1782c"), strict=True):
    line = " ".join(
        f"{50 + 5 * i:.0f},{20 + 200 * (1 - min(loss / 0.9, 1)):.1f}"
        for i, loss in enumerate(losses)
    )
    curves.append(
        f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>'
        f'<text x="555" y="{20 + 200 * (1 - losses[-1] / 0.9):.0f}" fill="{color}">{rate}</text>'
    )
SVG(
    f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{TALL}" font-family="sans-serif" '
    f'font-size="12"><rect width="100%" height="100%" fill="#fff"/>{"".join(curves)}</svg>'
)

# %% [markdown]
# The rate that was used follows the history exactly, since a fork with the optimiser's state is the same training.
#
# ## 8. In a library without live nodes
#
# The same questions can be answered in PyTorch or JAX, by computing the loss, the gradients, the predictions and the
# influences again after each change. The network above is small, and that is quick. The counts say what the difference
# is: a label costs a fifth of the nodes here, the same labels cost none, and for a fork nothing is copied.
