"""Functions of nodes that are built once for each structure of their arguments, and then reused.

What was built, an *instance*, begins with one feed node for each array or node among the arguments.
A later call makes the feeds follow other nodes or values, if nothing can see the former result any
more.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, overload

from reactgrad._attributes import OwnAttributes
from reactgrad._errors import DTypeError, GraphError, UnsetError
from reactgrad.autodiff._custom import asked_before_reads
from reactgrad.backend import Spec
from reactgrad.core._core import Core
from reactgrad.core._handles import tidy
from reactgrad.flow._autocast import precision_here
from reactgrad.flow._checkpoint import in_checkpoint
from reactgrad.flow._mode import is_grad_enabled
from reactgrad.flow._saved import hooks_here
from reactgrad.nodes._handle import Handle, entered, graph_of
from reactgrad.nodes._nested import mapped
from reactgrad.nodes._op import FEED
from reactgrad.reading._refresh import follow_rules
from reactgrad.scheduler import add_note, safe_repr
from reactgrad.subgraphs._arguments import _feeds, _read, _structure, as_array, surroundings
from reactgrad.subgraphs._feeds import _feed
from reactgrad.subgraphs._instance import Instance
from reactgrad.subgraphs._pool import Pool
from reactgrad.subgraphs._sharing import Sharing

P = ParamSpec("P")
R = TypeVar("R")


class Subgraph(OwnAttributes, Generic[P, R]):
    """A function whose nodes are built once and reused; made by ``rg.subgraph``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> @rg.subgraph
    ... def double(x):
    ...     return x * 2.0
    >>> double(3.0).value
    np.float64(6.0)
    """

    _sharing = Sharing.ALL

    def __init__(self, function: Callable[P, R]) -> None:
        self._function: Callable[..., R] = function
        functools.update_wrapper(self, function)
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):  # some built-in functions have none
            self._signature = None

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        given, named = self._written(args, kwargs)
        if list in map(type, given):
            given = tuple([as_array(one) for one in given])
        if named:
            named = {name: as_array(one) for name, one in named.items()}
        arguments: list[Any] = []
        structure = _structure((given, named), arguments)
        graph = graph_of((given, named))
        specs, arguments = _read(graph, arguments)
        with graph._lock:
            graph._scheduler.check_idle()
            tidy(graph)  # release nodes that nothing holds: instances may be free then
            mode = graph._host.mode
            training = mode is None or graph._host.data[mode]
            key = (
                structure,
                surroundings(self._function),
                specs,
                is_grad_enabled(graph),
                training,
                hooks_here(),
                in_checkpoint(),
                precision_here(),
            )
            if graph._subgraphs is None:
                graph._subgraphs = Pool()
            return graph._subgraphs.instance(
                graph,
                self,
                key,
                arguments,
                lambda: self._build(graph, given, named, specs, arguments),
                self._sharing,
            ).returned(graph)

    def _written(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Return the arguments in one form, whether they were named or left out."""
        if self._signature is None:
            return args, kwargs
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _build(
        self, graph: Core, args: Any, kwargs: Any, specs: tuple[Spec | None, ...], arguments: Any
    ) -> Instance:
        """Return a new instance, which is fed with these arguments."""
        first = graph._scheduler.topology.next_serial
        feeds = [_feed(graph, found) for found in specs]
        stand_ins = iter(feeds)
        numbers: set[int] = set()  # inputs that hold a number, which stand for themselves

        def stand_in(one: Any) -> Any:
            if _feeds(one):
                return next(stand_ins)
            if isinstance(one, Handle):
                numbers.add(one._slot)
            return one

        args, kwargs = mapped((args, kwargs), stand_in)
        try:
            with entered(graph), graph._subgraphs.building(feeds, arguments):
                result = _called(graph, numbers, lambda: self._function(*args, **kwargs))
                if graph._programs.waiting:  # now, so that the nodes built so are the final ones
                    follow_rules(graph)
        except GraphError as error:
            if not any(isinstance(one, Handle) for one in arguments):
                add_note(
                    error,
                    f"{self.__name__} was called without nodes, so what it builds belongs to the current "  # type: ignore[attr-defined]
                    "graph. Call it inside of `with g:`, g being the graph of the nodes that it uses.",
                )
            raise
        tidy(graph)  # intermediate nodes that nothing needs are not part of it
        instance = Instance(graph, feeds, result, first)
        with graph._scheduler.notes.aside():  # a failed transaction leaves it as any new node
            instance.feed(graph, dict(zip(instance.feeds, arguments, strict=True)))
        return instance


# --- arguments -----------------------------------------------------------------------------------


def _called(graph: Core, unread: set[int], function: Callable[[], Any]) -> Any:
    """Call a function that may read neither these nodes nor what is computed from them."""
    if not unread:
        return function()

    def check(slot: int) -> None:
        if not unread.isdisjoint(graph._scheduler.topology.ancestors([slot])):
            raise UnsetError(FEED.missing)

    return asked_before_reads(graph, check, function)


# --- feeds ---------------------------------------------------------------------------------------


# --- nodes ---------------------------------------------------------------------------------------


@overload
def subgraph(function: Callable[P, R]) -> Subgraph[P, R]: ...
@overload
def subgraph(function: None = None) -> Callable[[Callable[P, R]], Subgraph[P, R]]: ...
def subgraph(function: Any = None) -> Any:
    """Return a function whose nodes are built once for each structure and reused afterwards.

    Called with an array, a Var or a detached Var, the same nodes follow the array, follow the Var,
    or follow it without passing gradients to it. So a model that is written as a function, and
    called again for every batch, is not built again. A call checks for each node of the instance,
    and of the gradients that live with it, whether anything outside sees it, which costs some 0.2
    us a node.

    Two results that live never change each other: nodes are used again only when nothing can see
    their former result, or when the arguments are the same. A result is seen by whatever holds it,
    by a node or gradient that depends on it, and by its observers.

    The structure of a call is the nesting of the arguments in tuples, lists and dicts; shape, dtype
    and device of arrays and nodes; whether gradients are recorded, train or eval mode, the block of
    ``saved_tensors_hooks`` and whether it is called for a checkpoint; and everything else that is
    passed: integers, strings and other plain values by value, objects such as ``self`` and inputs
    that hold a number by identity. Anything else that the function reads, it reads only when it is
    built. That includes ``x.requires_grad``, which says nothing there, since gradients pass as each
    call has it.

    Parameters
    ----------
    function : callable
        Builds and returns nodes, in any nesting of tuples, lists and dicts. It cannot read the values
        of its arguments. May be a method.

    Returns
    -------
    Subgraph
        Called like the function, with arrays and floats where the function takes nodes.

    Raises
    ------
    UnsetError
        If the function reads the value of an argument.
    GraphError
        If the arguments are nodes of several graphs.

    Notes
    -----
    Without a node among the arguments the nodes belong to the current graph. Of each function and graph,
    the last 16 instances that are free are kept.

    Each argument is one of its own, also where two are the same node: a gradient that is asked for inside
    is by that argument alone.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph() as g:
    ...     w = rg.param([1.0, 2.0])
    ...     x = rg.input([3.0, 4.0])
    >>> @rg.subgraph
    ... def loss(x):
    ...     return ((w * x) ** 2).sum()
    >>> loss(x).value
    np.float64(73.0)
    >>> size = len(g)
    >>> loss(x * 2.0).value, loss(x.detach()).value
    (np.float64(292.0), np.float64(73.0))
    >>> len(g) == size
    True
    >>> first, second = loss(x), loss(x + 1.0)
    >>> first.value, second.value
    (np.float64(73.0), np.float64(116.0))
    """
    if function is None:
        return subgraph
    if not callable(function):
        raise DTypeError(
            f"subgraph takes a function that builds nodes, not {safe_repr(function):.60}."
        )
    return Subgraph(function)
