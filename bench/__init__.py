"""Benchmarks: every workload with its peers beside us, measured in turns.

- ``b01_...`` to ``b14_...``  one workload a file: ours, the peers, what both must compute
- ``_case``                   what a workload is made of
- ``_workloads``              the list of all workloads
- ``_measure``, ``_apart``    interleaved timing; sides that need a process of their own
- ``_goal``, ``_table``       what a figure should be; the printed table
- ``_machine``, ``_peers``    where figures were taken; packages that may be absent
- ``conftest``                the same workloads for ``pytest bench``, with pytest-benchmark

``python -m bench`` prints the table; ``README.md`` says what bounds each figure.
"""
