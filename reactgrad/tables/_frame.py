"""``Table``: a DataFrame as columns of Vars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, NoReturn

import numpy as np

import reactgrad as rg
from reactgrad._attributes import OwnAttributes
from reactgrad._habits import AbsentError, absent
from reactgrad._names_of_pandas import OF_TABLES
from reactgrad.tables._errors import TableError


class Table(OwnAttributes):
    """A DataFrame as columns of Vars: in and out, with its keys.

    Columns of numbers and truth values become inputs, one Var a column. Texts, dates, categories and other
    labels are kept as they are. Assign a computed column as in pandas; it stays live. In a fork ``w[t]`` is the
    same table of its nodes.

    Parameters
    ----------
    frame : DataFrame or mapping
        A mapping from names to columns has the keys 0, 1, 2, ...
    graph : Graph, optional
        By default a new one.
    params : sequence of str
        Columns that are trained: they become params.
    name : str, optional
        Stands before the names of the columns: ``name="book"`` makes ``"book/price"``.

    Raises
    ------
    TableError
        If columns have no or the same names, or keys are there twice where rows are found by keys.
    MissingExtraError
        Without pandas (extra ``tables``).

    Examples
    --------
    >>> import reactgrad as rg
    >>> t = rg.Table({"price": [10.0, 20.0], "units": [3.0, 4.0]})  # doctest: +SKIP
    >>> t["sales"] = t["price"] * t["units"]  # doctest: +SKIP
    >>> t.set({"price": [11.0, 20.0]})  # doctest: +SKIP
    >>> t.to_pandas()  # doctest: +SKIP
       price  units  sales
    0   11.0    3.0   33.0
    1   20.0    4.0   80.0
    """

    _OTHERWISE: ClassVar[str] = "A column is assigned by t[{name!r}] = values."

    def __init__(
        self,
        frame: Any,
        graph: rg.Graph | None = None,
        *,
        params: Sequence[str] = (),
        name: str | None = None,
    ) -> None:
        pd = _pandas()
        if isinstance(frame, Mapping):
            frame = pd.DataFrame(frame)
        if not isinstance(frame, pd.DataFrame):
            raise TableError(
                f"Table was given {type(frame).__name__}: give a DataFrame, or a dict of names and columns."
            )
        if frame.columns.nlevels > 1 or len(set(frame.columns)) < len(frame.columns):
            raise TableError(
                "a Table needs columns of different names, on one level. Rename them, or flatten the levels: "
                'frame.columns = ["_".join(c) for c in frame.columns].'
            )
        if unknown := [one for one in params if one not in frame.columns]:
            raise TableError(
                f"params={unknown}: there are no such columns. There are {list(frame.columns)}."
            )
        self.graph = rg.Graph() if graph is None else graph
        self.index = frame.index
        self._name = name
        self._columns: dict[Any, Any] = {}  # Vars; or Series of labels
        self._inputs: dict[Any, rg.Var] = {}
        self._dtypes: dict[Any, Any] = {}
        for column in frame.columns:
            values = _numbers(frame[column])
            if values is None:
                self._columns[column] = frame[column].copy()
                continue
            make = self.graph.param if column in params else self.graph.input
            var = make(values, name=self._title(column))
            self._columns[column] = self._inputs[column] = var
            self._dtypes[column] = frame[column].dtype

    def _title(self, column: Any) -> str | None:
        """Return the name of the leaf of a column, ``None`` where the graph has one of this name."""
        title = f"{self._name}/{column}" if self._name else str(column)
        return None if title in self.graph else title

    def _twin_in(self, graph: rg.Graph) -> Table:
        """Return the same table of a fork, as ``fork[table]``."""
        twin = copy(self)
        columns = {
            name: graph[one] if isinstance(one, rg.Var) else one
            for name, one in self._columns.items()
        }
        twin.graph, twin._columns, twin._dtypes = graph, columns, dict(self._dtypes)
        twin._inputs = {name: columns[name] for name in self._inputs}
        return twin

    # --- columns --------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[Any, ...]:
        """Names of all columns, in order."""
        return tuple(self._columns)

    @property
    def inputs(self) -> dict[Any, rg.Var]:
        """Columns that may be set, by name."""
        return dict(self._inputs)

    @property
    def labels(self) -> tuple[Any, ...]:
        """Names of the columns that are kept as they are: texts, dates, categories."""
        return tuple(name for name, one in self._columns.items() if not isinstance(one, rg.Var))

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._columns)

    def __contains__(self, column: object) -> bool:
        return column in self._columns

    def __getattr__(self, name: str) -> NoReturn:
        if name in vars(self).get("_columns", ()):
            raise AbsentError(
                f"a Table has no attribute {name!r}. Columns are items: write t[{name!r}].", name
            )
        raise absent("a Table", "t", name, OF_TABLES, dir(type(self)))

    def __delitem__(self, column: Any) -> NoReturn:
        raise TableError(
            "a Table keeps its columns, since others may be computed from them. Choose those to show: "
            "t.to_pandas().drop(columns=[...])."
        )

    def __getitem__(self, column: Any) -> Any:
        """Return a column: a Var, or the Series of a column of labels."""
        if isinstance(column, list | np.ndarray | rg.Var | _pandas().Series | _pandas().DataFrame):
            raise TableError(
                "a Table keeps its rows and gives one column at a time: write t['units'], t['units'][mask] for some of "
                "its rows, or t.to_pandas()[...] for a DataFrame of the values of now."
            )
        if column not in self._columns:
            raise TableError(f"there is no column {column!r}. There are {list(self._columns)}.")
        return self._columns[column]

    def __setitem__(self, column: Any, values: Any) -> None:
        """Add a column that is computed from others, or put another one in its place.

        A Series is taken by its keys. Values for a column that is an input are set with ``set``.

        Raises
        ------
        TableError
            If the column is an input, the values have other keys or another length, or belong to another graph.
        """
        if column in self._inputs and values is not self._inputs[column]:
            way = (
                f"write t.set({{{column!r}: (...).value}}) to change its numbers, or give the computed column a name "
                "of its own: what was built from the input would not follow the formula."
                if isinstance(values, rg.Var)
                else f"write t.set({{{column!r}: values}}), so that all that follows from it follows."
            )
            raise TableError(f"{column!r} is an input: {way}")
        if not isinstance(values, rg.Var):
            found = _numbers(self._by_keys(column, values))
            if found is None:
                self._columns[column] = self._by_keys(column, values)
                return
            values = self.graph.input(found, name=self._title(column))
            self._inputs[column] = values
        elif values.graph is not self.graph:
            raise TableError(f"the values of {column!r} belong to another graph than the table.")
        elif values.shape == ():
            values = rg.broadcast_to(values, (len(self),))
        if values.shape is not None and values.shape[:1] != (len(self),):
            raise TableError(
                f"{column!r} has the shape {values.shape}, and the table {len(self)} rows: a column has "
                "one value a row."
            )
        self._dtypes.pop(column, None)
        self._columns[column] = values

    def _by_keys(self, column: Any, values: Any) -> Any:
        pd = _pandas()
        if isinstance(values, pd.Series):
            self._same_keys(values.index, f"the column {column!r}")
            return values.reindex(self.index)
        if np.ndim(values) == 0 or isinstance(values, str):
            values = [values] * len(self)
        if len(values) != len(self):
            raise TableError(
                f"{column!r} has {len(values)} values, and the table {len(self)} rows."
            )
        return pd.Series(values, index=self.index)

    def _same_keys(self, keys: Any, what: str) -> None:
        if not self.index.is_unique or not keys.is_unique:
            twice = (self.index if not self.index.is_unique else keys).duplicated()
            key = (self.index if not self.index.is_unique else keys)[twice][0]
            raise TableError(
                f"{what}: rows are found by their keys, and the key {key!r} is there twice. Give arrays, which are "
                "taken by position, or make keys unique: frame.reset_index()."
            )
        missing, more = self.index.difference(keys), keys.difference(self.index)
        if len(missing) or len(more):
            raise TableError(
                f"{what} has other keys than the table: "
                + "; ".join(
                    f"{word} {', '.join(map(repr, some[:5]))}"
                    + (f" and {len(some) - 5} more" if len(some) > 5 else "")
                    for word, some in (("without", missing), ("more", more))
                    if len(some)
                )
                + ". A Table keeps its rows; make another one for others."
            )

    # --- values ---------------------------------------------------------------------------------

    def set(self, values: Any) -> None:
        """Set columns, all or none, from a DataFrame by keys, or from a mapping of names and values.

        Rows of a DataFrame or a Series may come in any order. Columns that are left out stay. A dict in place of a
        column sets the rows of its keys: ``t.set({"price": {"AAPL": 201.0}})``.

        Raises
        ------
        TableError
            If a column is no input, or keys differ from those of the table.
        """
        pd = _pandas()
        if not isinstance(values, Mapping | pd.DataFrame):
            raise TableError(
                f"set was given {type(values).__name__}: give a DataFrame, or a dict of names and columns."
            )
        if isinstance(values, pd.DataFrame):
            self._same_keys(values.index, "the DataFrame")
        ready: dict[Any, Any] = {}
        for column in values.keys() if isinstance(values, Mapping) else values.columns:
            if column not in self._inputs:
                what = "is computed from others" if column in self._columns else "is no column"
                if column in self.labels:
                    what = "holds labels, which are kept as they are"
                raise TableError(
                    f"{column!r} {what}, so it cannot be set. Inputs are {list(self._inputs)}."
                )
            given = values[column]
            if isinstance(given, Mapping):
                found = self._inputs[column].numpy()
                for key, number in given.items():
                    found[self.row(key)] = self._fitting(column, number)
            else:
                found = _numbers(self._by_keys(column, given))
            if found is None:
                raise TableError(f"{column!r} holds numbers, and was given other values.")
            ready[self._inputs[column]] = found
        self.graph.set(ready)

    def set_at(self, key: Any, column: Any, value: Any) -> None:
        """Set one number by its key and column; only rows that follow from it are computed.

        Raises
        ------
        TableError
            If there is no such key, or the column is no input.
        """
        if column not in self._inputs:
            raise TableError(f"{column!r} is no input. Inputs are {list(self._inputs)}.")
        self._inputs[column].set_at(self.row(key), self._fitting(column, value))

    def _fitting(self, column: Any, number: Any) -> Any:
        """Return a number for a cell, unless a column of integers would lose its fraction."""
        kind = self._inputs[column].dtype.kind
        if (
            kind in "iub"
            and isinstance(number, float | np.floating)
            and not float(number).is_integer()
        ):
            raise TableError(
                f"{column!r} holds integers, and {number!r} is none. Make it a column of floats before: "
                f"rg.Table(frame.astype({{{column!r}: float}}), g)."
            )
        return int(number) if kind in "iu" and isinstance(number, float) else number

    def row(self, key: Any) -> int:
        """Return the position of a key.

        Raises
        ------
        TableError
            If it is not there, or there twice.
        """
        try:
            found = self.index.get_loc(key)
        except KeyError:
            raise TableError(
                f"there is no row {key!r}. Keys are {', '.join(map(repr, self.index[:5]))}"
                + (", ..." if len(self) > 5 else ".")
            ) from None
        if not isinstance(found, int):
            raise TableError(f"the key {key!r} is there twice, so it names no row.")
        return found

    def lookup(self, column: Any, keys: Any) -> Any:
        """Return a column at other keys, live: the values of a second table by a column of its labels.

        Parameters
        ----------
        column
            A column of this table.
        keys : Series or sequence
            Keys of this table, one for each row of the result.

        Examples
        --------
        >>> import reactgrad as rg
        >>> book["spot"] = quotes.lookup("spot", book["ticker"])  # doctest: +SKIP
        """
        at = self.index.get_indexer(list(keys)) if self.index.is_unique else None
        if at is None:
            raise TableError("lookup: keys of the table are there twice, so they name no rows.")
        if (at < 0).any():
            missing = list(dict.fromkeys(key for key, i in zip(keys, at, strict=True) if i < 0))
            raise TableError(f"lookup: there are no rows {', '.join(map(repr, missing[:8]))}.")
        var = self[column]
        if not isinstance(var, rg.Var):
            return _pandas().Series(var.to_numpy()[at])
        return var[at]

    def groups(self, by: Any, column: Any, how: str = "sum") -> tuple[Any, rg.Var]:
        """Return the groups of a column of labels, and the sum or mean of another column in each, live.

        Parameters
        ----------
        by
            A column of labels, which do not change.
        column
            A column of numbers, or a Var with one number a row.
        how : {"sum", "mean"}

        Returns
        -------
        Index, Var
            The groups in order, and a number for each.
        """
        pd = _pandas()
        labels = self[by]
        if isinstance(labels, rg.Var):
            raise TableError(
                f"{by!r} holds numbers, which may change: groups are made by a column of labels."
            )
        if how not in ("sum", "mean"):
            raise TableError(f"how={how!r}: write 'sum' or 'mean'.")
        codes, names = pd.factorize(labels, sort=True)
        if (codes < 0).any():
            raise TableError(
                f"{by!r} has rows without a label. Fill them first: frame.fillna({{{by!r}: 'other'}})."
            )
        var = column if isinstance(column, rg.Var) else self[column]
        zeros = self.graph.const(
            np.zeros(len(names), var.dtype if var.dtype.kind == "f" else float)
        )
        totals = zeros.at[codes].add(var)
        return names, totals / np.bincount(codes, minlength=len(names)) if how == "mean" else totals

    def to_pandas(self) -> Any:
        """Return all columns as a DataFrame with the keys and, of inputs, the dtypes that came in.

        Everything stale is computed in one run. Values are copies.
        """
        pd = _pandas()
        live = [one for one in self._columns.values() if isinstance(one, rg.Var)]
        if live:
            self.graph.forward(*live)
        found = {}
        for column, one in self._columns.items():
            if not isinstance(one, rg.Var):
                found[column] = one
                continue
            values = one.numpy()
            series = pd.Series(list(values) if values.ndim > 1 else values, index=self.index)
            wanted = self._dtypes.get(column)
            if wanted is not None and series.dtype != wanted:
                series = series.astype(wanted)
            found[column] = series
        return pd.DataFrame(found, index=self.index, columns=list(self._columns))

    def __repr__(self) -> str:
        parts = [
            str(c) + ("" if c in self._inputs or c in self.labels else "*") for c in self._columns
        ]
        return f"<Table: {len(self)} rows, {', '.join(parts)} (* computed)>"

    def _repr_html_(self) -> str:
        return self.to_pandas()._repr_html_()


def _numbers(series: Any) -> np.ndarray[Any, Any] | None:
    """Return the numbers of a column, with NaN for those that are missing; ``None`` for labels."""
    pd = _pandas()
    kind = series.dtype
    if not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind)):
        return None
    if isinstance(kind, pd.CategoricalDtype):
        return None
    if isinstance(kind, np.dtype):
        return series.to_numpy(copy=True)
    if series.isna().any():
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    wanted = getattr(kind, "numpy_dtype", np.float64)
    return series.to_numpy(dtype=wanted)


def _pandas() -> Any:
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise rg.MissingExtraError(
            'Table needs the package pandas, which is not installed: pip install "reactgrad[tables]"'
        ) from error
    return pd
