"""One of several outputs of a function, as a node of its own.

A function with several outputs is one node whose value is the tuple of them, and one node for each
output that takes its part: so each has its own version, cutoff, name and consumers, and the function
runs once for all of them.

Derivatives take the same way: the gradients of the outputs are the *shares* of the function's
gradient, which is a tuple, too. Its node only says which ones there are; rules use the shares.
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
        Which of its outputs.
    declared
        What the function promised of it.
    """

    __slots__ = ("declared", "index", "name", "of")

    has_rules = has_forward_rules = True  # its derivative is a share of the function's

    def __init__(self, function: str, index: int, declared: Spec | None) -> None:
        self.of = function
        self.name = f"{function}[{index}]"
        self.index = index
        self.declared = declared

    def call(self, arguments: list[Any]) -> Any:
        """The output; its function made it safe to keep."""
        return arguments[0][self.index]


@lru_cache(maxsize=4096)
def output(function: str, index: int, declared: Spec | None = None) -> Output:
    """Output `index` of functions of this name."""
    return Output(function, index, declared)
