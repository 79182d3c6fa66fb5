"""Graphs and checkpoints in files: one safetensors file whose metadata hold a JSON manifest. No pickle.

- ``_capture``: from a graph to a ``_state``: everything that a graph is, as an immutable snapshot.
- ``_restore``: from a state to a graph; ``_check`` first makes sure that the state is consistent.
- ``_save``: from a state to a file, which appears whole or not at all.
- ``_load``: from a file, which is not trusted, to a state.
- ``_json``: attributes, values and functions as JSON, and back.
- ``_checkpoint``: states of models, optimisers and loaders in one file; ``_checkpoint_folder`` keeps the best.
- ``_tree``: such states as JSON and tensors. ``_strict_json``, ``_tensor_file``: files that are not trusted.
- ``_weights``, ``_pickle_steps``: what PyTorch has written; ``_narrow_floats``: its short floats.
- ``_networkx``: the same state as a networkx graph, and back.
- ``_format``: names, dtypes and the checksum, which saving and loading share.

Nothing of it is imported before something is saved or loaded.
"""

from __future__ import annotations

from reactgrad._later import later as _later

# ``load`` makes a graph, so it stands above this folder; its name is here, too.
__getattr__, __dir__ = _later(__name__, {"load": "graph._files", "save": "io._save"})
