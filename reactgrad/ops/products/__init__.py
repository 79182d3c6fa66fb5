"""Products of vectors, matrices and tensors, and the diagonals and triangles of matrices.

- ``_operands``: operands as nodes of one graph.
- ``_subscripts``: the subscripts of einsum, parsed and compared.
- ``_contract``: the product of two arrays, summed over some axes; the op behind most functions here.
- ``_einsum``: einsum and einsum_path.
- ``_dot``: dot, inner, outer, tensordot, vdot, vecdot, matvec, vecmat, matrix_transpose.
- ``_kron``: the Kronecker product. ``_cross``: the cross product.
- ``_diagonal``: diagonal, diag, diagflat, trace.
- ``_triangle``: tril, triu, tri, and the indices of triangles. ``_vander``: matrices of powers.
- ``_matrices``: the functions of ``numpy.linalg`` whose signature is another one than that of the function of
  the same name here.
"""

from reactgrad.ops.products._cross import cross as cross
from reactgrad.ops.products._diagonal import diag as diag
from reactgrad.ops.products._diagonal import diagflat as diagflat
from reactgrad.ops.products._diagonal import diagonal as diagonal
from reactgrad.ops.products._diagonal import trace as trace
from reactgrad.ops.products._dot import dot as dot
from reactgrad.ops.products._dot import inner as inner
from reactgrad.ops.products._dot import matrix_transpose as matrix_transpose
from reactgrad.ops.products._dot import matvec as matvec
from reactgrad.ops.products._dot import outer as outer
from reactgrad.ops.products._dot import tensordot as tensordot
from reactgrad.ops.products._dot import vdot as vdot
from reactgrad.ops.products._dot import vecdot as vecdot
from reactgrad.ops.products._dot import vecmat as vecmat
from reactgrad.ops.products._einsum import einsum as einsum
from reactgrad.ops.products._einsum import einsum_path as einsum_path
from reactgrad.ops.products._kron import kron as kron
from reactgrad.ops.products._triangle import tri as tri
from reactgrad.ops.products._triangle import tril as tril
from reactgrad.ops.products._triangle import tril_indices_from as tril_indices_from
from reactgrad.ops.products._triangle import triu as triu
from reactgrad.ops.products._triangle import triu_indices_from as triu_indices_from
from reactgrad.ops.products._vander import vander as vander
