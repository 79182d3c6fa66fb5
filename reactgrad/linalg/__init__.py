"""Linear algebra, with the names of ``numpy.linalg``: decompositions, solutions, norms.

- ``_matrices``: shape rules and algebra that all share. ``_parts``: several results of one kernel.
- ``_solve``: linear systems and inverses. ``_cholesky``: Cholesky factors and triangular systems.
- ``_det``: determinants, and their signs and logarithms.
- ``_eigh``, ``_eig``: eigenvalues of Hermitian and of square matrices. ``_svd``, ``_qr``, ``_lu``: the
  others.
- ``_pinv``: pseudo-inverses and least squares. ``_rank``: norms, ranks and condition numbers.
- ``_polyfit``: polynomials through points, called ``rg.polyfit``.
- ``_expm``, ``_powers``: exponentials; powers, chains of products, matrices in a diagonal.
"""

from reactgrad._calls import explain_all as _explain_all
from reactgrad._errors import LinAlgError as LinAlgError
from reactgrad._habits import absent_from as _absent_from
from reactgrad.linalg._cholesky import cho_solve as cho_solve
from reactgrad.linalg._cholesky import cholesky as cholesky
from reactgrad.linalg._cholesky import solve_triangular as solve_triangular
from reactgrad.linalg._det import SlogdetResult as SlogdetResult
from reactgrad.linalg._det import det as det
from reactgrad.linalg._det import slogdet as slogdet
from reactgrad.linalg._eig import EigResult as EigResult
from reactgrad.linalg._eig import eig as eig
from reactgrad.linalg._eig import eigvals as eigvals
from reactgrad.linalg._eigh import EighResult as EighResult
from reactgrad.linalg._eigh import eigh as eigh
from reactgrad.linalg._eigh import eigvalsh as eigvalsh
from reactgrad.linalg._expm import expm as expm
from reactgrad.linalg._lu import LUResult as LUResult
from reactgrad.linalg._lu import lu as lu
from reactgrad.linalg._pinv import LstsqResult as LstsqResult
from reactgrad.linalg._pinv import lstsq as lstsq
from reactgrad.linalg._pinv import pinv as pinv
from reactgrad.linalg._powers import block_diag as block_diag
from reactgrad.linalg._powers import matrix_power as matrix_power
from reactgrad.linalg._powers import multi_dot as multi_dot
from reactgrad.linalg._qr import QRResult as QRResult
from reactgrad.linalg._qr import qr as qr
from reactgrad.linalg._rank import cond as cond
from reactgrad.linalg._rank import matrix_norm as matrix_norm
from reactgrad.linalg._rank import matrix_rank as matrix_rank
from reactgrad.linalg._rank import vector_norm as vector_norm
from reactgrad.linalg._solve import inv as inv
from reactgrad.linalg._solve import solve as solve
from reactgrad.linalg._solve import tensorinv as tensorinv
from reactgrad.linalg._solve import tensorsolve as tensorsolve
from reactgrad.linalg._svd import SVDResult as SVDResult
from reactgrad.linalg._svd import svd as svd
from reactgrad.linalg._svd import svdvals as svdvals
from reactgrad.ops.products._matrices import cross as cross
from reactgrad.ops.products._matrices import diagonal as diagonal
from reactgrad.ops.products._matrices import matmul as matmul
from reactgrad.ops.products._matrices import matrix_transpose as matrix_transpose
from reactgrad.ops.products._matrices import outer as outer
from reactgrad.ops.products._matrices import tensordot as tensordot
from reactgrad.ops.products._matrices import trace as trace
from reactgrad.ops.products._matrices import vecdot as vecdot
from reactgrad.ops.reductions import norm as norm

_explain_all(globals(), __name__, "rg.linalg")
__getattr__ = _absent_from(__name__, {})
