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
# # The core, rebuilt
#
# reactgrad in under 120 lines: nodes that know the version of their value and the versions of their
# parents that it was computed from, reads that recompute exactly what is stale, and gradients that
# are nodes of the same graph, so that the same rule keeps them up to date.
#
# Nothing is imported from reactgrad before the last part, where the two run side by side. The cells
# that make up the core are marked `core`; a test counts their lines (all that are neither blank nor a
# comment) and runs this notebook against its printed outputs.
#
# One word, one meaning: a *node* is one value in the graph; a *leaf* has no parents and is set by
# hand; a *kernel* computes a node's value from those of its operands; a value is *stale* if what it
# was computed from has changed.
#
# ## 1. A node and its versions

# %% tags=["core"]
from functools import reduce
from itertools import count

import numpy as np


class Node:
    """One value in the graph: given if it has no kernel, else computed from its parents."""

    serials = count()

    def __init__(self, kernel, operands, name="", rules=(), shape=None, cutoff=None):
        self.kernel, self.name, self.cutoff = kernel, name, cutoff
        self.rules, self.shape = rules, shape  # for gradients: section 6
        self.operands = tuple(operands)  # the parents it was built on
        self.parents = ()  # with those that it read while it ran: section 5
        self.children = {}  # an ordered set of the nodes that are computed from this one
        self.serial = next(Node.serials)  # operands come first: this is a topological order
        self.value, self.value_version = None, 0  # 0: never had a value
        self.parent_versions = None  # what the parents' versions were when it was last computed
        self.marked = kernel is not None  # it may be stale; what is unmarked is clean
        self.link(self.operands)

    def __repr__(self):
        return self.name or f"node {self.serial}"

    def link(self, parents):
        for parent in self.parents:
            parent.children.pop(self, None)
        self.parents = parents
        for parent in parents:
            parent.children[self] = None


# %% [markdown]
# That is the whole state. A leaf is a node without a kernel; setting it replaces the value, and a version that only
# grows says so. 1.0, then 2.0, then 1.0 again is two changes. Values are not compared to find out what is stale,
# and old values are not kept for that.
#
# A set also has to tell that something changed. It *marks* the descendants, and stops wherever it
# meets a mark: a marked node has only marked descendants, so a second set costs only what it newly
# reaches. Marking runs no kernel and recurses nowhere, so a chain of a million nodes is no deeper
# than a chain of two.


# %% tags=["core"]
def closure(start, neighbours, keep=lambda node: True):
    """`start` and what can be reached from it over nodes to keep, in topological order."""
    stack = [node for node in start if keep(node)]
    found = set(stack)
    while stack:
        for other in neighbours(stack.pop()):
            if other not in found and keep(other):
                found.add(other)
                stack.append(other)
    return sorted(found, key=lambda node: node.serial)


def give(leaf, value):
    leaf.value, leaf.value_version = value, leaf.value_version + 1
    for node in closure(leaf.children, lambda node: node.children, lambda node: not node.marked):
        node.marked = True


def leaf(value, name=""):
    node = Node(None, (), name, shape=np.shape(value))
    give(node, value)
    return node


# %% [markdown]
# A diamond, built and set. Building and setting compute nothing: every value is still `None`.

# %%
x = leaf(3.0, "x")
twice = Node(lambda v: v * 2, [x], "twice")
squared = Node(lambda v: v * v, [x], "squared")
both = Node(lambda a, b: a + b, [twice, squared], "both")

print(x, "is at version", x.value_version, "- both:", both.value, "- marked:", both.marked)

# %% [markdown]
# ## 2. A read recomputes what is stale
#
# Reading a target asks for a *plan*: its marked ancestors in topological order. If the target is not
# marked, the plan is empty and the read is done: it costs the same in a graph of ten nodes and of
# ten million.
#
# A mark is only a hint. What decides is the comparison of versions: a node runs if one of its parents
# has another version than the one it was computed from. Since the plan is ordered, every parent has
# settled by then, so that each node runs at most once and never sees one parent old and another new.
#
# The code below is longer than this section needs. `stale` brings each parent up to date before it
# looks at its version; for operands, which the plan has dealt with, that is an unmarked node and an
# empty plan. Sections 3 and 5 use the rest.

# %% tags=["core"]
RAN = []  # what ran since somebody cleared it, in order
RUNNING = []  # the nodes being computed, innermost last, each with what it has read so far


def forward(*targets):
    """Make `targets` clean, running their stale ancestors only."""
    plan = closure(targets, lambda node: node.operands, lambda node: node.marked)
    for node, _ in RUNNING:
        if node in plan:
            raise ValueError(f"cycle: {node} needs {targets[0]}, which needs {node}")
    for node in plan:
        if stale(node):
            compute(node)
        node.marked = False


def stale(node):
    if node.parent_versions is None:
        return True
    for parent, version in zip(node.parents, node.parent_versions):
        forward(parent)
        if parent.value_version != version:
            return True
    return False


def compute(node):
    reads = {}
    RUNNING.append((node, reads))
    try:
        value = node.kernel(*[parent.value for parent in node.operands])
    finally:
        RUNNING.pop()
    RAN.append(node)
    node.link((*node.operands, *reads))
    node.parent_versions = tuple(parent.value_version for parent in node.parents)
    if not (node.value_version and node.cutoff and node.cutoff(node.value, value)):
        node.value, node.value_version = value, node.value_version + 1


def read(node):
    if RUNNING:
        _, reads = RUNNING[-1]
        reads[node] = None
    forward(node)
    return node.value


# %%
def show(*targets):
    """Read, and print what ran."""
    RAN.clear()
    values = [read(target) for target in targets]
    print("ran:", RAN or "nothing", "->", *values)


show(both)
show(both)
give(x, 4.0)
show(twice)
show(both)

# %% [markdown]
# The first read ran three nodes, the second none. After the set, reading `twice` ran `twice` alone;
# `both` then ran `squared` and itself, but not `twice` again.
#
# A set that a target does not depend on does not touch it. `both` stays unmarked, and its read stays
# a look at one flag:

# %%
unrelated = leaf(1.0, "unrelated")
other = Node(lambda v: -v, [unrelated], "other")
show(other)
give(unrelated, 2.0)
print("both is marked:", both.marked, "- other is marked:", other.marked)
show(both)

# %% [markdown]
# Deep graphs need no care. Nothing above walks the graph by calling itself:

# %%
end = start = leaf(0, "start")
for _ in range(100_000):
    end = Node(lambda v: v + 1, [end])
RAN.clear()
print(read(end), "after", len(RAN), "nodes ran")
give(start, 1)
print(read(end), "after", len(RAN), "in all")
del end, start

# %% [markdown]
# ### Versions are the truth
#
# Marks only save looking. If we mark every node of the diamond, the read has to find out from
# the versions alone, and it runs the same nodes: none.

# %%
give(x, 5.0)
show(both)
for node in (twice, squared, both):
    node.marked = True
show(both)

# %% [markdown]
# ## 3. Cutoff
#
# Some changes do not matter further down. A *cutoff* compares the old and the new value. If it calls them the same,
# the old value and its version stay. A node that depends on it then finds the versions that it was computed from,
# and does not run. No code below is new: the last two lines of `compute` did it, and `stale` does the rest.

# %%
speed = leaf(10.0, "speed")
fast = Node(lambda v: v > 50, [speed], "fast", cutoff=lambda old, new: old == new)
fine = Node(lambda yes: 200.0 if yes else 0.0, [fast], "fine")

show(fine)
give(speed, 30.0)
print("marked, since it may be stale:", fine.marked)
show(fine)
give(speed, 80.0)
show(fine)

# %% [markdown]
# At 30 `fast` ran and came out the same: `fine` was in the plan, was found clean and did not run.
#
# ## 4. Errors
#
# A kernel that raises leaves the graph as it was: the version is bumped and the mark taken away only
# after the kernel has returned. What had finished before stays finished, and the next set repairs
# the rest.

# %%
numerator, denominator = leaf(1.0, "numerator"), leaf(0, "denominator")
scaled = Node(lambda v: v * 100, [numerator], "scaled")
ratio = Node(lambda a, b: a // b, [scaled, denominator], "ratio")
RAN.clear()
try:
    read(ratio)
except ZeroDivisionError as error:
    print("raised:", error, "- ran:", RAN, "- version of ratio:", ratio.value_version)
give(denominator, 4)
show(ratio)

# %% [markdown]
# ## 5. Dependencies found while running
#
# Which parents a node has may depend on values. A kernel may therefore `read` other nodes: what it
# has read in this run are its parents, behind its operands, until it runs again. The plan leaves them
# out on purpose, because the kernel may read something else this time. `stale` asks for them one
# after the other in the order in which they were read, and stops at the first that changed: a read
# that was guarded by it may never happen again, and must not run.

# %%
metric = leaf(True, "metric")
celsius = leaf(20.0, "celsius")
fahrenheit = Node(lambda c: c * 9 / 5 + 32, [celsius], "fahrenheit")
shown = Node(lambda: read(celsius) if read(metric) else read(fahrenheit), [], "shown")

show(shown)
give(celsius, 25.0)
show(shown)
give(metric, False)
show(shown)
print("parents of shown:", shown.parents)

# %% [markdown]
# `fahrenheit` ran when the switch turned and not before, although `celsius` had changed. When the switch turns
# back, `shown` depends on `fahrenheit` no longer, and does not run when that changes:

# %%
give(metric, True)
show(shown)
print("parents of shown:", shown.parents)

# %% [markdown]
# (Here, and only here, calls nest: a kernel that reads a node whose kernel reads another one. The
# real one nests where such a node is computed for the first time, not where it is looked at again.)
#
# A node that needs itself, however far around, is found when it is asked for while it runs, before
# anything loops:

# %%
chicken = Node(lambda: read(egg) + 1, [], "chicken")
egg = Node(lambda v: v + 1, [chicken], "egg")
try:
    read(egg)
except ValueError as error:
    print(error)

# %% [markdown]
# ## 6. Gradients are nodes
#
# Reverse-mode differentiation needs one rule for each operand of each op: given `g`, the gradient of
# the output with respect to this node, what does the operand get? If the rules build *nodes*, then
# the gradient is a part of the graph like any other: lazy, versioned, recomputed only where it is
# stale, and differentiable in turn.
#
# An op is a kernel, the shape of its result and its rules. They read as a table; `y` is the node
# itself. `total`'s gradient depends on the *shape* of its operand only, so `spread` takes the shape
# when it is built, and a new value of the operand does not reach it.


# %% tags=["core"]
def op(name, kernel, shape, *rules):
    def build(*operands):
        return Node(kernel, operands, name, rules, shape(*operands))

    return build


def same(*operands):
    return np.broadcast_shapes(*[operand.shape for operand in operands])


# fmt: off
add    = op("add",    np.add,      same, lambda g, y, a, b: g, lambda g, y, a, b: g)
sub    = op("sub",    np.subtract, same, lambda g, y, a, b: g, lambda g, y, a, b: mul(g, leaf(-1.0)))
mul    = op("mul",    np.multiply, same, lambda g, y, a, b: mul(g, b), lambda g, y, a, b: mul(g, a))
square = op("square", np.square,   same, lambda g, y, a: mul(g, mul(leaf(2.0), a)))
tanh   = op("tanh",   np.tanh,     same, lambda g, y, a: mul(g, sub(leaf(1.0), square(y))))
total  = op("total",  np.sum,      lambda a: (), lambda g, y, a: spread(g, a.shape))
# fmt: on


def spread(g, shape):
    rule = op(
        "spread", lambda v: np.broadcast_to(v, shape), lambda a: shape, lambda g, y, a: total(g)
    )
    return rule(g)


def gather(parts):
    if len(parts) == 1:
        return parts[0]
    kernel, rules = lambda *values: reduce(np.add, values), [lambda g, *_: g] * len(parts)
    return Node(kernel, parts, "gather", rules, parts[0].shape)


# %% [markdown]
# The *adjoint* of a node is the gradient of the output with respect to it: what all its consumers
# between it and the output contribute, added up once. So we go from the output down, consumers before
# what they consume, and every adjoint is complete when its turn comes. Only nodes *between* the
# output and what is wanted get one: descendants of the one that are ancestors of the other. That is
# the whole of pruning.


# %% tags=["core"]
def grad(output, wanted):
    """The adjoint of `wanted`: a node that holds the gradient of `output`."""
    between = set(closure([output], lambda node: node.operands))
    between &= set(closure([wanted], lambda node: node.children))
    adjoint, parts = {}, {node: [] for node in between}
    parts[output].append(leaf(np.ones(output.shape), "seed"))
    for node in sorted(between, key=lambda node: -node.serial):
        adjoint[node] = gather(parts[node][::-1])  # added up in order of the consumers' creation
        for operand, rule in zip(node.operands[::-1], node.rules[::-1], strict=True):
            if operand in between:
                parts[operand].append(rule(adjoint[node], node, *node.operands))
    return adjoint[wanted]


# %% [markdown]
# (Here an operand on the way to what is wanted must have the shape of the result. The real one sums
# over what was broadcast.)
#
# A small model: two inputs, two weights.

# %%
x, t = leaf(np.array([1.0, 2.0]), "x"), leaf(np.array([0.5, 0.1]), "t")
w, b = leaf(np.array([0.5, 0.25]), "w"), leaf(np.array([0.1, 0.2]), "b")

h = tanh(add(mul(x, w), b))
loss = total(square(sub(h, t)))
dw = grad(loss, w)

show(loss)
show(dw)

# %% [markdown]
# The read of the gradient reused every value of the forward part. Now some changes, and what each of
# them costs. Nothing here knows about gradients: `forward` sees nodes with versions.

# %%
give(t, np.array([0.5, 0.2]))
show(loss, dw)
give(x, np.array([1.0, 3.0]))
show(loss, dw)
show(loss, dw)

# %% [markdown]
# A new target `t` left `tanh` and all below it alone, and with them the factor `1 - tanh²` of the
# gradient. A new `x` reached everything.
#
# Is it right? Finite differences answer for the first derivative; and since a gradient is a node,
# its own gradient is one more call:

# %%
total_dw = total(dw)
second = grad(total_dw, w)


def slope(of, at, step=1e-6):
    """The derivative of a scalar node with respect to each element of a leaf, numerically."""
    here, found = at.value, []
    for i in range(len(here)):
        ends = []
        for sign in (+1, -1):
            give(at, here + sign * step * np.eye(len(here))[i])
            ends.append(read(of))
        found.append((ends[0] - ends[1]) / (2 * step))
    give(at, here)
    return np.array(found)


print("first: ", np.allclose(read(dw), slope(loss, w), rtol=1e-6))
print("second:", np.allclose(read(second), slope(total_dw, w), rtol=1e-6))

# %% [markdown]
# Pruning: with respect to `b`, the product with `x` needs no adjoint. `w`'s gradient has one node
# more.

# %%
db = grad(loss, b)
needed = {name: closure([node], lambda n: n.operands) for name, node in (("dw", dw), ("db", db))}
ahead = set(closure([loss], lambda n: n.operands))
for name, nodes in needed.items():
    print(name, "adds", [node for node in nodes if node not in ahead and node.kernel])

# %% [markdown]
# ## 7. Beside the real one
#
# The same program in reactgrad, the same changes in the same order: the same values, and as many
# nodes run at every turn, except that the gradient of `tanh` is one node there and three here. It
# keeps its digits there where `tanh` is nearly 1, so the last one may differ.

# %%
import reactgrad as rg

g = rg.Graph()
X, T = g.input(x.value, name="x"), g.input(t.value, name="t")
W, B = g.param(w.value, name="w"), g.param(b.value, name="b")

H = rg.tanh(X * W + B)
Loss = rg.square(H - T).sum()
dW, dB = rg.grad(Loss, [W, B])

twins = {x: X, t: T, w: W, b: B}


def compare(what, *targets):
    RAN.clear()
    ours = [read(one) for one, _ in targets]
    run = g.forward(*[real for _, real in targets])
    equal = all(np.allclose(one, real.value, 1e-14, 0) for one, (_, real) in zip(ours, targets))
    print(f"{what:<10} ran {len(RAN):>2} here, {len(run.ran):>2} there; same values: {equal}")


# A model of its own, since above everything has run already; one gradient after the other.
h = tanh(add(mul(x, w), b))
loss = total(square(sub(h, t)))
dw = grad(loss, w)
targets = [(loss, Loss), (dw, dW)]

compare("first", *targets)
compare("again", *targets)
for name, mine, value in (
    ("t", t, [0.3, 0.3]),
    ("b", b, [0.0, 0.4]),
    ("w", w, [1.5, -0.5]),
    ("x", x, [2.0, 0.0]),
    ("t", t, [0.3, 0.4]),
):
    give(mine, np.array(value))
    twins[mine].set(value)
    compare(f"set {name}", *targets)

# %% [markdown]
# ## 8. What the real one adds
#
# The rule is the one above. What makes it an engine is around it.
#
# - *Lifetime.* Here a node lives as long as its parents, which list it as a child. There it lives as
#   long as someone can reach it (`topology.py`, `Scheduler.release`).
# - *Edits.* Here the order of creation is the topological order, so operands never change. There
#   edits maintain ranks, and a cycle is found before anything changes, with its path (`order.py`).
# - *Reads that come again.* Here each read walks the marked ancestors. There it is one look-up, then
#   a bare loop over kernels that are bound to their buffers (`plan.py`, `executors/serial.py`).
# - *Records.* Here two writes each time that a node runs. There one journal entry a read, settled
#   when someone looks (`versions.py`).
# - *Marks.* Here a set pushes them, and a mark means "maybe". There the first read after any number of
#   sets pushes them; `STALE` is for sure and `MAYBE` stands behind a cutoff (`staleness.py`), so that
#   a plan without cutoffs runs without comparing versions.
# - *Errors.* Here a node that raised runs again at each read and stops the others. There its error is
#   kept and raised again until a parent changes, and independent targets still run.
# - *Ways back.* Transactions, forks, pins (`edit.py`; `graph/_fork.py` and `change/_pin.py` in `reactgrad/`).
# - *Threads.* A lock a graph, and reads that can be cancelled between nodes.
# - *Values.* Here every kernel makes a new array, and anybody may write into it. There arrays are
#   written in place where nobody can see it, and what was handed out never changes.
#
# A few of them at work. A dropped expression is gone; here it would live as long as `x`:

# %%
before = len(g)
for _ in range(1000):
    rg.tanh(X * 2.0)
print("nodes more after 1,000 expressions nobody kept:", len(g) - before)

calls = []
fragile = rg.lift(lambda v: calls.append(v) or 1 / v)(g.input(0))
for _ in range(3):
    try:
        fragile.value
    except ZeroDivisionError:
        pass
print("reads: 3, calls:", len(calls))

# %% [markdown]
# A transaction that fails takes everything back, with new versions: nothing that was computed inside
# can be mistaken for what is true outside.

# %%
before, inside = X.value_version, None
try:
    with g.transaction():
        X.set([7.0, 7.0])
        inside = X.value_version
        raise KeyError("changed my mind")
except KeyError:
    print(X.value, "versions:", before, "->", inside, "->", X.value_version)

# %% [markdown]
# An edit keeps every cache that it does not reach. Here the real one takes `H` from another sum;
# the product `X * W` is not computed again:

# %%
g.forward(Loss)
summed = H.parents[0]
product = summed.parents[0]
H.replace_parent(0, product - B)
print("ran:", len(g.forward(Loss).ran), "- the product among them:", product in g.last_run.ran)
try:
    product.replace_parent(0, H)
except rg.CycleError as error:
    print("refused, a cycle of", len(error.path) - 1, "nodes")

# %% [markdown]
# And a what-if shares all values with the graph it comes from, until one of the two recomputes them:

# %%
with g.whatif({T: [0.0, 0.0]}) as fork:
    print(
        "ran in the fork:", len(fork.forward(fork[Loss]).ran), "- here:", len(g.forward(Loss).ran)
    )

# %% [markdown]
# A graph that ends a cell is drawn. Here one input has changed, and stale nodes are dashed:

# %%
T.set([0.5, 0.5])
g

# %% [markdown]
# `scheduler/README.md` goes on from here: the invariants, what each call costs, and how seven other
# engines solve the same problem.
