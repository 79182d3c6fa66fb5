"""From the files of PNNX to a live graph.

- ``_text``: the ``.param`` file: operators with operands, parameters and attributes, checked.
- ``_weights``: the ``.bin`` file: arrays, sizes first.
- ``_expression``: formulas of numbers, lengths and operands.
- ``_call``: one operator, and the table from operators to converters.
- ``_build``: inputs and operators, in order.
- The other files hold converters, a family of operators each.
"""

from reactgrad.models.pnnx import _elementwise as _elementwise
from reactgrad.models.pnnx import _layers as _layers
from reactgrad.models.pnnx import _layout as _layout
from reactgrad.models.pnnx import _recurrent as _recurrent
from reactgrad.models.pnnx import _reductions as _reductions
from reactgrad.models.pnnx import _windows as _windows
from reactgrad.models.pnnx._build import built as built
from reactgrad.models.pnnx._text import program_of as program_of
from reactgrad.models.pnnx._weights import Weights as Weights
