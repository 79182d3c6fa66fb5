"""Tables of vectors, by number."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from reactgrad import ops
from reactgrad._errors import IndexingError, ParameterError, ShapeError
from reactgrad.nn._module import Module
from reactgrad.nn._parameter import Parameter
from reactgrad.nn._values import Values
from reactgrad.nodes._handle import Handle, graph_of
from reactgrad.ops import neural, ordering


class _Table(Module):
    """A table whose rows are found by number."""

    weight: Any

    def _open(
        self,
        name: str,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        rng: Any,
        dtype: Any,
    ) -> None:
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
    rng, dtype
        See ``rg.nn``.

    Attributes
    ----------
    weight : Var, shape (num_embeddings, embedding_dim)
        Normal, with deviation 1.

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
        *,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        self._open("Embedding", num_embeddings, embedding_dim, padding_idx, rng, dtype)

    def forward(self, input: Any) -> Any:
        """Return the rows."""
        return neural.embedding(input, self.weight, self.padding_idx)


class EmbeddingBag(_Table):
    """The mean, sum or largest elements of the rows of each bag of numbers.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        The number of rows, and their length.
    mode : {"mean", "sum", "max"}
    include_last_offset : bool
        Whether the last offset is the end of the last bag.
    rng, dtype
        See ``rg.nn``.

    Attributes
    ----------
    weight : Var, shape (num_embeddings, embedding_dim)

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
        *,
        mode: str = "mean",
        include_last_offset: bool = False,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        if mode not in ("mean", "sum", "max"):
            raise ParameterError(f"EmbeddingBag(mode={mode!r}): it is 'mean', 'sum' or 'max'.")
        self.mode, self.include_last_offset = mode, include_last_offset
        self._open("EmbeddingBag", num_embeddings, embedding_dim, None, rng, dtype)

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
        if per_sample_weights is not None and self.mode != "sum":
            raise ParameterError("EmbeddingBag: per_sample_weights are for mode='sum'.")
        rows = neural.embedding(input, self.weight)
        if per_sample_weights is not None:
            rows = rows * ops.expand_dims(per_sample_weights, -1)
        if input.ndim == 2:
            if offsets is not None:
                raise ShapeError(
                    f"EmbeddingBag of numbers of shape {input.shape}: each row is a bag; offsets are for one axis."
                )
            return {"mean": ops.mean, "sum": ops.sum, "max": ops.max}[self.mode](rows, 1)
        if offsets is None:
            raise ShapeError(
                "EmbeddingBag of numbers along one axis: give offsets, where each bag begins."
            )
        starts: Any = offsets if isinstance(offsets, Handle) else graph_of(input).const(offsets)
        if self.include_last_offset:
            starts = starts[:-1]
        places = np.arange(input.shape[0])
        bags = ordering.searchsorted(starts, places, "right") - 1
        join = {
            "mean": ordering.segment_mean,
            "sum": ordering.segment_sum,
            "max": ordering.segment_max,
        }[self.mode]
        joined = join(rows, bags, starts.shape[0])
        if self.mode != "max":
            return joined
        # The maximum of nothing is minus infinity; an empty bag has zeros, as in PyTorch.
        full = ordering.segment_sum(np.ones(input.shape[0]), bags, starts.shape[0]) > 0.0
        return ops.where(ops.expand_dims(full, -1), joined, 0.0)
