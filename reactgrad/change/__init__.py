"""All changes of a graph: sets, edits, pins, removals, and their rollback.

Each change is made as a whole or not at all.

- ``_change``: one change as a ``with`` block, which undoes its steps if it raises.
- ``_set``: new values of leaves; the fast paths, and the general one.
- ``_edit``: edits of the topology (``replace_parent``, ``rewire``, ``insert``, ``remove``); ``_edits``:
  blocks of them.
- ``_remove``: nodes that leave the graph, and the ``Grave`` that their Vars point to from then on.
- ``_pin``: a fixed value for a computed node.
- ``_rollback``: the return of what a failed transaction had changed.
- ``_shape_check``: shapes and dtypes that follow from a change, found before it is made.
- ``_former_shapes``: what was built for shapes that leaves had lately, kept for their return; ``_forms``: the
  states of a graph for certain shapes, and the exchange of one for another.
- ``_make_way``: release of spare nodes that block a change.
- ``_stand_in``: a node without a value, to build on before the real operand is known.
"""
