"""The faces: Graph, Var, DetachedVar, the leaves of the current graph, forks."""

from typing import Any

from reactgrad.core._display import display_by


def _html(thing: Any) -> str:
    from reactgrad.viz import html  # imported where it is used: few programs show anything

    return html(thing)


display_by(_html)
