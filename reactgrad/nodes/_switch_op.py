"""The spec of a node that chooses between two others: the one that both have in common."""

from __future__ import annotations

from collections.abc import Sequence

from reactgrad.backend import Spec


def common(branches: Sequence[Spec | None]) -> Spec | None:
    """Return the spec of a choice between values of these specs, or ``None`` if it is not known.

    It is known only where both branches have one fully known array spec. It is not known for Python
    numbers, which keep their type through a choice.
    """
    first, second = branches
    known = first is second and first is not None and first.weak is None and first.known
    return first if known else None
