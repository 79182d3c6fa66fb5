"""Rules for a result that is held: when a later call of a subgraph returns it again."""

from __future__ import annotations

from enum import Enum


class Sharing(Enum):
    """The arguments that must be the same for a call to return a result that is held.

    Attributes
    ----------
    ALL
        All arguments: two results that live never change each other.
    FIRST
        The first array or node. The result is then fed the other arguments of the new call, as a criterion
        has one loss for one output, whose target follows the calls.
    DRAWN
        All arguments, and none where the function draws random numbers: each call draws its own.
    """

    ALL = "all"
    FIRST = "first"
    DRAWN = "drawn"
