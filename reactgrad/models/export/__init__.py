"""From a live graph to a file of ONNX.

- ``_modes``: the present branch in place of choices by train or eval mode.
- ``_trace``: the nodes between inputs and outputs, in order; what has no form in a file is refused at once.
- ``_node``: one node, and the table from ops to writers.
- ``_lengths``: lengths that are open, as numbers that the file computes.
- ``_draft``: the file as plain data.
- ``_kernels``: in which dtypes runtimes compute an op.
- ``_file``: the checked file, which appears whole or not at all.
- The other files hold writers, a family of ops each.
"""

from reactgrad.models.export import _activations as _activations
from reactgrad.models.export import _arithmetic as _arithmetic
from reactgrad.models.export import _arrangement as _arrangement
from reactgrad.models.export import _chain as _chain
from reactgrad.models.export import _functions as _functions
from reactgrad.models.export import _indexing as _indexing
from reactgrad.models.export import _layout as _layout
from reactgrad.models.export import _networks as _networks
from reactgrad.models.export import _ordering as _ordering
from reactgrad.models.export import _products as _products
from reactgrad.models.export import _reductions as _reductions
from reactgrad.models.export._file import IR_VERSIONS as IR_VERSIONS
from reactgrad.models.export._file import MOST_BYTES as MOST_BYTES
from reactgrad.models.export._file import check as check
from reactgrad.models.export._file import proto_of as proto_of
from reactgrad.models.export._file import write as write
from reactgrad.models.export._lengths import Lengths as Lengths
from reactgrad.models.export._lengths import open_slots as open_slots
from reactgrad.models.export._modes import network_in_mode as network_in_mode
from reactgrad.models.export._trace import drafted as drafted
