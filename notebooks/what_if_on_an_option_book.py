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
# # What if? An option book
#
# You hold a small book of options on six stocks. A quote moves, and you want to know what the book is
# worth now, how sensitive it is to everything else, and what it would be worth if the market moved on.
# None of these questions needs the whole book to be valued again: most of it has not changed.
#
# The stocks, quotes and positions are made up. Prices are Black and Scholes' ("The Pricing of Options
# and Corporate Liabilities", 1973), without dividends. Pictures need `pip install "reactgrad[viz,plot]"`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import reactgrad as rg


def computed(graph):
    """How many nodes have to be computed; the others are leaves."""
    return sum(len(node.parents) > 0 for node in graph.nodes)


# %% [markdown]
# ## 1. The book
#
# Of each stock we know the spot and what an at-the-money straddle of half a year costs. The straddle
# gives the implied volatility: it costs about `spot * vol * sqrt(2 * years / pi)` (Brenner and
# Subrahmanyam, "A Simple Formula to Compute the Implied Standard Deviation", 1988). All options on a
# stock, calls and puts of four strikes, are priced by one set of vector nodes.
#
# A trader's delta holds the volatility fixed, so the volatility uses `spot.detach()`: its value follows
# the spot, and no gradient goes that way.

# %%
YEARS = 0.5
SIGNS = np.array([[1.0], [-1.0]])  # calls, puts
QUOTES = {  # spot, straddle
    "ACME": (100.0, 12.4),
    "BOLT": (42.0, 8.1),
    "CRUX": (250.0, 24.0),
    "DUNE": (18.5, 4.6),
    "ECHO": (77.0, 11.8),
    "FLUX": (130.0, 21.0),
}


class Common:
    """What the options on all stocks have in common: rate, time, and the signs of calls and puts."""

    def __init__(self, graph, rate):
        self.rate = graph.input(rate, name="rate")
        with graph.scope("common"):
            self.signs = graph.const(SIGNS, name="signs")
            self.half = graph.const(0.5, name="half")
            self.root = graph.const(YEARS**0.5, name="root of time")
            self.to_vol = graph.const((np.pi / 2 / YEARS) ** 0.5, name="straddle to vol")
            self.growth = self.rate * YEARS
            self.discount = rg.exp(-self.growth)
        self.growth.name, self.discount.name = "common/growth", "common/discount"


def black_scholes(spot, vol, strikes, common):
    """The price of a call and a put for each strike."""
    deviation = vol * common.root
    d1 = (rg.log(spot / strikes) + common.growth) / deviation + common.half * deviation
    d2 = d1 - deviation
    paid = strikes * common.discount
    first, second = (rg.norm_cdf(common.signs * d) for d in (d1, d2))
    return common.signs * (spot * first - paid * second)


class Book:
    def __init__(self, quotes, rate=0.03):
        self.graph = g = rg.Graph()
        common = Common(g, rate)
        self.rate = common.rate
        self.spot, self.straddle, self.vol, self.price, worth = {}, {}, {}, {}, []
        rng = np.random.default_rng(7)
        for symbol, (spot, straddle) in quotes.items():
            strikes = QUOTES[symbol][0] * np.array([0.9, 1.0, 1.1, 1.2])
            held = rng.integers(-40, 61, size=(2, 4)).astype(float)
            with g.scope(symbol):
                s = self.spot[symbol] = g.input(spot, name="spot")
                q = self.straddle[symbol] = g.input(straddle, name="straddle")
                vol = self.vol[symbol] = q / s.detach() * common.to_vol
                price = self.price[symbol] = black_scholes(s, vol, strikes, common)
                total = (held * price).sum()
            vol.name, price.name, total.name = f"{symbol}/vol", f"{symbol}/price", f"{symbol}/worth"
            worth.append(total)
        worths = rg.stack(worth)
        self.value = worths.sum()
        worths.name, self.value.name = "worths", "book value"


book = Book(QUOTES)
g = book.graph
print(g)
print("nothing has run yet:", book.value.is_stale, "- version", book.value.value_version)
print(f"book value {book.value.value:,.2f}")

# %% [markdown]
# Each stock is a scope, and folds into one box. This is the whole book:

# %%
g.picture(fold=1)

# %% [markdown]
# ## 2. One quote moves
#
# BOLT trades at 43. The plan says what a read would run, before anything is computed:

# %%
book.spot["BOLT"].set(43.0)
print(f"{len(g.plan(book.value))} of {computed(g)} nodes are to run")
g.picture(fold=1)

# %% [markdown]
# The inside of BOLT's box, with what it reaches: yellow hexagons are stale, everything else on the way is
# as it was. The dashed edge that ends in a bar is the detached one. What depends on the rate alone, the
# discounted strikes, is not among them.

# %%
g.picture(book.spot["BOLT"])

# %% [markdown]
# Now read. What was stale ran, each node once; and the number is the one that a new book with the new quote
# gives, to the last bit.

# %%
before = len(g.plan(book.value))
print(f"book value {book.value.value:,.2f}")
run = g.last_run
print(f"ran {len(run.ran)} of {computed(g)}, as planned: {len(run.ran) == before}")
fresh = Book(QUOTES | {"BOLT": (43.0, 8.1)})
print("as a new book has it:", fresh.value.value == book.value.value)
g.picture(run)

# %% [markdown]
# ## 3. Sensitivities that stay up to date
#
# `rg.grad` gives nodes like any other. They are built once, and follow the quotes by the same rule: only
# what is stale runs. Deltas and vegas of all stocks, the book's rho, and BOLT's gamma, which is the
# gradient of a gradient:

# %%
symbols = list(QUOTES)
delta = dict(zip(symbols, rg.grad(book.value, [book.spot[s] for s in symbols]), strict=True))
vega = dict(zip(symbols, rg.grad(book.value, [book.vol[s] for s in symbols]), strict=True))
rho = rg.grad(book.value, book.rate)
gamma = rg.grad(delta["BOLT"], book.spot["BOLT"])
greeks = [*delta.values(), *vega.values(), rho, gamma]


def report():
    print("stock       spot     vol      delta       vega")
    for s in symbols:
        row = (book.spot[s].value, book.vol[s].value, delta[s].value, vega[s].value)
        print("{:<6}{:10.2f}{:8.3f}{:11.2f}{:11.2f}".format(s, *row))
    print(
        f"book value {book.value.value:,.2f}, rho {rho.value:,.2f}, BOLT's gamma {gamma.value:.3f}"
    )


g.forward(book.value, *greeks)
report()

# %% [markdown]
# CRUX's straddle gets dearer. Its vega and delta are stale, and so are the book's value and its rho; the
# sensitivities of the other stocks are not, and are not computed again.

# %%
book.straddle["CRUX"].set(25.5)
stale = [name for name, node in delta.items() if node.is_stale]
run = g.forward(book.value, *greeks)
print(f"stale deltas: {stale}; ran {len(run.ran)} of {computed(g)}, gradients included")
report()

# %% [markdown]
# Are these numbers right? A difference quotient of two what-ifs gives the same numbers, up to its own error:

# %%
h = 1e-4
spot = book.spot["CRUX"]
# The volatility is pinned at what it is, since that is what delta holds fixed.
ends = []
for shift in (h, -h):
    with g.whatif({spot: spot.value + shift}) as w:
        w[book.vol["CRUX"]].pin(book.vol["CRUX"].value)
        ends.append(w[book.value].value)
quotient = (ends[0] - ends[1]) / (2 * h)
print(f"{quotient:.4f} and {delta['CRUX'].value:.4f}")

# %% [markdown]
# ## 4. A ladder of scenarios
#
# `g.whatif` is a fork for the length of a block. It shares every value with the book, and computes only
# what its own changes reach; the book itself does not notice. Each stock alone, from 20 % down to 20 % up:

# %%
SHIFTS = np.array([-0.20, -0.15, -0.10, -0.05, 0.0, 0.05, 0.10, 0.15, 0.20])
versions = {node: node.value_version for node in g.nodes}
ladder, ran = {}, 0
for s in symbols:
    ladder[s] = []
    for shift in SHIFTS:
        with g.whatif({book.spot[s]: book.spot[s].value * (1 + shift)}) as w:
            run = w.forward(book.value.name)
            ladder[s].append(w["book value"].value - book.value.value)
            ran += len(run.ran)
everything = computed(fresh.graph)
scenarios = len(symbols) * len(SHIFTS)
print("        " + "".join(f"{shift:>+9.0%}" for shift in SHIFTS))
for s, row in ladder.items():
    print(f"{s:<8}" + "".join(f"{change:9.0f}" for change in row))
print(f"{scenarios} scenarios ran {ran} nodes; from scratch it would be {scenarios * everything}")
print("the book has noticed:", versions != {node: node.value_version for node in g.nodes})


# %%
axes = plt.figure(figsize=(7, 3.4), layout="constrained").subplots()
for s, row in ladder.items():
    axes.plot(100 * SHIFTS, row, ".-", label=s)
axes.set(xlabel="move of the spot, %", ylabel="change of the book")
axes.legend()
axes.grid(alpha=0.3)
plt.show()

# %% [markdown]
# `rg.plot.ladder` is the same for one input, in one call, with the gradient as a line that touches the curve: the
# delta, which no longer holds far away. `rg.tornado` moves each input alone, here the spots and the rate by 10 %:

# %%
left, right = plt.figure(figsize=(9.5, 3.4), layout="constrained").subplots(1, 2)
spot = book.spot["CRUX"]
rg.plot.ladder(book.value, spot, spot.value * np.linspace(0.7, 1.3, 31), ax=left)
moves = [*book.spot.values(), book.rate]
rg.plot.tornado(rg.tornado(book.value, moves, 0.1), ax=right)
plt.show()

# %% [markdown]
# ## 5. Pin a volatility
#
# You do not trust DUNE's straddle, and mark its volatility at 55 %. `vol` is a computed node. A pin gives it your
# value until you unpin it, and its own operands do not matter meanwhile:

# %%
dune = book.vol["DUNE"]
print(f"implied by the straddle: {dune.value:.3f}")
dune.pin(0.55)
run = g.forward(book.value, *greeks)
print(f"pinned at {dune.value}: ran {len(run.ran)} of {computed(g)}, book {book.value.value:,.2f}")
book.straddle["DUNE"].set(5.2)
print("the straddle moves: to run", len(g.plan(book.value, *greeks)))
print(g.why("DUNE/vol"))
g.picture(dune)

# %%
dune.unpin()
print(f"unpinned: {dune.value:.3f}, which the new straddle implies")
run = g.forward(book.value, *greeks)
print(f"ran {len(run.ran)} of {computed(g)}")
report()

# %% [markdown]
# ## 6. The rate: a change that does reach everything
#
# Not every change is a small one. The rate is in every price, so every price runs; the volatilities, which do
# not depend on it, are still left alone.

# %%
book.rate.set(0.035)
run = g.forward(book.value, *greeks)
print(
    f"ran {len(run.ran)} of {computed(g)}; volatilities among them:",
    sum(v in run.ran for v in book.vol.values()),
)
quotes = {s: (book.spot[s].value, book.straddle[s].value) for s in symbols}
print("as a new book has it:", Book(quotes, rate=0.035).value.value == book.value.value)
g.picture(fold=1)

# %% [markdown]
# Next: [exploring_stale_paths](exploring_stale_paths.ipynb), where the pictures are the subject.
# `reactgrad demo` does what this notebook does for 10,000 options on real quotes, and checks every number
# against formulas.
