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
# # Exploring stale paths
#
# You change one number in a model and want to *see*: what became stale, what a read would run, what ran, what was
# spared, and why. Everything below is drawn from immutable snapshots of the graph, so looking never computes
# anything.
#
# Pictures need `pip install "reactgrad[viz]"`; without it the same things are shown as text.

# %%
import tempfile
from html import escape
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import HTML

import reactgrad as rg

# %% [markdown]
# ## 1. A model
#
# A shop's plan for a week: visitors a day, how many of them buy, what they spend, what the staff is paid. A
# till serves 60 customers a day; `tills` is a node because it is computed, and a whole number because nobody
# opens half a till.

# %%
g = rg.Graph()
visitors = g.input([180.0, 150.0, 160.0, 170.0, 240.0, 390.0, 210.0], name="visitors")
share = g.input(0.35, name="share of buyers")
basket = g.input(24.0, name="basket")
wage = g.input(130.0, name="wage")

with g.scope("sales"):
    customers = visitors * share
    revenue = customers * basket
with g.scope("staff"):
    tills = rg.ceil(customers / 60.0)
    pay = (tills + 1.0) * wage  # and one who fills the shelves
daily = revenue - pay
profit = daily.sum()

for node, name in [
    (customers, "sales/customers"),
    (revenue, "sales/revenue"),
    (tills, "staff/tills"),
    (pay, "staff/pay"),
    (daily, "daily profit"),
    (profit, "profit"),
]:
    node.name = name
print(f"profit {profit.value:,.2f}, tills a day {tills.value.astype(int).tolist()}")
g.picture()

# %% [markdown]
# Frames are scopes; a triangle marks an input, a square a constant. Everything just ran: green ellipses.
# `v1` is the version of the value. A graph that is the last line of a cell shows itself, and so do nodes,
# plans and runs:

# %%
tills

# %% [markdown]
# ## 2. Change one number
#
# Wages rise. `set` computes nothing; it makes stale what depends on it: yellow hexagons.

# %%
before = g.snapshot()
wage.set(140.0)
print([node.name for node in g.nodes if node.is_stale])
g.picture(wage)

# %% [markdown]
# `g.plan` says what a read would run, in which order, and runs nothing:

# %%
plan = g.plan(profit)
print(plan)
print(g.why(profit))

# %% [markdown]
# Now read, and compare. `last_run` holds what ran, in order.

# %%
print(f"profit {profit.value:,.2f}")
run = g.last_run
print("ran what was planned:", list(run.ran) == list(plan.nodes))
print("customers is untouched, version", customers.value_version)
g.picture(run)

# %% [markdown]
# Since the snapshot, these nodes have another version:

# %%
versions = {node.name: node.version for node in before.nodes}
for node in g.snapshot().nodes:
    if node.version != versions[node.name]:
        print(f"{node.name:<14} version {versions[node.name]} -> {node.version}")

# %% [markdown]
# ## 3. A change that stops
#
# On Monday a few more visitors come, and the shop needs as many tills as before. With a cutoff, a node that runs
# and gets the same value keeps its version, so nothing behind it becomes stale. The cutoff belongs to the node. It
# says: this value often stays the same.

# %%
tills.cutoff = "equal"
visitors.set([185.0, 150.0, 160.0, 170.0, 240.0, 390.0, 210.0])
planned = g.plan(profit)
print("planned:", planned.nodes)
print(f"profit {profit.value:,.2f}")
run = g.last_run
print("ran:    ", run.ran)
print("cut off:", run.cut_off)
print("skipped:", run.skipped)
g.picture(run)

# %% [markdown]
# The tills (an octagon) ran and were cut off, so the pay was planned and skipped. Asking why:

# %%
for name in ("staff/tills", "staff/pay", "profit"):
    print(g.why(name), end="\n\n")

# %% [markdown]
# The log of events also keeps the line that made a change. Switch it on before the change:

# %%
g.events = True
visitors.set([185.0, 150.0, 160.0, 170.0, 240.0, 520.0, 210.0])
stale = g.why(pay)
print([(cause.node, cause.kind) for cause in stale.causes])
print(stale.causes[0].line.partition(": ")[2])
_ = profit.value
g.events = False
print(tills.value.astype(int).tolist(), "- Saturday takes one more till")

# %% [markdown]
# ## 4. Values and adjoints
#
# `rg.grad` adds nodes to the same graph: the adjoints, drawn with a double outline. How much profit does one more
# percent of buyers bring, and how much does a dearer basket? Rounding up passes no gradient, so the gradient leaves
# out the cost of another till.

# %%
by_share, by_basket = rg.grad(profit, [share, basket])
by_share.name, by_basket.name = "profit by share", "profit by basket"
print(f"{by_share.value:,.2f} a unit of share, {by_basket.value:,.2f} a unit of basket")
g.picture(layer="all")

# %% [markdown]
# The basket gets dearer. Profit is stale, and so is its derivative by the share of buyers, in which the basket
# is a factor. The derivative by the basket itself is not: profit is linear in it.

# %%
basket.set(25.0)
print("share: ", by_share.is_stale)
print("basket:", by_basket.is_stale)
g.picture(basket, layer="all")

# %%
run = g.forward(profit, by_share, by_basket)
print("ran:", run.ran)

# %% [markdown]
# ## 5. Where the time goes
#
# Inside `with g.record()` every call is measured; outside nothing is. Pictures show the milliseconds
# afterwards, and plans know what they would cost. (How long it took is printed nowhere here, since it differs
# from run to run; `print(log)` shows the table, and `log.to_chrome_trace(path)` writes it for a viewer.)

# %%
with g.record() as log:
    for value in (0.30, 0.35, 0.40):
        share.set(value)
        profit.value
print(len(log.runs), "runs; what each called:")
for number, _ in enumerate(log.runs):
    print(number, [call.node for call in log.calls if call.run == number])
share.set(0.36)
plan = g.plan(profit)
print("the plan has an estimate:", plan.cost is not None, "- never measured:", plan.unknown)
g.picture(plan)

# %% [markdown]
# ## 6. Fold what you do not want to see
#
# A model of hundreds of nodes is drawn by its scopes; a folded box counts what is inside by state.

# %%
deep = rg.Graph()
rng = np.random.default_rng(0)
x = deep.input(rng.normal(size=(4, 8)), name="x")
h = x
for number in range(1, 6):
    with deep.scope(f"layer{number}"):
        w = deep.param(rng.normal(size=(8, 8)) / 8**0.5, name="w")
        b = deep.param(np.zeros(8), name="b")
        h = rg.tanh(h @ w + b)
loss = (h * h).mean()
loss.name = "loss"
loss.value
deep["layer4/b"].set(np.full(8, 0.1))
deep.picture(fold=1)

# %% [markdown]
# A bias of the fourth layer has changed, so layers 1 to 3 are as they were. The parts of layer 4 and what is
# behind it:

# %%
deep.picture("layer4/b")

# %% [markdown]
# ## 7. A topology edit as a difference
#
# Edits are changes, too. The shop considers a security guard for the busy days. It tries that in a fork, so the
# plan itself stays as it is until the decision. The picture compares the fork with its original: added nodes are
# green, removed ones red, changed ones brown.

# %%
_ = g.forward(profit, by_share, by_basket)
h = g.fork()
pay_there = h[pay]
guard = rg.where(h[customers] > 75.0, 95.0, 0.0)
guard.name = "staff/guard"
extended = pay_there + guard
extended.name = "staff/pay and guard"
h[daily].replace_parent(1, extended)
print("to run there:", h.plan("profit").nodes)
print("to run here: ", g.plan("profit").nodes)
h.picture(since=g)

# %%
print(f"without {profit.value:,.2f}, with a guard {h['profit'].value:,.2f}")
print("ran there:", h.last_run.ran)
print("still clean there:", not h[revenue].is_stale, "- version", h[revenue].value_version)

# %% [markdown]
# An edit that would close a cycle is refused with the whole path, and changes nothing:

# %%
try:
    h[customers].replace_parent(0, extended)
except rg.CycleError as error:
    print(error)

# %% [markdown]
# ## 8. All of this, by hand
#
# `g.explore()` opens the page where all of this is done with the mouse: sliders on inputs, a preview of what a
# change would make stale before anything runs, `why` at a click, a timeline of the runs. It needs a running
# kernel and `pip install "reactgrad[jupyter,viz]"`:
#
# ```python
# g.explore(profit, bounds={"share of buyers": (0.0, 1.0), "wage": (80.0, 200.0)})
# ```
#
# Without a kernel, `export_html` writes the same page over recorded runs, as one file that opens from disk
# and loads nothing. First the runs are recorded, with the values of each.

# %%
with g.record(snapshots=True) as log:
    for value in (0.30, 0.33, 0.36):
        share.set(value)
        profit.value
    wage.set(160.0)
    profit.value
axes = plt.figure(figsize=(7, 3.2), layout="constrained").subplots()
rg.plot.history(log, profit, ax=axes)
plt.show()

# %% [markdown]
# `rg.plot.history` draws what a node was, run by run. And this is the page:

# %%
with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "shop.html"  # to keep it, give it a path of your own
    g.export_html(page, log, targets=[profit], title="The shop's week")
    text = page.read_text(encoding="utf-8")
print("one file:", text.startswith("<!doctype html>"), "- runs in it:", len(log.runs))
print("it can load from anywhere:", "default-src 'none'" not in text)
style = "width: 100%; height: 840px; border: 0"
HTML(f'<div><iframe srcdoc="{escape(text)}" style="{style}"></iframe></div>')
