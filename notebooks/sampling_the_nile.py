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
# # Sampling the Nile
#
# A sampler asks the same question millions of times: how probable is this state, now that one of its numbers has
# changed? In a graph, a change of one number reaches only the two or three factors that contain it. So you can
# write down the whole model, change one number, read the whole log density, and pay for those factors only.
#
# ## 1. The data
#
# The flow of the Nile at Aswan, a year each from 1871 to 1970, in 10⁸ m³. Source: G. W. Cobb, "The Problem of
# the Nile: Conditional Solution to a Changepoint Problem", Biometrika 65 (1978); in the public domain, as in
# `statsmodels.datasets.nile` and R's `Nile`.

# %%
import math
import time
from collections import Counter
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import HTML

import reactgrad as rg

FIRST_YEAR = 1871
# fmt: off
FLOWS = np.array([
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
    1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
    831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
    781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
    744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
], dtype=float)
# fmt: on
YEARS = len(FLOWS)
print(YEARS, "years, mean flow", FLOWS.mean(), "- the first and the last:", FLOWS[[0, -1]])

# %% [markdown]
# ## 2. The model
#
# The local level model (Durbin and Koopman, "Time Series Analysis by State Space Methods", chapter 2). Each year
# has a level that is not observed. The flow is the level plus noise, and the level drifts:
#
# $$y_t = \mu_t + \varepsilon_t,\quad \varepsilon_t \sim N(0, \sigma^2_\varepsilon),\qquad
#   \mu_{t+1} = \mu_t + \eta_t,\quad \eta_t \sim N(0, \sigma^2_\eta).$$
#
# Each level is an input of its own, so that one may be changed alone. Each normal density is a node, a *factor*:
# 100 for the flows and 99 for the steps. `rg.lift` makes these nodes from a function that uses Python's `math`. The
# factors are first summed by decades, so one changed factor costs two short sums in place of a long one.


# %%
def normal(x, mean, variance):
    """The log density, without its constant."""
    return -0.5 * ((x - mean) * (x - mean) / variance + math.log(variance))


def total(*terms):
    return sum(terms)


def density(factor, add, levels, noise, drift):
    """The log density of the whole: of what it consists is told by `factor` and `add`."""
    seen = [factor(y, level, noise) for y, level in zip(FLOWS.tolist(), levels, strict=True)]
    steps = [factor(after, before, drift) for before, after in pairwise(levels)]
    factors = seen + steps
    return add(*[add(*factors[i : i + 10]) for i in range(0, len(factors), 10)])


class Nile:
    """The model as a graph."""

    def __init__(self, levels, noise, drift):
        self.graph = g = rg.Graph()
        self.noise, self.drift = g.input(noise, name="noise"), g.input(drift, name="drift")
        self.levels = [g.input(x, name=f"level {FIRST_YEAR + t}") for t, x in enumerate(levels)]
        self.total = density(rg.lift(normal), rg.lift(total), self.levels, self.noise, self.drift)
        self.total.name = "log density"

    def move(self, year, level):
        self.levels[year].set(level)

    def vary(self, noise, drift):
        self.graph.set({self.noise: noise, self.drift: drift})

    def log_density(self):
        return self.total.value


# Where samplers begin: at the mean of the years around each.
start = [float(FLOWS[max(t - 5, 0) : t + 6].mean()) for t in range(YEARS)]
nile = Nile(start, 15_000.0, 1_500.0)
print(nile.graph)
print(f"log density {nile.log_density():.3f}, nodes that ran: {len(nile.graph.last_run.ran)}")

# %% [markdown]
# ## 3. One level changes
#
# The level of 1900 occurs in three factors: the flow of that year, the step to it and the step from it. They run
# with the sums that they are in, and nothing else does.


# %%
def names(nodes):
    return [node.name for node in nodes]


nile.move(1900 - FIRST_YEAR, 900.0)
everything = sum(len(node.parents) > 0 for node in nile.graph.nodes)
plan = nile.graph.plan(nile.total)
level = nile.levels[1900 - FIRST_YEAR]
factors = [node for node in plan.nodes if level in node.parents]
print(f"{len(plan)} of {everything} nodes are stale, {len(factors)} of them factors")
_ = nile.log_density()
print("ran what was planned:", names(nile.graph.last_run.ran) == names(plan.nodes))

# %% [markdown]
# The same model for the first nine years is small enough to draw:

# %%
small = rg.Graph()
levels = [small.input(1100.0, name=f"level {FIRST_YEAR + t}") for t in range(9)]
noise, drift = small.input(15_000.0, name="noise"), small.input(1_500.0, name="drift")
flow, step, add = (rg.lift(f) for f in (normal, normal, total))
seen = [flow(y, level, noise) for y, level in zip(FLOWS.tolist(), levels, strict=False)]
steps = [step(after, before, drift) for before, after in pairwise(levels)]
sums = [add(*part[i : i + 3]) for part in (seen, steps) for i in range(0, len(part), 3)]
whole = add(*sums)
for t, node in enumerate(seen):
    node.name = f"flow {FIRST_YEAR + t}"
for t, node in enumerate(steps):
    node.name = f"step to {FIRST_YEAR + t + 1}"
whole.name = "log density"
whole.value
levels[4].set(1000.0)
whole.value
small.picture(small.last_run)

# %% [markdown]
# ## 4. The sampler
#
# Metropolis within Gibbs. A sweep proposes a new level for each year in turn, and accepts it or takes it back; then
# it draws the two variances given the levels, from inverse gamma distributions. A proposal for a level costs the
# factors of that level. A draw of the variances costs all factors.
#
# The sampler knows nothing of graphs. It says which number it changes, and asks for the log density.

# %%
SHAPE, SCALES = 2.0, (15_000.0, 1_500.0)  # of the priors of both variances: inverse gamma
WIDTH = 60.0  # deviation of a proposal


def sample(model, sweeps, seed, variances_too=True):
    """The levels and the variances after each sweep, and how many proposals each year accepted."""
    rng = np.random.default_rng(seed)
    levels, accepted = np.array(start), np.zeros(YEARS)
    for year, level in enumerate(start):
        model.move(year, level)
    model.vary(15_000.0, 1_500.0)
    chain, variances = np.empty((sweeps, YEARS)), np.empty((sweeps, 2))
    for number in range(sweeps):
        proposals = (levels + WIDTH * rng.normal(size=YEARS)).tolist()
        thresholds = np.log(rng.random(YEARS)).tolist()
        now = model.log_density()
        for year in range(YEARS):
            model.move(year, proposals[year])
            then = model.log_density()
            if then - now > thresholds[year]:
                levels[year], now = proposals[year], then
                accepted[year] += 1
            else:
                model.move(year, float(levels[year]))
        if not variances_too:
            chain[number], variances[number] = levels, (15_000.0, 1_500.0)
            continue
        squares = ((FLOWS - levels) ** 2).sum(), (np.diff(levels) ** 2).sum()
        counts = YEARS, YEARS - 1
        noise, drift = (
            float((scale + square / 2) / rng.gamma(SHAPE + count / 2))
            for scale, square, count in zip(SCALES, squares, counts, strict=True)
        )
        model.vary(noise, drift)
        chain[number], variances[number] = levels, (noise, drift)
    return chain, variances, accepted / sweeps


# %% [markdown]
# The next cell counts what runs in five sweeps. After a rejected proposal the next read follows two levels: the one
# that was taken back, and the new one. Neighbours share a factor.


# %%
class Counted(Nile):
    """Notes how many nodes each read runs."""

    def __init__(self, *start):
        super().__init__(*start)
        self.ran, self.changed, self.expected = [], set(), []

    def move(self, year, level):
        super().move(year, level)
        self.changed.update(names(self.levels[year].children))

    def vary(self, noise, drift):
        super().vary(noise, drift)
        self.changed.update(names([*self.noise.children, *self.drift.children]))

    def log_density(self):
        run = self.graph.forward(self.total)
        factors = {name for name in names(run.ran) if name.startswith("normal")}
        self.expected.append(factors == self.changed)
        self.ran.append((len(factors), len(run.ran)))
        self.changed = set()
        return self.total.value


counted = Counted(start, 15_000.0, 1_500.0)
sample(counted, 5, seed=1)
print("each read ran exactly the factors of what had changed:", all(counted.expected))
kinds = Counter(factors for factors, _ in counted.ran)
for factors, times in sorted(kinds.items()):
    most = max(nodes for f, nodes in counted.ran if f == factors)
    print(
        f"{times:4} reads ran {factors:3} of {2 * YEARS - 1} factors, at most {most} nodes with the sums"
    )
nodes = sum(n for _, n in counted.ran)
print(f"together {nodes:,} nodes; all of them each time would be {everything * len(counted.ran):,}")

# %% [markdown]
# ## 5. The same chain by full recompute
#
# Without a graph, each question calls all of the same functions again. With the same seed both give the same chain
# to the last bit, since the same terms are added in the same order. The third version is what a user of NumPy would
# write: the whole density in a few calls on arrays.


# %%
class Again:
    """Every factor, at each question."""

    def __init__(self, levels, noise, drift):
        self.levels, self.noise, self.drift = list(levels), noise, drift

    def move(self, year, level):
        self.levels[year] = level

    def vary(self, noise, drift):
        self.noise, self.drift = noise, drift

    def log_density(self):
        return density(normal, total, self.levels, self.noise, self.drift)


class OnArrays(Again):
    """The whole density in a few calls of NumPy."""

    def __init__(self, levels, noise, drift):
        super().__init__(levels, noise, drift)
        self.levels = np.array(levels)

    def log_density(self):
        off, steps = FLOWS - self.levels, self.levels[1:] - self.levels[:-1]
        squares = np.dot(off, off) / self.noise + np.dot(steps, steps) / self.drift
        logs = YEARS * math.log(self.noise) + (YEARS - 1) * math.log(self.drift)
        return -0.5 * (squares + logs)


SWEEPS = {Nile: 1500, Again: 150, OnArrays: 1500}  # the slowest one a tenth as long
chains, microseconds = {}, {}
for kind, sweeps in SWEEPS.items():
    model = kind(start, 15_000.0, 1_500.0)
    began = time.process_time()
    chains[kind] = sample(model, sweeps, seed=2)
    microseconds[kind] = (time.process_time() - began) / sweeps / YEARS * 1e6
chain, variances, accepted = chains[Nile]
again = chains[Again]
same = chain[:150].tobytes() == again[0].tobytes(), variances[:150].tobytes() == again[1].tobytes()
print("graph and full recompute give the same chain, bit for bit:", all(same))
print("so does NumPy, up to rounding:", np.allclose(chain, chains[OnArrays][0], rtol=1e-6))

# %% [markdown]
# ## 6. How good is the chain?
#
# The effective sample size says how many independent draws the chain is worth: its length divided by the sum of its
# autocorrelations. Geyer's initial positive sequence ("Practical Markov Chain Monte Carlo", Statistical Science 7,
# 1992) says where to stop adding: it adds sums of two neighbours, up to the first that is not positive.


# %%
def effective(x):
    """The effective sample size of a chain of numbers."""
    x = x - x.mean()
    n = len(x)
    spectrum = np.abs(np.fft.rfft(x, 2 * n)) ** 2
    covariance = np.fft.irfft(spectrum)[:n] / n
    pairs = covariance[: n - n % 2].reshape(-1, 2).sum(axis=1)
    stop = np.argmax(pairs <= 0) if (pairs <= 0).any() else len(pairs)
    return n / (2 * pairs[:stop].sum() / covariance[0] - 1)


BURN = 300
kept, kept_variances = chain[BURN:], variances[BURN:]
sizes = np.array([effective(kept[:, t]) for t in range(YEARS)])
size_of_noise, size_of_drift = (effective(kept_variances[:, i]) for i in range(2))
print(f"accepted: {accepted.min():.0%} to {accepted.max():.0%} of a year's proposals")
print(f"sweeps after the first {BURN}: {len(kept)}")
print(f"effective samples of a level: {sizes.min():.0f} to {sizes.max():.0f}")
print(f"of the noise: {size_of_noise:.0f}, of the drift: {size_of_drift:.0f}")
noise, drift = kept_variances.mean(axis=0)
print(f"mean variances: noise {noise:,.0f}, drift {drift:,.0f}")

# %% [markdown]
# The drift mixes slowly, which is known of this sampler: levels change one at a time, and the variance follows them
# in small steps. A paper would run it far longer; nothing here depends on that.
#
# How much is a second of computing worth? These figures are CPU times of the machine that ran this notebook:

# %%
rows = ""
for kind, what in (
    (Nile, "the graph: only the factors of what changed"),
    (Again, "full recompute: the same functions, all of them"),
    (OnArrays, "full recompute in NumPy, written by hand"),
):
    took = microseconds[kind] * 1e-6 * YEARS * len(kept)
    cells = (
        what,
        f"{microseconds[kind]:.1f} µs",
        f"{np.median(sizes) / took:,.1f}",
        f"{size_of_noise / took:,.1f}",
    )
    rows += "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in cells) + "</tr>"
heads = ("", "an update", "effective samples a second: a level", "the noise")
HTML(f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>{rows}</table>")

# %% [markdown]
# Counted in factors, the graph does a small part of the work. Counted in time it gains less, because these factors
# are as cheap as Python functions can be, and far cheaper than finding out which of them to call. The last row keeps
# the comparison honest: NumPy computes a density that is one expression on a short array in the time of a few Python
# calls, and **for this model that is the way to write it**. The graph saves you from working out by hand which
# factors a move touches, and nothing more.
#
# ## 7. A dear factor
#
# Now the flow is read from a gauge that errs, sometimes by much. What we see is $y_t = f_t + e_t$, where the true flow
# $f_t \sim N(\mu_t, \sigma^2_\varepsilon)$ is not observed and $e_t$ has Student's distribution with 4 degrees of
# freedom. A factor is now an integral over all true flows, a sum over points of a grid:
#
# $$\log \int p(y_t \mid f)\, N(f; \mu_t, \sigma^2_\varepsilon)\, df.$$
#
# The number of points is the price of a factor. Both sides below get the best form that we know: the graph calls one
# NumPy expression for each factor that a move touches, and the peer computes all 100 integrals in one expression on
# an array of years by points. The variances are held, so a move changes one level, as before.


# %%
GAUGE = 90.0  # how far a reading is off


class Integral:
    """The log density of a reading, as a sum over true flows."""

    def __init__(self, points):
        self.at = np.linspace(-6.0, 6.0, points)
        weights = np.exp(-0.5 * self.at**2)
        self.weights = weights / weights.sum()

    def __call__(self, y, level, noise):
        flows = level + math.sqrt(noise) * self.at
        return math.log(np.dot(self.weights, self.errors(y - flows)))

    @staticmethod
    def errors(off):
        return (1.0 + (off / GAUGE) ** 2 / 4.0) ** -2.5


class Measured(Nile):
    """The model with a gauge, as a graph."""

    def __init__(self, points):
        super().__init__(start, 15_000.0, 1_500.0)
        add, reading, step = rg.lift(total), rg.lift(Integral(points)), rg.lift(normal)
        seen = [reading(y, at, self.noise) for y, at in zip(FLOWS.tolist(), self.levels)]
        steps = [step(after, before, self.drift) for before, after in pairwise(self.levels)]
        factors = seen + steps
        self.total = add(*[add(*factors[i : i + 10]) for i in range(0, len(factors), 10)])


class MeasuredOnArrays(OnArrays):
    """All of its factors in a few calls of NumPy."""

    def __init__(self, points):
        super().__init__(start, 15_000.0, 1_500.0)
        self.integral = Integral(points)

    def log_density(self):
        flows = self.levels[:, None] + math.sqrt(self.noise) * self.integral.at
        seen = np.log(self.integral.errors(FLOWS[:, None] - flows) @ self.integral.weights).sum()
        steps = self.levels[1:] - self.levels[:-1]
        logs = (YEARS - 1) * math.log(self.drift)
        return float(seen - 0.5 * (np.dot(steps, steps) / self.drift + logs))


POINTS = (10, 30, 100, 300, 1000, 3000)
updates = {Measured: [], MeasuredOnArrays: []}
alike = []
for points in POINTS:
    found = []
    for kind, times in updates.items():
        model = kind(points)
        sample(model, 1, seed=2, variances_too=False)  # plans are made
        began = time.process_time()
        found.append(sample(model, 3, seed=2, variances_too=False)[0])
        times.append((time.process_time() - began) / 3 / YEARS * 1e6)
    alike.append(np.allclose(*found, rtol=1e-6))
print("both give the same chain, up to rounding:", all(alike))
ratios = np.array(updates[MeasuredOnArrays]) / np.array(updates[Measured])

# %%
figure, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
axes.loglog(POINTS, updates[Measured], "o-", label="the graph: the factors of what changed")
axes.loglog(POINTS, updates[MeasuredOnArrays], "s--", label="NumPy: all factors, as one expression")
for points, took, ratio in zip(POINTS, updates[MeasuredOnArrays], ratios):
    text = f"{ratio:.1f}×" if ratio < 10 else f"{ratio:.0f}×"
    axes.annotate(text, (points, took), (0, 7), textcoords="offset points", ha="center", fontsize=8)
axes.set(
    xlabel="points of an integral", ylabel="µs an update", title="A dear factor pays for the graph"
)
axes.margins(y=0.15)
axes.legend()
axes.grid(alpha=0.3)
plt.show()

# %% [markdown]
# The numbers at the dashed line say how many times longer NumPy takes. Below some 50 points a factor costs less than
# finding out that it has to run, and the array wins. Above, the graph pays: its time hardly grows, since a move
# computes one integral of 100. The same holds for any factor that is a solver, a simulation or a call of another
# program.
#
# ## 8. The answer
#
# The level of the Nile with its 90 % band. It falls at the end of the 1890s, as Cobb found.

# %%
mean, (low, high) = kept.mean(axis=0), np.quantile(kept, (0.05, 0.95), axis=0)
print(f"mean level of 1871-1898: {mean[:28].mean():.0f}, of 1899-1970: {mean[28:].mean():.0f}")
years = FIRST_YEAR + np.arange(YEARS)
figure, axes = plt.subplots(figsize=(7.8, 3.3), layout="constrained")
axes.fill_between(years, low, high, color="#1b6ca8", alpha=0.2, label="90 % of the levels")
axes.plot(years, mean, color="#1b6ca8", label="mean level")
axes.plot(years, FLOWS, ".", color="#777", label="flow")
axes.set(ylabel="10⁸ m³ a year", title="The Nile at Aswan")
axes.legend()
axes.grid(alpha=0.3)
plt.show()
