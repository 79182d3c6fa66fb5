"""Building: from the call of an op to the node that computes it.

- ``_computed``: the node of an op; the fast path of all building.
- ``_functions``: nodes of Python functions, their outputs, choices between nodes, copies.
- ``_leaf``: inputs, params and consts.
- ``_constants``: constants of numbers and arrays in expressions.
- ``_reuse``: ``Graph.reuse``, blocks in which an equal call returns the node that exists already.
"""
