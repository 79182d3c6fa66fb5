"""The story of the demo: change one number, count the nodes that ran, compare with a fresh graph."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ._book import Book
from ._closed_form import ClosedForm, closed_form, scale
from ._market import CALL, Leaf, Market, Terms, open_book

if TYPE_CHECKING:
    from numpy.typing import NDArray

    import reactgrad as rg

    from ._prices import Stock

Result = TypeVar("Result")

GREEKS_LIMIT = 1e-9
STEPS = 7  # the number of steps that `tell` reports

# Odd, so that alternating between old and new ends at new; and over twice the 16 runs after which a plan is
# compiled, so that both medians are of compiled plans: with 15 the full recompute alone was.
_REPEATS = 45
_NOTHING = 1e-200  # a Greek this small is zero but for the underflow of the normal density
_NUDGE = 1.0 + 2.0**-10  # a real change of every leaf, for timing a full recompute


@dataclass(frozen=True)
class Change:
    """One leaf gets a new value."""

    title: str
    leaf: Leaf
    new: NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """The cost of one change, and how well its result agrees.

    Attributes
    ----------
    title : str
        The change in words.
    nodes_run, nodes : int
        Nodes that the change ran; nodes in the graph.
    first_ms, incremental_ms, full_ms : float
        Milliseconds of setting and reading: the first time (with planning), the median of the
        repeats, and the median with every leaf changed in a second graph of the same kind.
    build_ms : float
        Milliseconds to build the fresh graph that the result was compared with.
    difference : float
        Largest absolute difference of the value and every Greek from that fresh graph.
    """

    title: str
    nodes_run: int
    nodes: int
    first_ms: float
    incremental_ms: float
    full_ms: float
    build_ms: float
    difference: float

    @property
    def ratio(self) -> float:
        """The time of a full recompute, divided by that of the change."""
        return self.full_ms / self.incremental_ms


@dataclass(frozen=True)
class Greek:
    """One live Greek beside its closed form; neither has digits where the density underflows."""

    name: str
    live: float
    closed_form: float
    scale: float = 0.0  # the sum of the sizes of its terms, which longs and shorts nearly cancel

    @property
    def difference(self) -> float:
        """Absolute difference relative to the closed form, or to its terms where these cancel."""
        return abs(self.live - self.closed_form) / max(self.scale, abs(self.closed_form), _NOTHING)


@dataclass(frozen=True)
class Story:
    """Everything that the demo reports.

    Attributes
    ----------
    source : str
        The source of the prices.
    seed : int
        Seed of the quantities.
    stocks : tuple of Stock
        The underlyings.
    options, expiries, strikes : int
        Size of the book: in all, for each underlying, for each expiry.
    value_nodes, nodes : int
        Nodes of the value alone; with all gradients.
    build_ms, read_ms : float
        Milliseconds to build the graph; to read it for the first time.
    value : float
        Value of the book after all changes.
    steps : tuple of Step
        The changes, in order; each starts from the state that the one before left.
    greeks : tuple of Greek
        After all changes: delta and vega of each stock, rho, one gamma.
    expiry_vegas : tuple of Greek
        The vega of each underlying and expiry.
    seconds : float
        The time that the whole story took.
    """

    source: str
    seed: int
    stocks: tuple[Stock, ...]
    options: int
    expiries: int
    strikes: int
    value_nodes: int
    nodes: int
    build_ms: float
    read_ms: float
    value: float
    steps: tuple[Step, ...]
    greeks: tuple[Greek, ...]
    expiry_vegas: tuple[Greek, ...]
    seconds: float

    @property
    def largest_difference(self) -> float:
        """Largest difference of any step from a fresh recompute; must be 0.0."""
        return float(np.max([step.difference for step in self.steps]))  # a NaN stays visible

    @property
    def largest_greek_difference(self) -> float:
        """Largest relative difference of any Greek from its closed form."""
        return float(np.max([greek.difference for greek in self.greeks + self.expiry_vegas]))

    @property
    def holds(self) -> bool:
        """True if every check passed."""
        return self.largest_difference == 0.0 and self.largest_greek_difference <= GREEKS_LIMIT


def tell(
    stocks: Sequence[Stock],
    source: str,
    seed: int = 0,
    on_step: Callable[[str], None] = lambda doing: None,
) -> Story:
    """Build a book on `stocks`, change it five times, and check every result.

    Parameters
    ----------
    stocks : sequence of Stock
        One or more.
    source : str
        Their source, for the report.
    seed : int, default 0
        Seeds the quantities.
    on_step : callable, optional
        Called `STEPS` times, with words for what begins.

    Returns
    -------
    Story
        The same for the same arguments, except times.
    """
    started = time.perf_counter()
    on_step("building the book")
    terms, market = open_book(stocks, seed)
    live, build_ms = _timed(lambda: Book(terms, market))
    _, read_ms = _timed(live.read)
    twin = Book(terms, market)
    twin.read()

    steps: list[Step] = []
    for change in changes(terms, market):
        on_step(change.title)
        if _is_same(market.at(change.leaf), change.new):
            live.leaves[change.leaf].cutoff = "equal"
        steps.append(_step(change, terms, market, live, twin))
        market = market.with_value(change.leaf, change.new)

    on_step("comparing with the closed forms")
    greeks, expiry_vegas = _greeks(terms, live, closed_form(terms, market), scale(terms, market))
    return Story(
        source=source,
        seed=seed,
        stocks=tuple(stocks),
        options=terms.options,
        expiries=terms.strikes.shape[1],
        strikes=terms.strikes.shape[2],
        value_nodes=live.value_nodes,
        nodes=len(live.graph),
        build_ms=build_ms,
        read_ms=read_ms,
        value=float(live.value.value),
        steps=tuple(steps),
        greeks=greeks,
        expiry_vegas=expiry_vegas,
        seconds=time.perf_counter() - started,
    )


def changes(terms: Terms, market: Market) -> list[Change]:
    """Return the changes to the book; each is of another kind.

    Parameters
    ----------
    terms : Terms
        The options.
    market : Market
        The state before the first change.

    Returns
    -------
    list of Change
        No two touch the same leaf, so each may be taken from the first state.
    """
    n, expiries, strikes = terms.strikes.shape
    quoted, shifted, traded, idle = 0, 1 % n, 2 % n, n - 1
    middle, short = expiries // 2, expiries // 4

    spot = Leaf("spots", (quoted,))
    volatility = Leaf("volatilities", (shifted, middle))
    quantity = Leaf("quantities", (traded, short))
    rate = Leaf("rate", ())
    # A lone stock's spot was changed already: keep every change at a leaf of its own.
    same = Leaf("spots", (idle,)) if idle != quoted else Leaf("volatilities", (idle, 0))

    # By one day's standard deviation, so that options near the money stay there.
    quote = market.at(spot)
    dearer = quote * (1.0 + market.volatilities[quoted, 0] / math.sqrt(252))
    calm, wild = market.at(volatility), market.at(volatility) * 1.05
    bought = market.at(quantity).copy()
    bought[CALL, strikes // 2] += 10.0
    low, high = market.at(rate), market.at(rate) + 0.0001  # a basis point
    return [
        Change(f"quote {_ticker(terms, quoted)} {quote:.7g} -> {dearer:.7g}", spot, dearer),
        Change(
            f"volatility {_ticker(terms, shifted)} {middle + 1}m {calm:.3g} -> {wild:.3g}",
            volatility,
            wild,
        ),
        Change(
            f"quantity {_ticker(terms, traded)} {short + 1}m, one call +10",
            quantity,
            bought,
        ),
        Change(f"rate {low:.4g} -> {high:.4g}", rate, high),
        Change(f'{_words(terms, same)} again, cutoff="equal"', same, market.at(same)),
    ]


def _step(change: Change, terms: Terms, market: Market, live: Book, twin: Book) -> Step:
    """Make one change, forth and back and forth, beside full recomputes; then check it."""
    leaf, old = live.leaves[change.leaf], market.at(change.leaf)
    after = market.with_value(change.leaf, change.new)
    everything = [twin.settings(after.scaled(_NUDGE)), twin.settings(after)]
    incremental: list[float] = []
    full: list[float] = []
    runs: list[rg.Run] = []
    gc.collect()  # now, not during the first timing: another book was built before
    for repeat in range(_REPEATS):
        new = change.new if repeat % 2 == 0 else old
        run, milliseconds = _timed(lambda new=new: _set_and_read(live, leaf, new))
        incremental.append(milliseconds)
        runs.append(run)
        settings = everything[repeat % 2]
        _, milliseconds = _timed(lambda settings=settings: _set_all_and_read(twin, settings))
        full.append(milliseconds)
    # Counted only here: between the repeats it would disturb the times.
    nodes_run = max(sum(1 for var in run.ran if var.parents) for run in runs)
    fresh, build_ms = _timed(lambda: Book(terms, after))
    fresh.read()
    return Step(
        title=change.title,
        nodes_run=nodes_run,
        nodes=len(live.graph),
        first_ms=incremental[0],
        incremental_ms=median(incremental),
        full_ms=median(full),
        build_ms=build_ms,
        difference=float(np.max(np.abs(live.results() - fresh.results()))),
    )


def _greeks(
    terms: Terms, live: Book, exact: ClosedForm, size: ClosedForm
) -> tuple[tuple[Greek, ...], tuple[Greek, ...]]:
    """Pair every live Greek with its closed form."""
    symbols = terms.symbols
    greeks = [
        *_paired([f"delta {symbol}" for symbol in symbols], live.deltas, exact.deltas, size.deltas),
        *_paired(
            [f"vega {symbol}" for symbol in symbols],
            live.vegas,
            exact.vegas.sum(axis=1),
            size.vegas.sum(axis=1),
        ),
        *_paired(["rho"], [live.rho], np.array([exact.rho]), np.array([size.rho])),
        *_paired([f"gamma {symbols[0]}"], [live.gamma], exact.gammas[:1], size.gammas[:1]),
    ]
    months = range(1, len(terms.years) + 1)
    expiry_vegas = _paired(
        [f"vega {symbol} {month}m" for symbol in symbols for month in months],
        [var for row in live.expiry_vegas for var in row],
        exact.vegas.ravel(),
        size.vegas.ravel(),
    )
    return tuple(greeks), tuple(expiry_vegas)


def _paired(
    names: Sequence[str],
    live: Sequence[rg.Var],
    exact: NDArray[np.float64],
    size: NDArray[np.float64],
) -> list[Greek]:
    return [
        Greek(name, float(var.value), float(number), float(terms))
        for name, var, number, terms in zip(names, live, exact, size, strict=True)
    ]


def _set_and_read(book: Book, leaf: rg.Var, value: NDArray[np.float64]) -> rg.Run:
    leaf.set(value)
    return book.read()


def _set_all_and_read(book: Book, settings: dict[rg.Var, NDArray[np.float64]]) -> rg.Run:
    book.graph.set(settings)
    return book.read()


def _timed(action: Callable[[], Result]) -> tuple[Result, float]:
    """Call `action`; return its result and the milliseconds that it took."""
    start = time.perf_counter()
    result = action()
    return result, (time.perf_counter() - start) * 1e3


def _is_same(old: NDArray[np.float64], new: NDArray[np.float64]) -> bool:
    return old.tobytes() == new.tobytes()


def _ticker(terms: Terms, underlying: int) -> str:
    return shortened(terms.symbols[underlying], 8)


def shortened(text: str, width: int) -> str:
    """Cut `text` to `width` characters, showing that something is missing."""
    return text if len(text) <= width else text[: width - 2] + ".."


def _words(terms: Terms, leaf: Leaf) -> str:
    u, *_ = leaf.index
    return f"{'quote' if leaf.field == 'spots' else 'volatility'} {_ticker(terms, u)}"
