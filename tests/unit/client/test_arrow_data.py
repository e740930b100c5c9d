from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

from secateur.client.loads import as_chunks, as_table
from secateur.errors import DataError

TABLE = pa.table({"x": [1, 2]})


class Capsule:
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return TABLE.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(TABLE, id="table"),
        pytest.param(TABLE.to_batches()[0], id="batch"),
        pytest.param(pl.DataFrame({"x": [1, 2]}), id="polars"),
        pytest.param({"x": [1, 2]}, id="dict"),
        pytest.param(Capsule(), id="capsule"),
        pytest.param([{"x": 1}, {"x": 2}], id="list of dicts"),
        pytest.param(TABLE.to_batches(max_chunksize=1), id="list of batches"),
        pytest.param(pl.DataFrame({"x": [1, 2]}).lazy(), id="lazy frame"),
    ],
)
def test_what_holds_a_table_is_taken(data: Any) -> None:
    assert as_table(data).equals(TABLE)


def test_a_dataset_is_read_batch_by_batch() -> None:
    reader = as_table(pyarrow.dataset.dataset(TABLE))
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.read_all().equals(TABLE)


def test_an_iterator_of_batches_is_read_batch_by_batch() -> None:
    taken = []
    batches = TABLE.to_batches(max_chunksize=1)
    reader = as_table(taken.append(batch) or batch for batch in batches)  # type: ignore[func-returns-value]
    assert (isinstance(reader, pa.RecordBatchReader), len(taken)) == (True, 1)
    assert reader.read_all().equals(TABLE)
    assert list(as_chunks(as_table(iter([])))) == []
    unlike = as_table(iter([*batches, pa.record_batch({"y": [1]})]))
    with pytest.raises(DataError, match=r"item 3 of the batches is no RecordBatch with the columns .* \(x\)"):
        list(as_chunks(unlike))


def test_rows_may_name_different_columns() -> None:
    assert as_table([{"x": 1}, {"y": "a"}, {"x": 2, "y": None}]).to_pylist() == [
        {"x": 1, "y": None},
        {"x": None, "y": "a"},
        {"x": 2, "y": None},
    ]


@pytest.mark.parametrize("data", [[], (), {}, [{}]])
def test_nothing_is_no_rows(data: Any) -> None:
    assert list(as_chunks(as_table(data))) == []


def test_a_pandas_frame_without_its_index() -> None:
    frame = pd.DataFrame({"x": [1, 2]}, index=["a", "b"])
    assert as_table(frame).select(["x"]).equals(TABLE)
    assert as_table(frame).column_names == ["x"]


@pytest.mark.parametrize("module", ["pandas.core.series", "pandas"])
def test_nan_of_pandas_is_null_in_each_of_its_versions(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pd.Series, "__module__", module)  # that of version 2, and of version 3
    frame = pd.DataFrame(
        {"x": [1.0, float("nan")], "y": ["a", float("nan")], "z": [Decimal(1), float("nan")]}, dtype=object
    )
    frame["x"] = frame["x"].astype(float)
    assert as_table(frame).to_pylist() == [{"x": 1.0, "y": "a", "z": Decimal(1)}, {"x": None, "y": None, "z": None}]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param([1, 2], "a builtins.list is not a table", id="list"),
        pytest.param(None, "a builtins.NoneType is not a table", id="none"),
        pytest.param(pd.Series([1]), "a pandas.core.series.Series is not a table", id="series of pandas"),
        pytest.param(pl.Series("x", [1]), "the Series does not convert to Arrow", id="series of polars"),
        pytest.param([(1, "a")], "a list of dicts, one a row", id="list of tuples"),
        pytest.param(
            [{"x": 1}, {"x": "a"}], "column x: its values .int, str. are not of one type", id="rows of mixed types"
        ),
        pytest.param("it's.csv", r"COPY table FROM 'it''s.csv'", id="path as text"),
        pytest.param(Path("rows.parquet"), r"'rows.parquet' is a path, .* TableHandle.load takes paths", id="path"),
        pytest.param(({"x": n} for n in range(2)), "its first item is a dict, .* of rows make a list", id="generator"),
        pytest.param([*TABLE.to_batches(), pa.record_batch({"y": [1]})], "does not convert", id="unlike batches"),
        pytest.param({"x": [1], "y": [1, 2]}, "the dict does not convert to Arrow", id="ragged dict"),
        pytest.param(
            pd.DataFrame({"x": [1, "a"]}), "column x: its values .int, str. are not of one type", id="mixed column"
        ),
    ],
)
def test_what_does_not_is_said(data: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        as_table(data)


@pytest.mark.parametrize("chunk_bytes", [1, 100, 8000, 10**9])
@pytest.mark.parametrize("reader", [False, True], ids=["table", "reader"])
def test_chunks_cover_everything_once(chunk_bytes: int, reader: bool) -> None:
    table = pa.table({"x": range(2000)})
    data = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(300)) if reader else table
    chunks = list(as_chunks(data, chunk_bytes))
    assert pa.concat_tables(chunks).equals(table)
    assert all(chunk.num_rows > 0 for chunk in chunks)
    assert max(chunk.nbytes for chunk in chunks) <= max(2 * chunk_bytes, 2400)


def test_no_rows_are_no_chunk() -> None:
    assert list(as_chunks(TABLE.slice(0, 0))) == []


def test_chunks_have_few_rows_however_small_these_are() -> None:
    assert [chunk.num_rows for chunk in as_chunks(pa.table({"x": range(25)}), chunk_rows=10)] == [10, 10, 5]


def test_a_number_that_no_column_holds_is_said() -> None:
    with pytest.raises(DataError, match="row 1, column x: 170141183460469231731687303715884105727"):
        as_table({"x": [2**127 - 1]})


@pytest.mark.parametrize("kind", [pl.Int128, pl.UInt128])
def test_wide_integers_of_polars_are_decimals(kind: Any) -> None:
    frame = pl.DataFrame({"x": pl.Series([2**100, None], dtype=kind)})
    assert as_table(frame).column("x").to_pylist() == [Decimal(2**100), None]
