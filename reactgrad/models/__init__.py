"""Models of other libraries as live graphs.

``from_onnx(source)``, ``from_pnnx(param, bin)``
    A file of ONNX, or the two of PNNX: a ``Model`` with named inputs, outputs and params.
``to_onnx(outputs, path)``
    Any nodes as a file of ONNX.
``Model`` with named inputs, outputs and params.
``Model``
    A live graph: set ``m.inputs["x"]``, or call ``m(x=array)``, and read ``m.outputs["y"]``.
``ModelError``, ``OpError``, ``UnknownLengthError``
    Raised for a file that cannot become a graph; the second names all ops that are missing, the third the
    inputs whose values or shapes must be given.

The package onnx (extra ``onnx``) parses and checks files of ONNX, and computes nothing. Files of PNNX are read
without a package.

- ``export``: from nodes to a file of ONNX; ``_to_onnx``.
- ``pnnx``: the reader of PNNX and its converters; ``_from_pnnx``.

- ``_onnx_file``: the file, checked before anything is built.
- ``_tensors``: arrays of the file, sizes first.
- ``_call``: one node of the file, and the table from ops to converters.
- ``_from_onnx``: inputs, initialisers and nodes, in order.
- ``_model``: ``Model``.
- The other files hold converters from ONNX, a family of ops each.
"""

from reactgrad.models import _attention as _attention
from reactgrad.models import _control_flow as _control_flow
from reactgrad.models import _elementwise as _elementwise
from reactgrad.models import _gathering as _gathering
from reactgrad.models import _layout as _layout
from reactgrad.models import _norms as _norms
from reactgrad.models import _products as _products
from reactgrad.models import _quantised as _quantised
from reactgrad.models import _recurrent as _recurrent
from reactgrad.models import _reductions as _reductions
from reactgrad.models import _resizing as _resizing
from reactgrad.models import _signals as _signals
from reactgrad.models import _windows as _windows
from reactgrad.models._errors import ModelError as ModelError
from reactgrad.models._errors import OpError as OpError
from reactgrad.models._errors import UnknownLengthError as UnknownLengthError
from reactgrad.models._from_onnx import from_onnx as from_onnx
from reactgrad.models._from_pnnx import from_pnnx as from_pnnx
from reactgrad.models._model import Model as Model
from reactgrad.models._to_onnx import to_onnx as to_onnx

__all__ = (
    "Model",
    "ModelError",
    "OpError",
    "UnknownLengthError",
    "from_onnx",
    "from_pnnx",
    "to_onnx",
)
