"""The op that chooses between two nodes: which spec both of them have in common."""

from __future__ import annotations

from collections.abc import Sequence

from reactgrad.backend import Spec


def common(branches: Sequence[Spec | None]) -> Spec | None:
    """What is known of a choice between values of these specs, whichever is taken.

    Nothing of numbers, which stay what they are.
    """
    first, second = branches
    known = first is second and first is not None and first.weak is None and first.known
    return first if known else None
