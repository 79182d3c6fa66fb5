"""Change one number; recompute only what it touches: values and gradients.

You write NumPy expressions on the inputs of a graph. The graph keeps them and their values. Set an input, read a
result: only the nodes that are stale and needed run again. Gradients are nodes of the same graph.

>>> import reactgrad as rg
>>> g = rg.Graph()
>>> spot = g.input(100.0, name="spot")
>>> rate = g.input(0.02, name="rate")
>>> forward = spot * rg.exp(rate * 0.5)  # nothing is computed yet
>>> delta = rg.grad(forward, spot)  # a live node, too
>>> print(f"{forward.value:.3f} {delta.value:.3f}")
101.005 1.010
>>> spot.set(101.0)
>>> print(f"{forward.value:.3f}", len(g.last_run.ran), delta.is_stale)
102.015 1 False
>>> with g.whatif({"rate": 0.04}) as fork:  # the graph outside does not change
...     print(f"{fork[forward].value:.3f}")
103.040

Where to go next:

- Values: ``help(rg.Graph)`` and ``help(rg.Var)``. Functions have NumPy's names, as ``rg.cumsum``, and ``np.cumsum(x)``
  of a Var is the same call; ``rg.linalg``, ``rg.fft``, ``rg.random``.
- Gradients: ``rg.grad``, ``x.backward()``, ``rg.jvp``, ``rg.jacobian``, ``rg.hessian``.
- Why: ``g.plan(y)`` is what a read would run, ``g.why(y)`` why, ``g.last_run`` what ran. ``g.picture()``,
  ``rg.plot`` and ``g.explore()`` show it.
- What-if: ``g.whatif``, ``g.fork``, ``rg.scenarios``, ``rg.sensitivities``, ``rg.tornado``, ``rg.goal_seek``,
  ``rg.explain_change``, ``rg.monte_carlo``.
- Tables: ``rg.Table`` for DataFrames, ``rg.from_excel`` for workbooks.
- Learning: ``rg.nn``, ``rg.optim``, ``rg.data``, by PyTorch's names.
- Python functions as nodes: ``rg.lift``, ``rg.Function``, ``rg.extend``.
- Networks that evolve: ``reactgrad.neat``.
- Files: ``g.save``, ``rg.load``, ``rg.save_checkpoint``, ``rg.from_onnx``.

``reactgrad demo`` on the command line shows it at work; ``reactgrad doctor`` says what is installed. The folder
``docs`` has tutorials of ten minutes, and one page for each subject. CONTRIBUTING.md has the map of the code.
"""

import types
import typing

from reactgrad._calls import explained as _explained
from reactgrad._errors import AnomalyError as AnomalyError
from reactgrad._errors import BlockError as BlockError
from reactgrad._errors import BudgetWarning as BudgetWarning
from reactgrad._errors import BusyError as BusyError
from reactgrad._errors import Cancelled as Cancelled
from reactgrad._errors import CycleError as CycleError
from reactgrad._errors import DeviceError as DeviceError
from reactgrad._errors import DTypeError as DTypeError
from reactgrad._errors import EditError as EditError
from reactgrad._errors import ExecutorError as ExecutorError
from reactgrad._errors import GradientError as GradientError
from reactgrad._errors import GradModeWarning as GradModeWarning
from reactgrad._errors import GraphError as GraphError
from reactgrad._errors import ImplicitValueError as ImplicitValueError
from reactgrad._errors import ImplicitValueWarning as ImplicitValueWarning
from reactgrad._errors import IndexingError as IndexingError
from reactgrad._errors import LoadError as LoadError
from reactgrad._errors import MissingExtraError as MissingExtraError
from reactgrad._errors import MissingExtraWarning as MissingExtraWarning
from reactgrad._errors import MutationError as MutationError
from reactgrad._errors import ParameterError as ParameterError
from reactgrad._errors import ReactgradError as ReactgradError
from reactgrad._errors import ReactgradWarning as ReactgradWarning
from reactgrad._errors import SaveError as SaveError
from reactgrad._errors import SetError as SetError
from reactgrad._errors import ShapeError as ShapeError
from reactgrad._errors import UnsetError as UnsetError
from reactgrad._errors import VizError as VizError
from reactgrad._errors import WrapWarning as WrapWarning
from reactgrad._habits import absent_from_package as _absent_from_package
from reactgrad._later import later as _later
from reactgrad.backend import ThreadCountError as ThreadCountError
from reactgrad.backend import devices as devices
from reactgrad.backend import get_num_threads as get_num_threads
from reactgrad.backend import set_num_threads as set_num_threads
from reactgrad.core._names import UnknownNameError as UnknownNameError
from reactgrad.core._observer import Observer as Observer
from reactgrad.core._observer_errors import StabilizeError as StabilizeError
from reactgrad.core._var_list import VarList as VarList
from reactgrad.flow._checkpoint import checkpoint as checkpoint
from reactgrad.flow._checkpoint import checkpoint_sequential as checkpoint_sequential
from reactgrad.flow._mode import enable_grad as enable_grad
from reactgrad.flow._mode import inference as inference
from reactgrad.flow._mode import is_grad_enabled as is_grad_enabled
from reactgrad.flow._mode import no_grad as no_grad
from reactgrad.flow._mode import set_grad_enabled as set_grad_enabled
from reactgrad.flow._saved import saved_tensors_hooks as saved_tensors_hooks
from reactgrad.graph._detached import DetachedVar as DetachedVar
from reactgrad.graph._files import from_bytes as from_bytes
from reactgrad.graph._files import load as load
from reactgrad.graph._graph import Graph as Graph
from reactgrad.graph._leaves import const as const
from reactgrad.graph._leaves import input as input
from reactgrad.graph._leaves import param as param
from reactgrad.graph._var import Var as Var
from reactgrad.nodes._cutoff import tolerance as tolerance
from reactgrad.nodes._handle import on_deferred as _on_deferred
from reactgrad.ops import PLACES as _PLACES
from reactgrad.ops import AxisError as AxisError
from reactgrad.ops import absolute as absolute
from reactgrad.ops import add as add
from reactgrad.ops import angle as angle
from reactgrad.ops import arccos as arccos
from reactgrad.ops import arcsin as arcsin
from reactgrad.ops import arctan as arctan
from reactgrad.ops import arctan2 as arctan2
from reactgrad.ops import astype as astype
from reactgrad.ops import broadcast_to as broadcast_to
from reactgrad.ops import ceil as ceil
from reactgrad.ops import clip as clip
from reactgrad.ops import concatenate as concatenate
from reactgrad.ops import conj as conj
from reactgrad.ops import cos as cos
from reactgrad.ops import cosh as cosh
from reactgrad.ops import divide as divide
from reactgrad.ops import equal as equal
from reactgrad.ops import erf as erf
from reactgrad.ops import erfc as erfc
from reactgrad.ops import exp as exp
from reactgrad.ops import exp2 as exp2
from reactgrad.ops import expand_dims as expand_dims
from reactgrad.ops import expm1 as expm1
from reactgrad.ops import floor as floor
from reactgrad.ops import floor_divide as floor_divide
from reactgrad.ops import greater as greater
from reactgrad.ops import greater_equal as greater_equal
from reactgrad.ops import hypot as hypot
from reactgrad.ops import imag as imag
from reactgrad.ops import isfinite as isfinite
from reactgrad.ops import isnan as isnan
from reactgrad.ops import layer_norm as layer_norm
from reactgrad.ops import less as less
from reactgrad.ops import less_equal as less_equal
from reactgrad.ops import linear as linear
from reactgrad.ops import log as log
from reactgrad.ops import log1p as log1p
from reactgrad.ops import log2 as log2
from reactgrad.ops import log10 as log10
from reactgrad.ops import log_softmax as log_softmax
from reactgrad.ops import logaddexp as logaddexp
from reactgrad.ops import logical_and as logical_and
from reactgrad.ops import logical_not as logical_not
from reactgrad.ops import logical_or as logical_or
from reactgrad.ops import matmul as matmul
from reactgrad.ops import max as max
from reactgrad.ops import maximum as maximum
from reactgrad.ops import mean as mean
from reactgrad.ops import min as min
from reactgrad.ops import minimum as minimum
from reactgrad.ops import multiply as multiply
from reactgrad.ops import negative as negative
from reactgrad.ops import norm_cdf as norm_cdf
from reactgrad.ops import norm_pdf as norm_pdf
from reactgrad.ops import not_equal as not_equal
from reactgrad.ops import power as power
from reactgrad.ops import real as real
from reactgrad.ops import reciprocal as reciprocal
from reactgrad.ops import relu as relu
from reactgrad.ops import remainder as remainder
from reactgrad.ops import reshape as reshape
from reactgrad.ops import sigmoid as sigmoid
from reactgrad.ops import sign as sign
from reactgrad.ops import sin as sin
from reactgrad.ops import sinh as sinh
from reactgrad.ops import softmax as softmax
from reactgrad.ops import split as split
from reactgrad.ops import sqrt as sqrt
from reactgrad.ops import square as square
from reactgrad.ops import squeeze as squeeze
from reactgrad.ops import stack as stack
from reactgrad.ops import subtract as subtract
from reactgrad.ops import sum as sum
from reactgrad.ops import tan as tan
from reactgrad.ops import tanh as tanh
from reactgrad.ops import transpose as transpose
from reactgrad.ops import unbind as unbind
from reactgrad.ops import where as where
from reactgrad.reading._implicit_values import implicit_values as implicit_values
from reactgrad.reading._run import Plan as Plan
from reactgrad.reading._run import Run as Run
from reactgrad.reading._run import Running as Running
from reactgrad.scheduler import Serial as Serial
from reactgrad.scheduler import Threads as Threads
from reactgrad.values._columns import NumberError as NumberError

if typing.TYPE_CHECKING:
    from reactgrad import data as data
    from reactgrad import distributed as distributed
    from reactgrad import extend as extend
    from reactgrad import fft as fft
    from reactgrad import linalg as linalg
    from reactgrad import nn as nn
    from reactgrad import optim as optim
    from reactgrad import random as random
    from reactgrad import testing as testing
    from reactgrad.autodiff._hooks import HookHandle as HookHandle
    from reactgrad.distributed._population import Population as Population
    from reactgrad.explain._anomaly import detect_anomaly as detect_anomaly
    from reactgrad.explain._event import Event as Event
    from reactgrad.explain._profile import Profile as Profile
    from reactgrad.explain._profile import profile as profile
    from reactgrad.explain._record import Recording as Recording
    from reactgrad.explain._stats import Stats as Stats
    from reactgrad.explain._why import Why as Why
    from reactgrad.flow._autocast import autocast as autocast
    from reactgrad.flow._grad_scaler import GradScaler as GradScaler
    from reactgrad.flow._places import save_on_cpu as save_on_cpu
    from reactgrad.flow._places import save_on_disk as save_on_disk
    from reactgrad.functions._function import Function as Function
    from reactgrad.functions._lift import lift as lift
    from reactgrad.functions._switch import switch as switch
    from reactgrad.graph._files import from_networkx as from_networkx
    from reactgrad.graph._standard import asarray as asarray
    from reactgrad.graph._standard import bool as bool
    from reactgrad.graph._standard import broadcast_shapes as broadcast_shapes
    from reactgrad.graph._standard import can_cast as can_cast
    from reactgrad.graph._standard import complex64 as complex64
    from reactgrad.graph._standard import complex128 as complex128
    from reactgrad.graph._standard import e as e
    from reactgrad.graph._standard import finfo as finfo
    from reactgrad.graph._standard import float16 as float16
    from reactgrad.graph._standard import float32 as float32
    from reactgrad.graph._standard import float64 as float64
    from reactgrad.graph._standard import from_dlpack as from_dlpack
    from reactgrad.graph._standard import iinfo as iinfo
    from reactgrad.graph._standard import inf as inf
    from reactgrad.graph._standard import int8 as int8
    from reactgrad.graph._standard import int16 as int16
    from reactgrad.graph._standard import int32 as int32
    from reactgrad.graph._standard import int64 as int64
    from reactgrad.graph._standard import isdtype as isdtype
    from reactgrad.graph._standard import nan as nan
    from reactgrad.graph._standard import newaxis as newaxis
    from reactgrad.graph._standard import pi as pi
    from reactgrad.graph._standard import result_type as result_type
    from reactgrad.graph._standard import uint8 as uint8
    from reactgrad.graph._standard import uint16 as uint16
    from reactgrad.graph._standard import uint32 as uint32
    from reactgrad.graph._standard import uint64 as uint64
    from reactgrad.io._checkpoint import load_checkpoint as load_checkpoint
    from reactgrad.io._checkpoint import save_checkpoint as save_checkpoint
    from reactgrad.io._checkpoint_folder import Checkpoints as Checkpoints
    from reactgrad.io._networkx import to_networkx as to_networkx
    from reactgrad.io._weights import load_weights as load_weights
    from reactgrad.linalg._polyfit import polyfit as polyfit
    from reactgrad.ops.arrangement import *
    from reactgrad.ops.factories import *
    from reactgrad.ops.inquiry import *
    from reactgrad.ops.neural import *
    from reactgrad.ops.ordering import *
    from reactgrad.ops.products import *
    from reactgrad.ops.reductions import *
    from reactgrad.ops.special import *
    from reactgrad.random._dropout import alpha_dropout as alpha_dropout
    from reactgrad.random._dropout import dropout as dropout
    from reactgrad.random._dropout import dropout1d as dropout1d
    from reactgrad.random._dropout import dropout2d as dropout2d
    from reactgrad.random._dropout import dropout3d as dropout3d
    from reactgrad.subgraphs._subgraph import Subgraph as Subgraph
    from reactgrad.subgraphs._subgraph import subgraph as subgraph
    from reactgrad.tracking._progress import progress as progress
    from reactgrad.tracking._summary_writer import SummaryWriter as SummaryWriter
    from reactgrad.transforms._transforms import grad as grad
    from reactgrad.transforms._transforms import hessian as hessian
    from reactgrad.transforms._transforms import hvp as hvp
    from reactgrad.transforms._transforms import jacobian as jacobian
    from reactgrad.transforms._transforms import jvp as jvp
    from reactgrad.transforms._transforms import value_and_grad as value_and_grad
    from reactgrad.transforms._transforms import vjp as vjp

    # Their modules use public names of this package: an import here would be a circle.
    explain_change = typing.cast("typing.Callable[..., typing.Any]", None)
    from_excel = typing.cast("typing.Callable[..., typing.Any]", None)
    Neuron = typing.cast("typing.Any", None)
    dead_neurons = typing.cast("typing.Callable[..., typing.Any]", None)
    neuron = typing.cast("typing.Callable[..., typing.Any]", None)
    from_onnx = typing.cast("typing.Callable[..., typing.Any]", None)
    from_pnnx = typing.cast("typing.Callable[..., typing.Any]", None)
    goal_seek = typing.cast("typing.Callable[..., typing.Any]", None)
    monte_carlo = typing.cast("typing.Callable[..., typing.Any]", None)
    Table = typing.cast("typing.Callable[..., typing.Any]", None)
    scenarios = typing.cast("typing.Callable[..., typing.Any]", None)
    sensitivities = typing.cast("typing.Callable[..., typing.Any]", None)
    to_onnx = typing.cast("typing.Callable[..., typing.Any]", None)
    tornado = typing.cast("typing.Callable[..., typing.Any]", None)

# Names of the array API standard that are no ops.
_STANDARD = (
    *(
        "asarray",
        "broadcast_shapes",
        "can_cast",
        "finfo",
        "from_dlpack",
        "iinfo",
        "isdtype",
        "result_type",
    ),
    *(
        "__array_namespace_info__",
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
    ),
    *(
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "e",
        "pi",
        "inf",
        "nan",
        "newaxis",
    ),
)
_LATER = {
    **_PLACES,
    **dict.fromkeys(_STANDARD, "graph._standard"),
    "autocast": "flow._autocast",
    "Checkpoints": "io._checkpoint_folder",
    "data": "data",
    "detect_anomaly": "explain._anomaly",
    "distributed": "distributed",
    "alpha_dropout": "random._dropout",
    "dropout": "random._dropout",
    "dropout1d": "random._dropout",
    "dropout2d": "random._dropout",
    "dropout3d": "random._dropout",
    "Event": "explain._event_log",
    "explain_change": "whatif._explain_change",
    "extend": "extend",
    "fft": "fft",
    "from_excel": "tables.excel._from_excel",
    "from_networkx": "graph._files",
    "from_onnx": "models._from_onnx",
    "from_pnnx": "models._from_pnnx",
    "Function": "functions._function",
    "goal_seek": "whatif._goal_seek",
    "GradScaler": "flow._grad_scaler",
    "grad": "transforms._transforms",
    "hessian": "transforms._transforms",
    "HookHandle": "autodiff._hooks",
    "hvp": "transforms._transforms",
    "jacobian": "transforms._transforms",
    "jvp": "transforms._transforms",
    "lift": "functions._lift",
    "linalg": "linalg",
    "monte_carlo": "whatif._monte_carlo",
    "dead_neurons": "neurons._neuron",
    "Neuron": "neurons._neuron",
    "neuron": "neurons._neuron",
    "nn": "nn",
    "optim": "optim",
    "load_checkpoint": "io._checkpoint",
    "load_weights": "io._weights",
    "Population": "distributed._population",
    "Profile": "explain._profile",
    "profile": "explain._profile",
    "plot": "plot",
    "progress": "tracking._progress",
    "random": "random",
    "Recording": "explain._record",
    "save_checkpoint": "io._checkpoint",
    "save_on_cpu": "flow._places",
    "save_on_disk": "flow._places",
    "scenarios": "whatif._scenarios",
    "sensitivities": "whatif._sensitivities",
    "Stats": "explain._stats",
    "Subgraph": "subgraphs._subgraph",
    "subgraph": "subgraphs._subgraph",
    "SummaryWriter": "tracking._summary_writer",
    "switch": "functions._switch",
    "Table": "tables._frame",
    "testing": "testing",
    "to_networkx": "io._networkx",
    "to_onnx": "models._to_onnx",
    "tornado": "whatif._tornado",
    "value_and_grad": "transforms._transforms",
    "vjp": "transforms._transforms",
    "Why": "explain._why",
}

abs = absolute  # NumPy has both names
conjugate = conj
__array_api_version__ = "2024.12"
__version__ = "0.1.0"

# Tracebacks name what users can import.
for _error in list(vars().values()):
    if isinstance(_error, type) and issubclass(_error, ReactgradError | ReactgradWarning):
        _error.__module__ = "reactgrad"
del _error


def _form(name: str, found: object) -> object:
    """Return what users get of a name: functions that say what to write where their arguments do not fit."""
    if isinstance(found, types.FunctionType):
        return _explained(f"rg.{name}", found, __name__)
    return found


# Ops that are called with arguments of PyTorch, as dim= for axis=. Inside of the package they are called directly.
for _name in (
    *("concatenate", "stack", "split", "unbind", "squeeze", "expand_dims", "transpose", "reshape"),
    *("clip", "layer_norm", "where", "astype", "broadcast_to", "relu", "maximum", "minimum"),
):
    globals()[_name] = _explained(f"rg.{_name}", globals()[_name], __name__)
del _name

__getattr__, __dir__ = _later(__name__, _LATER, _absent_from_package, _form)


def _deferred_call() -> typing.Callable[..., object]:
    from reactgrad.transforms._deferred import call

    return call


_on_deferred(_deferred_call)
