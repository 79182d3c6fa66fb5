"""The register machine: runs of small kernels as one call of a compiled loop, under ``jit``.

``_machine`` and ``_erf_loops`` need numba, and so are imported only where they are used.

- ``_registers``: ``Registers``, which finds runs of steps in a plan and makes programs of them.
- ``_instructions``: a bound step as instructions: calls of the loops inside NumPy's ufuncs.
- ``_nested``: instructions by rows, for operands that are repeated and reductions along axes, and for products.
- ``_code``: the format of instructions, rows of addresses and numbers.
- ``_machine``: the compiled loop that does the instructions.
- ``_stages``: an order of instructions in which several threads may share their elements.
- ``_loops``: the addresses of NumPy's compiled loops, and of arrays.
- ``_loop_call``: calls of compiled loops that are not NumPy's: those of users' ops.
- ``_compiled``, ``_erf_loops``: compiled loops for the error function and normal distribution.
- ``_activation_loops``: activation functions and their slopes by loops of the driver.
- ``_row_loops``: softmax and its kin by loops of the driver.
- ``_stable_order``: stable sorts of places by a sort that is not.
- ``_sheet``: ``Sheet``, rows that compiled loops compute without a graph.
"""
