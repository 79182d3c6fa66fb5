"""Reads: they bring stale nodes up to date and give their values to the caller.

- ``_refresh``: the one place where a run, and the gradients that have to follow it, call each other.
- ``_value``: the value of one node; the fast path of ``.value``.
- ``_limits``: timeouts, cancelling, and the executor of a read.
- ``_plan``: the nodes that a read would run, found without running anything.
- ``_run``: ``Run``, ``Running`` and ``Plan``, as users see them.
- ``_joint_run``: several runs that one read needed, reported as one.
- ``_implicit_values``: conversions that take a value out of the graph: refused, or warned of.
- ``_blocks``: anomaly mode and profiles, which go around the runs of their thread.
"""
