"""Graphs in files: one safetensors file whose metadata hold a JSON manifest. No pickle.

- ``_save``    from a snapshot of a graph to a file, all or nothing
- ``_load``    from a file, trusted in nothing, to a graph
- ``_json``    attributes, values and functions as JSON, and back
- ``_networkx``  the same snapshot as a networkx graph, and back
- ``_format``  what both sides agree on: names, dtypes, the checksum

Nothing of it is loaded before the first graph is saved or loaded.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reactgrad.core._core import Core


def save(graph: Core, path: str | os.PathLike[str]) -> None:
    """See ``Graph.save``."""
    from reactgrad.io._save import save

    save(graph, path)
