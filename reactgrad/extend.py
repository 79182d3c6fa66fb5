"""Ops, kernels and devices of users' own: the whole extension API on one screen.

``primitive(name, shape_rule)(kernel)``
    Make a new op from a shape rule, which runs before any value is known, and a kernel, which
    writes into a buffer.
``defvjp(op, *rules)``, ``defjvp(op, *rules)``
    Give an op its derivative rules for gradients and for tangents: one for each operand, built of
    ops.
``register_kernel(name, kind, kernel)``, ``register_binder``
    Add a kernel for a kind of device; or a binder, which prepares a kernel when it is bound to its
    buffers. The kind ``"jit"`` is for graphs with ``jit``.
``loop_call(loop, operands, data)``, ``Whole``, ``InTurn``
    For binders: a call of a compiled loop; an operand that the loop gets as a whole; several calls,
    one after the other.
``Sheet(size)``, ``Row``
    Rows that compiled loops compute from other rows, without nodes.
``register_device(device)``
    Add an array library.
``draw_as_neuron(op, first)``
    Let pictures and the explorer show nodes of an op as neurons with weights.
``carry(param, places)``
    Say which element each one of a param was before it got another length, for optimisers.
``spec(shape, dtype, device)``, ``Spec``, ``broadcast(*specs)``
    Describe a value before it is computed.

A function that needs no kernel is easier to add: ``rg.lift(fn, vjp=rule)``, or a class
``rg.Function``.

Examples
--------
>>> import numpy as np
>>> import reactgrad as rg
>>> @rg.extend.primitive("smooth_relu", lambda x, beta: x, elementwise=True)
... def smooth_relu(x, out, beta=1.0):
...     np.multiply(x, beta, out)
...     np.logaddexp(out, 0.0, out)
...     np.divide(out, beta, out)
>>> rg.extend.defvjp(smooth_relu, lambda g, ans, x, beta: g * rg.sigmoid(beta * x))
>>> rg.extend.defjvp(smooth_relu, lambda t, ans, x, beta: t * rg.sigmoid(beta * x))
>>> g = rg.Graph()
>>> x = g.input([0.0, 1.0])
>>> y = smooth_relu(x, beta=2.0)
>>> y.shape, y.value
((2,), array([0.34657359, 1.06346401]))
>>> rg.grad(y.sum(), x).value
array([0.5       , 0.88079708])
>>> rg.testing.check_grads(lambda x: smooth_relu(x, beta=2.0), [[0.3, -1.0]])
"""

import typing

from reactgrad._later import later as _later
from reactgrad.backend import InTurn as InTurn
from reactgrad.backend import Spec as Spec
from reactgrad.backend import register_binder as register_binder
from reactgrad.backend import register_device as register_device
from reactgrad.backend import register_kernel as register_kernel
from reactgrad.backend import spec as spec
from reactgrad.change._edit import carry as carry
from reactgrad.functions._primitive import NameTakenError as NameTakenError
from reactgrad.functions._primitive import Primitive as Primitive
from reactgrad.functions._primitive import broadcast as broadcast
from reactgrad.functions._primitive import defjvp as defjvp
from reactgrad.functions._primitive import defvjp as defvjp
from reactgrad.functions._primitive import primitive as primitive
from reactgrad.nodes._units import draw_as_neuron as draw_as_neuron

if typing.TYPE_CHECKING:
    from reactgrad.backend.machine._loop_call import Whole as Whole
    from reactgrad.backend.machine._loop_call import loop_call as loop_call
    from reactgrad.backend.machine._sheet import Row as Row
    from reactgrad.backend.machine._sheet import Sheet as Sheet

_LATER = {
    "Row": "backend.machine._sheet",
    "Sheet": "backend.machine._sheet",
    "Whole": "backend.machine._loop_call",
    "loop_call": "backend.machine._loop_call",
}

__getattr__, __dir__ = _later(__name__, _LATER)
