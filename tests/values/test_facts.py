"""A fact about nodes is one declaration: growth, release, forks and comparison follow from it."""

from __future__ import annotations

from typing import Any

import reactgrad as rg
from reactgrad.values._facts import Facts, column, table


class Marks(Facts):
    """A column and three tables."""

    weight: Any = column(0)
    place: Any = column(None, forked=False)
    red: set[int] = table(set, added=True)
    named: dict[int, str] = table(dict, forked=False, added=True)
    kept: dict[int, str] = table(dict, cleared=False)


def marked() -> Marks:
    marks = Marks()
    marks.extend(2)
    marks.weight[1], marks.place[1] = 5, "here"
    marks.red.add(1)
    marks.named[1] = marks.kept[1] = "one"
    return marks


def test_facts_are_plain_attributes() -> None:
    assert vars(Marks).keys().isdisjoint(vars(Marks()))
    assert [*marked().weight] == [0, 5]


def test_a_node_that_goes_takes_its_entries_along() -> None:
    marks = marked()
    marks.clear(1)
    assert ([*marks.weight], [*marks.place]) == ([0, 0], [None, None])
    assert (marks.red, marks.named, marks.kept) == (set(), {}, {1: "one"})


def test_a_fork_takes_what_is_declared_so() -> None:
    marks, twin = marked(), Marks()
    marks.lend(twin)
    marks.weight[0], marks.place[0] = 7, "there"
    marks.red.clear()
    assert ([*twin.weight], [*twin.place]) == ([0, 5], [None, None])
    assert (twin.red, twin.named, twin.kept) == ({1}, {}, {1: "one"})


def test_what_callers_add_is_found_by_fact_and_node() -> None:
    marks = marked()
    assert marks.added([0]) == {}
    assert marks.added([0, 1]) == {"red": {1: True}, "named": {1: "one"}}


def test_a_graph_forgets_all_facts_of_a_node_that_goes() -> None:
    g = rg.Graph()
    x = g.param([1.0, 2.0])
    y = x * 2.0
    tables = [name for name, fact in type(g._host)._facts.items() if fact.kind is not list]

    def sizes() -> dict[str, int]:
        return {name: len(getattr(g._host, name)) for name in tables}

    g.forward(y)
    before, count = sizes(), len(g)
    z = (y.detach() * x).sum()
    z.name, z.cutoff = "z", "equal"
    z.retain_grad()
    z.register_hook(lambda gradient: gradient)
    z.backward()
    z.pin(1.0)
    assert sum(size > before[name] for name, size in sizes().items()) > 8
    g.zero_grad()
    del z
    assert (len(g), sizes()) == (count, before)
