"""Numbers over the runs of a recording."""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.plot._axes import axes, color, panels, plain, stacked, tidy, titled


def history(log: rg.Recording, *nodes: rg.Var | str, ax: Any = None) -> Any:
    """Draw the values of nodes after each run of a recording.

    A node that was stale after a run has a gap there. The snapshots of a recording have six digits. Where one
    axis would make lines flat beside a much larger one, lines of like size have Axes of their own, one above
    the other over the same runs.

    Parameters
    ----------
    log : Recording
        Of ``with g.record(snapshots=True) as log``.
    *nodes : Var or str
        Nodes of one number each, by Var or name.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes
        Of several the lowest, in the place of ``ax``; ``ax.figure.axes`` has all.

    Raises
    ------
    VizError
        If the recording has no snapshots, or a node is not one number.
    MissingExtraError
        Without matplotlib (extra ``plot``).

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0, name="x")
    >>> y = x * x
    >>> with g.record(snapshots=True) as log:
    ...     for value in (1.0, 2.0, 3.0):
    ...         x.set(value)
    ...         _ = y.value
    >>> rg.plot.history(log, x, y)  # doctest: +SKIP
    <Axes: xlabel='run'>
    """
    snapshots = log.snapshots[1:]
    if not snapshots:
        raise rg.VizError(
            "history: this recording has kept no snapshots of a run. Write "
            "`with g.record(snapshots=True) as log`, and read in it."
        )
    if not nodes:
        raise rg.VizError("history: name the nodes to draw, rg.plot.history(log, loss).")
    names = [node if isinstance(node, str) else node.label for node in nodes]
    lines = [_numbers(snapshots, name) for name in names]
    groups = panels(lines)
    ax = axes(ax, height=max(3.6, 1.0 + 1.5 * len(groups)))
    runs = np.arange(1, len(snapshots) + 1)
    mark = "." if len(runs) <= 60 else None
    for part, members in zip(stacked(ax, len(groups)), groups, strict=True):
        for number in members:
            style = {"color": color(number), "marker": mark, "label": plain(names[number])}
            part.plot(runs, lines[number], linewidth=1.6, **style)
        if len(groups) > 1:
            titled(part, members, names)
        tidy(part)
    ax.set_xlabel("run")
    ax.xaxis.get_major_locator().set_params(integer=True)
    if len(names) == 1:
        ax.set_ylabel(plain(names[0]))
    elif len(groups) == 1:
        ax.legend(frameon=False)
    return ax


def _numbers(snapshots: Any, name: str) -> list[float]:
    """Return the value of a node in each snapshot; NaN where it has none."""
    found: list[float] = []
    known = False
    for snapshot in snapshots:
        node = next((node for node in snapshot.nodes if node.name == name), None)
        known |= node is not None
        text = "" if node is None else node.value
        try:
            found.append(float(text) if text else float("nan"))
        except ValueError:
            raise rg.VizError(
                f"history: {name!r} holds {text:.40}, and a line shows numbers. Record a number of "
                "it, its mean() say."
            ) from None
    if not known:
        raise rg.VizError(f"history: the recording has no node {name!r}.")
    return found
