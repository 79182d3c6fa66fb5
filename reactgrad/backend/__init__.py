"""Devices and kernels: all code that computes with arrays. It knows no nodes.

- ``_spec``: ``Spec``, the shape, dtype and device of a value before it is computed.
- ``_device``: ``Device``, what the engine needs from an array library; NumPy as a device.
- ``_libraries``: kernels of families of ops that are imported late.
- ``_registry``: the table of kernels, by op and device kind.
- ``_objects``: objects that are no arrays: one-shot ones, copies, and which last unchanged.
- ``_values``: conversion of what callers write to arrays and numbers.
- ``_parts``: the index of a part of a value, for kernels that split, pick or add up parts.

Kernels, each folder on top of those before it:

- ``numpy``: kernels on NumPy arrays, a call or a few calls each.
- ``array_api``: kernels for any namespace of the array API standard.
- ``blocks``: large arrays computed block by block, on several threads.
- ``machine``: runs of small kernels as one call of a compiled loop, for graphs with ``jit``.
"""

from reactgrad.backend._device import Device as Device
from reactgrad.backend._device import cpu as cpu
from reactgrad.backend._device import device_of as device_of
from reactgrad.backend._device import device_of_kind as device_of_kind
from reactgrad.backend._device import devices as devices
from reactgrad.backend._device import holder as holder
from reactgrad.backend._device import is_device_name as is_device_name
from reactgrad.backend._device import on as on
from reactgrad.backend._device import owner as owner
from reactgrad.backend._device import read_device as read_device
from reactgrad.backend._device import register_device as register_device
from reactgrad.backend._libraries import add_kernels as add_kernels
from reactgrad.backend._objects import AWAITED as AWAITED
from reactgrad.backend._objects import is_one_shot as is_one_shot
from reactgrad.backend._objects import lasts as lasts
from reactgrad.backend._objects import node_in as node_in
from reactgrad.backend._objects import own_object as own_object
from reactgrad.backend._objects import refuse_one_shot as refuse_one_shot
from reactgrad.backend._parts import Cuts as Cuts
from reactgrad.backend._parts import Key as Key
from reactgrad.backend._parts import along_key as along_key
from reactgrad.backend._parts import check_numbers as check_numbers
from reactgrad.backend._parts import numbers_in as numbers_in
from reactgrad.backend._parts import placed as placed
from reactgrad.backend._parts import split_key as split_key
from reactgrad.backend._parts import unbind_key as unbind_key
from reactgrad.backend._registry import Binder as Binder
from reactgrad.backend._registry import GuardedStep as GuardedStep
from reactgrad.backend._registry import Launch as Launch
from reactgrad.backend._registry import find_binder as find_binder
from reactgrad.backend._registry import has_kernel as has_kernel
from reactgrad.backend._registry import may_overwrite as may_overwrite
from reactgrad.backend._registry import register_anywhere as register_anywhere
from reactgrad.backend._registry import register_binder as register_binder
from reactgrad.backend._registry import register_kernel as register_kernel
from reactgrad.backend._spec import MOST_AXES as MOST_AXES
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
from reactgrad.backend.blocks._blockwise import in_blocks as in_blocks
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
