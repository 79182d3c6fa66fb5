"""Templates: what the rules of an op have built once, to be built again without asking them.

The rules of an op are functions of specs, attributes and numbers: where these are the same, they build the same
nodes. So the first answer is kept as a list of nodes, each with its op, attributes, spec and the places of
its operands, and later ones are made from the list: layer 2 as layer 1, and the next graph as the one before. A
node made so is what the rule would have made: the same op, number, place and operands.

Only rules of the ops that reactgrad brings are kept. Those of users are asked every time, as are those
that look at values, name nodes that are not their operands, or make constant arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from reactgrad.autodiff._tables import ABSENT, Part, Tables
from reactgrad.backend import WEAK_SPECS
from reactgrad.build._constants import _constant
from reactgrad.core._rows import number_key
from reactgrad.nodes._op import CONST, Op
from reactgrad.nodes._site import user_site

# Of each op: shapes that change for ever must not fill the memory.
MOST = 256
# With more operands, finding the template is what takes time.
WIDE = 8
# Where rules stand that are kept.
_OURS = ("reactgrad.ops", "reactgrad.linalg", "reactgrad.fft")
# These look at the ops of the tuples that they are given.
_TUPLES = "reactgrad.ops._tuples"

_new = tuple.__new__  # in place of a named tuple's own, which is a Python function


class Made(NamedTuple):
    """A node of a template.

    Attributes
    ----------
    operands
        Their places among the given nodes and those made before; a ``Number`` for a number.
    numbers
        True if there are numbers among these.
    gap
        How many numbers of nodes were given out before it to nodes that nobody uses. If a rule builds nodes 10, 11
        and 12 and uses 10 and 12 only, the gap of the second node of its template is 1.
    """

    op: Op
    attrs: Any
    found: Any
    operands: tuple[Any, ...]
    numbers: bool
    gap: int


class Number(NamedTuple):
    """A Python number as an operand."""

    value: Any


class Template(NamedTuple):
    """All that the rules of a node build."""

    nodes: tuple[Made, ...]
    parts: tuple[tuple[int, int, bool], ...]  # positions of operands, with nodes by place
    gap: int  # numbers given out after the last node

    def numbers(self) -> int:
        """Return how many numbers of nodes it takes to build them."""
        return len(self.nodes) + sum([made.gap for made in self.nodes]) + self.gap


def key_of(program: Tables, slot: int, op: Any, edges: Sequence[tuple[int, int]]) -> Any:
    """Return what the rules of a node depend on; ``None`` if they must be asked."""
    graph = program._graph
    host = graph._host
    if (
        type(op) is not Op
        or not (op.has_rules and _keeps(op))
        or slot in host.closed
        or host.transient
    ):
        return None
    given = (program.adjoint[slot], slot, *graph._scheduler.operands(slot))
    if len(given) > WIDE:
        return None
    specs = host.specs
    literals: tuple[Any, ...] = ()
    found: list[Any] = []
    for one in given:
        spec = specs[one]
        if spec is None:
            return None
        found.append(spec)
        if spec.weak is not None and host.ops[one] is CONST:
            literals = (*literals, number_key(host.data[one]))
    pattern = () if len({*given}) == len(given) else tuple(map(given.index, given))
    attrs = host.attrs[slot]
    # 0.0 and -0.0 are equal, and so are 1, 1.0 and True, but they are different attributes.
    written = repr(attrs) if attrs else ""
    key = (attrs, written, tuple([i for i, _ in edges]), literals, pattern, *found)
    try:
        hash(key)
    except TypeError:  # attributes that hold arrays
        return None
    return key


def _keeps(op: Op) -> bool:
    """Return whether the rules of an op are reactgrad's own; see ``_OURS``."""
    known = op.keeps
    if known is None:
        rules = [op.variadic] if op.vjps is None else [*op.vjps]
        op.keeps = known = all(
            rule is None
            or (
                (home := getattr(rule, "__module__", None) or "").startswith(_OURS)
                and home != _TUPLES
            )
            for rule in rules
        )
    return known


def record(
    program: Tables, slot: int, first: int, numbers: int, made: dict[int, Part]
) -> Template | None:
    """Return a template of what the rules of a node have just built; ``None`` if there can be none.

    Parameters
    ----------
    first
        The number that the next node had before.
    numbers
        How many Python numbers the graph had as constants before.
    """
    graph = program._graph
    host, scheduler = graph._host, graph._scheduler
    serial, operands = scheduler.topology.serial, scheduler.operands
    given = (program.adjoint[slot], slot, *operands(slot))
    if any(part.kind is not None for part in made.values()):
        return None
    needed, stack = set[int](), [part.slot for part in made.values()]
    literals: dict[int, Number] = {}
    while stack:
        one = stack.pop()
        if one in needed or one in literals or one in given:
            continue
        if host.ops[one] is CONST and host.numbers.get(number_key(host.data[one])) == one:
            literals[one] = Number(host.data[one])
            continue
        if (
            serial[one] < first
            or type(host.ops[one]) is not Op
            or host.specs[one] is None
            or one in host.closed
            or host.owners.get(one) != program.number
        ):
            return None
        needed.add(one)
        stack += operands(one)
    new = sorted([serial[one] for one in literals if serial[one] >= first])
    if len(host.numbers) - numbers != len(new):
        return None  # a number of a node that nobody uses: the next time it may be there already
    places = {one: at for at, one in reversed([*enumerate(given)])}
    nodes: list[Made] = []
    before = first
    for one in sorted(needed, key=serial.__getitem__):
        inside = sum(before <= at < serial[one] for at in new)
        found = tuple([literals[at] if at in literals else places[at] for at in operands(one)])
        gap = serial[one] - before - inside
        mixed = any(type(at) is Number for at in found)
        nodes.append(Made(host.ops[one], host.attrs[one], host.specs[one], found, mixed, gap))
        places[one] = len(given) + len(nodes) - 1
        before = serial[one] + 1
    if any(part.slot in literals for part in made.values()):
        return None
    parts = tuple([(i, places[part.slot], part.own) for i, part in made.items()])
    return Template(
        tuple(nodes),
        parts,
        scheduler.topology.next_serial - before - sum(at >= before for at in new),
    )


def match(
    program: Tables, slot: int, template: Template, edges: Sequence[tuple[int, int]]
) -> list[tuple[int, Made]] | None:
    """Return the nodes that the rules of a node have built before, each with what it is in another template.

    Return ``None`` unless both consist of the same ops with the same operands: then only specs and attributes differ,
    since a shape does.
    """
    host, scheduler = program._graph._host, program._graph._scheduler
    ops, serial = host.ops, scheduler.topology.serial
    found: list[int] = [program.adjoint[slot], slot, *scheduler.operands(slot)]
    given = len(found)
    found += [-1] * len(template.nodes)
    known = {i: program._parts.get((slot, i), ABSENT) for i, _ in edges}
    places = {i: (at, own) for i, at, own in template.parts}
    stack: list[tuple[int, int]] = []
    for i, part in known.items():
        if (part is None) != (i not in places):
            return None
        if part is None:
            continue
        if part is ABSENT or part.kind is not None or serial[part.slot] != part.serial:
            return None
        at, own = places[i]
        if part.own != own:
            return None
        stack.append((at, part.slot))
    while stack:
        at, one = stack.pop()
        if found[at] == one:
            continue
        if found[at] != -1:
            return None
        made = template.nodes[at - given]
        operands = scheduler.operands(one)
        if (
            ops[one] is not made.op
            or one in host.closed
            or host.owners.get(one) != program.number
            or len(operands) != len(made.operands)
        ):
            return None
        found[at] = one
        for place, operand in zip(made.operands, operands, strict=True):
            if type(place) is int:
                stack.append((place, operand))
            elif ops[operand] is not CONST or number_key(host.data[operand]) != number_key(
                place.value
            ):
                return None
    matched = found[given:]
    if -1 in matched or len({*matched}) < len(matched):
        return None
    try:  # arrays in attributes could not be compared
        hash(tuple([made.attrs for made in template.nodes]))
    except TypeError:
        return None
    return [*zip(matched, template.nodes, strict=True)]


def build(program: Tables, slot: int, template: Template) -> dict[int, Part]:
    """Build what the rules of a node would build; return its contributions by position."""
    graph = program._graph
    host, scheduler, topology = graph._host, graph._scheduler, graph._scheduler.topology
    slots = [program.adjoint[slot], slot, *scheduler.operands(slot)]
    rows = program.rows
    if template.nodes:
        ops, specs, sites = host.ops, host.specs, host.sites
        owners, number = host.owners_to_write(), program.number
        site = program.site
        if site is None:
            site = program.site = user_site(3)
        add = scheduler.add
        for op, attrs, found, operands, mixed, gap in template.nodes:
            if mixed:
                parents = tuple(
                    [
                        slots[at]
                        if type(at) is int
                        else _constant(graph, WEAK_SPECS[type(at.value)], at.value)
                        for at in operands
                    ]
                )
            else:
                parents = tuple([slots[at] for at in operands])
            topology.next_serial += gap
            rows.append(new := add(parents))
            ops[new] = op
            if attrs:
                host.attrs[new] = attrs
            specs[new] = found
            sites[new] = site
            owners[new] = number
            slots.append(new)
    topology.next_serial += template.gap
    serial = topology.serial
    made: dict[int, Part] = {}
    for i, place, own in template.parts:
        at = slots[place]
        made[i] = _new(Part, (at, serial[at], None, None, (), own))
    return made
