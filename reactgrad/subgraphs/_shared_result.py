"""Results that later calls return again with other arguments, as a criterion has one cost for one output.

Who holds such a result sees the latest arguments, and so a node that is built on it twice may have been meant for
two of them. Nothing shows whether it was, since both calls gave the same handle: building raises.
"""

from __future__ import annotations

from typing import Any, Final

from reactgrad._errors import GraphError

_TOLD: Final = (
    "{label} is built upon twice, and may stand for two costs: {name} was called for the same output with another "
    "target while the former cost was held. A criterion has one node for one output, which has the cost of the "
    "latest target. Make a criterion for each target, first = rg.nn.{name}(), second = rg.nn.{name}(); or build "
    "with a cost before the next call, total = 0.3 * criterion(y, a) + 0.7 * criterion(y, b)."
)


class SharedResult:
    """The state of one such result.

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

    def build_upon(self, graph: Any, slot: int, slots: tuple[int, ...]) -> None:
        """Note that a node of these operands is being built, of which the result, `slot`, is one.

        Raises
        ------
        GraphError
            If the result was fed again while it was held, and this is the second node on it.
        """
        if self.fed_again:
            host = graph._host
            children, owners = graph._scheduler.topology.children[slot], host.owners
            if slots.count(slot) > 1 or any(owners.get(child) is None for child in children):
                var = host.handles[slot]()
                label = "A cost" if var is None else repr(var.label)
                raise GraphError(_TOLD.format(label=label, name=self.name))
        self.built_upon = True
