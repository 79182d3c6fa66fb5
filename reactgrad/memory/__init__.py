"""The values that stay in memory and those that do not: the budget, transient values, scratch.

- ``_budget``: a limit for the memory of values; releases values to keep to it.
- ``_rebuild_costs``: costs of computing released values again, which the budget compares.
- ``_transient_run``: runs that drop transient values as soon as no later node reads them.
- ``_scratch_run``: such runs repeated with bound steps, in scratch arrays.
- ``_host_in_front``: a host in front of another one, for the length of one run.
- ``_host``: ``Host``, which the scheduler of a graph asks.
- ``_jit``: the register machine of a graph, switched on and off.
"""
