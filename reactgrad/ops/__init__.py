"""Ops on arrays, one family a file: their shape rules and derivative rules.

The kernels are in ``backend``, the class ``Op`` in ``nodes``.

- ``_shapes``: broadcasting, promotion and axes, for the shape rules of all ops.
- ``_elementwise``: most elementwise ops, one row each.
- ``_activation_grad``: gradients of activation functions, one kernel each.
- ``_chain``: products of the chain rule in which 0 wins. ``_gaussian``: the slope of error functions.
- ``_complex``, ``_angle``: real and imaginary parts, conjugates, angles.
- ``_where``, ``_clip``, ``_astype``: elements chosen by a condition, limited, converted.
- ``_move``: values moved to another dtype or device.
- ``_layout``: transpose, reshape, broadcast_to, expand_dims, squeeze; mostly views.
- ``_join``, ``_split``: concatenate and stack; split and unbind.
- ``_reduce``: sum, mean, max, min.
- ``_matmul``, ``_linear``: matrix products, without and with a bias.
- ``_softmax``, ``_layer_norm``: normalised rows.
- ``_pick``: one element of each row, by its number.
- ``_places``: the normalised index of a part.
- ``_index``: indexing, and the sum of contributions to one gradient.
- ``_gradient``: detach and scale_grad, which change only gradients.
- ``_tuples``: gradients of functions with several outputs.
- ``_numpy_protocols``: NumPy's functions called on Vars.
- ``_families``: the packages ``reductions``, ``products``, ``arrangement``, ``factories``, ``ordering``,
  ``special`` and ``neural``, which are imported when one of their names is first used.
"""

import typing

from reactgrad._later import later as _later
from reactgrad.ops._angle import angle as angle
from reactgrad.ops._astype import astype as astype
from reactgrad.ops._clip import clip as clip
from reactgrad.ops._complex import conj as conj
from reactgrad.ops._complex import imag as imag
from reactgrad.ops._complex import real as real
from reactgrad.ops._elementwise import UFUNCS as UFUNCS
from reactgrad.ops._elementwise import absolute as absolute
from reactgrad.ops._elementwise import add as add
from reactgrad.ops._elementwise import arccos as arccos
from reactgrad.ops._elementwise import arcsin as arcsin
from reactgrad.ops._elementwise import arctan as arctan
from reactgrad.ops._elementwise import arctan2 as arctan2
from reactgrad.ops._elementwise import ceil as ceil
from reactgrad.ops._elementwise import cos as cos
from reactgrad.ops._elementwise import cosh as cosh
from reactgrad.ops._elementwise import divide as divide
from reactgrad.ops._elementwise import equal as equal
from reactgrad.ops._elementwise import erf as erf
from reactgrad.ops._elementwise import erfc as erfc
from reactgrad.ops._elementwise import exp as exp
from reactgrad.ops._elementwise import exp2 as exp2
from reactgrad.ops._elementwise import expm1 as expm1
from reactgrad.ops._elementwise import floor as floor
from reactgrad.ops._elementwise import floor_divide as floor_divide
from reactgrad.ops._elementwise import greater as greater
from reactgrad.ops._elementwise import greater_equal as greater_equal
from reactgrad.ops._elementwise import hypot as hypot
from reactgrad.ops._elementwise import isfinite as isfinite
from reactgrad.ops._elementwise import isnan as isnan
from reactgrad.ops._elementwise import less as less
from reactgrad.ops._elementwise import less_equal as less_equal
from reactgrad.ops._elementwise import log as log
from reactgrad.ops._elementwise import log1p as log1p
from reactgrad.ops._elementwise import log2 as log2
from reactgrad.ops._elementwise import log10 as log10
from reactgrad.ops._elementwise import logaddexp as logaddexp
from reactgrad.ops._elementwise import logical_and as logical_and
from reactgrad.ops._elementwise import logical_not as logical_not
from reactgrad.ops._elementwise import logical_or as logical_or
from reactgrad.ops._elementwise import maximum as maximum
from reactgrad.ops._elementwise import minimum as minimum
from reactgrad.ops._elementwise import multiply as multiply
from reactgrad.ops._elementwise import negative as negative
from reactgrad.ops._elementwise import norm_cdf as norm_cdf
from reactgrad.ops._elementwise import not_equal as not_equal
from reactgrad.ops._elementwise import power as power
from reactgrad.ops._elementwise import raised as raised
from reactgrad.ops._elementwise import reciprocal as reciprocal
from reactgrad.ops._elementwise import relu as relu
from reactgrad.ops._elementwise import remainder as remainder
from reactgrad.ops._elementwise import sigmoid as sigmoid
from reactgrad.ops._elementwise import sign as sign
from reactgrad.ops._elementwise import sin as sin
from reactgrad.ops._elementwise import sinh as sinh
from reactgrad.ops._elementwise import sqrt as sqrt
from reactgrad.ops._elementwise import square as square
from reactgrad.ops._elementwise import subtract as subtract
from reactgrad.ops._elementwise import tan as tan
from reactgrad.ops._elementwise import tanh as tanh
from reactgrad.ops._families import PLACES as PLACES
from reactgrad.ops._gaussian import norm_pdf as norm_pdf
from reactgrad.ops._gradient import DETACH as DETACH
from reactgrad.ops._gradient import SCALE_GRAD as SCALE_GRAD
from reactgrad.ops._index import ACCUMULATE as ACCUMULATE
from reactgrad.ops._index import FAN_IN as FAN_IN
from reactgrad.ops._index import GATHER as GATHER
from reactgrad.ops._index import GETITEM as GETITEM
from reactgrad.ops._index import Placed as Placed
from reactgrad.ops._index import accumulate as accumulate
from reactgrad.ops._index import accumulated as accumulated
from reactgrad.ops._index import getitem as getitem
from reactgrad.ops._join import concatenate as concatenate
from reactgrad.ops._join import stack as stack
from reactgrad.ops._layer_norm import layer_norm as layer_norm
from reactgrad.ops._layout import ALIAS as ALIAS
from reactgrad.ops._layout import BROADCAST_TO as BROADCAST_TO
from reactgrad.ops._layout import EXPAND_DIMS as EXPAND_DIMS
from reactgrad.ops._layout import RESHAPE as RESHAPE
from reactgrad.ops._layout import SQUEEZE as SQUEEZE
from reactgrad.ops._layout import TRANSPOSE as TRANSPOSE
from reactgrad.ops._layout import alias as alias
from reactgrad.ops._layout import broadcast_to as broadcast_to
from reactgrad.ops._layout import expand_dims as expand_dims
from reactgrad.ops._layout import known_shape as known_shape
from reactgrad.ops._layout import reshape as reshape
from reactgrad.ops._layout import reshape_to as reshape_to
from reactgrad.ops._layout import spread as spread
from reactgrad.ops._layout import spread_like as spread_like
from reactgrad.ops._layout import spread_to as spread_to
from reactgrad.ops._layout import squeeze as squeeze
from reactgrad.ops._layout import transpose as transpose
from reactgrad.ops._linear import linear as linear
from reactgrad.ops._matmul import matmul as matmul
from reactgrad.ops._move import to as to
from reactgrad.ops._move import to_device as to_device
from reactgrad.ops._places import Index as Index
from reactgrad.ops._places import Slot as Slot
from reactgrad.ops._reduce import SUM_LIKE as SUM_LIKE
from reactgrad.ops._reduce import SUM_TO as SUM_TO
from reactgrad.ops._reduce import max as max
from reactgrad.ops._reduce import mean as mean
from reactgrad.ops._reduce import min as min
from reactgrad.ops._reduce import sum as sum
from reactgrad.ops._reduce import sum_of_product as sum_of_product
from reactgrad.ops._reduce import sum_to as sum_to
from reactgrad.ops._shapes import AxisError as AxisError
from reactgrad.ops._softmax import log_softmax as log_softmax
from reactgrad.ops._softmax import softmax as softmax
from reactgrad.ops._split import split as split
from reactgrad.ops._split import unbind as unbind
from reactgrad.ops._tuples import Share as Share
from reactgrad.ops._tuples import no_shares as no_shares
from reactgrad.ops._tuples import share_of as share_of
from reactgrad.ops._tuples import shares as shares
from reactgrad.ops._where import where as where

_find, __dir__ = _later(__name__, PLACES)


def __getattr__(name: str) -> typing.Any:
    return _find(name)
