"""The size of the gradients of each layer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.plot._axes import axes, color, plain, tidy


def gradient_flow(params: Any, *, by: str = "layer", ax: Any = None) -> Any:
    """Draw the norms of the gradients that ``backward`` has left, layer by layer, the first on top.

    Layers that learn nothing, or explode, are seen at once. A layer without a gradient (frozen, or not
    reached) has a word instead of a bar.

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
    ax = axes(ax, 7.0, 1.0 + 0.3 * len(squares))
    places = np.arange(len(squares))[::-1]
    norms = [None if square is None else np.sqrt(square) for square in squares.values()]
    positive = [norm for norm in norms if norm is not None and np.isfinite(norm) and norm > 0.0]
    for place, norm in zip(places, norms, strict=True):
        if norm is not None and np.isfinite(norm) and norm > 0.0:
            ax.barh([place], [norm], height=0.7, color=color(0))
    if positive:
        ax.set_xscale("log")
        ax.set_xlim(min(positive) / 3.0, max(positive) * 4.0)
    for place, norm in zip(places, norms, strict=True):
        word = "no gradient" if norm is None else f" {norm:.2g}"
        drawn = norm is not None and np.isfinite(norm) and norm > 0.0
        ax.text(
            norm if drawn else 0.01,
            place,
            word if drawn else word.strip(),
            va="center",
            fontsize="small",
            color="#444444" if drawn else color(1),
            transform=ax.transData if drawn else ax.get_yaxis_transform(),
        )
    ax.set_yticks(places, [plain(name) for name in squares])
    ax.set_ylim(-0.6, len(squares) - 0.4)
    ax.set_xlabel("norm of the gradient")
    return tidy(ax)


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
