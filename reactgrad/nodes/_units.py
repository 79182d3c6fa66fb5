"""Ops that pictures draw as neurons: the nodes that make one up are one box, and its weights stand at its edges."""

from __future__ import annotations

from typing import Any

# By the name of an op: from which element of its first operand on the others have their weights.
WEIGHTED: dict[str, int] = {}
# Names of ops: such a node is one with all that only it is computed from, up to inputs and other such nodes.
WHOLE: set[str] = set()


def draw_as_neuron(op: Any, first: int | None = None) -> None:
    """Let pictures and the explorer show the nodes of an op as neurons.

    Parameters
    ----------
    op : Primitive
        A weighted sum: its first operand has the weights, the others are its sources. It is one box with its
        weights and with the function that is applied to it. Or, without `first`, the function itself: it
        is one box with everything that only it is computed from.
    first : int, optional
        The element of the first operand that is the weight of the next one.

    Examples
    --------
    >>> import reactgrad as rg
    >>> from reactgrad.neurons._weighted import weighted
    >>> rg.extend.draw_as_neuron(weighted, first=1)
    """
    if first is None:
        WHOLE.add(op.op.name)
    else:
        WEIGHTED[op.op.name] = first
