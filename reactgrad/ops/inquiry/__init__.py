"""Facts about arrays that NumPy's functions ask for, functions along axes, and numbers of places.

- ``_facts``: kinds of dtypes, memory, texts.
- ``_axes``: a Python function applied along axes.
- ``_places``: multi-indices and flat ones; bits in bytes.
"""

from reactgrad.ops.inquiry._axes import apply_along_axis as apply_along_axis
from reactgrad.ops.inquiry._axes import apply_over_axes as apply_over_axes
from reactgrad.ops.inquiry._facts import _FOR_NUMPY as _FOR_NUMPY
from reactgrad.ops.inquiry._facts import common_type as common_type
from reactgrad.ops.inquiry._facts import min_scalar_type as min_scalar_type
from reactgrad.ops.inquiry._places import diag_indices_from as diag_indices_from
from reactgrad.ops.inquiry._places import packbits as packbits
from reactgrad.ops.inquiry._places import ravel_multi_index as ravel_multi_index
from reactgrad.ops.inquiry._places import unpackbits as unpackbits
from reactgrad.ops.inquiry._places import unravel_index as unravel_index
