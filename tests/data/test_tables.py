"""Tables become one array of features and one target; what is missing or no number is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import data

TABLE: dict[str, Any] = {
    "width": [1.5, 2.5, 3.5],
    "count": np.array([3, 2, 1], np.int32),
    "wet": [True, False, True],
    "kind": ["oak", "ash", "oak"],
}


def test_features_are_one_array_and_texts_are_classes() -> None:
    dataset = data.TableDataset(TABLE, target="kind")
    assert dataset.features == ("width", "count", "wet")
    assert dataset.targets == ("kind",)
    assert dataset.classes == ("ash", "oak")
    x, y = dataset.take([2, 0])
    assert x.tolist() == [[3.5, 1, 1], [1.5, 3, 1]]
    assert x.dtype == np.float64
    assert y.tolist() == [1, 1]


def test_targets_of_numbers_keep_their_dtype() -> None:
    dataset = data.TableDataset(TABLE, "count", "width", dtype=np.float32)
    x, y = dataset.take([0, 1])
    assert (x.shape, x.dtype) == ((2, 1), np.float32)
    assert (y.tolist(), y.dtype, dataset.classes) == ([3, 2], np.int32, ())
    two = data.TableDataset(TABLE, ["count", "width"], ["wet"])
    assert two.take([0, 1])[1].tolist() == [[3, 1.5], [2, 2.5]]
    (x,) = data.TableDataset(TABLE, features=["width"])[0]
    assert x.tolist() == [1.5]


def test_transforms_see_whole_batches() -> None:
    dataset = data.TableDataset(TABLE, "count", "width", transform=lambda x: x + len(x))
    ((x, _),) = data.DataLoader(dataset, 3)
    assert x.tolist() == [[4.5], [5.5], [6.5]]


@pytest.mark.parametrize(
    ("table", "target", "features", "text"),
    [
        (
            TABLE,
            "knid",
            None,
            "TableDataset: target='knid' names no column 'knid'. Did you mean 'kind'?",
        ),
        (
            TABLE,
            None,
            ["x"],
            "TableDataset: features=['x'] names no column 'x'. There are 'width', 'count', 'wet', 'kind'.",
        ),
        (
            TABLE,
            "count",
            None,
            (
                "TableDataset: 'kind' holds no numbers. Name the columns of numbers by features=, or turn these into "
                "numbers before."
            ),
        ),
        (
            TABLE,
            ["kind", "count"],
            "width",
            (
                "TableDataset: several targets have to be numbers, and 'kind', 'count' are not all. Name one column of "
                "texts, or turn them into numbers before."
            ),
        ),
        (
            {"a": [1.0]},
            "a",
            None,
            "TableDataset: there is no column of features. Name some by features=.",
        ),
        (
            {"a": [1.0, np.nan, np.nan], "b": [1, 2, 3]},
            "b",
            None,
            (
                "TableDataset: 2 of 3 values in the column 'a' are missing (the first in row 1). Leave these rows "
                "out, or fill them, as table.dropna() or table.fillna(0) of pandas, and "
                "give rg.data.TableDataset the result."
            ),
        ),
        (
            {"a": [1.0, 2.0], "b": ["x", None]},
            "b",
            None,
            (
                "TableDataset: 1 of 2 values in the column 'b' are missing (the first in row 1). Leave these rows "
                "out, or fill them, as table.dropna() or table.fillna(0) of pandas, and "
                "give rg.data.TableDataset the result."
            ),
        ),
        (
            {"a": [1.0, 2.0], "b": [1]},
            None,
            None,
            (
                "TableDataset: the columns have the lengths {'a': 2, 'b': 1}, and a row has a value of each. Give "
                "columns of one length."
            ),
        ),
        (
            {"a": np.ones((2, 2))},
            None,
            None,
            "TableDataset: the column 'a' has the shape (2, 2), and should have one axis.",
        ),
    ],
)
def test_what_is_no_dataset_is_named(table: Any, target: Any, features: Any, text: str) -> None:
    with pytest.raises(data.DataError) as error:
        data.TableDataset(table, target, features)
    assert str(error.value) == text


def test_an_absent_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, package, name in (
        (data.CSVDataset, "pandas", "pandas"),
        (data.ParquetDataset, "pyarrow", "pyarrow"),
        (data.ImageFolder, "PIL", "Pillow"),
    ):
        monkeypatch.setitem(__import__("sys").modules, package, None)
        with pytest.raises(rg.MissingExtraError) as error:
            kind("none")
        assert str(error.value) == (
            f"{kind.__name__} needs the package {name}, which is not installed: pip install "
            '"reactgrad[data]"'
        )


# --- files --------------------------------------------------------------------------------------------

CSV = "width;count;kind\n1.5;3;oak\n2.5;2;ash\n3.5;1;oak\n"


def test_a_csv_file_is_a_dataset(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    path = tmp_path / "trees.csv"
    path.write_text(CSV)
    dataset = data.CSVDataset(path, "kind", sep=";")
    x, y = dataset.take([0, 1, 2])
    assert x.tolist() == [[1.5, 3], [2.5, 2], [3.5, 1]]
    assert (y.tolist(), dataset.classes) == ([1, 0, 1], ("ash", "oak"))
    path.write_text(CSV.replace("2.5", ""))
    with pytest.raises(data.DataError, match="CSVDataset: 1 of 3 values in the column 'width'"):
        data.CSVDataset(path, "kind", sep=";")
    for wrong in ('a,b\n1,2\n1,2,3\n"', "", "\x00\xff"):
        path.write_text(wrong, encoding="latin-1")
        with pytest.raises(data.DataError, match=r"CSVDataset"):
            data.CSVDataset(path, "b")
    with pytest.raises(FileNotFoundError):
        data.CSVDataset(tmp_path / "none.csv")


def test_frames_of_pandas_are_tables() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "a": pandas.array([1, 2], dtype="Int64"),
            "b": pandas.array([True, False], dtype="boolean"),
            "c": pandas.Categorical(["x", "y"]),
        }
    )
    dataset = data.TableDataset(frame, "c")
    assert dataset.take([1, 0])[0].tolist() == [[2, 0], [1, 1]]
    assert dataset.classes == ("x", "y")
    frame["a"] = pandas.array([1, None], dtype="Int64")
    with pytest.raises(data.DataError, match="1 of 2 values in the column 'a' are missing"):
        data.TableDataset(frame, "c")
    frame["a"] = pandas.to_datetime(["2020-01-01", "2020-01-02"])
    with pytest.raises(data.DataError, match="'a' holds no numbers"):
        data.TableDataset(frame, "c")
    with pytest.raises(data.DataError, match=r"has the shape \(2, 2\)"):
        data.TableDataset(pandas.concat([frame[["b"]], frame[["b"]]], axis=1), features="b")


def test_a_parquet_file_is_a_dataset(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    path = tmp_path / "trees.parquet"
    columns = {**TABLE, "kind": pyarrow.array(TABLE["kind"]).dictionary_encode()}
    parquet.write_table(pyarrow.table(columns), path)
    dataset = data.ParquetDataset(path, "kind")
    assert dataset.take([0, 1])[0].tolist() == [[1.5, 3, 1], [2.5, 2, 0]]
    assert dataset.classes == ("ash", "oak")
    assert data.ParquetDataset(path, "count", ["width"]).features == ("width",)
    with pytest.raises(data.DataError, match="names no column 'widht'. Did you mean 'width'"):
        data.ParquetDataset(path, "kind", ["widht"])
    parquet.write_table(pyarrow.table({"a": [1, None], "b": [1, 2]}), path)
    with pytest.raises(data.DataError, match="1 of 2 values in the column 'a' are missing"):
        data.ParquetDataset(path, "b")
    content = path.read_bytes()
    for cut in (0, 3, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:cut])
        with pytest.raises(data.DataError, match=r"trees\.parquet cannot be read"):
            data.ParquetDataset(path)
    with pytest.raises(FileNotFoundError):
        data.ParquetDataset(tmp_path / "none.parquet")
