"""Order and choice: sorted, searched, taken, scattered, unique.

- ``_sort``: sort, argsort, lexsort, sort_complex. ``_partition``: partition, argpartition, topk.
- ``_search``: searchsorted, digitize. ``_interp``: interp.
- ``_take``: take, take_along_axis, gather, index_select. ``_row_gradients``: gradients of tables as rows.
- ``_scatter``: scatter, scatter_add, index_add. ``_segments``: segment_sum and its relatives.
- ``_masks``: nonzero, flatnonzero, argwhere; compress, extract, masked_fill.
- ``_choose``: choose, select, piecewise.
- ``_unique``: unique in all its forms. ``_sets``: isin, in1d, union1d, intersect1d, setdiff1d, setxor1d.
- ``_writes``: functions that write into an argument, which refuse.
"""

from reactgrad.ops.ordering._choose import choose as choose
from reactgrad.ops.ordering._choose import piecewise as piecewise
from reactgrad.ops.ordering._choose import select as select
from reactgrad.ops.ordering._interp import interp as interp
from reactgrad.ops.ordering._masks import argwhere as argwhere
from reactgrad.ops.ordering._masks import compress as compress
from reactgrad.ops.ordering._masks import extract as extract
from reactgrad.ops.ordering._masks import flatnonzero as flatnonzero
from reactgrad.ops.ordering._masks import masked_fill as masked_fill
from reactgrad.ops.ordering._masks import nonzero as nonzero
from reactgrad.ops.ordering._partition import argpartition as argpartition
from reactgrad.ops.ordering._partition import partition as partition
from reactgrad.ops.ordering._partition import topk as topk
from reactgrad.ops.ordering._row_gradients import row_gradient as row_gradient
from reactgrad.ops.ordering._scatter import index_add as index_add
from reactgrad.ops.ordering._scatter import scatter as scatter
from reactgrad.ops.ordering._scatter import scatter_add as scatter_add
from reactgrad.ops.ordering._search import digitize as digitize
from reactgrad.ops.ordering._search import searchsorted as searchsorted
from reactgrad.ops.ordering._segments import segment_max as segment_max
from reactgrad.ops.ordering._segments import segment_mean as segment_mean
from reactgrad.ops.ordering._segments import segment_min as segment_min
from reactgrad.ops.ordering._segments import segment_sum as segment_sum
from reactgrad.ops.ordering._sets import in1d as in1d
from reactgrad.ops.ordering._sets import intersect1d as intersect1d
from reactgrad.ops.ordering._sets import isin as isin
from reactgrad.ops.ordering._sets import setdiff1d as setdiff1d
from reactgrad.ops.ordering._sets import setxor1d as setxor1d
from reactgrad.ops.ordering._sets import union1d as union1d
from reactgrad.ops.ordering._sort import argsort as argsort
from reactgrad.ops.ordering._sort import lexsort as lexsort
from reactgrad.ops.ordering._sort import numpy_argsort as _argsort
from reactgrad.ops.ordering._sort import sort as sort
from reactgrad.ops.ordering._sort import sort_complex as sort_complex
from reactgrad.ops.ordering._take import gather as gather
from reactgrad.ops.ordering._take import index_select as index_select
from reactgrad.ops.ordering._take import take as take
from reactgrad.ops.ordering._take import take_along_axis as take_along_axis
from reactgrad.ops.ordering._unique import unique as unique
from reactgrad.ops.ordering._unique import unique_all as unique_all
from reactgrad.ops.ordering._unique import unique_counts as unique_counts
from reactgrad.ops.ordering._unique import unique_inverse as unique_inverse
from reactgrad.ops.ordering._unique import unique_values as unique_values
from reactgrad.ops.ordering._writes import WRITES as _WRITES

_FOR_NUMPY = {"argsort": _argsort, **{one.__name__: call for one, call in _WRITES.items()}}
