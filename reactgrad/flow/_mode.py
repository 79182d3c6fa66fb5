"""The switch that decides whether new nodes are differentiable; each thread and task has its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import ContextDecorator
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Self, TypeVar

from reactgrad._errors import DTypeError
from reactgrad.scheduler import safe_repr

F = TypeVar("F", bound=Callable[..., Any])
_NONE: Mapping[Any, bool] = MappingProxyType({})


class Mode:
    """The combined state of all open switches of a thread or task; never changed.

    Attributes
    ----------
    enabled : bool
        True if nodes are built differentiable, in graphs that are not in ``graphs``.
    graphs : mapping from Graph to bool
        Switches of single graphs that were opened inside of those for all graphs.
    final : bool
        True if no switch inside can enable gradients again.
    outer : Mode or None
        The state that returns when the innermost switch ends.
    """

    __slots__ = ("enabled", "final", "graphs", "outer")

    def __init__(
        self,
        enabled: bool,
        outer: Mode | None = None,
        graphs: Mapping[Any, bool] = _NONE,
        final: bool = False,
    ) -> None:
        self.enabled = enabled
        self.outer = outer
        self.graphs = graphs
        self.final = final


_START = Mode(True)
_mode: ContextVar[Mode] = ContextVar("reactgrad_grad_mode", default=_START)

# For hot paths: while nothing was switched, the mode is this object, so that `is` is enough to see it.
PLAIN_MODE = _START
mode_here: Callable[[], Mode] = _mode.get


class GradMode(ContextDecorator):
    """A switch for a ``with`` block or a decorated function; may be nested and used again."""

    __slots__ = ("_enabled", "_final", "_graph")

    def __init__(self, enabled: bool, graph: Any = None, *, final: bool = False) -> None:
        self._enabled = enabled
        self._graph = graph
        self._final = final

    def __call__(self, function: F) -> F:
        refuse_generators(function)
        return super().__call__(function)

    def __enter__(self) -> Self:
        outer = _mode.get()
        enabled = self._enabled and not outer.final
        if self._graph is None:
            mode = Mode(enabled, outer, final=outer.final or self._final)
        else:
            graphs = {**outer.graphs, self._graph: enabled}
            mode = Mode(outer.enabled, outer, graphs, outer.final)
        _mode.set(mode)
        return self

    def __exit__(self, *exc: object) -> None:
        _mode.set(_mode.get().outer or _START)


def refuse_generators(function: object) -> None:
    """Raise ``DTypeError`` for functions whose bodies run later, when the block around the call has ended."""
    if _runs_later(function):
        raise DTypeError(
            f"{getattr(function, '__name__', function)!r} is a generator or coroutine: calling it "
            "runs nothing, and its body would run in the mode of whoever drives it. Decorate the "
            "functions that it calls, or open the block inside of it, without a yield in between."
        )


def _runs_later(function: object) -> bool:
    # Calling it returns at once, so the switch would be off again when the body runs.
    return (
        inspect.isgeneratorfunction(function)
        or inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
    )


class SetGradMode(GradMode):
    """A switch that holds from its creation on, or for a block; see ``set_grad_enabled``."""

    __slots__ = ("_before", "_made")

    def __init__(self, enabled: bool) -> None:
        super().__init__(enabled)
        before = self._before = _mode.get()
        # With `outer` of the mode before, it ends when the block in which it stands ends.
        self._made = Mode(enabled and not before.final, before.outer, final=before.final)
        _mode.set(self._made)

    def _take_back(self) -> None:
        if _mode.get() is self._made:
            _mode.set(self._before)

    def __call__(self, function: F) -> F:
        self._take_back()
        return super().__call__(function)

    def __enter__(self) -> Self:
        self._take_back()
        return super().__enter__()


class Differentiable:
    """A block that builds differentiable nodes, whatever the switches around it say.

    For adjoints: an edit may build them again inside of a user's ``no_grad``, and they must not change.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        _mode.set(Mode(True, _mode.get()))

    def __exit__(self, *exc: object) -> None:
        _mode.set(_mode.get().outer or _START)


def is_grad_enabled(graph: Any = None) -> bool:
    """Return whether nodes built now, in this thread, are differentiable.

    Parameters
    ----------
    graph : Graph, optional
        The graph in which they would be built; its own switch, ``graph.no_grad()``, counts then.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.no_grad():
    ...     rg.is_grad_enabled()
    False
    """
    mode = _mode.get()
    return mode.graphs.get(graph, mode.enabled) if mode.graphs else mode.enabled


def no_grad(function: Callable[..., Any] | None = None, /) -> Any:
    """Build nodes that gradients do not pass, in a ``with`` block or a decorated function.

    The switch holds for this thread and all graphs; ``graph.no_grad()`` is for one graph. If several
    switches are open, the innermost one that concerns a graph counts. Only gradients are affected:
    nodes built inside follow their inputs as always.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param(2.0)
    >>> with rg.no_grad():
    ...     y = w * w
    >>> y.requires_grad
    False
    """
    return _switch(GradMode(False), function)


def enable_grad(function: Callable[..., Any] | None = None, /) -> Any:
    """Build differentiable nodes inside a ``no_grad`` block. Inside ``inference`` it has no effect.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.no_grad(), rg.enable_grad():
    ...     rg.is_grad_enabled()
    True
    """
    return _switch(GradMode(True), function)


def inference(function: Callable[..., Any] | None = None, /) -> Any:
    """Do what ``no_grad`` does, with no way to undo it inside: for code that is never differentiated.

    ``enable_grad`` and ``set_grad_enabled(True)`` have no effect inside, nor in functions that are
    called from there. Train or eval mode is another switch: ``graph.eval()``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.inference(), rg.enable_grad():
    ...     rg.is_grad_enabled()
    False
    """
    return _switch(GradMode(False, final=True), function)


def set_grad_enabled(enabled: bool) -> GradMode:
    """Switch by a condition: for a ``with`` block, a decorated function, or from here on.

    A bare call holds for this thread until the block in which it stands ends, or until the next call.

    Parameters
    ----------
    enabled : bool
        True to build differentiable nodes, False to build nodes that gradients do not pass.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.set_grad_enabled(False):
    ...     rg.is_grad_enabled()
    False
    >>> rg.is_grad_enabled()
    True
    """
    if not isinstance(enabled, bool):
        raise DTypeError(f"set_grad_enabled({safe_repr(enabled):.60}): write True or False.")
    return SetGradMode(enabled)


def _switch(mode: GradMode, function: Callable[..., Any] | None) -> Any:
    """Return the switch, or the decorated function if the switch was written without brackets."""
    if function is None:
        return mode
    if not callable(function):
        raise DTypeError(
            f"this switch was given {safe_repr(function):.60}: it decorates functions and opens blocks, "
            "`with rg.no_grad():`. For one graph write `with graph.no_grad():`."
        )
    return mode(function)
