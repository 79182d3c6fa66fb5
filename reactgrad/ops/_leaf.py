"""The ops of nodes whose value is given."""

from __future__ import annotations

from typing import Any, Final

from reactgrad._errors import UnsetError


class Leaf:
    """The op of a node whose value is given."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def call(self, arguments: list[Any]) -> Any:
        """Say that the value is missing: a leaf with a value is never computed."""
        raise UnsetError(
            f"this {self.name} has no value yet; give it one with .set(value) before reading what "
            "depends on it."
        )


INPUT: Final = Leaf("input")
PARAM: Final = Leaf("param")
CONST: Final = Leaf("const")
SEED: Final = Leaf("seed")  # the gradient that a backward was given
MODE: Final = Leaf("mode")  # whether the graph is in train mode
