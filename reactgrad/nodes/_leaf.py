"""The ops of nodes whose value is given, not computed."""

from __future__ import annotations

from typing import Any, Final

from reactgrad._errors import UnsetError


class Leaf:
    """The op of a node whose value is given.

    Attributes
    ----------
    missing : str
        The message of the error if the value is read before it was given.
    """

    __slots__ = ("missing", "name")

    def __init__(self, name: str, missing: str = "") -> None:
        self.name = name
        self.missing = missing or (
            f"this {name} has no value yet; give it one with .set(value) before reading what depends on "
            "it."
        )

    def call(self, arguments: list[Any]) -> Any:
        """Raise ``UnsetError``: this is called only for a leaf that has no value."""
        raise UnsetError(self.missing)


INPUT: Final = Leaf("input")
PARAM: Final = Leaf("param")
CONST: Final = Leaf("const")
SEED: Final = Leaf("seed")  # the gradient that a backward was given
MODE: Final = Leaf("mode")  # whether the graph is in train mode
FEED: Final = Leaf(  # a value that a subgraph was called with
    "feed",
    "a subgraph is built without values, since it is used again with other ones, and its function has "
    "read the value of an argument, or the shape of a node that only its value shows (declare it: "
    "rg.lift(fn, shape=..., dtype=...), infer in an rg.Function). Use .shape and .dtype, rg.where or "
    "rg.switch instead of if, and rg.lift for what needs values.",
)
