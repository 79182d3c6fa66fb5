"""Stand-ins: nodes to build on while the real operand is not known and no value may be read."""

from __future__ import annotations

from typing import Any

from reactgrad._errors import UnsetError
from reactgrad.backend import Spec
from reactgrad.build._functions import call_lifted
from reactgrad.change._change import Change
from reactgrad.core._core import Core
from reactgrad.core._definition import Definition
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._lifted import Lifted
from reactgrad.ops import ALIAS
from reactgrad.scheduler import Link


def probe(graph: Core, found: Spec | None, why: str) -> Handle:
    """Return a node of this shape and dtype; reading it raises ``UnsetError`` with `why`."""

    def unset() -> None:
        raise UnsetError(why)

    return call_lifted(graph, Lifted(unset, found, None, None, ()), [], None)


def connect(node: Handle, operand: Any, *, lenient: bool = False) -> None:
    """Make a probe, or what one has become, pass on the value and the gradients of `operand`.

    A detached operand stays detached. For `lenient` see ``Change``.
    """
    graph = node._graph
    closed = frozenset({0} if hasattr(type(operand), "base") else ())
    if graph._host.closed.get(node._slot, closed) is None:
        closed = None  # built where no gradient passes
    with Change(graph, None, lenient=lenient) as change:
        link = Link((operand._slot,))
        change.define({node._slot: Definition(link, ALIAS, (), closed, None, None)})
        change.follow()
