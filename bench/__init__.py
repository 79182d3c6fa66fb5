"""Benchmarks: every workload with its peers beside reactgrad, measured in turns.

- ``b01_...`` to ``b17_...``: one workload a file: ours, the peers, and the result that all must
  compute.
- ``_case``: the parts of a workload.
- ``_workloads``: the list of all workloads.
- ``_measure``, ``_apart``: timing in turns; sides that need a process of their own.
- ``_run``: runs the cases of a workload and makes lines of the table.
- ``_goal``, ``_table``, ``_summary``, ``_spread``: bounds for figures; the printed table; what it comes to; several
  tables as one.
- ``_calls``: counts calls of functions.
- ``_machine``, ``_peers``: the machine that figures come from; packages that may be absent.
- ``conftest``: the same workloads for ``pytest bench``, with pytest-benchmark.

``python -m bench`` prints the table; ``README.md`` says what bounds each figure.
"""
