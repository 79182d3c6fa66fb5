"""Tables of vectors, by number."""

from __future__ import annotations

import weakref
from typing import Any, Self

import numpy as np

from reactgrad._errors import IndexingError, ParameterError, ShapeError
from reactgrad.nn._building import building
from reactgrad.nn._module import Module
from reactgrad.nn._parameter import Parameter
from reactgrad.nn._values import Values
from reactgrad.nodes._handle import Handle, graph_of
from reactgrad.ops import neural
from reactgrad.ops.neural._embedding import check_table
from reactgrad.ops.neural._embedding_bag import embedding_bag
from reactgrad.scheduler import safe_repr


class _Table(Module):
    """A table whose rows are found by number."""

    weight: Any

    def _open(
        self,
        name: str,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        max_norm: float | None,
        norm_type: float,
        scale_grad_by_freq: bool,
        sparse: bool,
        rng: Any,
        dtype: Any,
    ) -> None:
        check_table(name, max_norm, norm_type, sparse)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise IndexingError(
                f"{name}(padding_idx={padding_idx}): there are {num_embeddings} rows."
            )
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        make = Values(rng, dtype)
        first = make.rng.normal(size=(num_embeddings, embedding_dim)).astype(make.dtype)
        if padding_idx is not None:
            first[padding_idx] = 0.0
        self.weight = Parameter(first)

    def _numbers(self, input: Any) -> Any:
        """Return the numbers as a node; a call in train mode will shorten their rows in the table."""
        numbers: Any = input if isinstance(input, Handle) else graph_of(self.weight).const(input)
        call = building() if self.max_norm is not None else None
        if call is not None:
            call.moments.append((weakref.ref(self), numbers))
        return numbers

    def _mix(self, numbers: Any, sets: dict[Any, Any]) -> None:
        """Add to `sets` the table with the rows of these numbers at most `max_norm` long."""
        if self.weight.frozen:
            return
        table, which = sets.get(self.weight, self.weight.value), np.unique(numbers.value)
        if len(which) and not 0 <= which[0] <= which[-1] < len(table):
            return  # reads of the rows say so
        norms = np.linalg.norm(table[which], self.norm_type, axis=1)
        long = norms > self.max_norm
        if long.any():
            table = table.copy()
            table[which[long]] *= (self.max_norm / (norms[long] + 1e-7))[:, None]
            sets[self.weight] = table

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **options: Any) -> Self:
        """Return a layer with this table, frozen unless `freeze` is false."""
        table = np.asarray(embeddings)
        if table.ndim != 2:
            raise ShapeError(f"from_pretrained: the table has shape {table.shape}, not two axes.")
        options |= {"rng": 0, "dtype": table.dtype}
        made = cls(*table.shape, **options)
        made.weight.set(table)
        if freeze:
            made.weight.freeze()
        return made


class Embedding(_Table):
    """The rows of a table with the given numbers; see ``rg.embedding``.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        The number of rows, and their length.
    padding_idx : int, optional
        A row that begins with zeros and gets no gradient.
    max_norm : float, optional
        Rows whose norm is larger are given out at this norm. A *call* in train mode also sets them in the table, as
        PyTorch does; reads never do, nor does a set of the input of a call that was made before. For a loop that sets
        inputs and does not call, ``net.update_statistics()`` does it.
    norm_type : float
        The power of that norm.
    scale_grad_by_freq : bool
        Whether the gradient of a row is divided by how often its number is in the call.
    sparse : bool
        ``True`` is refused: gradients are whole arrays.
    rng, dtype
        See ``rg.nn``.

    Attributes
    ----------
    weight : Var, shape (num_embeddings, embedding_dim)
        Normal, with deviation 1.

    Raises
    ------
    IndexingError, ParameterError
        If there is no such row for padding, or an option makes no sense.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> with rg.Graph():
    ...     layer = rg.nn.Embedding(10, 3)
    >>> layer(np.array([[1, 2], [4, 1]])).shape
    (2, 2, 3)
    """

    _settings = ("num_embeddings", "embedding_dim", "padding_idx")

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        *,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        size = num_embeddings, embedding_dim
        options = padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
        self._open("Embedding", *size, *options, rng, dtype)

    def forward(self, input: Any) -> Any:
        """Return the rows."""
        return neural.embedding(
            self._numbers(input),
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
        )


class EmbeddingBag(_Table):
    """The mean, sum or largest elements of the rows of each bag of numbers; zeros for an empty one.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        The number of rows, and their length.
    max_norm, norm_type, scale_grad_by_freq, sparse
        As for ``Embedding``.
    mode : {"mean", "sum", "max"}
    include_last_offset : bool
        Whether the last offset is the end of the last bag.
    padding_idx : int, optional
        A row that begins with zeros and belongs to no bag.
    rng, dtype
        See ``rg.nn``.

    Attributes
    ----------
    weight : Var, shape (num_embeddings, embedding_dim)

    Raises
    ------
    IndexingError, ParameterError
        If there is no such row for padding, or an option makes no sense.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> with rg.Graph():
    ...     layer = rg.nn.EmbeddingBag(10, 3)
    >>> layer(np.array([1, 2, 4, 5]), np.array([0, 3])).shape
    (2, 3)
    """

    _settings = ("num_embeddings", "embedding_dim", "mode")

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        *,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        if mode not in ("mean", "sum", "max"):
            raise ParameterError(
                f"EmbeddingBag(mode={safe_repr(mode)}): it is 'mean', 'sum' or 'max'."
            )
        self.mode, self.include_last_offset = mode, include_last_offset
        size = num_embeddings, embedding_dim
        options = padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
        self._open("EmbeddingBag", *size, *options, rng, dtype)

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """Return a vector for each bag.

        Parameters
        ----------
        input : Var or array_like of int, shape (bags, length) or (numbers,)
        offsets : Var or array_like of int, optional
            Where each bag begins, for numbers along one axis.
        per_sample_weights : Var or array_like, optional
            A factor for each row, of sums.
        """
        return embedding_bag(
            self._numbers(input),
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            False,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )
