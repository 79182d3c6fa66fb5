"""Explanations of a graph: they show what it does and change nothing.

- ``_why``: ``Why``, the explanation of a node's state; ``_search`` finds it.
- ``_no_gradient``: the reasons why a node has no gradient.
- ``_event``, ``_event_log``: the log of everything that happened to a graph.
- ``_record``, ``_calls``: ``Graph.record``, every run node by node.
- ``_profile``: ``rg.profile``, times and memory by op or by node.
- ``_trace_file``: recorded runs as a trace for Chrome and Perfetto.
- ``_stats``: ``Graph.stats``, a graph in figures.
- ``_snapshot``: an immutable copy of the structure and states, from which pictures are drawn.
- ``_follower``: live news of a graph, for a page that shows it.
- ``_anomaly``, ``_checksums``, ``_ranges``: ``rg.detect_anomaly``: NaNs, infinities, and values
  that were changed behind their version.
"""
