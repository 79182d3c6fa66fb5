"""What is raised when observers have raised, and the limit of rounds in which they are called."""

from __future__ import annotations

from reactgrad._errors import ReactgradError

# Rounds of one telling, and passes of one ``stabilize``: more mean observers that set each other
# off for ever.
MAX_ROUNDS = 100


class StabilizeError(ReactgradError, RecursionError):
    """Observers that go on setting off each other, or themselves."""


def conclude(problems: list[Exception], *errors: Exception | None) -> None:
    """Raise what observers raised, together with other errors."""
    own = [error for error in errors if error is not None]
    if problems or len(own) > 1:
        raise ExceptionGroup("observers raised", problems + own)
    if own:
        raise own[0]
