"""Leaves: functions for the current graph, and the verbs of a graph that they call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactgrad.build._leaf import new_leaf
from reactgrad.core._core import Core, V
from reactgrad.graph._var import Var
from reactgrad.nodes._handle import current_graph
from reactgrad.nodes._op import CONST, INPUT, PARAM
from reactgrad.values._columns import MISSING


def _again(*arguments: Any) -> Any:
    """Return the leaf that has this name already, with its new value; see ``leaf_again``."""
    from reactgrad.graph._again import leaf_again  # imported late: few leaves are made twice

    return leaf_again(*arguments)


def input(*args: Any, **kwargs: Any) -> Var:
    """Return a new leaf of the current graph whose value may be set; see ``Graph.input``.

    The current graph is that of the innermost open ``with graph:``, or else a default graph.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph() as g:
    ...     x = rg.input(1.0)
    >>> x.graph is g
    True
    """
    return current_graph().input(*args, **kwargs)


def param(*args: Any, **kwargs: Any) -> Var:
    """Return a new trainable leaf of the current graph; see ``Graph.param``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     w = rg.param([1.0, 2.0])
    >>> w.requires_grad
    True
    """
    return current_graph().param(*args, **kwargs)


def const(*args: Any, **kwargs: Any) -> Var:
    """Return a new leaf of the current graph whose value never changes; see ``Graph.const``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     c = rg.const(2.0)
    >>> c.value
    2.0
    """
    return current_graph().const(*args, **kwargs)


def add_input(
    graph: Core[V],
    /,
    value: Any = MISSING,
    name: str | None = None,
    *,
    shape: Sequence[int | None] | int | None = None,
    dtype: Any = None,
    cutoff: Any = None,
    exist_ok: bool = False,
    device: str | None = None,
) -> V:
    """Return a new leaf whose value may be set.

    Parameters
    ----------
    value : array_like or object, optional
        Arrays are copied. Lists of numbers become arrays. Python numbers and other objects are stored as
        they are. Without a value, a read raises until the input is set.
    name : str, optional
        Unique in the graph.
    shape : sequence of int or None, optional
        The shape that values must have; ``None`` for a length that may differ from set to set.
    dtype : dtype_like, optional
        Values, this one and later ones, are cast to it.
    cutoff : None, "equal", rg.tolerance(...) or callable
        The rule by which a new value counts as unchanged.
    exist_ok : bool
        If the graph has an input of this name, set that one and return it, so that a notebook's cell
        can run twice.
    device : str, optional
        Where the value lives, such as ``"cuda:0"``. By default on the device of the array that is given;
        lists, and arrays of the host, on that of the graph. Later values are moved there.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        For ragged lists, or a value that does not fit ``shape``.
    DTypeError
        For arrays of objects or strings, or a value that cannot be cast to ``dtype``.
    GraphError
        If the name is taken; with ``exist_ok``, by a node that is no input, or was declared with
        another shape, dtype or device.
    DeviceError
        If there is no such device.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> rate = g.input(0.02, name="rate", exist_ok=True)
    >>> g.input(0.03, name="rate", exist_ok=True) is rate, rate.value
    (True, 0.03)
    >>> x = g.input(shape=(None, 2), dtype="f4")
    >>> y = x.sum(axis=1)
    >>> y.shape
    (None,)
    >>> x.set([[1, 2], [3, 4], [5, 6]])
    >>> y.value
    array([ 3.,  7., 11.], dtype=float32)
    """
    if (
        exist_ok
        and (var := _again(graph, INPUT, value, name, shape, dtype, cutoff, device)) is not None
    ):
        return var
    return new_leaf(graph, INPUT, value, name, shape, dtype, cutoff, device)


def add_param(
    graph: Core[V],
    /,
    value: Any = MISSING,
    name: str | None = None,
    *,
    shape: Sequence[int | None] | int | None = None,
    dtype: Any = None,
    cutoff: Any = None,
    exist_ok: bool = False,
    device: str | None = None,
) -> V:
    """Return a new trainable leaf: an array of floats that ``backward`` gives a ``.grad``.

    Parameters
    ----------
    value : array_like
        Floats; copied.
    name, shape, dtype, cutoff, exist_ok, device
        As for ``input``.

    Returns
    -------
    Var

    Raises
    ------
    DTypeError
        If the value is not made of floats.
    ShapeError, GraphError
        As for ``input``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([1.0, 2.0])
    >>> _ = (w * w).sum().backward()
    >>> w.grad
    array([2., 4.])
    """
    if (
        exist_ok
        and (var := _again(graph, PARAM, value, name, shape, dtype, cutoff, device)) is not None
    ):
        return var
    return new_leaf(graph, PARAM, value, name, shape, dtype, cutoff, device)


def add_const(
    graph: Core[V],
    /,
    value: Any,
    name: str | None = None,
    *,
    exist_ok: bool = False,
    device: str | None = None,
) -> V:
    """Return a new leaf whose value never changes.

    Parameters
    ----------
    value : array_like or object
        Copied.
    name : str, optional
        Unique in the graph.
    exist_ok : bool
        If the graph has a const of this name with the same value, return that one.
    device : str, optional
        As for ``input``.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError, DTypeError, GraphError
        As for ``input``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> (g.const(2.0) * 3.0).value
    np.float64(6.0)
    """
    if (
        exist_ok
        and (var := _again(graph, CONST, value, name, None, None, None, device)) is not None
    ):
        return var
    return new_leaf(graph, CONST, value, name, None, None, None, device)
