"""Gradients that are added up by a thread of their own, with a future for each."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple, Self

import numpy as np

from reactgrad._attributes import OwnAttributes
from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.core._gradients import Gradients
from reactgrad.distributed._errors import DistributedError
from reactgrad.graph._var import Var
from reactgrad.transforms._transforms import grad

# The most gradients that the thread takes at a time.
BATCH = 32


class _Order(NamedTuple):
    param: Any
    gradient: Any
    future: Future[Any]


class Accumulator(OwnAttributes):
    """Add gradients to sums while the caller goes on.

    ``backward`` computes gradients and hands them to a thread, which adds up to 32 at a time. Each of them has
    a future: its result is the sum with it, and an error of this gradient is raised there, and nowhere else.
    ``finish`` waits for all and leaves the sums in ``.grad``, as ``backward`` of the loss would have.

    Parameters
    ----------
    params : iterable of Var

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w, x = g.param([1.0, 2.0], name="w"), g.input(3.0)
    >>> loss = (w * x).sum()
    >>> with rg.distributed.Accumulator([w]) as sums:
    ...     first = sums.backward(loss)
    ...     x.set(4.0)
    ...     second = sums.backward(loss)
    >>> first[w].result(), second[w].result(), w.grad
    (array([3., 3.]), array([7., 7.]), array([7., 7.]))
    """

    def __init__(self, params: Iterable[Any]) -> None:
        self._params = [one[1] if isinstance(one, tuple) else one for one in params]
        for one in self._params:
            if not isinstance(one, Var):
                raise DTypeError(f"Accumulator takes params, not {type(one).__name__}.")
        if not self._params:
            raise ParameterError("Accumulator([]): name the params whose gradients are added up.")
        self._sums: dict[int, np.ndarray] = {}
        self._orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        self._open: list[Future[Any]] = []
        self.largest = 0  # the most gradients that the thread has taken at a time
        self._thread = threading.Thread(target=self._serve, name="accumulator", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if error is None:
                self.finish()
        finally:
            self.close()

    def backward(self, loss: Any) -> dict[Any, Future[Any]]:
        """Compute the gradients of a loss, and let them be added. Return a future for each param that it reaches."""
        wanted = [one for one in self._params if not one.frozen]
        found = grad(loss, wanted, allow_unused=True)
        there = [(one, node) for one, node in zip(wanted, found, strict=True) if node is not None]
        loss.graph.forward(loss, *[node for _, node in there])
        return {param: self.add(param, node.value) for param, node in there}

    def add(self, param: Any, gradient: Any) -> Future[Any]:
        """Let a gradient be added. Return its future."""
        if not self._thread.is_alive():
            raise DistributedError("this accumulator is closed. Make a new one.")
        future: Future[Any] = Future()
        self._open.append(future)
        self._orders.put(_Order(param, gradient, future))
        return future

    def finish(self) -> None:
        """Wait for all gradients, and add the sums to ``.grad``.

        Raises
        ------
        Exception
            The first error of a gradient; no ``.grad`` has changed then, and the sums begin anew.
        """
        futures, self._open = self._open, []
        errors = [error for one in futures if (error := one.exception()) is not None]
        sums, self._sums = self._sums, {}
        if errors:
            try:
                raise errors[0]
            finally:
                errors.clear()  # the tracebacks hold this frame
        if not sums:
            return
        graph: Any = self._params[0].graph
        with graph._lock:
            host = graph._host
            former = host.gradients.apart()
            alone = dict(former.alone)
            for slot, total in sums.items():
                old = None if slot in former.replaced else alone.get(slot)
                new = total if old is None else old + total
                if isinstance(new, np.ndarray):
                    new.flags.writeable = False
                    new = new.view()
                alone[slot] = new
            found = Gradients(alone, {}, former.between, former.replaced - sums.keys())
            del former, old, new
            host.put_gradients(found)

    def close(self) -> None:
        """End the thread, when it has added all."""
        self._orders.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while True:
            orders = [self._orders.get()]
            while len(orders) < BATCH and orders[-1] is not None:
                try:
                    orders.append(self._orders.get_nowait())
                except queue.Empty:
                    break
            self.largest = max(self.largest, len(orders) - (orders[-1] is None))
            for order in orders:
                if order is None:
                    return
                self._add(order)

    def _add(self, order: _Order) -> None:
        param, gradient, future = order
        try:
            value = np.asarray(gradient)
            if value.shape != param.shape:
                raise ShapeError(
                    f"a gradient of shape {value.shape} was given for {param.label!r}, which has shape "
                    f"{param.shape}. Give one of that shape."
                )
            before = self._sums.get(param._slot)
            total = np.array(value, param.dtype) if before is None else before + value
            self._sums[param._slot] = total
            future.set_result(total)
        except Exception as error:
            future.set_exception(error)
