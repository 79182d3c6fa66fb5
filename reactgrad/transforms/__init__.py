"""Derivatives of nodes, and of Python functions in the form of JAX.

- ``_transforms``: ``rg.grad``, ``vjp``, ``jvp``, ``hvp``, ``jacobian``, ``hessian``: of a Var or of
  a function.
- ``_functions``: the transforms of functions, from arrays to arrays or from Vars to Vars.
- ``_trace``: a function of arrays as a graph, built once for each kind of arguments.
"""
