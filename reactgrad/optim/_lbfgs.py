"""Quasi-Newton steps with a limited memory: L-BFGS, and a line search by strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, GradientError, ParameterError, ShapeError
from reactgrad.optim._bucket import Bucket
from reactgrad.optim._optimizer import Group, Optimizer
from reactgrad.optim._strong_wolfe import Evaluate, strong_wolfe


class LBFGS(Optimizer):
    """Quasi-Newton steps with a limited memory (Liu and Nocedal, 1989), as ``torch.optim.LBFGS``.

    A step evaluates the closure several times. It is made as a whole: an error has changed nothing.

    Parameters
    ----------
    params : iterable
        Params of one group and one dtype.
    lr : float
        The length of each step; with a line search the first one that is tried.
    max_iter, max_eval : int
        The most iterations and evaluations of a step; by default 1.25 evaluations for each iteration.
    tolerance_grad, tolerance_change : float
        It ends where no element of the gradient, or of a change, is larger.
    history_size : int
        The number of former steps that it remembers.
    line_search_fn : {None, "strong_wolfe"}
        The line search.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> w = g.param([-1.5, 2.0])
    >>> loss = ((1.0 - w[0]) ** 2 + 100.0 * (w[1] - w[0] ** 2) ** 2).sum()
    >>> opt = rg.optim.LBFGS([w], line_search_fn="strong_wolfe", max_iter=50)
    >>> def closure():
    ...     opt.zero_grad()
    ...     loss.backward()
    ...     return loss
    >>> first = opt.step(closure)
    >>> w.value.round(4)
    array([1., 1.])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        super().__init__(
            params,
            lr=lr,
            max_iter=max_iter,
            max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
            tolerance_grad=tolerance_grad,
            tolerance_change=tolerance_change,
            history_size=history_size,
            line_search_fn=line_search_fn,
        )
        self._memory: dict[str, Any] = {}

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add the only group.

        Raises
        ------
        GradientError
            If there is one already: its steps need all params at once.
        """
        if self.param_groups:
            raise GradientError(
                "LBFGS takes one group: it makes one step of all params together. Give all of them in one list."
            )
        super().add_param_group(group)

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise ``ParameterError`` for options that make no sense."""
        super().check_options(options)
        if options["line_search_fn"] not in (None, "strong_wolfe"):
            raise ParameterError(
                f"LBFGS(line_search_fn={options['line_search_fn']!r}): None or 'strong_wolfe'."
            )

    def resize(self, places: Mapping[Any, Sequence[int | None]]) -> None:
        """Begin anew: what is remembered is of all elements together."""
        self._memory = {}

    def _flat(self, values: bool) -> Any:
        """Return all params, or all gradients, as one new array; zeros where there is no gradient."""
        parts = []
        for one in self.params:
            part = one.value if values else one.grad
            parts.append(np.zeros(one.size, one.dtype) if part is None else np.ravel(part))
        return np.concatenate(parts)

    def _put(self, flat: Any) -> None:
        """Set the params that are not frozen."""
        new, start = {}, 0
        for one in self.params:
            stop = start + one.size
            if not one.frozen:
                new[one] = flat[start:stop].reshape(one.shape)
            start = stop
        if new:
            self.params[0].graph.set(new)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Go on by iterations of the method.

        Parameters
        ----------
        closure : callable
            It clears the gradients, computes the loss and its gradients, and returns the loss.

        Returns
        -------
        object
            Whatever the closure returned first.
        """
        if closure is None:
            raise DTypeError(
                "LBFGS.step() evaluates the loss several times, so it needs a function: def closure(): "
                "opt.zero_grad(); loss.backward(); return loss."
            )
        if len({one.dtype for one in self.params}) > 1:
            raise DTypeError("LBFGS: the params have several dtypes. Convert them to one.")
        if self._before:
            self._before.call(self)
        start = self._flat(values=True)
        try:
            first, memory = self._iterate(closure, start)
        except BaseException:
            self._put(start)
            raise
        self._memory = memory
        if self._after:
            self._after.call(self)
        return first

    def _iterate(self, closure: Callable[[], Any], x: Any) -> tuple[Any, dict[str, Any]]:
        """Return what the closure returned first, and what is remembered for the next step."""
        group = self.param_groups[0]
        lr, tolerance = group["lr"], group["tolerance_change"]
        memory = dict(self._memory)
        first = closure()
        loss, g = _number(first), self._flat(values=False)
        evaluations, iterations = 1, 0
        memory["func_evals"] = memory.get("func_evals", 0) + 1
        if np.abs(g).max() <= group["tolerance_grad"]:
            return first, memory

        def evaluate(t: float, along: Any, at: Any) -> tuple[float, Any]:
            self._put(at + x.dtype.type(t) * along)
            return _number(closure()), self._flat(values=False)

        d, t, before = memory.get("d"), memory.get("t", lr), memory.get("prev_flat_grad")
        pairs = list(memory.get("pairs", ()))
        scale = memory.get("H_diag", 1.0)
        while iterations < group["max_iter"]:
            iterations += 1
            memory["n_iter"] = memory.get("n_iter", 0) + 1
            if memory["n_iter"] == 1:
                d, pairs, scale = -g, [], 1.0
            else:
                y, s = g - before, d * x.dtype.type(t)
                ys = float(y @ s)
                if ys > 1e-10:
                    pairs = [*pairs, (y, s, 1.0 / ys)][-group["history_size"] :]
                    scale = ys / float(y @ y)
                d = _direction(g, pairs, scale)
            before, loss_before = g.copy(), loss
            t = min(1.0, 1.0 / float(np.abs(g).sum())) * lr if memory["n_iter"] == 1 else lr
            slope = float(g @ d)
            if slope > -tolerance:
                break
            made = 0
            if group["line_search_fn"] == "strong_wolfe":
                look: Evaluate = lambda length, d=d, x=x: evaluate(length, d, x)  # noqa: E731
                loss, g, t, made = strong_wolfe(look, t, d, loss, g, slope, tolerance_change=1e-9)
                x = x + x.dtype.type(t) * d
                self._put(x)
            else:
                x = x + x.dtype.type(t) * d
                self._put(x)
                if iterations != group["max_iter"]:
                    loss, g, made = _number(closure()), self._flat(values=False), 1
            evaluations += made
            memory["func_evals"] += made
            if (
                iterations == group["max_iter"]
                or evaluations >= group["max_eval"]
                or np.abs(g).max() <= group["tolerance_grad"]
                or np.abs(d * t).max() <= tolerance
                or abs(loss - loss_before) < tolerance
            ):
                break
        memory.update(d=d, t=t, prev_flat_grad=before, pairs=pairs, H_diag=scale)
        return first, memory

    # Its memory is that of all params together, in the order of their names in the group.

    def _all_buckets(self) -> list[tuple[Group, Bucket]]:
        return []

    def state_dict(self) -> dict[str, Any]:
        """Return the options, and the memory of all params together in the order of their names."""
        memory = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in self._memory.items()}
        return {**super().state_dict(), "memory": memory}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Take over what ``state_dict`` returned, by the names of the params; their order does not matter.

        With ``strict=False`` and other names it takes the options and begins without a memory, which is that of
        all params together.
        """
        memory = self._ordered(state_dict)
        super().load_state_dict(state_dict, strict)
        self._memory = memory

    def _ordered(self, state_dict: Mapping[str, Any]) -> dict[str, Any]:
        """Return the memory of a state dict in the order of the params here; none of other params."""
        groups, memory = state_dict.get("param_groups", ()), dict(state_dict.get("memory", {}))
        names, dtype = self.param_groups[0]["names"], self.params[0].dtype
        saved = list(groups[0]["params"]) if len(groups) == 1 else []
        if not memory or sorted(saved) != sorted(names):
            return {}
        sizes = {name: one.size for name, one in zip(names, self.params, strict=True)}
        ends = dict(zip(saved, np.cumsum([sizes[name] for name in saved]).tolist(), strict=True))
        total = sum(sizes.values())

        def ordered(flat: Any) -> Any:
            if np.shape(flat) != (total,):
                raise ShapeError(
                    f"LBFGS.load_state_dict: the memory is of arrays of shape {np.shape(flat)}, and the params have "
                    f"{total} elements. It was saved for another model."
                )
            parts = [flat[ends[name] - sizes[name] : ends[name]] for name in names]
            return np.concatenate(parts).astype(dtype, copy=False)

        for key in ("d", "prev_flat_grad"):
            if memory.get(key) is not None:
                memory[key] = ordered(memory[key])
        memory["pairs"] = [(ordered(y), ordered(s), rho) for y, s, rho in memory.get("pairs", ())]
        return memory


def _direction(g: Any, pairs: list[tuple[Any, Any, float]], scale: float) -> Any:
    """Return the direction by two loops over the former steps (Nocedal, 1980)."""
    q = -g
    factors = []
    for y, s, rho in reversed(pairs):
        a = rho * float(s @ q)
        q -= q.dtype.type(a) * y
        factors.append(a)
    q *= q.dtype.type(scale)
    for (y, s, rho), a in zip(pairs, reversed(factors), strict=True):
        q += q.dtype.type(a - rho * float(y @ q)) * s
    return q


def _number(loss: Any) -> float:
    return float(loss.item()) if hasattr(loss, "item") else float(loss)
