"""Parts that a node is made of. They know no graph class.

- ``_handle``: ``Handle``, the base of ``Var``, and the current graph that an op builds in.
- ``_op``: ``Op``, one kind of array computation with its shape rule and derivative rules; ``Leaf``, the
  op of a node whose value is given; ``Output``, that of one of a function's several outputs.
- ``_lifted``: ``Lifted``, the op of a node that calls a Python function.
- ``_switch_op``: the spec of a node that chooses between two others.
- ``_nested``: arguments and results that nest nodes. ``_reached``: the walk to all that nodes lead to.
- ``_cutoff``: rules that call a new value unchanged.
- ``_function_names``: functions by ``module:qualname``, for graphs in files.
- ``_scope``: named parts of a model.
- ``_site``: the line of user code that built or changed a node.
"""
