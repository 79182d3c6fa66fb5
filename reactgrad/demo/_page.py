"""The story as a page: the recorded runs of the book, with scopes to fold it by."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from ._book import Book
from ._market import Leaf, Terms, open_book
from ._story import changes

if TYPE_CHECKING:
    import reactgrad as rg

    from ._prices import Stock

Scope = tuple[str, ...]


def write_page(stocks: Sequence[Stock], seed: int, path: str | os.PathLike[str]) -> None:
    """Make the story's changes, one by one, and write what each of them ran as one HTML file.

    Parameters
    ----------
    stocks : sequence of Stock
        The underlyings.
    seed : int
        Seeds the quantities.
    path : str or path-like
        An existing file is replaced.

    Raises
    ------
    reactgrad.MissingExtraError
        If pygraphviz is not installed.
    OSError
        If the file cannot be written.
    """
    terms, market = open_book(stocks, seed)
    book = Book(terms, market)
    name_by_scope(book, terms)
    with book.graph.record(snapshots=True) as log:
        book.read()
        for change in changes(terms, market):
            leaf = book.leaves[change.leaf]
            if (market.at(change.leaf) == change.new).all():
                leaf.cutoff = "equal"
            leaf.set(change.new)
            book.read()
    title = f"A book of {terms.options:,} options on {', '.join(terms.symbols)}"
    book.graph.export_html(path, log, title=title, limit=150)


def name_by_scope(book: Book, terms: Terms) -> None:
    """Name every node for the stock and expiry that it belongs to, or as shared by all.

    A leaf belongs where the market has it. A computed node belongs where all its operands belong. A
    node that is used in one place only belongs there.
    """
    scopes: dict[rg.Var, Scope] = {
        var: _scope_of_leaf(leaf, terms) for leaf, var in book.leaves.items()
    }
    nodes = book.graph.nodes
    for var in nodes:
        if var.parents:
            scopes[var] = _common([scopes[parent] for parent in var.parents if parent in scopes])
    titles = {book.value: "value", book.rho: "rho", book.gamma: "gamma"}
    titles |= {var: f"delta {symbol}" for symbol, var in zip(terms.symbols, book.deltas)}
    titles |= {var: f"vega {symbol}" for symbol, var in zip(terms.symbols, book.vegas)}
    leaves = set(book.leaves.values())
    for var in reversed(nodes):
        if var.children and var not in leaves and var not in titles:
            used = reduce(_shared, [scopes[child] for child in var.children])
            if _shared(used, own := scopes.get(var, ())) == own:
                scopes[var] = used
    for var in nodes:
        scope = scopes[var] or (() if var in titles or var in leaves else ("shared",))
        # The scope already says the end of a name such as "volatility MSFT 3m".
        title = titles.get(var) or (
            var.name.split()[0] if var in leaves else var.name.replace("_", " ")
        )
        var.name = "/".join((*[part.replace("/", "-") for part in scope], title))


def _scope_of_leaf(leaf: Leaf, terms: Terms) -> Scope:
    if leaf.field == "rate":
        return ()
    stock, *expiry = leaf.index
    return (terms.symbols[stock], *[f"{round(12 * terms.years[e])}m" for e in expiry])


def _common(scopes: Iterable[Scope]) -> Scope:
    """Return the innermost scope if all lie inside of each other, else what they have in common."""
    found: Scope = ()
    apart = False
    for scope in scopes:
        shared = _shared(found, scope)
        apart |= len(shared) < min(len(found), len(scope))
        found = shared if apart else max(found, scope, key=len)
    return found


def _shared(one: Scope, other: Scope) -> Scope:
    """Return the scopes around both."""
    return tuple(a for n, a in enumerate(one) if one[: n + 1] == other[: n + 1])
