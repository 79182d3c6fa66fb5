"""Stories of training, as the command line sees them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

Report = Callable[[str], None]


class Told(Protocol):
    """The results of a story."""

    @property
    def holds(self) -> bool:
        """True if all checks of the story hold."""
        ...

    def as_text(self) -> str:
        """Return the report, at most 100 columns wide."""
        ...

    def as_json(self) -> str:
        """Return the report as one JSON document."""
        ...

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Write the picture, to where ``check_picture`` has raised nothing."""
        ...


@dataclass(frozen=True)
class TrainingStory:
    """A story of training.

    Attributes
    ----------
    tell : callable
        From its length, a seed, and a function that is called with words for what begins.
    length : int
        How many epochs or rounds it has without a wish.
    more : int
        How often the function is called beyond once for each of them.
    """

    tell: Callable[[int, int, Report], Told]
    length: int
    more: int
