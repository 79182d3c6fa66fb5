"""Results that later calls return again with other arguments, as a criterion has one cost for one output.

Who holds such a result sees the latest arguments, and so a node that is built on it twice may have been meant for
two of them. Nothing shows whether it was, since both calls gave the same handle: building raises.
"""

from __future__ import annotations

from typing import Any, Final

from reactgrad._errors import GraphError


class SharedResult:
    """What is known of one such result.

    Attributes
    ----------
    name : str
        Of the function whose result it is.
    built_upon : bool
        True once a node has been built on it. Other arguments are then fed to it only while nobody holds it.
    fed_again : bool
        True if other arguments were fed to it while it was held.
    """

    __slots__ = ("built_upon", "fed_again", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.built_upon = self.fed_again = False


_TOLD: Final = (
    "{label} is built upon twice, and may stand for two costs: {name} was called for the same output with another "
    "target while the former cost was held. A criterion has one node for one output, which has the cost of the "
    "latest target. Make a criterion for each target, first = rg.nn.{name}(), second = rg.nn.{name}(); or build "
    "with a cost before the next call, total = 0.3 * criterion(y, a) + 0.7 * criterion(y, b)."
)


def build_upon(graph: Any, slots: tuple[int, ...]) -> None:
    """Note that a node is being built on these ones.

    Raises
    ------
    GraphError
        If one of them was fed again while it was held, and has nodes built on it twice by now.
    """
    host = graph._host
    for slot in slots:
        known = host.shared.get(slot)
        if known is None:
            continue
        if known.fed_again:
            children, owners = graph._scheduler.topology.children[slot], host.owners
            others = [child for child in children if owners.get(child) is None]
            if others or slots.count(slot) > 1:
                var = host.handles[slot]()
                label = "A cost" if var is None else repr(var.label)
                raise GraphError(_TOLD.format(label=label, name=known.name))
        known.built_upon = True
