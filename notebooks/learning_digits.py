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
# # Learning digits
#
# A classifier of handwritten digits, from the data to the wrong examples, with the names of PyTorch: modules, a
# criterion, an optimiser, a loader. What is different: everything that is built stays alive. The confusion matrix at
# the end is read from nodes that exist since the beginning.
#
# ## 1. The data
#
# 1,797 images of 8 × 8 pixels, from E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits" (UCI
# Machine Learning Repository, 1998), as scikit-learn has them.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import reactgrad as rg

images, labels = load_digits(return_X_y=True)
images = images / 16.0
train, test = rg.data.random_split(rg.data.ArrayDataset(images, labels), [0.75, 0.25], rng=0)
test_images, test_labels = images[test.indices], labels[test.indices]
print(len(train), "images to learn from,", len(test), "for the test")
plt.rcParams["figure.constrained_layout.use"] = True


def show(pictures, titles, rows=2):
    _fig, cells = plt.subplots(rows, 10, figsize=(10, 1.25 * rows))
    for cell in cells.flat:
        cell.axis("off")
    for cell, picture, title in zip(cells.flat, pictures, titles, strict=False):
        cell.imshow(picture.reshape(8, 8), cmap="gray_r")
        cell.set_title(title, fontsize=9)


show(test_images, test_labels)

# %% [markdown]
# ## 2. The network
#
# Layers are made in the graph that is current, and their weights are nodes of it. The scores of the test images are
# nodes, too: built here, before the first step, and read after each epoch.

# %%
rng = np.random.default_rng(0)
with rg.Graph() as g:
    net = rg.nn.Sequential(
        rg.nn.Linear(64, 64, rng=rng),
        rg.nn.ReLU(),
        rg.nn.Linear(64, 32, rng=rng),
        rg.nn.ReLU(),
        rg.nn.Linear(32, 10, rng=rng),
    )
criterion = rg.nn.CrossEntropyLoss()
scores = net(g.input(test_images, name="test images"))
test_loss = criterion(scores, test_labels)
predictions = rg.argmax(scores, axis=1)
net

# %% [markdown]
# ## 3. Training
#
# The loop is PyTorch's. A call of `net` or `criterion` with arrays builds nodes once for each shape and feeds them
# afterwards, so the graph stops growing. One habit is different: read a loss before `step`, because afterwards it is
# the loss of the new weights.

# %%
optimizer = rg.optim.Adam(net.parameters(), lr=0.005)
loader = rg.data.DataLoader(train, batch_size=64, shuffle=True, rng=0)
history, sizes = [], []
for _epoch in range(20):
    losses = []
    for batch, wanted in loader:
        loss = criterion(net(batch), wanted)
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    right = (predictions.value == test_labels).mean()
    history.append((np.mean(losses), test_loss.item(), right))
    sizes.append(len(g))
print("nodes after the second epoch, and after the last:", sizes[1], sizes[-1])
print(f"loss {history[0][0]:.1f} -> {history[-1][0]:.2f}")
print("more than nine of ten test images are right:", bool(history[-1][2] > 0.9))

# %%
_fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
left.plot([one[0] for one in history], label="training")
left.plot([one[1] for one in history], label="test")
left.set(title="loss", xlabel="epoch", yscale="log")
left.legend()
right.plot([100 * one[2] for one in history])
_ = right.set(title="test images that are right, %", xlabel="epoch")
# %% [markdown]
# ## 4. Which digits are mixed up?

# %%
confusion = np.zeros((10, 10), int)
np.add.at(confusion, (test_labels, predictions.value), 1)
_fig, axes = plt.subplots(figsize=(4.2, 4.2))
axes.imshow(np.sqrt(confusion), cmap="Blues")
for row, column in np.argwhere(confusion):
    color = "white" if row == column else "firebrick"
    axes.text(column, row, confusion[row, column], ha="center", va="center", color=color)
_ = axes.set(title="digit (row) taken for (column)", xticks=range(10), yticks=range(10))
# %%
wrong = np.flatnonzero(predictions.value != test_labels)
titles = [f"{test_labels[i]} → {predictions.value[i]}" for i in wrong]
show(test_images[wrong], titles)

# %% [markdown]
# ## 5. Change one weight
#
# We set one weight of the last layer, and read the predictions again. `g.last_run` says what ran.

# %%
weight = net[4].weight
predictions.value  # all is known now
changed = weight.value.copy()
changed[3, 0] += 2.0
weight.set(changed)
predictions.value
print([node.name for node in g.last_run.ran])

# %% [markdown]
# The first two layers did not run: their results do not depend on that weight. Neither do they in a training loop
# when they are frozen. We freeze them, make steps with all training images, and count.

# %%
net[0].freeze()
net[2].freeze()
loss = criterion(net(g.input(images[train.indices])), labels[train.indices])
last = rg.optim.Adam(net[4].parameters(), lr=0.001)
for steps in (1, 10):
    with g.record() as log:
        for _step in range(steps):
            last.zero_grad()
            loss.backward()
            last.step()
    calls = [call.op for call in log.calls]
    print(
        f"{steps} steps: {calls.count('linear')} layers, {calls.count('matmul')} products backward"
    )

# %% [markdown]
# The first step computed three layers forward, and each later one the last layer only. There is one product backward
# a step: nothing below the last layer asks for a gradient. The notebook
# [questions_to_a_network](questions_to_a_network.ipynb) goes on from here: influences, wrong labels, learning rates.
