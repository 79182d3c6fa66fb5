"""Recurrent layers over a sequence: plain ones, long short-term memory, gated units.

All steps are one kernel, which keeps a tape of the gates; the states are a view of it. The gradient is one
kernel, too, and products of matrices over all steps at once. Derivatives of that, and tangents, are those of the
same layer written step by step, which needs a known number of steps.

Formulas: Hochreiter and Schmidhuber (1997), Cho and others (2014), in the form and with the layout of
weights of PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from reactgrad import ops
from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend._registry import register_kernel
from reactgrad.backend.numpy import _recurrence
from reactgrad.nodes._handle import Handle, apply, graph_of
from reactgrad.nodes._op import Attrs, Op, RuleOfAll
from reactgrad.ops._astype import astype
from reactgrad.ops._deferred import deferred_each
from reactgrad.ops._join import concatenate
from reactgrad.ops._layout import alias, expand_dims, transpose
from reactgrad.ops._linear import linear
from reactgrad.ops._matmul import matmul
from reactgrad.ops._pick import agree
from reactgrad.ops._reduce import sum
from reactgrad.ops._shapes import common_device, promote
from reactgrad.ops.neural._recurrent_steps import gru_steps, lstm_steps, rnn_steps, turned
from reactgrad.scheduler import safe_repr

add_kernels(_recurrence.register)

Steps = Callable[..., tuple[Any, Any]]


# --- ops ---------------------------------------------------------------------------------------


def _infer_tape(name: str, parts: int, gates: int) -> Callable[[tuple[Spec, ...], Attrs], Spec]:
    states = 2 if name == "lstm" else 1

    def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        gx, firsts, weight, biases = (
            specs[0],
            specs[1:][:states],
            specs[1 + states],
            specs[2 + states :],
        )
        width = weight.shape[-1]
        rows = None if width is None else gates * width
        if gx.shape[0] == 0:
            raise ShapeError(f"rg.{name}: a sequence has at least one step.")
        if not agree(weight.shape, (rows, width)) or not agree(gx.shape[-1:], (rows,)):
            raise ShapeError(
                f"rg.{name}: w_hh has shape {weight.shape} for {gx.shape[-1]} rows of w_ih; weights are "
                f"({gates} * hidden, features) and ({gates} * hidden, hidden). The state stands before them, None for "
                f"zeros: rg.{name}(input, None, w_ih, w_hh, ...)."
            )
        for one in firsts:
            if not agree(one.shape, (*gx.shape[1:-1], width)):
                raise ShapeError(_of_state(name, one.shape, (*gx.shape[1:-1], width)))
        for one in biases:
            if not agree(one.shape, (rows,)):
                raise ShapeError(_of_bias(name, "b_hh", one.shape, gates, (rows,)))
        count = gx.shape[0]
        if name == "rnn" and count is not None:  # all sums, then all states
            count *= 2
        shape = (count, *gx.shape[1:-1], None if width is None else parts * width)
        return spec(shape, promote(specs), common_device("a recurrent layer", specs))

    return infer


def _of_state(name: str, found: Any, wanted: Any) -> str:
    return (
        f"rg.{name}: a first state has shape {found}, not {wanted}. Give one of the batch and the hidden size, or "
        "None for zeros, which follow the input."
    )


def _of_bias(name: str, which: str, found: Any, gates: int, wanted: Any) -> str:
    return f"rg.{name}: {which} has shape {found}, not {wanted}: a number for each row of the weights, ({gates} * hidden,)."


def _infer_zeros(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    x, weight = specs
    shape = weight.shape[:1] if attrs[0] == "bias" else (*x.shape[1:-1], weight.shape[1])
    return spec(shape, x.dtype, x.device)


# First states, or biases, where none are given: operands give the shape alone, at every read.
ZEROS: Final = Op("recurrent_zeros", _infer_zeros, (None, None), (None, None))


def _infer_back(at: int, parts: int) -> Callable[[tuple[Spec, ...], Attrs], Spec]:
    """Return the shape rule of a way back: a step more than `specs[at]` has, for the first state."""

    def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        count, *batch, _ = specs[at].shape
        width = specs[at + 1].shape[-1]
        length = None if count is None else count + 1
        shape = (length, *batch, None if width is None else parts * width)
        return spec(shape, specs[at].dtype, specs[at].device)

    return infer


def _step_by_step(
    skipped: int, build: Callable[..., Any]
) -> tuple[
    Callable[[Any, tuple[Any, ...], Attrs], RuleOfAll],
    Callable[[Any, tuple[Any, ...], Attrs], RuleOfAll],
]:
    """Return the rules of an op whose derivatives are those of ``build(*operands, *attrs)``.

    The operand `skipped`, the tape, follows from the others and passes none.
    """

    def of(
        derivative: Callable[[Any, Any, Any], Any], operands: tuple[Any, ...], attrs: Attrs
    ) -> RuleOfAll:
        # Nodes of their own: one operand may depend on another, and each derivative is by one alone.
        alone: list[Any] = []
        same: list[Any] = []

        def rule(i: int, g: Any) -> Any:
            if i == skipped:
                return None
            if not same:
                alone.extend(map(alias, operands))
                same.append(build(*alone[:skipped], *alone[skipped + 1 :], *attrs))
            return derivative(same[0], alone[i], g)

        return rule

    return (
        lambda ans, operands, attrs: of(ans._graph._gradient, operands, attrs),
        lambda ans, operands, attrs: of(ans._graph._tangent, operands, attrs),
    )


def _first_part(g: Any, first: Any, *others: Any) -> Any:
    """Return rows of a way back: gradients by the gates, then one more row of those by first states."""
    gates = g.shape[-1]
    flat = concatenate([first, *others], -1) if others else first
    missing = gates - flat.shape[-1]
    if missing:
        zeros = ops.pad(flat, [(0, 0)] * (flat.ndim - 1) + [(0, missing)])
        flat = zeros
    return concatenate([g, expand_dims(flat, 0)], 0)


class Layer:
    """The ops of one kind of layer.

    Attributes
    ----------
    tape, back
        All steps at once, and the way back through them.
    states, cell
        The views of the tape: all states, and the last cell.
    """

    __slots__ = ("back", "cell", "count", "name", "states", "steps", "tape")

    def __init__(self, name: str, parts: int, gates: int, steps: Steps, count: int) -> None:
        self.name, self.steps, self.count = name, steps, count
        none: tuple[None, ...] = (None,) * count
        width = 3 if name == "gru" else gates
        self.tape = Op(f"{name}_tape", _infer_tape(name, parts, width), none, none)
        grads = 2 if name == "lstm" else 1
        reverse, forward = _step_by_step(grads, self._way_back)
        self.back = Op(
            f"{name}_back",
            _infer_back(grads + 1, gates),
            variadic=reverse,
            variadic_jvp=forward,
        )
        self.states = self._view("states", parts, last=False)
        self.cell = self._view("cell", parts, last=True) if name == "lstm" else None

    def _way_back(self, g: Any, *rest: Any) -> Any:
        """Return what the kernel of the way back computes, from the derivative of the steps."""
        if self.name == "lstm":
            g_cell, *operands = rest
        else:
            g_cell, operands = None, list(rest)
        graph = operands[0]._graph
        more = None
        if self.name == "gru":
            width = operands[2].shape[1]
            more = 0.0 * operands[0][..., :width]
            states, cell = self.steps(*operands, more)
        else:
            states, cell = self.steps(*operands)
        cost = sum(states * g)
        if g_cell is not None:
            cost = cost + sum(cell * g_cell)
        wanted = [operands[0], *([more] if more is not None else []), operands[1]]
        if g_cell is not None:
            wanted.append(operands[2])
        found = graph._gradient(cost, wanted, None)
        if more is not None:
            return _first_part(concatenate(found[:2], -1), *found[2:])
        return _first_part(found[0], *found[1:])

    def _view(self, what: str, parts: int, *, last: bool) -> Op:
        """Return the op of a part of the tape: its last part at each step, or the one before at the end."""

        def view(tape: Any, *rest: Any) -> Any:
            if parts == 1:
                return tape[len(tape) // 2 :]
            width = tape.shape[-1] // parts
            if last:
                return tape[-1, ..., (parts - 2) * width : (parts - 1) * width]
            return tape[..., (parts - 1) * width :]

        def kernel(tape: Any, *rest: Any) -> None:
            rest[self.count][...] = view(tape)

        def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
            tape, gx, first = specs[:3]
            shape = (*(gx.shape[1:-1] if last else gx.shape[:-1]), first.shape[-1])
            return spec(shape, tape.dtype, tape.device)

        name = f"{self.name}_{what}"
        add_kernels(lambda xp, kind: register_kernel(name, kind, kernel))
        index = 1 if last else 0
        _, forward = _step_by_step(0, lambda *operands: self.steps(*operands)[index])
        return Op(
            name,
            infer,
            variadic=lambda ans, operands, attrs: self._rule(operands, attrs, last),
            variadic_jvp=forward,
            view=view,
        )

    def _rule(self, operands: tuple[Any, ...], attrs: Attrs, last: bool) -> RuleOfAll:
        first = operands[2]
        found: dict[int, Any] = {}

        def rule(i: int, g: Any) -> Any:
            if i == 0:
                return None
            if g._slot not in found:
                lstm = (0.0, g) if last else (g, 0.0)
                grads = lstm if self.name == "lstm" else (g,)
                found[g._slot] = apply(self.back, (*grads, *operands), attrs)
            back = found[g._slot]
            gates, width = back[:-1], first.shape[-1]
            if i == 1:
                return gates[..., : 3 * width] if self.name == "gru" else gates
            if i == 2:
                return back[-1][..., :width]
            if i == 3 and self.name == "lstm":
                return back[-1][..., width : 2 * width]
            if self.name == "gru":
                gates = concatenate([gates[..., : 2 * width], gates[..., 3 * width :]], -1)
                if i == 4:
                    return sum(gates, tuple(range(gates.ndim - 1)))
            states = apply(self.states, operands, attrs)
            former = concatenate([expand_dims(first, 0), states[:-1]], 0)
            rows = gates.reshape(-1, gates.shape[-1])
            return matmul(turned(rows), former.reshape(-1, width))

        return rule

    def __call__(self, gx: Any, *others: Any, attrs: Attrs = ()) -> tuple[Any, Any]:
        """Return all states, and the last cell if the layer has one."""
        tape = apply(self.tape, (gx, *others), attrs)
        operands = (tape, gx, *others)
        cell = None if self.cell is None else apply(self.cell, operands, attrs)
        return apply(self.states, operands, attrs), cell


RNN: Final = Layer("rnn", 1, 1, rnn_steps, 3)
LSTM: Final = Layer("lstm", 6, 4, lstm_steps, 4)
GRU: Final = Layer("gru", 5, 4, gru_steps, 4)


# --- functions ---------------------------------------------------------------------------------


class _Given:
    """The arguments of a layer as nodes, checked; with the sums that do not depend on states."""

    __slots__ = (
        "biases",
        "first",
        "graph",
        "half",
        "input",
        "name",
        "reverse",
        "states",
        "w_ih",
        "weight",
    )

    def __init__(
        self,
        name: str,
        gates: int,
        input: Any,
        states: tuple[Any, ...],
        weights: tuple[Any, Any],
        biases: tuple[Any, Any],
        batch_first: bool,
        reverse: bool,
    ) -> None:
        self.name, self.reverse = name, reverse
        self.graph = graph_of((input, states, weights, biases))
        x, *firsts, w_ih, w_hh, b_ih, b_hh = self.nodes(input, *states, *weights, *biases)
        if x.ndim not in (2, 3):
            raise ShapeError(
                f"rg.{name} of an input of shape {x.shape}: it is (steps, batch, features), or (steps, features)."
            )
        self.first = batch_first and x.ndim == 3
        if self.first:
            x = transpose(x, (1, 0, 2))
        self.input = x[::-1] if reverse else x
        width = w_hh.shape[-1] if w_hh.ndim == 2 else None
        rows = None if width is None else gates * width
        if (
            rows is None
            or not agree(w_hh.shape, (rows, width))
            or not agree(w_ih.shape, (rows, x.shape[-1]))
        ):
            raise ShapeError(
                f"rg.{name}: weights of shapes {w_ih.shape} and {w_hh.shape} for {x.shape[-1]} features; they are "
                f"({gates} * hidden, features) and ({gates} * hidden, hidden). The state stands before them, None for "
                f"zeros: rg.{name}(input, None, w_ih, w_hh, ...)."
            )
        if x.shape[0] == 0:
            raise ShapeError(f"rg.{name}: a sequence has at least one step.")
        for which, one in (("b_ih", b_ih), ("b_hh", b_hh)):
            if one is not None and not agree(one.shape, (rows,)):
                raise ShapeError(_of_bias(name, which, one.shape, gates, (rows,)))
        wanted = (*x.shape[1:-1], width)
        for one in firsts:
            if one is not None and not agree(one.shape, wanted):
                raise ShapeError(_of_state(name, one.shape, wanted))
        self.w_ih, self.weight, self.biases = w_ih, w_hh, (b_ih, b_hh)
        zeros = self.zeros("state") if any(one is None for one in firsts) else None
        self.states = [zeros if one is None else one for one in firsts]

    def nodes(self, *given: Any) -> list[Any]:
        """Return arguments as nodes of floats of one kind: half floats are computed in float32."""
        found: list[Any] = [
            one if one is None or isinstance(one, Handle) else self.graph.const(one)
            for one in given
        ]
        dtype = np.result_type(*[one.dtype for one in found if one is not None])
        if dtype.kind not in "biuf":
            raise DTypeError(f"rg.{self.name} of {dtype}: it takes real numbers only.")
        self.half = dtype.char == "e"
        wide = (
            np.dtype(np.float32) if self.half else dtype if dtype.kind == "f" else np.dtype(float)
        )
        return [
            one if one is None or one.dtype.char in "fdg" else astype(one, wide) for one in found
        ]

    def zeros(self, what: str) -> Any:
        return apply(ZEROS, (self.input.detach(), self.weight.detach()), (what,))

    def sums(self, *biases: Any) -> Any:
        """Return what the input and biases add to the gates, for all steps in one product."""
        bias = None
        for one in biases:
            if one is not None:
                bias = one if bias is None else bias + one
        return linear(self.input, turned(self.w_ih), bias)

    def narrow(self, one: Any) -> Any:
        """Return a result in the dtype of the arguments: rounded once."""
        return astype(one, np.float16) if self.half else one

    def outputs(self, states: Any) -> tuple[Any, Any]:
        """Return the states of all steps in the form of the input, and the last one."""
        states = self.narrow(states)
        last = states[-1]
        found = states[::-1] if self.reverse else states
        return (transpose(found, (1, 0, 2)) if self.first else found), last


def _states(*args: Any, **options: Any) -> Any:
    """Return the nest of results of ``rnn`` and ``gru``."""
    return None, None


def _states_and_cells(*args: Any, **options: Any) -> Any:
    """Return the nest of results of ``lstm``."""
    return None, (None, None)


@deferred_each(_states)
def rnn(
    input: Any,
    state: Any,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any = None,
    b_hh: Any = None,
    *,
    nonlinearity: str = "tanh",
    batch_first: bool = False,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Return the states of a recurrent layer at all steps, and the last one.

    Each state is ``tanh(w_ih @ x + b_ih + w_hh @ state + b_hh)``.

    Parameters
    ----------
    input : Var or array_like, shape (steps, batch, features) or (steps, features)
        With `batch_first`, shape (batch, steps, features).
    state : Var, array_like or None, shape (batch, hidden) or (hidden,)
        The state before the first step; zeros for ``None``.
    w_ih, w_hh : Var or array_like, shapes (hidden, features) and (hidden, hidden)
    b_ih, b_hh : Var or array_like, optional, shape (hidden,)
    nonlinearity : {"tanh", "relu"}
    batch_first : bool
    reverse : bool
        Whether the steps are taken from the last to the first.

    Returns
    -------
    tuple of Var
        Shape (steps, batch, hidden), in the order of the input; and (batch, hidden).

    Raises
    ------
    ShapeError
        If the shapes do not fit, or there is no step.
    DTypeError
        If the nonlinearity is unknown.

    Notes
    -----
    Tangents and derivatives of the gradient are built step by step, and need a known number of steps.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y, last = rg.rnn([[1.0], [0.0]], None, [[1.0]], [[0.5]])
    >>> y.value.round(4).ravel(), last.value.round(4)
    (array([0.7616, 0.3634]), array([0.3634]))
    """
    if nonlinearity not in ("tanh", "relu"):
        raise ParameterError(
            f"rg.rnn(nonlinearity={safe_repr(nonlinearity):.40}): it is 'tanh' or 'relu'."
        )
    given = _Given("rnn", 1, input, (state,), (w_ih, w_hh), (b_ih, b_hh), batch_first, reverse)
    states, _ = RNN(given.sums(*given.biases), *given.states, given.weight, attrs=(nonlinearity,))
    return given.outputs(states)


@deferred_each(_states_and_cells)
def lstm(
    input: Any,
    state: Any,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any = None,
    b_hh: Any = None,
    *,
    batch_first: bool = False,
    reverse: bool = False,
) -> tuple[Any, tuple[Any, Any]]:
    """Return the states of a layer of long short-term memory at all steps, and the last state and cell.

    Parameters
    ----------
    input : Var or array_like
        See ``rnn``, also for the other arguments.
    state : tuple of two or None
        State and cell before the first step, each of shape (batch, hidden); zeros for ``None``.
    w_ih, w_hh : Var or array_like, shapes (4 * hidden, features) and (4 * hidden, hidden)
        Rows in the order of PyTorch: input gate, forget gate, cell, output gate.
    b_ih, b_hh : Var or array_like, optional, shape (4 * hidden,)

    Returns
    -------
    tuple
        ``output, (last state, last cell)``.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y, (h, c) = rg.lstm(np.ones((3, 2, 5)), None, np.ones((16, 5)), np.zeros((16, 4)))
    >>> y.shape, h.shape, c.shape
    ((3, 2, 4), (2, 4), (2, 4))
    """
    if state is not None and not (isinstance(state, tuple | list) and len(state) == 2):
        raise ShapeError(
            f"rg.lstm(state={safe_repr(state):.60}): write a pair, (state, cell), or None for zeros; either of the two may "
            "be None."
        )
    pair = (None, None) if state is None else tuple(state)
    given = _Given("lstm", 4, input, pair, (w_ih, w_hh), (b_ih, b_hh), batch_first, reverse)
    states, last = LSTM(given.sums(*given.biases), *given.states, given.weight)
    output, end = given.outputs(states)
    return output, (end, given.narrow(last))


@deferred_each(_states)
def gru(
    input: Any,
    state: Any,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any = None,
    b_hh: Any = None,
    *,
    batch_first: bool = False,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Return the states of a layer of gated recurrent units at all steps, and the last one.

    Parameters
    ----------
    input, state
        See ``rnn``, also for the other arguments.
    w_ih, w_hh : Var or array_like, shapes (3 * hidden, features) and (3 * hidden, hidden)
        Rows in the order of PyTorch: reset gate, update gate, new state.
    b_ih, b_hh : Var or array_like, optional, shape (3 * hidden,)
        The reset gate multiplies its part of `b_hh`, too.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y, last = rg.gru(np.ones((3, 2, 5)), None, np.ones((12, 5)), np.zeros((12, 4)))
    >>> y.shape, last.shape
    ((3, 2, 4), (2, 4))
    """
    given = _Given("gru", 3, input, (state,), (w_ih, w_hh), (b_ih, b_hh), batch_first, reverse)
    b_ih, b_hh = given.biases
    own = given.zeros("bias") if b_hh is None else b_hh
    states, _ = GRU(given.sums(b_ih), *given.states, given.weight, own)
    return given.outputs(states)
