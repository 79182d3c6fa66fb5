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
# # Where gradients flow
#
# Here gradients are nodes of the same graph. Where they pass and where they stop is part of the graph, not of a
# tape that a call records. This tour shows every way to steer them, and draws which edges pass a gradient, which
# block one, and which leaves store it.
#
# The drawing uses the public interface only: `parents`, `requires_grad`, `frozen`, `grad`, and `rg.grad` itself,
# which says whether a gradient passes from a node to one of its operands.

# %%
import matplotlib.pyplot as plt
import numpy as np

import reactgrad as rg


class Flow:
    """Which edges before some nodes pass gradients; a picture, or lines of text."""

    def __init__(self, *targets):
        self.depth = {}  # a node's distance from the leaves
        stack = list(targets)
        while stack:
            node = stack[-1]
            todo = [p for p in self.before(node) if p not in self.depth]
            stack += todo
            if not todo:
                self.depth.setdefault(
                    node, 1 + max(map(self.depth.get, self.before(node)), default=-1)
                )
                stack.pop()
        self.edges = [
            (parent, node, self.state(parent, node))
            for node in sorted(self.depth, key=self.depth.get)
            for parent in node.parents
            if parent in self.depth
        ]
        for parent, node, _ in reversed(self.edges):  # leaves stand before what uses them first
            if not len(parent.parents):
                self.depth[parent] = self.depth[node] - 1

    @staticmethod
    def before(node):
        """The operands, without constants."""
        leaves = [*node.graph.inputs, *node.graph.params]
        return [p for p in node.parents if len(p.parents) or any(p is leaf for leaf in leaves)]

    @staticmethod
    def state(parent, node):
        if not parent.requires_grad:
            return "nothing to train"
        ones = np.ones(node.shape)
        passes = rg.grad(node, parent, gradient=ones, allow_unused=True) is not None
        return "passes" if passes else "blocks"

    @staticmethod
    def leaf(node):
        return "frozen" if node.frozen else "stores .grad" if node.grad is not None else ""

    def __repr__(self):
        rows = [(f"{p.name} -> {n.name}", s, self.leaf(p)) for p, n, s in self.edges]
        return "\n".join(f"{e:<26}{s:<18}{leaf}".rstrip() for e, s, leaf in rows)

    def _repr_svg_(self):
        rows, place = {}, {}
        for node, depth in sorted(self.depth.items(), key=lambda item: item[1]):
            rows[depth] = rows.get(depth, -1) + 1
            place[node] = (20 + 150 * depth, 30 + 56 * rows[depth] + 14 * (depth % 2))
        colour = {"passes": "#2a7", "blocks": "#c33", "nothing to train": "#bbb"}
        parts = []
        for parent, node, state in self.edges:
            (a, b), (c, d) = place[parent], place[node]
            dash = ' stroke-dasharray="5 4"' if state == "blocks" else ""
            parts.append(
                f'<path d="M{a + 100} {b} C{a + 130} {b} {c - 30} {d} {c} {d}" fill="none" '
                f'stroke="{colour[state]}" stroke-width="2"{dash}/>'
            )
            if state == "blocks":
                parts.append(
                    f'<text x="{(a + 100 + c) / 2 - 5}" y="{(b + d) / 2 + 5}" fill="#c33">✕</text>'
                )
        for node, (a, b) in place.items():
            fill = {"stores .grad": "#cfe", "frozen": "#cdf"}.get(self.leaf(node), "#fff")
            parts.append(
                f'<rect x="{a}" y="{b - 14}" width="100" height="28" rx="6" fill="{fill}" '
                f'stroke="#555"/><text x="{a + 50}" y="{b + 5}" text-anchor="middle">{node.name}</text>'
            )
        width = 150 * (max(rows) + 1)
        height = 60 + 56 * (max(rows.values()) + 1)
        legend = (
            f'<text x="20" y="{height - 10}" fill="#555">green: passes · red ✕: blocks · '
            "grey: nothing to train behind · filled green: stores .grad · blue: frozen</text>"
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{max(width, 640)}" height="{height}" '
            f'font-family="sans-serif" font-size="13">{"".join(parts)}{legend}</svg>'
        )


def named(name, node):
    """A node, with a name for the picture."""
    node.name = name
    return node


def grads(graph):
    return {p.name: None if p.grad is None else p.grad.round(3).tolist() for p in graph.params}


# %% [markdown]
# ## 1. Everything passes
#
# Three params in a row. `backward` leaves a `.grad` in each: all edges on the way are open. Nothing flows to the
# input, because there is nothing to train behind it.


# %%
def model():
    g = rg.Graph()
    x = g.input([1.0, 2.0], name="x")
    encoder, adapter, head = (
        g.param(value, name=name)
        for name, value in [("encoder", 0.5), ("adapter", 2.0), ("head", 3.0)]
    )
    coded = named("coded", x * encoder)
    adapted = named("adapted", coded * adapter)
    loss = named("loss", (adapted * head).sum())
    return g, coded, adapted, loss


g, coded, adapted, loss = model()
loss.backward()
print(grads(g))
Flow(loss)

# %% [markdown]
# How large the gradients are is `rg.plot.gradient_flow`. A param that learns nothing has a word in place of a bar:

# %%
unused = g.param(1.0, name="unused")
rg.plot.gradient_flow(g, by="param", ax=plt.figure(figsize=(6, 2), layout="constrained").gca())
plt.show()
del unused

# %% [markdown]
# ## 2. `detach`: an edge that blocks
#
# `coded.detach()` is not a new node. It is the same node, as the op that is built on it sees it. That edge blocks
# the gradient; other edges from the same node do not. The value still follows every change. For a value that does
# not follow, use `coded.snapshot()`.

# %%
detached = named("detached", (coded.detach() * g["adapter"]).sum())
both = named("both", detached + coded.sum())
g.zero_grad()
both.backward()
print(grads(g))
Flow(both)

# %% [markdown]
# The gradient reached the encoder over the other edge only. Behind an edge that blocks, no adjoints are built, so
# they cost nothing.


# %%
def built(output, leaf):
    """How many nodes a gradient adds to the graph."""
    size = len(g)
    gradient = rg.grad(output, leaf)
    return len(g) - size if gradient is not None else 0


tower = named("tower", rg.exp(rg.tanh(rg.sin(coded))))
print("blocked behind the tower: ", built((tower.detach() * g["head"]).sum(), g["head"]))
print("blocked where it begins:  ", built((coded.detach() * g["head"]).sum(), g["head"]))
print("open, for the encoder too:", built((tower * g["head"]).sum(), g["encoder"]))

# %% [markdown]
# `detach_node()` makes a node of its own that blocks. It shows in drawings, and goes on blocking when an edit gives
# it another operand.

# %%
gate = named("gate", coded.detach_node())
behind = named("behind", (gate * g["head"]).sum())
print("coded behind a gate:  ", rg.grad(behind, g["encoder"], allow_unused=True))
gate.replace_parent(0, adapted)
print("adapted behind a gate:", rg.grad(behind, g["adapter"], allow_unused=True))

# %% [markdown]
# ## 3. `freeze`: passed, not stored
#
# A frozen param gets no `.grad`, and no work is done for its own; the gradient passes through the op that
# uses it, so what lies before it still trains. The numbers are those of before, bit for bit.

# %%
g, coded, adapted, loss = model()
loss.backward()
free = g["encoder"].grad
g["adapter"].freeze()
g.zero_grad()
loss.backward()
print(grads(g), "the same bits:", free.tobytes() == g["encoder"].grad.tobytes())
Flow(loss)

# %% [markdown]
# `rg.grad` works for every node of floats, also for frozen ones and inputs:

# %%
print(rg.grad(loss, g["adapter"]).value, rg.grad(loss, g["x"]).value)

# %% [markdown]
# ## 4. Modes: what is built inside
#
# In a block of `no_grad`, this thread builds nodes that pass no gradient. `enable_grad` inside of it allows
# gradients again. `inference` is `no_grad` that nothing inside can undo. `g.no_grad()` is for one graph only. Nodes
# that were built outside are as they were: `backward` on them works, and warns.

# %%
import warnings

g, coded, adapted, loss = model()
with rg.no_grad():
    closed = named("closed", coded * 2.0)
    with rg.enable_grad():
        opened = named("opened", coded * 3.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loss.backward()
with rg.inference(), rg.enable_grad():
    final = named("final", coded * 4.0)
print({node.name: node.requires_grad for node in (closed, opened, final)})
print(caught[0].category.__name__, "-", grads(g))
Flow(named("total", (closed + opened).sum()))

# %% [markdown]
# Train and eval mode is another switch. It is a value of the graph, the node `g.mode`, so what reads it runs again
# when it changes. A fork can evaluate while the graph stays in training.

# %%
noisy = named("noisy", rg.switch(g.mode, coded + 0.5, coded))
print(noisy.value, noisy.is_stale)
with g.whatif() as w:
    print(w.eval()[noisy].value, "while the graph is in", "train" if g.training else "eval", "mode")

# %% [markdown]
# ## 5. `scale_grad`: less, or the other way
#
# `scale_grad` makes a node with the same value, and multiplies its gradient. With -1.0 it is the gradient reversal
# of domain-adversarial training: the judge learns to tell domains apart, the encoder learns to make that
# impossible.

# %%
g = rg.Graph()
x, encoder, judge = (
    g.input([1.0, 2.0], name="x"),
    g.param(0.5, name="encoder"),
    g.param(3.0, name="judge"),
)
features = named("features", x * encoder)
straight = (features * judge).sum()
reversed_ = (features.scale_grad(-1.0) * judge).sum()
for loss in (straight, reversed_):
    g.zero_grad()
    loss.backward()
    print(loss.value, grads(g))

# %% [markdown]
# ## 6. Several losses
#
# `.grad` of params adds up until `zero_grad()`. The gradient of a node in between, kept by `retain_grad()`, does
# not add up: each `backward` replaces it.

# %%
g = rg.Graph()
trunk = g.param(2.0, name="trunk")
shared = named("shared", trunk * 3.0)
shared.retain_grad()
first, second = named("first", shared * 5.0), named("second", shared**2)
for loss in (first, second):
    loss.backward()
    print(f"after {loss.name}: shared.grad = {shared.grad}, trunk.grad = {trunk.grad}")
print("of the sum:", rg.grad(first + second, trunk).value)
Flow(first, second)

# %% [markdown]
# ## 7. Hooks
#
# A hook on a node is called with the gradient of the node, the sum over all consumers, and may replace it. Hooks
# run in order of registration. Hooks for after `backward` run when all `.grad`s are there. Every `backward` calls
# the hooks. If a hook leaves the gradient as it was, nothing becomes stale.

# %%
log = []
handles = [
    shared.register_hook(lambda gradient: log.append(f"shared got {gradient}")),
    shared.register_hook(lambda gradient: np.clip(gradient, -1.0, 1.0)),
    trunk.register_hook(lambda gradient: log.append(f"trunk got {gradient}")),
    trunk.register_post_accumulate_grad_hook(lambda w: log.append(f"{w.name}.grad is {w.grad}")),
]
g.zero_grad()
first.backward()
print(*log, sep="\n")

# %% [markdown]
# A gradient from `rg.grad` follows: registering a hook is an edit of that gradient, and so is taking it
# away. The hook may look at other nodes, and the gradient then depends on them.

# %%
slope = rg.grad(first, trunk)
print("clipped:", slope.value)
for handle in handles:
    handle.remove()
print("free:   ", slope.value)
limit = g.input(4.0, name="limit")
with shared.register_hook(lambda gradient: min(gradient, limit.value)):
    print("limited:", slope.value)
    limit.set(4.5)
    print("follows:", slope.value)

# %% [markdown]
# ## 8. A GAN step
#
# One graph holds all three uses of the networks: the discriminator on real data, on detached fake data,
# and the generator through the discriminator.

# %%
rng = np.random.default_rng(0)
g = rg.Graph()
noise, real = (
    g.input(rng.normal(size=(8, 2)), name="noise"),
    g.input(rng.normal(size=(8, 2)), name="real"),
)
G, D = g.param(rng.normal(size=(2, 2)), name="G"), g.param(rng.normal(size=(2, 1)), name="D")
fake = named("fake", rg.tanh(named("made", noise @ G)))
on_real, on_fake = named("on_real", real @ D), named("on_fake", fake.detach() @ D)
through = named("through", fake @ D)
d_loss = named("d_loss", -(rg.log(rg.sigmoid(on_real)) + rg.log(1.0 - rg.sigmoid(on_fake))).mean())
g_loss = named("g_loss", -rg.log(rg.sigmoid(through)).mean())


def step():
    noise.set(rng.normal(size=(8, 2)))
    g.zero_grad()
    d_run = d_loss.backward()
    by_d = [p.name for p in g.params if p.grad is not None]
    D.set(D.value - 0.1 * D.grad)
    g.zero_grad()
    g_run = g_loss.backward(inputs=G)
    by_g = [p.name for p in g.params if p.grad is not None]
    G.set(G.value - 0.1 * G.grad)
    return d_run, g_run, by_d, by_g


step()
size = len(g)
d_run, g_run, by_d, by_g = step()
print("d_loss gives gradients to", by_d, "and g_loss to", by_g)
print(
    "the step of D computes the fake:",
    fake in d_run.ran,
    "- that of G finds it:",
    fake not in g_run.ran,
)
print("nodes that run for D:", len(d_run.ran), "- for G:", len(g_run.ran), "- of", len(g))
for _ in range(1000):
    step()
print("nodes after 1,000 more steps:", len(g) - size, "more")

# %% [markdown]
# The edges around the fake data:

# %%
g.zero_grad()
_ = g_loss.backward(inputs=G)
Flow(on_real, on_fake, through)

# %% [markdown]
# ## 9. Actor and critic on one trunk
#
# The actor learns from the advantage: how much better an action was than the critic had said. The advantage is
# detached, so the actor's loss trains trunk and actor, and the critic's loss trains trunk and critic. Both losses
# share one run of the trunk.

# %%
g = rg.Graph()
states, taken = g.input(rng.normal(size=(8, 3)), name="states"), rng.integers(0, 2, 8)
returns = g.input(rng.normal(size=(8, 1)), name="returns")
trunk = g.param(rng.normal(size=(3, 4)), name="trunk")
actor, critic = (
    g.param(rng.normal(size=(4, 2)), name="actor"),
    g.param(rng.normal(size=(4, 1)), name="critic"),
)
features = named("features", rg.tanh(states @ trunk))
logits, value = named("logits", features @ actor), named("value", features @ critic)
log_all = logits - rg.log(rg.exp(logits).sum(axis=1, keepdims=True))
advantage = named("advantage", (returns - value.detach()).reshape(-1))
actor_loss = named("actor_loss", -(log_all[np.arange(8), taken] * advantage).mean())
critic_loss = named("critic_loss", ((value - returns) ** 2).mean())


def step():
    states.set(rng.normal(size=(8, 3)))
    g.zero_grad()
    actor_run = actor_loss.backward()
    by_actor = [p.name for p in g.params if p.grad is not None]
    of_actor = trunk.grad
    critic_run = critic_loss.backward()
    added = not np.array_equal(of_actor, trunk.grad)
    by_critic = [p.name for p in g.params if p.grad is not None and p is not actor]
    g.set({p: p.value - 0.05 * p.grad for p in g.params})
    return actor_run, critic_run, by_actor, by_critic, added


step()
size = len(g)
actor_run, critic_run, by_actor, by_critic, added = step()
print("actor_loss gives gradients to", by_actor)
print("critic_loss to", by_critic, "and adds to that of the trunk:", added)
print(
    "nodes that run for the actor:",
    len(actor_run.ran),
    "- for the critic:",
    len(critic_run.ran),
    "- both:",
    len({v.name for v in actor_run.ran} & {v.name for v in critic_run.ran}),
)
for _ in range(1000):
    step()
print("nodes after 1,000 more steps:", len(g) - size, "more")

# %% [markdown]
# The edge from the value to the advantage blocks, the others pass:

# %%
g.zero_grad()
_ = actor_loss.backward()
Flow(logits, value, advantage)

# %% [markdown]
# ## 10. Nothing twice
#
# A second `backward` without a change runs nothing and builds nothing. After a change, only stale adjoints run.

# %%
g = rg.Graph()
layers = [g.param(0.9, name=f"layer_{i}") for i in range(200)]
h = g.input(1.0)
for layer in layers:
    h = h * layer
size_forward = len(g)
first_run = h.backward()
size = len(g)
print(
    "forward nodes and adjoints that ran first:",
    len(first_run.ran),
    "- again:",
    len(h.backward().ran),
)
print("nodes built by the second backward:", len(g) - size)
h_again = rg.grad(h, layers[-1])
layers[-1].set(1.1)
print(
    "after a change of the last layer:",
    len(g.forward(h, h_again).ran),
    "for the value and its own gradient",
)
