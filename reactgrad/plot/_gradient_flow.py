"""The size of the gradients of each layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

import numpy as np

import reactgrad as rg
from reactgrad.plot._axes import axes, color, label_rows, tidy

MOST_HIGH = 9.0  # inches; with more rows than fit, only some of them are labelled


def gradient_flow(params: Any, *, by: str = "layer", ax: Any = None) -> Any:
    """Draw the norms of the gradients that ``backward`` has left, layer by layer, the first on top.

    Layers that learn nothing, or explode, are seen at once. A layer without a gradient (frozen, or not
    reached) has a word instead of a bar. Where there is no room for a label each, every so many rows have one.

    Parameters
    ----------
    params : Module, Graph, or iterable of Var
        A model, a graph (its params), or params.
    by : {"layer", "param"}
        Params of one layer together, by their paths, or each for itself.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    VizError
        If there is no param, or none has a gradient.
    MissingExtraError
        Without matplotlib (extra ``plot``).

    Examples
    --------
    >>> import reactgrad as rg
    >>> w = rg.param([3.0, 4.0], name="w")
    >>> _ = (w * w).sum().backward()
    >>> rg.plot.gradient_flow([w])  # doctest: +SKIP
    <Axes: xlabel='norm of the gradient'>
    """
    if by not in ("layer", "param"):
        raise rg.VizError(f"gradient_flow: by={by!r}: it is 'layer' or 'param'.")
    named = _named(params)
    if not named:
        raise rg.VizError("gradient_flow: there are no params. Give a model, a graph, or params.")
    squares: dict[str, float | None] = {}
    for name, param in named:
        group = _layer(name) if by == "layer" else name
        if param.grad is None:
            squares.setdefault(group, None)
        else:
            gradient = np.asarray(param.grad, float).ravel()
            squares[group] = (squares.get(group) or 0.0) + float(gradient @ gradient)
    if all(found is None for found in squares.values()):
        raise rg.VizError(
            "gradient_flow: no param has a gradient. Call loss.backward() before, and zero_grad() after."
        )
    names = [*squares]
    ax = axes(ax, 7.0, min(1.0 + 0.3 * len(names), MOST_HIGH))
    places = [float(place) for place in range(len(names))]
    norms = [None if square is None else float(np.sqrt(square)) for square in squares.values()]
    step = label_rows(ax, places, names)
    _scale(ax, [norm for norm in norms if _is_drawn(norm)])
    for place, norm in zip(places, norms, strict=True):
        if _is_drawn(norm):
            ax.barh([place], [norm], height=0.7, color=color(0))
            if step == 1:
                _write(ax, norm, place, f" {norm:.2g}", "#444444", ax.transData)
        elif step == 1:
            word = "no gradient" if norm is None else f"{norm:.2g}"
            _write(ax, 0.01, place, word, color(1), ax.get_yaxis_transform())
    if step > 1:  # no room for a word each
        without = [place for place, norm in zip(places, norms, strict=True) if norm is None]
        if without:
            where = ax.get_yaxis_transform()
            label = f"no gradient: {len(without)} of {len(names)}"
            ax.plot(
                [0.01] * len(without), without, "x", color=color(1), transform=where, label=label
            )
            ax.legend(frameon=False, fontsize="small")
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlabel("norm of the gradient")
    return tidy(ax)


def _is_drawn(norm: float | None) -> TypeGuard[float]:
    return norm is not None and np.isfinite(norm) and norm > 0.0


def _scale(ax: Any, norms: Sequence[float]) -> None:
    """Set a logarithmic axis whose labels have room: powers of ten, or, where there is one, numbers between."""
    if not norms:
        return
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set_xscale("log")
    low, high = min(norms) / 3.0, max(norms) * 4.0
    ax.set_xlim(low, high)
    if np.floor(np.log10(high)) - np.ceil(np.log10(low)) < 1:
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def _write(ax: Any, x: float, y: float, text: str, shade: str, transform: Any) -> None:
    ax.text(x, y, text, va="center", fontsize="small", color=shade, transform=transform)


def _named(params: Any) -> list[tuple[str, rg.Var]]:
    """Return params with names: the paths of a model's, the labels of others."""
    if hasattr(params, "named_parameters"):
        return [*params.named_parameters()]
    if isinstance(params, rg.Graph):
        params = params.params
    found: Iterable[rg.Var] = [params] if isinstance(params, rg.Var) else params
    return [(param.label, param) for param in found]


def _layer(name: str) -> str:
    """Return the path of the layer of a param.

    Examples
    --------
    >>> _layer("encoder.0.weight"), _layer("layer1/w"), _layer("w")
    ('encoder.0', 'layer1', 'w')
    """
    for mark in ("/", "."):
        if mark in name:
            return name.rpartition(mark)[0]
    return name
