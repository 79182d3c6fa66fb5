"""Products of several matrices: powers, chains; and matrices in a diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactgrad._calls import whole
from reactgrad._errors import MatrixShapeError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend._registry import register_kernel
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.linalg._matrices import identity_like, nodes, square_shape
from reactgrad.linalg._solve import inv
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op, RuleOfAll
from reactgrad.ops._deferred import deferred
from reactgrad.ops._index import Index, Placed, getitem
from reactgrad.ops._layout import reshape
from reactgrad.ops._operand import node
from reactgrad.ops._shapes import broadcast, common_device, promote


def matrix_power(a: Any, n: int) -> Any:
    """Return matrices to an integer power.

    Parameters
    ----------
    a : Var or array_like
        Shape (..., m, m).
    n : int
        The power; negative ones are those of the inverse.

    Returns
    -------
    Var
        In the shape of `a`; by repeated squares, as in NumPy.

    Raises
    ------
    LinAlgError
        When read, if `n` is negative and a matrix is singular; at once (``ShapeError``, too) for other shapes.
    DTypeError
        If `n` is no integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linalg.matrix_power([[1, 1], [1, 0]], 10)
    >>> y.value
    array([[89, 55],
           [55, 34]])
    """
    a = node(a)
    power = whole("matrix_power", "n", n)
    found = a._graph._host.specs[a._slot]
    if found is not None:
        square_shape("matrix_power", found)
    if power == 0:
        return identity_like(a)
    if power < 0:
        a, power = inv(a), -power
    result = square = None
    while power:
        square = a if square is None else square @ square
        power, bit = divmod(power, 2)
        if bit:
            result = square if result is None else result @ square
    return result


@deferred
def multi_dot(arrays: Sequence[Any]) -> Any:
    """Return the product of several matrices, in the order of multiplication that costs least.

    Parameters
    ----------
    arrays : sequence of Var or array_like
        At least two matrices; the first and the last may be vectors.

    Returns
    -------
    Var
        As ``arrays[0] @ arrays[1] @ ...``. Where a length is not known yet, from the left.

    Raises
    ------
    ShapeError
        If there are less than two, one has another number of axes, or the lengths do not fit.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linalg.multi_dot([[[1.0, 2.0]], [[3.0], [4.0]], [[5.0]]])
    >>> y.value
    array([[55.]])
    """
    given = nodes(list(arrays))
    if len(given) < 2:
        raise ShapeError(f"multi_dot of {len(given)} arrays: it multiplies at least two.")
    last = len(given) - 1
    for i, one in enumerate(given):
        if one.ndim != 2 and not (one.ndim == 1 and i in (0, last)):
            raise MatrixShapeError(
                f"multi_dot: array {i} has {one.ndim} axes; all are matrices, the first and last may be vectors."
            )
    lengths = [1 if given[0].ndim == 1 else given[0].shape[0]]
    lengths += [one.shape[0] for one in given[1:]]
    lengths += [1 if given[-1].ndim == 1 else given[-1].shape[1]]
    if None in lengths:
        product = given[0]
        for one in given[1:]:
            product = product @ one
        return product
    cuts = _cuts(lengths)

    def multiplied(i: int, j: int) -> Any:
        if i == j:
            return given[i]
        cut = cuts[i, j]
        return multiplied(i, cut) @ multiplied(cut + 1, j)

    return multiplied(0, last)


def _cuts(lengths: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return where to cut each part of a chain (Cormen et al., "Introduction to Algorithms", 15.2)."""
    count = len(lengths) - 1
    costs = {(i, i): 0 for i in range(count)}
    cuts = {}
    for size in range(1, count):
        for i in range(count - size):
            j = i + size
            costs[i, j], cuts[i, j] = min(
                (
                    costs[i, cut]
                    + costs[cut + 1, j]
                    + lengths[i] * lengths[cut + 1] * lengths[j + 1],
                    cut,
                )
                for cut in range(i, j)
            )
    return cuts


# --- matrices in a diagonal --------------------------------------------------------------------


def _total(lengths: list[int | None]) -> int | None:
    return None if None in lengths else sum(lengths)  # type: ignore[arg-type]


def _infer_blocks(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    batch = broadcast("block_diag", [spec(one.shape[:-2], one.dtype, one.device) for one in specs])
    rows, columns = [_total([one.shape[axis] for one in specs]) for axis in (-2, -1)]
    return spec((*batch, rows, columns), promote(specs), common_device("block_diag", specs))


def _places(operands: tuple[Any, ...]) -> list[Index]:
    places, row, column = [], 0, 0
    for one in operands:
        m, n = one.shape[-2:]
        if m is None or n is None:  # the rules are asked again once all lengths are known
            places.append(Index((Ellipsis, slice(None), slice(None))))
            continue
        places.append(Index((Ellipsis, slice(row, row + m), slice(column, column + n))))
        row, column = row + m, column + n
    return places


def _rules(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    places = _places(operands)
    return lambda i, g: getitem(g, places[i].parts)


def _forward_rules(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    places = _places(operands)
    return lambda i, t: Placed(t, places[i])


BLOCK_DIAG = Op(
    "block_diag",
    _infer_blocks,
    variadic=_rules,
    variadic_jvp=_forward_rules,
    any_count=True,
    broadcasts=True,
)


@deferred
def block_diag(*arrs: Any) -> Any:
    """Return matrices along the diagonal of one that is zero elsewhere.

    Parameters
    ----------
    *arrs : Var or array_like
        Shapes (..., m, n), whose leading axes broadcast; a vector counts as one row, a number as one element.

    Returns
    -------
    Var
        As many rows and columns as all of them together.

    Raises
    ------
    ShapeError
        If there is none, or the leading axes do not broadcast.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linalg.block_diag([[1, 2]], 3)
    >>> y.value
    array([[1, 2, 0],
           [0, 0, 3]])
    """
    if not arrs:
        raise ShapeError("block_diag of nothing: it takes at least one matrix.")
    given = nodes(arrs)
    return apply(
        BLOCK_DIAG,
        [one if one.ndim > 1 else reshape(one, (1, -1)) for one in given],
    )


def _register(xp: Any, kind: str) -> None:
    def block_diag(*operands: Any) -> None:
        *blocks, out = operands
        out.fill(0)
        row = column = 0
        for one in blocks:
            m, n = one.shape[-2:]
            out[..., row : row + m, column : column + n] = one
            row, column = row + m, column + n

    register_kernel("block_diag", kind, block_diag)


add_kernels(_register, on_host(("block_diag",)))
