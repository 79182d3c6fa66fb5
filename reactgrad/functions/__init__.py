"""Python functions as nodes.

- ``_lift``: ``rg.lift``, a function whose node calls it again when its arguments change.
- ``_function``: ``rg.Function``, a computation with ``forward``, ``backward`` and ``jvp``.
- ``_context``: the ``ctx`` of a ``Function``: what ``forward`` leaves, and how rules see it.
- ``_perturbed``: values near others, to find out whether an attribute on ``ctx`` follows an
  argument.
- ``_primitive``: ``rg.extend.primitive``, an op of the user's own, and its rules.
- ``_switch``: ``rg.switch``, a choice that computes only the chosen branch.
"""
