"""Any namespace of the array API standard as a device.

- ``_array_api``: ``register_array_api``, the device, and kernels for most ops.
- ``_array_api_rows``: kernels that need whole rows: softmax, layer norm, pick.
- The other files have the names of those in ``backend.numpy`` whose kernels they give.
"""
