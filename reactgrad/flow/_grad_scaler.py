"""Losses scaled so that small gradients of short floats are not lost, and steps left out where they overflow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from reactgrad._attributes import OwnAttributes
from reactgrad._calls import real_number, whole
from reactgrad._errors import GradientError, ParameterError
from reactgrad.backend import device_of, holder, on
from reactgrad.scheduler import safe_repr
from reactgrad.values._quiet import quietly


class Steps(Protocol):
    """An optimiser as a ``GradScaler`` uses it."""

    @property
    def params(self) -> Iterable[Any]:
        """The params that a step changes, whose ``.grad`` it reads."""
        ...

    def step(self) -> object:
        """Change the params by their gradients."""
        ...


class Stepped(NamedTuple):
    """The answer of ``GradScaler.step``; true if the optimiser made its step.

    Attributes
    ----------
    stepped : bool
        True if it did; false if a gradient was not finite, and nothing has changed.
    not_finite : tuple of str
        The labels of the params whose gradients hold an infinity or NaN.
    scale : float
        The scale that the loss had.
    result : object
        Whatever the optimiser's ``step`` returned.
    """

    stepped: bool
    not_finite: tuple[str, ...]
    scale: float
    result: Any = None

    def __bool__(self) -> bool:
        return self.stepped

    def __str__(self) -> str:
        if self.stepped:
            return f"stepped, with the loss times {self.scale:g}"
        return (
            f"left out: with the loss times {self.scale:g} the gradients of "
            f"{', '.join(self.not_finite)} are not finite"
        )


_READY: Final = "ready"


class GradScaler(OwnAttributes):
    """Scale a loss before ``backward``, and unscale the gradients before the optimiser's step.

    Gradients of short floats that are too small for their dtype become 0; those of a loss times 65536 do not. If
    the scale is too large, some gradient is infinite or NaN: then the step is left out, no param gets a new
    version, and ``update`` halves the scale. After `growth_interval` steps without it doubles the scale.

    Parameters
    ----------
    init_scale : float
        The first scale.
    growth_factor, backoff_factor : float
        What the scale is multiplied by after `growth_interval` good steps, and after a bad one.
    growth_interval : int
        The number of good steps in a row.
    enabled : bool
        False to do nothing: ``scale`` returns the loss itself, ``step`` makes the optimiser's step.

    Raises
    ------
    DTypeError
        If `growth_factor` is not above 1, or `backoff_factor` not between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param(np.array([1.0, 2.0], np.float32))
    >>> class Descent:
    ...     params = [w]
    ...
    ...     def step(self):
    ...         w.set(w.value - 0.1 * w.grad)
    >>> opt, scaler = Descent(), rg.GradScaler()
    >>> loss = (w * w).sum()
    >>> run = scaler.scale(loss).backward()
    >>> print(scaler.step(opt))
    stepped, with the loss times 65536
    >>> scaler.update()
    >>> w.value
    array([0.8, 1.6], dtype=float32)
    """

    _INSTEAD: ClassVar[Mapping[str, str]] = {
        "scale": "scaler.update({value})",
        **{
            name: f"rg.GradScaler({name}={{value}})"
            for name in (
                "init_scale",
                "growth_factor",
                "backoff_factor",
                "growth_interval",
                "enabled",
            )
        },
    }

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        given = {"init_scale": init_scale, "growth_factor": growth_factor}
        given["backoff_factor"] = backoff_factor
        init_scale, growth_factor, backoff_factor = [
            real_number("GradScaler", what, one) for what, one in given.items()
        ]
        if not growth_factor > 1.0:
            raise ParameterError(
                f"GradScaler(growth_factor={safe_repr(growth_factor)}) must be above 1."
            )
        if not 0.0 < backoff_factor < 1.0:
            raise ParameterError(
                f"GradScaler(backoff_factor={safe_repr(backoff_factor)}) must be between 0 and 1."
            )
        if not (math.isfinite(init_scale) and init_scale > 0.0):
            raise ParameterError(
                f"GradScaler(init_scale={safe_repr(init_scale)}) must be a positive number."
            )
        self._scale = float(init_scale)
        self._growth, self._backoff = float(growth_factor), float(backoff_factor)
        self._interval = whole("GradScaler", "growth_interval", growth_interval, 1)
        self._good = 0  # steps in a row
        self._enabled = bool(enabled)
        # The scale as an input of each graph; what was done since the last update, by id of the optimiser.
        self._leaves: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._done: dict[int, tuple[Any, str, tuple[str, ...]]] = {}

    # --- the loop ----------------------------------------------------------------------------------

    def scale(self, outputs: Any) -> Any:
        """Return a loss, or each in a list or tuple, times the scale: a node that follows both.

        The scale is an input of the graph. A new one makes only what is computed from it stale.
        """
        if isinstance(outputs, list | tuple):
            return type(outputs)([self.scale(one) for one in outputs])
        if not self._enabled:
            return outputs
        graph = outputs._graph
        leaf = self._leaves.get(graph)
        if leaf is None or leaf._graph is not graph:
            leaf = self._leaves[graph] = graph.input(self._scale)
        return outputs * leaf

    def unscale_(self, optimizer: Steps) -> None:
        """Divide the ``.grad`` of an optimiser's params by the scale, for clipping before the step.

        Raises
        ------
        GradientError
            If that was done since the last ``update``, or no param has a gradient.
        """
        if not self._enabled:
            return
        if id(optimizer) in self._done:
            raise GradientError(
                "scaler.unscale_(optimizer): its gradients were unscaled since the last scaler.update(). Call "
                "it once for each step, before clipping."
            )
        params = [one for one in optimizer.params if one.grad is not None]
        if not params:
            raise GradientError(
                "scaler: no param of the optimiser has a gradient. Write scaler.scale(loss).backward() first."
            )
        bad = quietly(_not_finite, params)
        inverse = 1.0 / self._scale
        for one in params:
            quietly(_multiply, one, inverse)
        self._done[id(optimizer)] = (optimizer, _READY, tuple([one.label for one in bad]))

    def step(self, optimizer: Steps, *args: Any, **kwargs: Any) -> Stepped:
        """Make the optimiser's step if all gradients are finite, and return what was done.

        Gradients that were not unscaled are first.

        Parameters
        ----------
        optimizer
            An object with ``params``, the params that it changes, and ``step()``.
        *args, **kwargs
            For its ``step``.

        Raises
        ------
        GradientError
            If it was called since the last ``update``, or no param has a gradient.
        """
        if not self._enabled:
            return Stepped(True, (), 1.0, optimizer.step(*args, **kwargs))
        if id(optimizer) not in self._done:
            self.unscale_(optimizer)
        _, state, bad = self._done[id(optimizer)]
        if state != _READY:
            raise GradientError(
                "scaler.step(optimizer) was called since the last scaler.update(). Call update once after the "
                "steps of all optimisers."
            )
        self._done[id(optimizer)] = (optimizer, "stepped", bad)
        if bad:
            return Stepped(False, bad, self._scale)
        return Stepped(True, (), self._scale, optimizer.step(*args, **kwargs))

    def update(self, new_scale: float | None = None) -> None:
        """Shrink or grow the scale by what the steps since the last update have met, or set it.

        Raises
        ------
        GradientError
            If no gradients were unscaled since the last update.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            if not (math.isfinite(new_scale) and new_scale > 0.0):
                raise ParameterError(
                    f"scaler.update({safe_repr(new_scale)}): the scale is a positive number."
                )
            self._scale = float(new_scale)
        elif not self._done:
            raise GradientError(
                "scaler.update() found no step since the last one. Write scaler.step(optimizer) before it."
            )
        elif any(bad for _, _, bad in self._done.values()):
            self._scale, self._good = self._scale * self._backoff, 0
        else:
            self._good += 1
            if self._good >= self._interval:
                grown = self._scale * self._growth
                self._scale, self._good = (grown if math.isfinite(grown) else self._scale), 0
        self._done.clear()
        self._show()

    # --- questions and settings ---------------------------------------------------------------------

    def get_scale(self) -> float:
        """Return the present scale; 1.0 if it is not enabled."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Return whether it scales at all."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return the scale, the factors and the count of good steps, for a checkpoint; empty if not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth,
            "backoff_factor": self._backoff,
            "growth_interval": self._interval,
            "_growth_tracker": self._good,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` returned.

        Raises
        ------
        DTypeError
            If something is missing; nothing has changed then.
        """
        if not self._enabled:
            return
        missing = sorted(self.state_dict().keys() - state.keys())
        if missing:
            raise ParameterError(
                f"scaler.load_state_dict: {', '.join(missing)} missing. Was it saved by a scaler with "
                "enabled=False?"
            )
        self._scale, self._good = float(state["scale"]), int(state["_growth_tracker"])
        self._growth, self._backoff = float(state["growth_factor"]), float(state["backoff_factor"])
        self._interval = int(state["growth_interval"])
        self._show()

    def _show(self) -> None:
        """Set the scale in the graphs that have it."""
        for leaf in self._leaves.values():
            if leaf.value != self._scale:
                leaf.set(self._scale)


def _not_finite(params: list[Any]) -> list[Any]:
    """Return the params whose gradients hold an infinity or NaN. The host waits once for each device."""
    sums: dict[str, Any] = {}
    for one in params:
        with on(_device(one)):
            # Times 0: what is not finite makes the sum NaN.
            probe = (one.grad * 0).sum()
            sums[_device(one)] = probe if _device(one) not in sums else sums[_device(one)] + probe
    if all(not np.isnan(_number(device, total)) for device, total in sums.items()):
        return []
    found = []
    for one in params:
        with on(_device(one)):
            if np.isnan(_number(_device(one), (one.grad * 0).sum())):
                found.append(one)
    return found


def _device(param: Any) -> str:
    held = holder(param.grad)
    return "cpu" if held is None else held.name_of(param.grad)


def _number(device: str, total: Any) -> Any:
    return device_of(device).to_numpy(total)


def _multiply(param: Any, number: float) -> None:
    """Replace the ``.grad`` of a param by a multiple of it."""
    graph, old = param._graph, param.grad
    with graph._lock, on(_device(param)):
        new = old * number
        if isinstance(new, np.ndarray):
            new = new.astype(old.dtype, copy=False)
            new.flags.writeable = False
            new = new.view()
        elif isinstance(new, np.generic):
            new = old.dtype.type(new)
        graph._host.grads[param._slot] = new
