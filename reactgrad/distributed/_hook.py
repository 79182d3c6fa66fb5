"""The hook that averages the gradient of one param over the ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reactgrad.core._gradients import Gradients
from reactgrad.distributed._errors import DistributedError
from reactgrad.distributed._group import Group
from reactgrad.distributed._group import group as present_group
from reactgrad.distributed._reductions import REDUCTIONS


def all_reduce_hook(reduction: str = "avg", group: Group | None = None) -> Callable[[Any], None]:
    """Return a hook that reduces ``.grad`` over the ranks, for ``register_post_accumulate_grad_hook``.

    One message for each param, after ``backward``: for a few params, or where each needs another reduction.
    ``DataParallel`` sends buckets, while gradients are computed.

    Parameters
    ----------
    reduction : {"sum", "avg", "max", "min", "product"}
    group : Group, optional

    Examples
    --------
    >>> import reactgrad as rg
    >>> def work(group):
    ...     w = rg.Graph().param(1.0)
    ...     w.register_post_accumulate_grad_hook(rg.distributed.all_reduce_hook("avg", group))
    ...     (w * (group.rank + 1.0)).backward()
    ...     return w.grad.item()
    >>> rg.distributed.run(work, "local:2")
    [1.5, 1.5]
    """
    found = present_group() if group is None else group
    if reduction not in REDUCTIONS:
        raise DistributedError(
            f"all_reduce_hook({reduction!r}): there is no such reduction. Write one of {', '.join(REDUCTIONS)}."
        )

    def hook(param: Any) -> None:
        graph = param._graph
        value = np.asarray(param.grad)
        flat = found.move("all_reduce", value, reduction=reduction)
        result = flat.reshape(value.shape)[()]
        if isinstance(result, np.ndarray):
            result.flags.writeable = False
            result = result.view()
        with graph._lock:
            host = graph._host
            former = host.gradients.apart()
            alone = {**former.alone, param._slot: result}
            host.gradients = Gradients(alone, {}, former.between, former.replaced)

    return hook
