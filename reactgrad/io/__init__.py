"""Graphs in files: one safetensors file whose metadata hold a JSON manifest. No pickle.

- ``_save``    from a snapshot of a graph to a file, all or nothing
- ``_load``    from a file, trusted in nothing, to a graph
- ``_json``    attributes, values and functions as JSON, and back
- ``_networkx``  the same snapshot as a networkx graph, and back
- ``_format``  what both sides agree on: names, dtypes, the checksum
"""

from reactgrad.io._load import load as load
from reactgrad.io._networkx import from_networkx as from_networkx
from reactgrad.io._networkx import to_networkx as to_networkx
from reactgrad.io._save import save as save
