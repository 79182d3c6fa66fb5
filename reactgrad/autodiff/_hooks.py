"""Functions of the user that see or replace gradients, or are called after ``backward``.

A *gradient hook* is an edit of the adjoint of its node (rule D12 of the design). In every program
the sum of contributions passes through a node that calls the hook with its value, then through one
for the next hook. Nodes that come before in the data get the result. Every ``backward`` calls the
hooks again; a read of a gradient calls them only where it is stale. A hook that leaves the gradient
unchanged makes nothing stale. In gradients of gradients a hook also gets what derivative rules
contribute that are written with its node's value, as in PyTorch.

A *post-accumulate hook* is called with the leaf by ``backward``, after all ``.grad`` are written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from reactgrad._errors import (
    DeviceError,
    DTypeError,
    GradientError,
    ReactgradError,
    ShapeError,
)
from reactgrad.backend import Spec, device_of, read_value
from reactgrad.build._functions import call_lifted
from reactgrad.change._change import Change
from reactgrad.change._stand_in import connect, probe
from reactgrad.core._handles import handle, refuse_tuple, tidy
from reactgrad.core._notes import note
from reactgrad.nodes._cutoff import equal
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._lifted import Lifted
from reactgrad.nodes._op import INPUT, PARAM
from reactgrad.scheduler import safe_repr

_WHY = (
    "a hook is asked for its derivative with a gradient that has no value yet; build what it returns "
    "of ops."
)


class GradientHook(Lifted):
    """The op of a node at which a hook sees, and may replace, a gradient.

    Attributes
    ----------
    hook : callable
        The function that the user registered.
    of : str
        Name of the node that the gradient belongs to, for messages.
    """

    __slots__ = ("hook", "of")

    def __init__(self, hook: Callable[[Any], Any], of: str, found: Spec | None) -> None:
        super().__init__(self._call, found, self._vjp, None, (), self._jvp)
        self.hook = hook
        self.of = of
        name = getattr(hook, "__name__", type(hook).__name__)
        self.name = f"hook_{name.strip('<>')}"

    def _call(self, gradient: Any) -> Any:
        """Return the gradient to go on with, for the value of one."""
        result = self.hook(gradient)
        if result is None:
            return gradient
        # It computed with Vars: reading the value makes the node depend on them.
        if isinstance(result, Handle):
            result = result.value  # type: ignore[attr-defined]
        return self._fitting(result, read_value(gradient, "a gradient")[0])

    def _fitting(self, result: Any, wanted: Spec | None) -> Any:
        """Return the hook's result in the dtype of the gradient that it replaces."""
        assert wanted is not None
        who = f"{self.name} on {self.of!r} returned"
        seen, value = read_value(result, self.name)
        if seen is None:
            raise DTypeError(
                f"{who} {type(result).__name__}; a hook returns the gradient to go on with, or None "
                "to leave it as it is."
            )
        if seen.shape != wanted.shape:
            raise ShapeError(
                f"{who} shape {seen.shape}, and the gradient that it replaces has shape "
                f"{wanted.shape}. Return one of that shape, such as np.full_like(g, number)."
            )
        if seen.dtype.kind != "f" and seen.weak is None:
            raise DTypeError(f"{who} {seen.dtype}; gradients are floats.")
        if seen.weak is None and seen.device != wanted.device:
            raise DeviceError(
                f"{who} an array on {seen.device}; the gradient lives on {wanted.device}."
            )
        if wanted.kind != "cpu":
            return device_of(wanted.device).asarray(value, wanted.dtype)
        return np.asarray(value).astype(wanted.dtype)[()]

    def _vjp(self, g: Any, ans: Any, gradient: Any) -> tuple[Any]:
        """Return the gradient of what the hook makes of a gradient, derived through the ops that it
        builds.
        """
        at, result = self._built(gradient)
        # The hook leaves the gradient as it is.
        if result is None or result is at:
            return (g,)
        if not isinstance(result, type(at)):  # a value, or detached
            return (None,)
        from reactgrad.autodiff._program import Program

        program = Program(result, g)
        return (program.adjoints([at._slot])[0],)

    def _jvp(self, ts: tuple[Any], ans: Any, gradient: Any) -> Any:
        """Return the tangent of what the hook makes of a gradient."""
        at, result = self._built(gradient)
        if result is None or result is at:
            return ts[0]
        if not isinstance(result, type(at)):
            return None
        from reactgrad.autodiff._forward import (
            Tangents,  # here, since hooks are seldom followed forward
        )

        return Tangents(result, [at], [ts[0]]).tangent()

    def _built(self, gradient: Any) -> tuple[Any, Any]:
        """Call the hook with a Var.

        Return the Var that stands for the gradient, and the hook's result.
        """
        graph = gradient._graph
        # The Var has no value meanwhile, so that no value decides what is built.
        at = probe(graph, graph._host.specs[gradient._slot], _WHY)
        try:
            result = self.hook(at)
        except ReactgradError as error:
            raise GradientError(
                f"a gradient of a gradient would pass {self.name} on {self.of!r}, which is no "
                f"function of Vars: {type(error).__name__}: {error} Build what it returns of ops "
                "(rg.where instead of if, np.maximum instead of max), or of rg.lift with vjp=; or "
                "let go of the hook, or of that gradient."
            ) from error
        connect(at, gradient)
        return at, result


def _through(hook: Callable[[Any], Any], of: str, gradient: Any, known: bool) -> Any:
    """Return the node of a gradient that has passed a hook.

    `known` says whether the shape of the gradient is known.
    """
    graph = gradient._graph
    op = GradientHook(hook, of, graph._host.specs[gradient._slot] if known else None)
    return call_lifted(graph, op, [gradient], equal)


class HookHandle:
    """Removes a hook: by ``remove``, or at the end of a ``with`` block.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param(3.0)
    >>> y = w * w
    >>> with w.register_hook(lambda gradient: gradient * 10.0):
    ...     rg.grad(y, w).value
    np.float64(60.0)
    >>> rg.grad(y, w).value
    np.float64(6.0)
    """

    __slots__ = ("_entry", "_graph", "_serial", "_slot", "_table")

    def __init__(self, var: Handle, table: dict[int, tuple[Any, ...]], entry: Any) -> None:
        self._graph = var._graph
        self._slot = var._slot
        self._serial = var._graph._scheduler.topology.serial[var._slot]
        self._table = table
        self._entry = entry

    def remove(self) -> None:
        """Remove the hook if it is still there."""
        graph, slot = self._graph, self._slot
        with graph._lock:
            if graph._scheduler.topology.serial[slot] == self._serial:
                hooks = self._table.get(slot, ())
                left = tuple([entry for entry in hooks if entry is not self._entry])
                if len(left) < len(hooks):
                    _assign(handle(graph, slot), self._table, left)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def register_hook(var: Handle, /, hook: Callable[[Any], Any]) -> HookHandle:
    """Call a function with the gradient of this node, and let it replace the gradient.

    By every ``backward`` that passes this node, once, with the sum of what all consumers
    contribute; by a read of a gradient from ``rg.grad`` only where it is stale. What is computed
    from the gradient sees what the hook returned: ``.grad``, gradients of nodes before this one.
    Several hooks follow each other in order of registration. Where nothing needs the gradient of
    this node, it is not computed, and the hook not called.

    The hook is part of the gradient: it comes along to forks (not to files), a transaction
    takes it back, and what other nodes' ``.value`` it reads is depended on. Where it raises, no
    ``.grad`` has changed, and the next ``backward`` calls it again. It cannot change the graph.

    To differentiate through it, for gradients of gradients, it is called once with a Var
    without a value: operators and NumPy's functions work on both; what it takes from ``.value``
    of other nodes counts as constant then.

    Parameters
    ----------
    hook : callable
        ``hook(gradient)`` gets an array, read-only, in the shape and dtype of this node, and
        returns the gradient to go on with, or ``None`` to leave it.

    Returns
    -------
    HookHandle
        ``remove()`` takes the hook away.

    Raises
    ------
    DTypeError
        If `hook` cannot be called, or the node is not made of floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([3.0, -4.0])
    >>> y = (w * w).sum()
    >>> handle = w.register_hook(lambda gradient: gradient.clip(-1.0, 1.0))
    >>> _ = y.backward()
    >>> w.grad
    array([ 1., -1.])
    """
    graph, found = var._graph, var._graph._host.specs[var._slot]
    _check_callable("register_hook", hook)
    refuse_tuple(graph, var._slot, "register_hook")
    if found is not None and not found.differentiable:
        raise DTypeError(
            f"register_hook: {var.label!r} is of {found.dtype}, and only floats have gradients: the "
            "hook would never be called."
        )
    return _register(var, graph._host.hooks, partial(_through, hook, var.label))


def register_after_grad(var: Handle, /, hook: Callable[[Any], Any]) -> HookHandle:
    """Call a function with this leaf after each ``backward`` that has added to its ``.grad``.

    After all ``.grad``s of that backward, in order of creation of the leaves, then of
    registration. The function may change the graph: set the leaf, clear its ``.grad``. An error
    takes nothing back and keeps no other hook from being called; the first one is raised. Such
    hooks do not come along to forks.

    Parameters
    ----------
    hook : callable
        ``hook(leaf)``; what it returns is not looked at.

    Returns
    -------
    HookHandle
        ``remove()`` takes the hook away.

    Raises
    ------
    GradientError
        If this is neither a param nor an input.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param(3.0)
    >>> y = w * w
    >>> handle = w.register_post_accumulate_grad_hook(lambda w: w.set(w.value - 0.1 * w.grad))
    >>> _ = y.backward()
    >>> w.value
    np.float64(2.4)
    """
    graph = var._graph
    _check_callable("register_post_accumulate_grad_hook", hook)
    if graph._host.ops[var._slot] not in (PARAM, INPUT):
        raise GradientError(
            f"register_post_accumulate_grad_hook: {var.label!r} is neither param nor input, and "
            "gradients accumulate in these only. register_hook works on every node."
        )
    return _register(var, graph._host.after_grad, hook)


def _check_callable(what: str, hook: object) -> None:
    if not callable(hook):
        raise DTypeError(f"{what}({safe_repr(hook):.60}): a hook is a function of one argument.")


def _register(var: Handle, table: dict[int, tuple[Any, ...]], entry: Any) -> HookHandle:
    with var._graph._lock:
        _assign(var, table, (*table.get(var._slot, ()), entry))
        return HookHandle(var, table, entry)


def _assign(var: Handle, table: dict[int, tuple[Any, ...]], hooks: tuple[Any, ...]) -> None:
    """Replace the hooks of a node; nothing has changed if that is refused."""
    graph, slot = var._graph, var._slot
    graph._scheduler.check_idle()
    tidy(graph)
    former = table.get(slot, ())
    with Change(graph) as change:
        change.enter(table, slot, hooks)
        change.follow()
    note(graph, "hooks" if table is graph._host.hooks else "after_grad", slot, former)
