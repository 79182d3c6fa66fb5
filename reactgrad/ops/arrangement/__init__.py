"""Elements in another arrangement: flipped, rolled, repeated, padded, joined, inserted, changed at an index.

- ``_order``: axes in another order, and in reverse: moveaxis, swapaxes, flip, rot90.
- ``_regroup``: axes taken together or apart: ravel, flatten, unflatten, atleast_1d to 3d; copy.
- ``_roll``: elements moved along axes. ``_repeat``: tile, repeat, resize.
- ``_pad``: borders of copied elements and constants. ``_pad_by_values``: of ramps and statistics.
- ``_join``: hstack, vstack, block, append. ``_parts``: array_split, narrow, unstack.
- ``_edit``: delete, insert, trim_zeros. ``_grids``: broadcast_arrays, meshgrid, ix_.
- ``_windows``: windows that slide along axes.
- ``_put``: the op of a value with a part changed. ``_place``: ``x.at[i].set(v)``, its face.
"""

from typing import Any

from reactgrad._calls import memory_order as _memory_order
from reactgrad.ops.arrangement._edit import delete as delete
from reactgrad.ops.arrangement._edit import fill_diagonal as fill_diagonal
from reactgrad.ops.arrangement._edit import insert as insert
from reactgrad.ops.arrangement._edit import trim_zeros as trim_zeros
from reactgrad.ops.arrangement._grids import broadcast_arrays as broadcast_arrays
from reactgrad.ops.arrangement._grids import ix_ as ix_
from reactgrad.ops.arrangement._grids import meshgrid as meshgrid
from reactgrad.ops.arrangement._join import append as append
from reactgrad.ops.arrangement._join import block as block
from reactgrad.ops.arrangement._join import column_stack as column_stack
from reactgrad.ops.arrangement._join import concat as concat
from reactgrad.ops.arrangement._join import dstack as dstack
from reactgrad.ops.arrangement._join import hstack as hstack
from reactgrad.ops.arrangement._join import vstack as vstack
from reactgrad.ops.arrangement._order import flip as flip
from reactgrad.ops.arrangement._order import fliplr as fliplr
from reactgrad.ops.arrangement._order import flipud as flipud
from reactgrad.ops.arrangement._order import moveaxis as moveaxis
from reactgrad.ops.arrangement._order import permute_dims as permute_dims
from reactgrad.ops.arrangement._order import rollaxis as rollaxis
from reactgrad.ops.arrangement._order import rot90 as rot90
from reactgrad.ops.arrangement._order import swapaxes as swapaxes
from reactgrad.ops.arrangement._pad import pad as pad
from reactgrad.ops.arrangement._parts import array_split as array_split
from reactgrad.ops.arrangement._parts import dsplit as dsplit
from reactgrad.ops.arrangement._parts import hsplit as hsplit
from reactgrad.ops.arrangement._parts import narrow as narrow
from reactgrad.ops.arrangement._parts import unstack as unstack
from reactgrad.ops.arrangement._parts import vsplit as vsplit
from reactgrad.ops.arrangement._regroup import atleast_1d as atleast_1d
from reactgrad.ops.arrangement._regroup import atleast_2d as atleast_2d
from reactgrad.ops.arrangement._regroup import atleast_3d as atleast_3d
from reactgrad.ops.arrangement._regroup import copy as copy
from reactgrad.ops.arrangement._regroup import flatten as flatten
from reactgrad.ops.arrangement._regroup import ravel as ravel
from reactgrad.ops.arrangement._regroup import unflatten as unflatten
from reactgrad.ops.arrangement._repeat import repeat as repeat
from reactgrad.ops.arrangement._repeat import repeat_interleave as repeat_interleave
from reactgrad.ops.arrangement._repeat import resize as resize
from reactgrad.ops.arrangement._repeat import tile as tile
from reactgrad.ops.arrangement._roll import roll as roll
from reactgrad.ops.arrangement._windows import sliding_window_view as sliding_window_view


def _copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    _memory_order("copy", order)
    return copy(a)


# NumPy's arguments that say how an array lies in memory, or of which class it is, say nothing here.
_FOR_NUMPY = {"copy": _copy}
