"""The faces: ``Graph``, ``Var`` and ``DetachedVar``, with the leaves of the current graph.

A face holds no logic: its verbs are functions of lower floors, listed in one table.

- ``_graph``: ``Graph``, the table of its verbs and of the ports that lower floors call; handles, names.
- ``_settings``: what may be set on a graph: executor, memory budget, ``jit``, modes.
- ``_questions``: verbs that explain or save a graph. ``_pictures``: verbs that draw it.
- ``_var``: ``Var``, the handle of a node. ``_detached``: ``DetachedVar``, its view without gradient.
- ``_value``: the part that both have in common: reading, operators, NumPy's protocols.
- ``_bits``: the part of it that is operators on bits and booleans.
- ``_leaves``: ``input``, ``param``, ``const``, as functions and as verbs of a graph.
- ``_fork``: ``Graph.fork`` and ``Graph.whatif``.
- ``_files``: ``rg.load`` and ``rg.from_networkx``.
"""

from typing import Any

from reactgrad.core._display import display_by


def _html(thing: Any) -> str:
    from reactgrad.viz._html import html

    return html(thing)


display_by(_html)
