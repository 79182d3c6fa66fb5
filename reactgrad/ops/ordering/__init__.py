"""Order and choice: sorted, searched, taken, scattered, unique.

- ``_sort``: sort, argsort, lexsort, sort_complex. ``_partition``: partition, argpartition, topk.
- ``_search``: searchsorted, digitize.
- ``_masks``: nonzero, flatnonzero, argwhere; compress, extract, masked_fill.
- ``_take``: take, take_along_axis, gather, index_select.
"""

from reactgrad.ops.ordering._masks import argwhere as argwhere
from reactgrad.ops.ordering._masks import compress as compress
from reactgrad.ops.ordering._masks import extract as extract
from reactgrad.ops.ordering._masks import flatnonzero as flatnonzero
from reactgrad.ops.ordering._masks import masked_fill as masked_fill
from reactgrad.ops.ordering._masks import nonzero as nonzero
from reactgrad.ops.ordering._partition import argpartition as argpartition
from reactgrad.ops.ordering._partition import partition as partition
from reactgrad.ops.ordering._partition import topk as topk
from reactgrad.ops.ordering._search import digitize as digitize
from reactgrad.ops.ordering._search import searchsorted as searchsorted
from reactgrad.ops.ordering._sort import argsort as argsort
from reactgrad.ops.ordering._sort import lexsort as lexsort
from reactgrad.ops.ordering._sort import numpy_argsort as _argsort
from reactgrad.ops.ordering._sort import sort as sort
from reactgrad.ops.ordering._sort import sort_complex as sort_complex
from reactgrad.ops.ordering._take import gather as gather
from reactgrad.ops.ordering._take import index_select as index_select
from reactgrad.ops.ordering._take import take as take
from reactgrad.ops.ordering._take import take_along_axis as take_along_axis

FOR_NUMPY = {"argsort": _argsort}
