"""Gradients as nodes.

- ``_edges``       the edges that gradients may pass
- ``_programs``    the programs of a graph
- ``_program``     the adjoints of one output
- ``_forward``     tangents: the same from the inputs on
- ``_jacobian``    all directions in one pass, along an axis that ``_batch`` adds
- ``_grad``        ``rg.grad``, ``backward`` and ``.grad``
- ``_transforms``  ``vjp``, ``jvp``, ``hvp``, ``jacobian``, ``hessian`` of nodes
- ``_custom``      derivatives from rules of users
- ``_origin``      which forward node a node of a gradient belongs to
- ``_check``       rules against finite differences
"""

from reactgrad.autodiff._custom import asked_before_reads as asked_before_reads
from reactgrad.autodiff._custom import checked as checked
from reactgrad.autodiff._custom import fits as fits
from reactgrad.autodiff._edges import open_edges as open_edges
from reactgrad.autodiff._edges import sources as sources
from reactgrad.autodiff._edges import wanted_leaves as wanted_leaves
from reactgrad.autodiff._grad import backward as backward
from reactgrad.autodiff._grad import find_program as find_program
from reactgrad.autodiff._grad import grad as grad
from reactgrad.autodiff._program import Program as Program
