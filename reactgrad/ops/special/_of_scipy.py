"""The functions of ``scipy.special`` that have another name or meaning here, with what builds their nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from reactgrad.ops.special._bessel_of_scipy import jv, kv, yv
from reactgrad.ops.special._gamma import digamma
from reactgrad.ops.special._powers import rel_entr


def _kl_div(x: Any, y: Any, /) -> Any:
    """Return ``x log(x / y) - x + y``, element by element; ``rg.kl_div`` is PyTorch's loss."""
    return rel_entr(x, y) - x + y


OF_SCIPY: Final[dict[str, Callable[..., Any]]] = {
    "psi": digamma,
    "kl_div": _kl_div,
    "yn": yv,
    "kn": kv,
    **{name: partial(jv, order) for order, name in enumerate(("j0", "j1"))},
    **{name: partial(yv, order) for order, name in enumerate(("y0", "y1"))},
    **{name: partial(kv, order) for order, name in enumerate(("k0", "k1"))},
}
