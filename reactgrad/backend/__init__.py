"""Devices, buffers and kernels.

- ``_spec``        shape, dtype and device of a value before it is computed
- ``_registry``    kernels by (op, device kind)
- ``_device``      what the engine asks of an array library; the host's NumPy
- ``_values``      from what callers write to arrays
- ``_numpy``       kernels of NumPy and of libraries that mirror it
- ``_in_turn``     kernels that are several calls
- ``_rows``        kernels that need whole rows: softmax and its like
- ``_registers``   runs of small kernels as one call: ``_loops`` of NumPy, and those of ops' own
                   (``_loop_call``), as ``_instructions`` in the ``_code`` of a compiled ``_machine``, in
                   ``_stages`` where threads share it
- ``_sheet``       the same without a graph
- ``_parts``       where the parts of a value lie that is taken apart
- ``_blockwise``   which of NumPy's compute large arrays by blocks, alone or together
- ``_strips``      steps that are computed by blocks, and several of them together
- ``_blocks``, ``_threads``, ``_jobs``  parts of arrays; the threads that compute them
- ``_erf``         error function and normal distribution, accurate in the tails; ``_erf_loops`` the same
                   as compiled loops, for ``_compiled`` ops
- ``_array_api``   any namespace of the array API standard as a device
- ``_store``       the values of the nodes of one graph
"""

from reactgrad.backend._device import Device as Device
from reactgrad.backend._device import cpu as cpu
from reactgrad.backend._device import device_of_kind as device_of_kind
from reactgrad.backend._device import owner as owner
from reactgrad.backend._device import register_device as register_device
from reactgrad.backend._parts import Cuts as Cuts
from reactgrad.backend._parts import Key as Key
from reactgrad.backend._parts import split_key as split_key
from reactgrad.backend._parts import unbind_key as unbind_key
from reactgrad.backend._registry import Binder as Binder
from reactgrad.backend._registry import find_binder as find_binder
from reactgrad.backend._registry import has_kernel as has_kernel
from reactgrad.backend._registry import may_overwrite as may_overwrite
from reactgrad.backend._registry import register_binder as register_binder
from reactgrad.backend._registry import register_kernel as register_kernel
from reactgrad.backend._spec import WEAK_DTYPES as WEAK_DTYPES
from reactgrad.backend._spec import WEAK_SPECS as WEAK_SPECS
from reactgrad.backend._spec import Spec as Spec
from reactgrad.backend._spec import spec as spec
from reactgrad.backend._spec import weak_spec as weak_spec
from reactgrad.backend._values import own_copy as own_copy
from reactgrad.backend._values import read_dtype as read_dtype
from reactgrad.backend._values import read_value as read_value
from reactgrad.backend._values import storage_shape as storage_shape
from reactgrad.backend.blocks import _blockwise as _blockwise
from reactgrad.backend.blocks import _rows as _rows
from reactgrad.backend.blocks._strips import Blockwise as Blockwise
from reactgrad.backend.blocks._strips import Elementwise as Elementwise
from reactgrad.backend.blocks._strips import Reduction as Reduction
from reactgrad.backend.blocks._strips import Strip as Strip
from reactgrad.backend.blocks._strips import Turn as Turn
from reactgrad.backend.blocks._strips import is_large as is_large
from reactgrad.backend.blocks._threads import ThreadCountError as ThreadCountError
from reactgrad.backend.blocks._threads import get_num_threads as get_num_threads
from reactgrad.backend.blocks._threads import set_num_threads as set_num_threads
from reactgrad.backend.numpy._in_turn import InTurn as InTurn
from reactgrad.backend.numpy._in_turn import Unrolled as Unrolled
from reactgrad.backend.numpy._in_turn import unrolled as unrolled
