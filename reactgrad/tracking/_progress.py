"""A bar over the batches of a loop: how many, how fast, and how well."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from reactgrad._attributes import OwnAttributes
from reactgrad._habits import answer
from reactgrad._names_of_pandas import OF_BARS
from reactgrad.core._observer import Observer
from reactgrad.graph._var import Var
from reactgrad.tracking._bar import bar as bar_of
from reactgrad.tracking._numbers import number

T = TypeVar("T")


class Progress(OwnAttributes, Generic[T]):
    """An iterable over batches that draws a bar; see ``progress``."""

    def __init__(
        self,
        batches: Iterable[T],
        desc: str | None,
        options: Mapping[str, Any],
        shown: Mapping[str, Any],
    ) -> None:
        self._batches = batches
        self._desc = desc
        self._options = dict(options)
        self._shown: dict[str, Any] = {}
        self._observed: dict[str, tuple[Var, Observer]] = {}
        self.show(**shown)

    def show(self, **shown: Any) -> None:
        """Show these numbers from now on; nodes are observed, functions are called when the bar is drawn.

        A stale node is not read: its number appears when something else has read it.
        """
        for name, given in shown.items():
            if not isinstance(given, Var):
                self._forget(name)
                self._shown[name] = given if callable(given) else number(f"{name}=", given)
            elif name not in self._observed or self._observed[name][0] is not given:
                self._forget(name)
                if given.is_stale:
                    self._shown.pop(name, None)
                else:
                    self._shown[name] = number(f"{name}=", given)
                self._observed[name] = given, given.observe(self._keeper(name))

    def _keeper(self, name: str) -> Callable[[object, object], None]:
        def keep(old: object, new: object) -> None:
            self._shown[name] = number(f"{name}=", new)

        return keep

    def _forget(self, name: str) -> None:
        if name in self._observed:
            self._observed.pop(name)[1].cancel()

    def _text(self) -> str:
        """Return the numbers as the bar shows them."""
        shown = {
            name: number(f"{name}=", given()) if callable(given) else given
            for name, given in self._shown.items()
        }
        return ", ".join(f"{name}={value:.4g}" for name, value in shown.items())

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[T]:
        options = {"desc": self._desc or "", **_facts(self._batches), **self._options}
        if self._desc is not None:
            options["desc"] = self._desc
        bar = bar_of({**options, "text": self._text})
        try:
            for batch in self._batches:
                yield batch
                bar.update()
        finally:
            bar.close()
            for name in [*self._observed]:
                self._forget(name)


answer(Progress, "bar", OF_BARS)


def progress(
    batches: Iterable[T],
    desc: str | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    **shown: Any,
) -> Progress[T]:
    """Return an iterable over the same batches that draws a bar, with the rate and the numbers of a loop.

    A loader that goes on in the middle of an epoch begins there, and its bar names the epoch. Behind the count stand
    the time that is gone, the time that is left at the rate so far, and the rate.

    Parameters
    ----------
    batches : iterable
        A loader, or anything else.
    desc : str, optional
        What stands before the bar; default: the epoch of a loader.
    options : mapping, optional
        By tqdm's names: ``disable`` (``None``: no bar where there is no terminal), ``total``, ``initial``, ``delay``,
        ``file``, ``leave``, ``mininterval``, ``ncols``.
    **shown
        Numbers, nodes of one number, and functions of no argument. A node is observed: its newest value is shown, and
        nothing runs for that. In the loop, ``bar.show(loss=loss)`` shows another one.

    Returns
    -------
    Progress

    Raises
    ------
    DTypeError
        When iteration begins, if there is no such option.
    ShapeError
        If something that is shown is not one number.

    Examples
    --------
    >>> import reactgrad as rg
    >>> w = rg.param(3.0)
    >>> loss = (w - 1.0) ** 2
    >>> for batch in rg.progress(range(100), loss=loss):  # doctest: +SKIP
    ...     loss.backward()
    ...     w.set(w.value - 0.1 * w.grad)
    ...     w.zero_grad()
    100%|██████████| 100/100 [00:00<00:00, 9512.16it/s, loss=2.648e-19]
    """
    return Progress(batches, desc, options or {}, shown)


def _facts(batches: Any) -> dict[str, Any]:
    """Return what a bar should know of a loader: its length, its epoch and its place in it."""
    facts: dict[str, Any] = {}
    try:
        facts["total"] = len(batches)
    except TypeError:
        pass
    if hasattr(batches, "epoch") and hasattr(batches, "state_dict"):
        facts["desc"] = f"epoch {batches.epoch}"
        facts["initial"] = batches.state_dict().get("batch", 0)
    return facts
