"""One of several outputs of a function, as a node of its own.

A function with several outputs is one node whose value is a tuple, and one more node for each
output, which takes its part of that tuple. So the function runs once for all outputs, and each of
them has its own version, cutoff, name and consumers.

Derivatives go the same way. The gradient of the function's node is a tuple, too; the gradients of
the outputs are its *shares*. The tuple's node only records which shares there are; rules use the
shares themselves.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from reactgrad.backend import Spec


class Output:
    """The op of a node that takes one output of its only operand; made by ``output``.

    Attributes
    ----------
    of
        The name of the function.
    index
        The place of this output among the function's outputs.
    declared
        The spec that the function promised for it, or ``None``.
    """

    __slots__ = ("declared", "index", "name", "of")

    has_rules = has_forward_rules = True  # its derivative is a share of the function's

    def __init__(self, function: str, index: int, declared: Spec | None) -> None:
        self.of = function
        self.name = f"{function}[{index}]"
        self.index = index
        self.declared = declared

    def call(self, arguments: list[Any]) -> Any:
        """Return the output. The function's own node has already made it safe to keep."""
        return arguments[0][self.index]


@lru_cache(maxsize=4096)
def output(function: str, index: int, declared: Spec | None = None) -> Output:
    """Return the op of output `index` of functions of this name."""
    return Output(function, index, declared)
