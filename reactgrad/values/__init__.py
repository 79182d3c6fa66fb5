"""Values: where they lie, the steps that compute them, and the callers and forks that may see them.

Nothing here knows a graph: nodes are slots, with an op and a spec. The class of the storage is built
in storeys, one a file: ``Columns`` < ``Lending`` < ``LeafWrites`` < ``Store`` < ``Steps``.

- ``_columns``: ``Columns``, the columns and tables of values and the memory in which values lie.
- ``_lending``: values handed out to callers; buffers are left to them before the next write.
- ``_leaf_writes``: new values of leaves, by copy or by adopting an array.
- ``_aside``: values and steps of many nodes, put aside and put back together.
- ``_store``: sharing with forks, release, transient values.
- ``_steps``: the bound calls that compute values. ``_function_steps``: those of Python functions.
  ``_fused_steps``: steps on large arrays that are computed together. ``_row_steps``: steps for some rows of a
  value; ``_row_rules``: which rows follow from which.
- ``_policy``: the questions that storage asks a memory policy, such as a budget.
- ``_transient``: the interface to values that are dropped and come back.
- ``_spare_arrays``: memory of dropped large arrays, kept for the next ones; scratch.
- ``_ledger``: bytes of values, each piece of memory counted once. ``_footprint``: bytes of large
  arrays, with their peak.
- ``_set_together``: leaves that are set together again and again.
- ``_fitting``: declared shapes and dtypes of leaves, and casts of values to them.
- ``_brief``: a value as a short text. ``_quiet``: kernels run without NumPy's warnings.
"""
