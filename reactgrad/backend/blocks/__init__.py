"""Large arrays, computed block by block, and the threads that compute them.

- ``_blocks``: the parts into which an array is cut.
- ``_threads``: ``for_each``, which computes parts on several threads; the number of threads.
- ``_jobs``: the threads themselves, and the queue of what they do.
- ``_library_threads``: the threads of BLAS and numba, which follow that number.
- ``_strips``: steps that can be computed by blocks, and several such steps together.
- ``_blockwise``: the kernels of NumPy that become such steps on large arrays.
- ``_rows``: kernels that need whole rows: softmax, layer norm and their gradients.
"""
