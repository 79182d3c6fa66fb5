"""Layers, losses and models whose weights are live nodes, with PyTorch's names and layouts.

``Module``
    The base: layers and params as attributes, and ``forward``. Called with arrays, Vars or detached Vars, it builds
    nodes once for each structure and feeds them afterwards.
``Sequential``, ``ModuleList``, ``ModuleDict``, ``ParameterList``, ``ParameterDict``, ``Parameter``
    What modules are made of.
``init``, ``functional``
    First values of params; functions of arrays under PyTorch's names.

Layers make their params in the current graph. ``rng=`` is a seed or a generator of NumPy for their first values;
without one they follow from the seed of the graph. ``dtype=`` is that of the params, float64 by default.

- ``_registry``: params, buffers and modules by path. ``_parameter``: ``Parameter``.
- ``_building``: calls, built once. ``_module``: ``Module``. ``_containers``: modules that hold others.
- ``_state``: state dicts. ``_moving``: other dtypes and devices. ``_shown``: modules as text.
- ``_values``: arrays of first values, by the formulas of ``init``.
- The other files hold layers or criteria, a family each.
"""

from reactgrad.nn import init as init
from reactgrad.nn._activations import CELU as CELU
from reactgrad.nn._activations import ELU as ELU
from reactgrad.nn._activations import GELU as GELU
from reactgrad.nn._activations import GLU as GLU
from reactgrad.nn._activations import SELU as SELU
from reactgrad.nn._activations import Hardshrink as Hardshrink
from reactgrad.nn._activations import Hardsigmoid as Hardsigmoid
from reactgrad.nn._activations import Hardswish as Hardswish
from reactgrad.nn._activations import Hardtanh as Hardtanh
from reactgrad.nn._activations import LeakyReLU as LeakyReLU
from reactgrad.nn._activations import LogSigmoid as LogSigmoid
from reactgrad.nn._activations import LogSoftmax as LogSoftmax
from reactgrad.nn._activations import Mish as Mish
from reactgrad.nn._activations import PReLU as PReLU
from reactgrad.nn._activations import ReLU as ReLU
from reactgrad.nn._activations import ReLU6 as ReLU6
from reactgrad.nn._activations import Sigmoid as Sigmoid
from reactgrad.nn._activations import SiLU as SiLU
from reactgrad.nn._activations import Softmax as Softmax
from reactgrad.nn._activations import Softmax2d as Softmax2d
from reactgrad.nn._activations import Softmin as Softmin
from reactgrad.nn._activations import Softplus as Softplus
from reactgrad.nn._activations import Softshrink as Softshrink
from reactgrad.nn._activations import Softsign as Softsign
from reactgrad.nn._activations import Tanh as Tanh
from reactgrad.nn._activations import Tanhshrink as Tanhshrink
from reactgrad.nn._activations import Threshold as Threshold
from reactgrad.nn._containers import ModuleDict as ModuleDict
from reactgrad.nn._containers import ModuleList as ModuleList
from reactgrad.nn._containers import ParameterDict as ParameterDict
from reactgrad.nn._containers import ParameterList as ParameterList
from reactgrad.nn._containers import Sequential as Sequential
from reactgrad.nn._dropout import AlphaDropout as AlphaDropout
from reactgrad.nn._dropout import Dropout as Dropout
from reactgrad.nn._dropout import Dropout1d as Dropout1d
from reactgrad.nn._dropout import Dropout2d as Dropout2d
from reactgrad.nn._dropout import Dropout3d as Dropout3d
from reactgrad.nn._linear import Bilinear as Bilinear
from reactgrad.nn._linear import Identity as Identity
from reactgrad.nn._linear import Linear as Linear
from reactgrad.nn._loss import Loss as Loss
from reactgrad.nn._losses import BCELoss as BCELoss
from reactgrad.nn._losses import BCEWithLogitsLoss as BCEWithLogitsLoss
from reactgrad.nn._losses import CrossEntropyLoss as CrossEntropyLoss
from reactgrad.nn._losses import GaussianNLLLoss as GaussianNLLLoss
from reactgrad.nn._losses import HuberLoss as HuberLoss
from reactgrad.nn._losses import KLDivLoss as KLDivLoss
from reactgrad.nn._losses import L1Loss as L1Loss
from reactgrad.nn._losses import MSELoss as MSELoss
from reactgrad.nn._losses import NLLLoss as NLLLoss
from reactgrad.nn._losses import PoissonNLLLoss as PoissonNLLLoss
from reactgrad.nn._losses import SmoothL1Loss as SmoothL1Loss
from reactgrad.nn._module import Module as Module
from reactgrad.nn._parameter import Parameter as Parameter
