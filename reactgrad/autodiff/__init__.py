"""Gradients as nodes of the graph.

A program builds the adjoints of one output and keeps them up to date. Its class is split by
subject, each file a class on top of the one before:

- ``_tables``: the tables of a program, shared with forks and undone entry by entry.
- ``_paths``: the nodes between the output and what is asked for.
- ``_rules``: rules of Python functions, and the values that they have read.
- ``_sweep``: the walk that asks for contributions and adds them up.
- ``_following``: updates after edits, new shapes, and new values.
- ``_program``: ``Program``, the adjoints of one output.

Other programs:

- ``_forward``: tangents, which go from the inputs to the output.
- ``_jacobian``: all directions in one pass, along an axis that ``_batch`` adds.

What uses them:

- ``_grad``: ``rg.grad``, ``backward`` and ``.grad``.
- ``_transforms``: ``vjp``, ``jvp``, ``hvp``, ``jacobian``, ``hessian`` of nodes.
- ``_hooks``: gradient hooks, and hooks after ``backward``.
- ``_custom``: derivatives by rules of the user, checked against the values they belong to.
- ``_edges``: the edges that gradients may pass.
- ``_record``: records of programs, for files.
- ``_origin``: the forward node that a gradient node belongs to, for messages.
- ``_check``: derivative rules compared with finite differences.
"""
