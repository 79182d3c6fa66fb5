"""Kernels on NumPy arrays, in the calling thread.

- ``_numpy``: the kernels of most ops, also for libraries that mirror NumPy (CuPy).
- ``_erf``: error function and normal distribution, accurate in the tails.
- ``_sums``: sums of short floats, accurate along any axis.
- ``_in_turn``: steps that are several calls, and plans that make these calls one by one.
- ``_stretched``: operands in the shape in which NumPy broadcasts them fastest.
- ``_contract``: products of two arrays summed over axes. ``_cross``, ``_kron``, ``_vander``: others.
- ``_diagonal``, ``_triangle``: parts of matrices. ``_fft``, ``_fit``, ``_shift``: Fourier transforms.

Large arrays are computed block by block, by the same kernels; see ``backend.blocks``.
"""
