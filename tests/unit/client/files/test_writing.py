from __future__ import annotations

import gzip
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secateur.client.files.csv_text import csv_texts
from secateur.client.files.file_options import FileFormat, FileOptions
from secateur.client.files.reading import read_batches
from secateur.client.files.writing import write_file
from secateur.errors import NotSupportedError, ProgrammingError
from secateur.partitioning.table import Column
from secateur.partitioning.types import parse_type

ROWS = pa.table({"a": [1, 2], "b": ["x,y", None], "c": ["", 'q"r']})


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param({}, 'a,b,c\n1,"x,y",""\n2,,"q""r"\n', id="as usual"),
        pytest.param({"header": False, "delimiter": "|"}, '1|x,y|""\n2||"q""r"\n', id="no header, another delimiter"),
        pytest.param({"null": "NA"}, 'a,b,c\n1,"x,y",""\n2,NA,"q""r"\n', id="a text for NULL"),
        pytest.param({"quote": "'"}, "a,b,c\n1,'x,y',''\n2,,q\"r\n", id="another quote"),
    ],
)
def test_csv(tmp_path: Path, said: dict[str, Any], expected: str) -> None:
    path = tmp_path / "a.csv"
    write_file(FileOptions(str(path), FileFormat.CSV, **said), [ROWS])
    assert path.read_text() == expected
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.csv"]


def test_what_is_there_is_replaced_when_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("before")
    with pytest.raises(NotSupportedError, match="column b is an INTERVAL"):
        write_file(FileOptions(str(path), FileFormat.CSV), [pa.table({"a": [1], "b": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})])
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.csv"]


def test_the_suffix_says_how_it_is_compressed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    write_file(FileOptions(str(path), FileFormat.CSV), [pa.table({"a": [1]})])
    assert gzip.decompress(path.read_bytes()) == b"a\n1\n"


@pytest.mark.parametrize("file_format", list(FileFormat))
def test_parts_are_written_as_they_come(tmp_path: Path, file_format: FileFormat) -> None:
    path = tmp_path / "a"
    assert write_file(FileOptions(str(path), file_format), (pa.table({"a": [number]}) for number in range(3))) == 3
    columns = [Column("a", parse_type("INTEGER"))]
    found = pa.Table.from_batches(read_batches(FileOptions(str(path), file_format), columns))
    assert found["a"].to_pylist() == [0, 1, 2]


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    rows = pa.table({"a": [1], "d": [date(2020, 1, 2)], "t": [datetime(2020, 1, 2, 3)], "n": [Decimal("1.50")], "l": [[1, None]], "s": ["é"], "b": [b"x"]})
    write_file(FileOptions(str(path), FileFormat.JSON), [rows])
    assert path.read_text() == '{"a":1,"d":"2020-01-02","t":"2020-01-02 03:00:00","n":1.5,"l":[1,null],"s":"é","b":"x"}\n'


def test_columns_of_one_name_get_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_file(FileOptions(str(path), FileFormat.PARQUET), [pa.Table.from_arrays([pa.array([1])] * 4, names=["a", "a", "a_1", "a"])])
    assert pq.read_table(path).column_names == ["a", "a_2", "a_1", "a_3"]


def test_a_place_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ProgrammingError, match="cannot be written on the machine of this client"):
        write_file(FileOptions(str(tmp_path / "no" / "a.csv"), FileFormat.CSV), [ROWS])


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([True, None]), ["true", None]),
        (pa.array([1.0, 1e20, float("nan"), float("-inf")]), ["1.0", "1e+20", "nan", "-inf"]),
        (pa.array([0.1], pa.float32()), ["0.1"]),
        (pa.array([datetime(2020, 1, 1, 10, 0, 0, 120000)], pa.timestamp("us")), ["2020-01-01 10:00:00.12"]),
        (pa.array([datetime(2020, 1, 1, 10, tzinfo=UTC)], pa.timestamp("us", "UTC")), ["2020-01-01 10:00:00+00"]),
        (pa.array([b"\x00a'"]), ["\\x00a\\x27"]),
        (pa.array([[True, None], None]), ["[true, NULL]", None]),
        (pa.array([Decimal("1.50")]), ["1.50"]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_texts(array: pa.Array, expected: list[str | None]) -> None:
    assert csv_texts(pa.chunked_array([array]), "c") == expected
