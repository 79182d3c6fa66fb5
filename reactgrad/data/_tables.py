"""Tables as datasets: columns of numbers in one array, and what is to be predicted in another one."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reactgrad._errors import MissingExtraError
from reactgrad.data._dataset import ArrayDataset
from reactgrad.data._errors import DataError
from reactgrad.scheduler import safe_repr

Array = np.ndarray[Any, Any]
Columns = str | Sequence[str] | None


class TableDataset(ArrayDataset):
    """The rows of a table: sample `i` is the numbers of its features and its target.

    Parameters
    ----------
    table : mapping or pandas.DataFrame
        Columns of one length by their names.
    target : str or sequence of str, optional
        What is to be predicted. A column of texts becomes the numbers of its classes, in the order of the alphabet.
    features : str or sequence of str, optional
        The columns of numbers that make the first array; default: all but the target.
    dtype : dtype, default float64
        Of the features.
    transform, target_transform : callable, optional
        As for ``ArrayDataset``.

    Attributes
    ----------
    features, targets : tuple of str
        The names of the columns.
    classes : tuple of str
        Those of a target of texts.

    Raises
    ------
    DataError
        If there is no column of a name, a feature is no number, or a value is missing.

    Examples
    --------
    >>> import reactgrad as rg
    >>> table = {"width": [1.0, 2.0], "height": [3, 4], "kind": ["oak", "ash"]}
    >>> dataset = rg.data.TableDataset(table, target="kind")
    >>> dataset[1], dataset.features, dataset.classes
    ((array([2., 4.]), np.int64(0)), ('width', 'height'), ('ash', 'oak'))
    """

    def __init__(
        self,
        table: Any,
        target: Columns = None,
        features: Columns = None,
        *,
        dtype: Any = np.float64,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
    ) -> None:
        kind = type(self).__name__
        names = [*(table.columns if hasattr(table, "columns") else table)]
        self.targets = _chosen(kind, "target", target, names)
        rest = tuple([one for one in names if one not in self.targets])
        self.features = rest if features is None else _chosen(kind, "features", features, names)
        if not self.features:
            raise DataError(f"{kind}: there is no column of features. Name some by features=.")
        columns = {one: _column(kind, table, one) for one in (*self.features, *self.targets)}
        texts = [one for one in self.features if columns[one].dtype.kind not in "biuf"]
        if texts:
            raise DataError(
                f"{kind}: {_listed(texts)} {'holds' if len(texts) == 1 else 'hold'} no numbers. Name the columns of "
                "numbers by features=, or turn these into numbers before."
            )
        lengths = {one: len(column) for one, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(
                f"{kind}: the columns have the lengths {lengths!s:.200}, and a row has a value of each. Give columns "
                "of one length."
            )
        arrays = [np.stack([columns[one].astype(dtype) for one in self.features], axis=-1)]
        self.classes: tuple[str, ...] = ()
        if self.targets:
            arrays.append(self._target(kind, [columns[one] for one in self.targets], target))
        super().__init__(*arrays, transform=transform, target_transform=target_transform)

    def _target(self, kind: str, columns: list[Array], given: Columns) -> Array:
        if all(one.dtype.kind in "biuf" for one in columns):
            return columns[0] if isinstance(given, str) else np.stack(columns, axis=-1)
        if not isinstance(given, str):
            raise DataError(
                f"{kind}: several targets have to be numbers, and {_listed(self.targets)} are not all. Name one column "
                "of texts, or turn them into numbers before."
            )
        classes, numbers = np.unique(columns[0].astype(str), return_inverse=True)
        self.classes = tuple(classes.tolist())
        return numbers


class CSVDataset(TableDataset):
    """The rows of a file of comma-separated values, read by pandas (extra ``data``).

    Parameters
    ----------
    path : str or path-like
    target, features, dtype, transform, target_transform
        As for ``TableDataset``.
    **options
        For ``pandas.read_csv``, such as ``sep=";"``.

    Raises
    ------
    DataError
        If the file is no table, or for the reasons of ``TableDataset``.
    MissingExtraError
        If pandas is not installed.

    Examples
    --------
    >>> import reactgrad as rg
    >>> dataset = rg.data.CSVDataset("iris.csv", target="species")  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        target: Columns = None,
        features: Columns = None,
        *,
        dtype: Any = np.float64,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        **options: Any,
    ) -> None:
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise _missing("CSVDataset", "pandas") from error
        try:
            table = pandas.read_csv(path, **options)
        except (ValueError, UnicodeError) as error:  # what pandas raises is a ValueError
            raise DataError(f"CSVDataset: {os.fspath(path)} is no table: {error}") from error
        super().__init__(
            table,
            target,
            features,
            dtype=dtype,
            transform=transform,
            target_transform=target_transform,
        )


class ParquetDataset(TableDataset):
    """The rows of a Parquet file, read by pyarrow (extra ``data``): only the columns that are used.

    Parameters
    ----------
    path : str or path-like
        A file, or a folder of files.
    target, features, dtype, transform, target_transform
        As for ``TableDataset``.

    Raises
    ------
    DataError
        If the file is damaged, or for the reasons of ``TableDataset``.
    MissingExtraError
        If pyarrow is not installed.

    Examples
    --------
    >>> import reactgrad as rg
    >>> dataset = rg.data.ParquetDataset("trips.parquet", "fare", ["miles"])  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        target: Columns = None,
        features: Columns = None,
        *,
        dtype: Any = np.float64,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
    ) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ModuleNotFoundError as error:
            raise _missing("ParquetDataset", "pyarrow") from error
        try:
            source = pyarrow.parquet.ParquetDataset(os.fspath(path))
            names = source.schema.names
            if features is not None:
                wanted = (
                    *_chosen("ParquetDataset", "features", features, names),
                    *_chosen("ParquetDataset", "target", target, names),
                )
                names = [one for one in names if one in wanted]
            table = source.read(columns=names)
        except (pyarrow.ArrowException, OSError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise DataError(f"ParquetDataset: {os.fspath(path)} cannot be read: {error}") from error
        super().__init__(
            {one: _decoded(table.column(one)) for one in names},
            target,
            features,
            dtype=dtype,
            transform=transform,
            target_transform=target_transform,
        )


def _decoded(column: Any) -> Any:
    """Return a column of Arrow as an array; as a list, which says what is missing, where that has no number."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.to_pylist() if column.null_count else column.to_numpy()


def _missing(kind: str, package: str) -> MissingExtraError:
    return MissingExtraError(
        f'{kind} needs the package {package}, which is not installed: pip install "reactgrad[data]"'
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(one)[:40] for one in names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def _chosen(kind: str, what: str, given: Columns, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns, all of which are there."""
    chosen = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    for one in chosen:
        if one not in names:
            close = difflib.get_close_matches(str(one), [str(name) for name in names], 1)
            hint = f"Did you mean {close[0]!r}?" if close else f"There are {_listed(names)}."
            raise DataError(
                f"{kind}: {what}={safe_repr(given):.80} names no column {one!r:.40}. {hint}"
            )
    return chosen


def _column(kind: str, table: Any, name: str) -> Array:
    """Return a column as an array of numbers or of texts, in which nothing is missing."""
    given = table[name]
    array = given.to_numpy() if hasattr(given, "to_numpy") else np.asarray(given)
    if array.ndim != 1:
        raise DataError(
            f"{kind}: the column {name!r:.40} has the shape {array.shape}, and should have one axis."
        )
    if hasattr(given, "isna"):  # of pandas, which has several values for what is missing
        missing = np.asarray(given.isna(), bool)
    elif array.dtype.kind in "OT":
        missing = np.array([one is None or one != one for one in array.tolist()], bool)
    else:
        missing = np.isnan(array) if array.dtype.kind in "fc" else np.zeros(len(array), bool)
    if missing.any():
        raise DataError(
            f"{kind}: {missing.sum()} of {len(array)} values in the column {name!r:.40} are missing (the first in row "
            f"{int(missing.argmax())}). Leave these rows out, or fill them, as table.dropna() or "
            "table.fillna(0) of pandas, and give rg.data.TableDataset the result."
        )
    if array.dtype.kind == "O":  # numbers of pandas that may be missing
        kinds = {type(one) for one in array.tolist()}
        if kinds and kinds <= {bool, int, float, np.bool_}:
            return np.asarray(array.tolist())
    return array
