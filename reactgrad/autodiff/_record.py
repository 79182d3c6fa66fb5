"""Records of programs, for files, and the programs that come back from these.

A file holds the nodes of a gradient, but none of the tables that say how they came about. A program
that comes back is *hollow*: it knows what it has given out, and at the first change of what it was
built for it builds that again from the start. Until then nothing is built, and nothing is stale that
was not.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from reactgrad.autodiff._forward import Tangents
from reactgrad.autodiff._jacobian import Jacobian
from reactgrad.autodiff._program import Program
from reactgrad.autodiff._transforms import Products
from reactgrad.core._core import Core

_KINDS: dict[str, type[Program]] = {
    "reverse": Program,
    "forward": Tangents,
    "products": Products,
    "jacobian": Jacobian,
}
KINDS = tuple(_KINDS)

Key = None | int | str | tuple[Any, ...]


class Record(NamedTuple):
    """A program in a file; nodes are those of a graph, or numbers in a file."""

    kind: str
    output: int
    keys: tuple[Key, ...]  # one, or none if the program is not to be found again
    seeds: tuple[tuple[int, int], ...]  # nodes whose derivative is given, with that derivative
    given: tuple[tuple[int, int], ...]  # nodes, with the derivatives that were given out for them
    observed: tuple[tuple[int, tuple[int, ...]], ...]  # shapes that only values show
    about: tuple[int, ...]  # what programs of this kind need besides
    nodes: tuple[int, ...]  # all that the program has built

    def needs(self) -> set[int]:
        """Return the nodes that must be there for the program to come back."""
        ends = {node for pair in (*self.seeds, *self.given) for node in pair}
        return {self.output, *ends, *self.about}

    def numbered(self, number: Mapping[Any, Any]) -> Record:
        """Return the record with other numbers of the nodes; those without one are left out."""
        return Record(
            self.kind,
            number[self.output],
            self.keys,
            tuple([(number[at], number[seed]) for at, seed in self.seeds]),
            tuple([(number[at], number[given]) for at, given in self.given]),
            tuple([(number[at], shape) for at, shape in self.observed if at in number]),
            tuple([number[at] for at in self.about]),
            tuple([number[at] for at in self.nodes if at in number]),
        )


def take_record(
    program: Any, wanted: Container[int], built: Mapping[int, Sequence[int]]
) -> Record | None:
    """Return a record of a program by which `wanted` nodes follow.

    Return ``None`` if it gave out none of them. `built` holds by number what programs have built.
    """
    kind = next((kind for kind, one in _KINDS.items() if one is type(program)), None)
    shown = {at: program._shown(at) for at in program._given}
    given = tuple([(at, one) for at, one in shown.items() if one is not None and one in wanted])
    if kind is None or not given:
        return None
    graph = program._graph
    return Record(
        kind,
        program._output,
        graph._programs.keys_of(program),
        tuple([(at, seed._slot) for at, seed in program.seeds.items()]),
        given,
        tuple(program.observed.items()),
        program.about(),
        tuple(built.get(program.number, ())),
    )


def renew(graph: Core, record: Record) -> None:
    """Give a graph the program of a record. The nodes that it gave out keep it alive."""
    kind = _KINDS[record.kind]
    program: Any = kind.__new__(kind)
    program.come_back(graph, record)
    host, serial = graph._host, graph._scheduler.topology.serial
    for at, given in record.given:
        program._given[at] = (serial[at], given, serial[given])
    program.stay()
    for node in record.nodes:
        host.own(node, program.number)
    for key in record.keys:
        graph._programs.name(record.output, key, program)
