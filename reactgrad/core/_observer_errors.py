"""Errors of observers, and the limit of rounds in which observers are called."""

from __future__ import annotations

from reactgrad._errors import ReactgradError

# Rounds of calls after one change, and passes of one ``stabilize``. More of them mean that observers
# set each other off for ever.
MAX_ROUNDS = 100


class StabilizeError(ReactgradError, RecursionError):
    """Observers keep setting off each other, or themselves."""


def conclude(problems: list[Exception], *errors: Exception | None) -> None:
    """Raise what observers raised, together with the given errors, as a group. Raise nothing for none.

    A single error without problems of observers is raised as it is. Empty the list of problems.
    """
    own = [error for error in errors if error is not None]
    try:
        if problems or len(own) > 1:
            raise ExceptionGroup("observers raised", problems + own)
        if own:
            raise own[0]
    finally:
        # Tracebacks hold this frame and those in which the list of problems has come to be: a cycle each.
        del own, errors
        problems.clear()
