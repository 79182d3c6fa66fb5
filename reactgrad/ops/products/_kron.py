"""The Kronecker product."""

from __future__ import annotations

from typing import Any, Final

from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api import _kron as _standard
from reactgrad.backend.numpy import _kron
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._layout import reshape_to
from reactgrad.ops._shapes import common_device, promote
from reactgrad.ops.products._contract import contract
from reactgrad.ops.products._operands import variables
from reactgrad.ops.products._subscripts import LETTERS

add_kernels(_kron.register, _standard.register)


def _paired(a: tuple[Any, ...], b: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    """Return the lengths of both operands axis by axis; the shorter shape has 1 in front."""
    ndim = max(len(a), len(b))
    return list(zip((1,) * (ndim - len(a)) + a, (1,) * (ndim - len(b)) + b, strict=True))


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    a, b = specs
    shape = [None if m is None or n is None else m * n for m, n in _paired(a.shape, b.shape)]
    return spec(tuple(shape), promote(specs), common_device("kron", specs))


def _apart(g: Any, a: Any, b: Any) -> tuple[Any, str, str, str]:
    """Return `g` with the axes of both operands side by side, and the labels of its axes and of theirs."""
    both = _paired(a.shape, b.shape)
    ndim = len(both)
    first, second = LETTERS[:ndim], LETTERS[ndim : 2 * ndim]
    lengths = [n for pair in both for n in pair]
    labels = [one for pair in zip(first, second, strict=True) for one in pair]
    names = [one for one in labels if one in first[ndim - a.ndim :] + second[ndim - b.ndim :]]
    kept = [n for n, one in zip(lengths, labels, strict=True) if one in names]
    return (
        reshape_to(g, tuple(kept)),
        "".join(names),
        first[ndim - a.ndim :],
        second[ndim - b.ndim :],
    )


def _first_rule(g: Any, ans: Any, a: Any, b: Any) -> Any:
    g, both, first, second = _apart(g, a, b)
    return contract(g, b, both, second, first)


def _second_rule(g: Any, ans: Any, a: Any, b: Any) -> Any:
    g, both, first, second = _apart(g, a, b)
    return contract(g, a, both, first, second)


KRON: Final = Op("kron", _infer, (_first_rule, _second_rule), (LINEAR, LINEAR))


def kron(a: Any, b: Any) -> Any:
    """Return the Kronecker product: each element of `a` times all of `b`, as blocks.

    Parameters
    ----------
    a, b : Var or array_like
        Any shapes; that with fewer axes gets axes of length 1 in front.

    Returns
    -------
    Var
        Each axis as long as the product of those of `a` and `b`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.kron([1.0, 10.0], [[1.0, 2.0]])
    >>> y.value
    array([[ 1.,  2., 10., 20.]])
    """
    return apply(KRON, tuple(variables(a, b)))
