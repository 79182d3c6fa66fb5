"""The errors of what-if questions."""

from __future__ import annotations

from typing import Any

from reactgrad import ReactgradError


class ScenarioError(ReactgradError, ValueError):
    """Inputs, outputs or values of a what-if question that do not fit together."""


class GoalError(ReactgradError, ValueError):
    """No input was found for which the outputs have the wanted values; the message says why.

    Attributes
    ----------
    closest : dict
        The values of the inputs, by label, whose outputs came closest.
    reached : list
        The values of the outputs there.
    """

    def __init__(
        self, message: str, closest: dict[str, Any] | None = None, reached: list[Any] | None = None
    ) -> None:
        super().__init__(message)
        self.closest = closest or {}
        self.reached = reached or []
