"""The graph of the book runs what a change reaches, and nothing else."""

from datetime import date

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.demo._book import Book
from reactgrad.demo._closed_form import closed_form
from reactgrad.demo._market import LEAST_OPTIONS, Leaf, Market, Terms, open_book
from reactgrad.demo._prices import Stock

STOCKS = [
    Stock(s, p, v, 9, "monthly", date(2010, 3, 1)) for s, p, v in [("A", 20, 0.3), ("B", 90, 0.5)]
]


def _small() -> tuple[Terms, Market]:
    """Cut a book of two underlyings, three expiries and five strikes out of a large one."""
    terms, market = open_book(STOCKS, 1)
    terms = Terms(terms.symbols, terms.years[:3], terms.strikes[:, :3, ::9])
    quantities = market.quantities[:, :3, :, ::9]
    return terms, Market(market.spots, market.volatilities[:, :3], market.rate, quantities)


def _outputs(book: Book) -> list[rg.Var]:
    return [book.value, *book.deltas, *book.vegas, book.rho, book.gamma]


def _reached(book: Book, leaf: rg.Var) -> set[int]:
    """Collect what lies between a leaf and the outputs, by walking the parents."""
    found: dict[int, rg.Var] = {}
    waiting = _outputs(book)
    while waiting:
        var = waiting.pop()
        if id(var) not in found:
            found[id(var)] = var
            waiting.extend(var.parents)
    reached = {id(leaf)}
    grown = True
    while grown:
        more = {i for i, var in found.items() if any(id(p) in reached for p in var.parents)}
        grown = not more <= reached
        reached |= more
    return reached - {id(leaf)}


LEAVES = [
    Leaf("spots", (0,)),
    Leaf("spots", (1,)),
    Leaf("volatilities", (1, 2)),
    Leaf("quantities", (0, 1)),
    Leaf("rate", ()),
]


@pytest.mark.parametrize("leaf", LEAVES, ids=str)
def test_a_change_runs_what_lies_between_it_and_the_results(leaf: Leaf) -> None:
    terms, market = _small()
    book = Book(terms, market)
    book.read()
    for factor in (1.01, 0.99, 1.02):
        book.leaves[leaf].set(market.at(leaf) * factor)
        ran = book.read().ran
        assert {id(var) for var in ran} - {id(book.leaves[leaf])} == _reached(
            book, book.leaves[leaf]
        )
        assert len({id(var) for var in ran}) == len(ran)
        assert not book.read().ran


@pytest.mark.parametrize("leaf", LEAVES, ids=str)
def test_a_change_gives_the_bits_of_a_fresh_book(leaf: Leaf) -> None:
    terms, market = _small()
    book = Book(terms, market)
    book.read()
    for factor in (1.01, 0.99, 1.02):
        changed = market.with_value(leaf, market.at(leaf) * factor)
        book.leaves[leaf].set(changed.at(leaf))
        fresh = Book(terms, changed)
        assert book.results().tobytes() == fresh.results().tobytes()


def test_value_and_greeks_are_the_closed_forms() -> None:
    terms, market = _small()
    book = Book(terms, market)
    exact = closed_form(terms, market)
    wanted = [
        exact.value,
        *exact.deltas,
        *exact.vegas.sum(axis=1),
        exact.rho,
        exact.gammas[0],
        *exact.vegas.ravel(),
    ]
    np.testing.assert_allclose(book.results(), wanted, rtol=1e-12)


def test_leaves_are_known_by_name() -> None:
    terms, market = _small()
    book = Book(terms, market)
    for name, leaf in [
        ("spot B", Leaf("spots", (1,))),
        ("volatility A 2m", Leaf("volatilities", (0, 1))),
        ("quantities B 3m", Leaf("quantities", (1, 2))),
        ("rate", Leaf("rate", ())),
    ]:
        assert book.graph[name] is book.leaves[leaf]


def test_setting_all_leaves_moves_to_another_market() -> None:
    terms, market = _small()
    book = Book(terms, market)
    book.read()
    book.graph.set(book.settings(market.scaled(1.1)))
    assert book.results().tobytes() == Book(terms, market.scaled(1.1)).results().tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 5, 7, 60, 130, 3000])
def test_any_number_of_stocks_gives_ten_thousand_options(count: int) -> None:
    stocks = [Stock(f"S{i}", 50.0, 0.2, 9, "monthly", date(2010, 3, 1)) for i in range(count)]
    terms, market = open_book(stocks, 0)
    assert terms.options == market.quantities.size >= LEAST_OPTIONS
    assert len(list(market.leaves())) == len(set(market.leaves()))
    assert terms.strikes.min() > 0
