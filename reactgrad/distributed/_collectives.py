"""Collectives as nodes: each one's derivative is its partner, so gradients cross ranks, to any order.

What is differentiated is the sum of what all ranks differentiate: each rank begins with its own output. So the
gradient of ``all_reduce(x, "sum")`` is the sum of the gradients of all ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactgrad._errors import DTypeError, ShapeError
from reactgrad.distributed._errors import DistributedError
from reactgrad.distributed._group import Group
from reactgrad.distributed._group import group as present_group
from reactgrad.distributed._pair import pair, received_shape, shape_of
from reactgrad.distributed._reductions import REDUCTIONS
from reactgrad.graph._detached import DetachedVar
from reactgrad.graph._var import Var
from reactgrad.ops import astype, expand_dims, reshape
from reactgrad.ops.factories import ones_like, zeros_like


def _checked(name: str, x: Any, group: Group | None) -> Group:
    if not isinstance(x, Var | DetachedVar):
        raise DTypeError(
            f"rg.distributed.{name} builds nodes and takes a Var, not {type(x).__name__}. Make an input, "
            f'g.input(value), or move a plain array by group.move("{name}", array).'
        )
    return present_group() if group is None else group


def _reduction(name: str, reduction: str, known: Sequence[str]) -> str:
    if reduction not in known:
        raise DistributedError(
            f"{name}(x, {reduction!r}): there is no such reduction. Write one of {', '.join(known)}."
        )
    return reduction


def _pieces(name: str, x: Any, group: Group) -> None:
    """Raise unless the first axis can be cut into a piece for each rank."""
    shape = shape_of(x)
    if shape is None:
        return
    if not shape or (shape[0] is not None and shape[0] % group.size):
        raise ShapeError(
            f"{name} cuts the first axis into {group.size} pieces of one length, one for each rank, and "
            f"{x.label!r} has shape {shape}. Pad it to a multiple of {group.size}."
        )


def _one(group: Group, kind: str, x: Any, vjp: Any, jvp: Any, **options: Any) -> Any:
    shape = received_shape(kind, shape_of(x), group.size)
    return pair(group, kind, [x], [shape], vjp, jvp, **options)[0]


def all_reduce(x: Any, reduction: str = "sum", group: Group | None = None) -> Any:
    """Return the sum, mean, maximum, minimum or product of the values of all ranks.

    Parameters
    ----------
    x : Var
        Of one shape and dtype on all ranks.
    reduction : {"sum", "avg", "max", "min", "product"}
    group : Group, optional
        That of ``init`` by default.

    Returns
    -------
    Var
        The same value on all ranks. A read of it is made by all ranks together.

    Examples
    --------
    >>> import reactgrad as rg
    >>> def work(group):
    ...     x = rg.Graph().input([1.0, group.rank])
    ...     total = rg.distributed.all_reduce(x, "sum", group)
    ...     return total.value.tolist(), rg.grad(total.sum(), x).value.tolist()
    >>> rg.distributed.run(work, "local:2")
    [([2.0, 1.0], [2.0, 2.0]), ([2.0, 1.0], [2.0, 2.0])]
    """
    group = _checked("all_reduce", x, group)
    _reduction("all_reduce", reduction, tuple(REDUCTIONS))
    if reduction == "avg" and x.dtype.kind not in "fc":
        raise DTypeError(
            f'all_reduce(x, "avg"): the mean of {x.dtype} is no {x.dtype}; write '
            'all_reduce(x.astype("float64"), "avg").'
        )
    if reduction in ("sum", "avg"):

        def linear(gs: Any, ans: Any) -> Any:
            return [all_reduce(gs[0], reduction, group)]

        return _one(group, "all_reduce", x, linear, linear, reduction=reduction)
    if reduction == "product":

        def others() -> Any:
            """Return the product of the values of all other ranks."""
            every = all_gather(expand_dims(x, 0), group)
            parts = [every[rank] for rank in range(group.size) if rank != group.rank]
            product = ones_like(x)
            for one in parts:
                product = product * one
            return product

        return _one(
            group,
            "all_reduce",
            x,
            lambda gs, ans: [all_reduce(gs[0], "sum", group) * others()],
            lambda ts, ans: [all_reduce(ts[0] * others(), "sum", group)],
            reduction=reduction,
        )

    def share(ans: Any) -> Any:
        """Return 1 where this rank has the extreme value, shared among those that have it."""
        mine = astype(x == ans[0], x.dtype)
        return mine / all_reduce(mine, "sum", group)

    return _one(
        group,
        "all_reduce",
        x,
        lambda gs, ans: [all_reduce(gs[0], "sum", group) * share(ans)],
        lambda ts, ans: [all_reduce(ts[0] * share(ans), "sum", group)],
        reduction=reduction,
    )


def reduce_add(x: Any, root: int = 0, group: Group | None = None) -> Any:
    """Return the sum of the values of all ranks on one of them, and zeros on the others.

    Its derivative is ``broadcast``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> def work(group):
    ...     return rg.distributed.reduce_add(rg.Graph().input(2.0), 1, group).item()
    >>> rg.distributed.run(work, "local:2")
    [0.0, 4.0]
    """
    return reduce_add_coalesced([x], root, group)[0]


def reduce_add_coalesced(
    xs: Sequence[Any], root: int = 0, group: Group | None = None
) -> tuple[Any, ...]:
    """Return the sums of many values of all ranks on one of them, and zeros on the others, by one message.

    Parameters
    ----------
    xs : sequence of Var
        Of one dtype.
    root : int
        The rank that gets the sums.
    group : Group, optional

    Examples
    --------
    >>> import reactgrad as rg
    >>> def work(group):
    ...     g = rg.Graph()
    ...     a, b = g.input(1.0), g.input([2.0, 3.0])
    ...     sums = rg.distributed.reduce_add_coalesced([a, b], 0, group)
    ...     return [one.value.tolist() for one in sums], group.traffic.messages
    >>> rg.distributed.run(work, "local:2")
    [([2.0, [4.0, 6.0]], 1), ([0.0, [0.0, 0.0]], 1)]
    """
    return _coalesced("reduce", xs, root, group)


def broadcast(x: Any, root: int = 0, group: Group | None = None) -> Any:
    """Return the value of one rank on all of them.

    The other ranks give a Var of the same shape and dtype, whose value does not count. Its derivative is
    ``reduce_add``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> def work(group):
    ...     x = rg.Graph().input(group.rank + 1.0)
    ...     y = rg.distributed.broadcast(x, 1, group)
    ...     return y.item(), rg.grad(y, x).item()
    >>> rg.distributed.run(work, "local:2")
    [(2.0, 0.0), (2.0, 2.0)]
    """
    return broadcast_coalesced([x], root, group)[0]


def broadcast_coalesced(
    xs: Sequence[Any], root: int = 0, group: Group | None = None
) -> tuple[Any, ...]:
    """Return many values of one rank on all of them, by one message; of one dtype."""
    return _coalesced("broadcast", xs, root, group)


_PARTNER = {"reduce": "broadcast", "broadcast": "reduce"}


def _coalesced(kind: str, xs: Any, root: int, group: Group | None) -> tuple[Any, ...]:
    xs = list(xs)
    name = {"reduce": "reduce_add_coalesced", "broadcast": "broadcast_coalesced"}[kind]
    if not xs:
        return ()
    for x in xs:
        group = _checked(name, x, group)
    assert group is not None
    group.check_rank(root, name)
    kinds = {x.dtype for x in xs}
    if len(kinds) > 1:
        raise DTypeError(
            f"{name}: one message holds one dtype, and these have {', '.join(map(str, kinds))}. Call it "
            "once for each, or convert by astype."
        )

    def pull(gs: Any, ans: Any) -> Any:
        filled = [zeros_like(y) if g is None else g for g, y in zip(gs, ans, strict=True)]
        return _coalesced(_PARTNER[kind], filled, root, group)

    def push(ts: Any, ans: Any) -> Any:
        filled = [zeros_like(x) if t is None else t for t, x in zip(ts, xs, strict=True)]
        return _coalesced(kind, filled, root, group)

    return pair(group, kind, xs, [shape_of(x) for x in xs], pull, push, root=root)


def scatter(x: Any, root: int = 0, group: Group | None = None) -> Any:
    """Return the piece of the first axis of one rank's value that belongs to this rank.

    The other ranks give a Var of the same shape and dtype. Its derivative is ``gather``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> def work(group):
    ...     x = rg.Graph().input([1.0, 2.0, 3.0, 4.0])
    ...     return rg.distributed.scatter(x, 0, group).value.tolist()
    >>> rg.distributed.run(work, "local:2")
    [[1.0, 2.0], [3.0, 4.0]]
    """
    group = _checked("scatter", x, group)
    group.check_rank(root, "scatter")
    _pieces("scatter", x, group)
    return _one(
        group,
        "scatter",
        x,
        lambda gs, ans: [gather(gs[0], root, group)],
        lambda ts, ans: [scatter(ts[0], root, group)],
        root=root,
    )


def gather(x: Any, root: int = 0, group: Group | None = None) -> Any:
    """Return the values of all ranks on one of them, along the first axis, and zeros on the others.

    Scalars gather to a vector. Its derivative is ``scatter``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> def work(group):
    ...     x = rg.Graph().input(group.rank + 1.0)
    ...     return rg.distributed.gather(x, 0, group).value.tolist()
    >>> rg.distributed.run(work, "local:2")
    [[1.0, 2.0], [0.0, 0.0]]
    """
    group = _checked("gather", x, group)
    group.check_rank(root, "gather")
    x = _with_axis(x)
    return _one(
        group,
        "gather",
        x,
        lambda gs, ans: [scatter(gs[0], root, group)],
        lambda ts, ans: [gather(ts[0], root, group)],
        root=root,
    )


def _with_axis(x: Any) -> Any:
    return reshape(x, (1,)) if x.ndim == 0 else x


def all_gather(x: Any, group: Group | None = None) -> Any:
    """Return the values of all ranks along the first axis; scalars gather to a vector.

    Its derivative is ``reduce_scatter``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> def work(group):
    ...     return rg.distributed.all_gather(rg.Graph().input([group.rank]), group).value.tolist()
    >>> rg.distributed.run(work, "local:2")
    [[0, 1], [0, 1]]
    """
    group = _checked("all_gather", x, group)
    x = _with_axis(x)
    return _one(
        group,
        "all_gather",
        x,
        lambda gs, ans: [reduce_scatter(gs[0], "sum", group)],
        lambda ts, ans: [all_gather(ts[0], group)],
    )


def reduce_scatter(x: Any, reduction: str = "sum", group: Group | None = None) -> Any:
    """Return this rank's piece, along the first axis, of the sum or mean of the values of all ranks.

    Its derivative is ``all_gather``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> def work(group):
    ...     x = rg.Graph().input([1.0, 2.0])
    ...     return rg.distributed.reduce_scatter(x, "sum", group).value.tolist()
    >>> rg.distributed.run(work, "local:2")
    [[2.0], [4.0]]
    """
    group = _checked("reduce_scatter", x, group)
    _reduction("reduce_scatter", reduction, ("sum", "avg"))
    _pieces("reduce_scatter", x, group)
    scale = 1.0 / group.size if reduction == "avg" else None

    def pull(gs: Any, ans: Any) -> Any:
        every = all_gather(gs[0], group)
        return [every if scale is None else every * scale]

    return _one(
        group,
        "reduce_scatter",
        x,
        pull,
        lambda ts, ans: [reduce_scatter(ts[0], reduction, group)],
        reduction=reduction,
    )


def all_to_all(x: Any, group: Group | None = None) -> Any:
    """Give each rank a piece of the first axis. Return the pieces that all ranks give to this one.

    Its derivative is ``all_to_all``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> def work(group):
    ...     x = rg.Graph().input([10.0 * group.rank, 10.0 * group.rank + 1.0])
    ...     return rg.distributed.all_to_all(x, group).value.tolist()
    >>> rg.distributed.run(work, "local:2")
    [[0.0, 10.0], [1.0, 11.0]]
    """
    group = _checked("all_to_all", x, group)
    _pieces("all_to_all", x, group)

    def linear(gs: Any, ans: Any) -> Any:
        return [all_to_all(gs[0], group)]

    return _one(group, "all_to_all", x, linear, linear)


def send(x: Any, to: int, group: Group | None = None) -> Any:
    """Give the value to another rank, which calls ``recv``. Return a number, 0, whose read gives it.

    Its derivative is ``recv``: add the number to this rank's loss, and gradients come back over it.

    Examples
    --------
    >>> import reactgrad as rg
    >>> def work(group):
    ...     x = rg.Graph().input([1.0, 2.0])
    ...     if group.rank == 0:
    ...         sent = rg.distributed.send(x, 1, group)
    ...         return rg.grad(sent, x).value.tolist()
    ...     y = (rg.distributed.recv(x, 0, group) ** 2).sum()
    ...     return rg.grad(y, x).value.tolist()
    >>> rg.distributed.run(work, "local:2")
    [[2.0, 4.0], [2.0, 4.0]]
    """
    group = _checked("send", x, group)
    _other(group, to, "send")
    sent = _sent(x, to, group)
    return (sent * 0.0).sum() if x.dtype.kind in "fc" else (sent * 0).sum()


def recv(like: Any, source: int, group: Group | None = None) -> Any:
    """Return the value that another rank sends to this one.

    Parameters
    ----------
    like : Var
        Of the same shape and dtype, such as an input of zeros. Its gradient is that of what comes, and a
        read of it sends it back.
    source : int
        The rank that calls ``send``.
    group : Group, optional
    """
    group = _checked("recv", like, group)
    _other(group, source, "recv")
    return _received(like, source, group, 1.0)


def _sent(x: Any, to: int, group: Group) -> Any:
    """Return a node that gives a value to another rank, and has the same value."""
    return pair(
        group,
        "message",
        [x],
        [shape_of(x)],
        # It depends on the node itself: the value goes before the gradient comes.
        lambda gs, ans: [_received(ans[0], to, group, 0.0)],
        lambda ts, ans: [_sent(ts[0], to, group)],
        root=group.rank,
        to=to,
    )[0]


def _received(like: Any, source: int, group: Group, factor: float) -> Any:
    """Return a node that has what another rank gives; `factor` is that of the gradient of `like`."""

    def pull(gs: Any, ans: Any) -> Any:
        sent = _sent(gs[0], source, group)
        return [sent if factor == 1.0 else sent * factor]

    return pair(
        group,
        "message",
        [like],
        [shape_of(like)],
        pull,
        lambda ts, ans: [_received(ts[0], source, group, factor)],
        root=source,
        to=group.rank,
    )[0]


def _other(group: Group, rank: int, name: str) -> None:
    group.check_rank(rank, name)
    if rank == group.rank:
        raise DistributedError(f"{name}: rank {rank} is this rank. Use the Var itself.")


def barrier(group: Group | None = None) -> None:
    """Wait until all ranks are here.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.distributed.run(lambda group: rg.distributed.barrier(group), "local:2")
    [None, None]
    """
    (present_group() if group is None else group).barrier()
