"""A choice between two nodes that computes only the one chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from reactgrad._errors import DTypeError, ShapeError
from reactgrad.build._constants import zeros_like
from reactgrad.build._functions import call_switch
from reactgrad.core._handles import handle
from reactgrad.nodes._handle import Handle, graph_of
from reactgrad.nodes._lifted import Lifted
from reactgrad.nodes._switch_op import common


class _Choice:
    """The function of a switch. It refers to the branches and not to the op, which refers to it."""

    __slots__ = ("branches",)

    def __init__(self, branches: tuple[Any, Any]) -> None:
        self.branches = branches

    def __call__(self, condition: Any) -> Any:
        return self.branches[0 if condition else 1].value


class Switch(Lifted):
    """The op of a node that passes on the value of one of two others.

    Attributes
    ----------
    branches : tuple of Var
        The nodes to choose from, kept alive by the op. Only the chosen one is its parent, as with
        everything that a function reads while it runs; gradients know both.
    """

    __slots__ = ("branches",)

    def __init__(self, branches: tuple[Any, Any]) -> None:
        declared = common([branch._graph._host.specs[branch._slot] for branch in branches])
        super().__init__(_Choice(branches), declared, _vjp, None, (), _jvp)
        self.branches = branches
        self.name = "switch"

    def definition(self) -> Any:
        """Return what two ops have in common that compute the same of the same operands."""
        return Switch  # all switches are the same but for their operands

    def again(self, operands: Sequence[Any]) -> Any:
        """Return a new choice between two other nodes."""
        return switch(*operands)

    def twin(self, graph: Any) -> Switch:
        """Return the same choice between the same nodes of a fork."""
        first, second = (handle(graph, branch._slot) for branch in self.branches)
        return Switch((first, second))


def _vjp(g: Any, ans: Any, condition: Any, first: Any, second: Any) -> tuple[Any, Any, Any]:
    """Return gradients: the chosen branch gets that of the switch, the other one zeros."""

    zeros = partial(zeros_like, g._graph)
    return None, switch(condition, g, zeros(first)), switch(condition, zeros(second), g)


def _jvp(tangents: tuple[Any, ...], ans: Any, condition: Any, first: Any, second: Any) -> Any:
    """Return the tangent of the chosen branch."""
    graph = ans._graph
    moving = (
        zeros_like(graph, branch) if t is None else t
        for t, branch in zip(tangents[1:], (first, second), strict=True)
    )
    return switch(condition, *moving)


def switch(condition: Any, first: Any, second: Any, /) -> Any:
    """Return a node with the value of `first` where `condition` is true, else of `second`.

    The other branch is not computed.

    Unlike ``where``, which computes both and chooses element by element.

    Parameters
    ----------
    condition : Var or bool
        A single truth value.
    first, second : Var or value
        Any values; as long as both are arrays of the same shape and dtype, the shape of the result
        is known before it is computed.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If the condition is known to have another number of elements than one.
    DTypeError
        If a branch is a detached view.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(2.0)
    >>> y = rg.switch(x > 0.0, rg.sqrt(x), -x)
    >>> y.value, len(g.last_run.ran)
    (np.float64(1.4142135623730951), 3)
    >>> rg.grad(y, x).value
    np.float64(0.35355339059327373)
    """
    operands = [condition, first, second]
    graph = graph_of(operands)
    condition, first, second = (
        one if isinstance(one, Handle) else graph.const(one) for one in operands
    )
    found = graph._host.specs[condition._slot]
    if found is not None and found.known and math.prod(found.shape) != 1:  # type: ignore[arg-type]
        raise ShapeError(
            f"switch: the condition {condition.label!r} has shape {found.shape}, and it takes one truth "
            "value. Reduce it first, for example (x > 0).sum() > 0; rg.where chooses element by element."
        )
    for one in (first, second):
        if not hasattr(one, "_programs_dict"):
            raise DTypeError("switch chooses between Vars; detach its result instead: y.detach().")
    return call_switch(graph, Switch((first, second)), condition)
