from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secateur.client.files.file_options import FileFormat, FileOptions
from secateur.client.files.reading import read_batches
from secateur.errors import DataError, ProgrammingError
from secateur.partitioning.table import Column
from secateur.partitioning.types import parse_type

COLUMNS = [Column("k", parse_type("INTEGER")), Column("s", parse_type("VARCHAR")), Column("d", parse_type("DATE"))]


def rows(options: FileOptions, columns: list[Column] | None = None) -> list[tuple[Any, ...]]:
    return [
        tuple(str(value) if value is not None else None for value in row.values()) for b in read_batches(options, columns or COLUMNS) for row in b.to_pylist()
    ]


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        pytest.param("k,s,d\n1,a,2020-01-01\n", {}, [("1", "a", "2020-01-01")], id="names of the columns"),
        pytest.param("x,y,z\n1,a,2020-01-01\n", {}, [("1", "a", "2020-01-01")], id="a line that the columns cannot hold"),
        pytest.param("1,a,2020-01-01\n", {}, [("1", "a", "2020-01-01")], id="no header"),
        pytest.param("1,a,2020-01-01\n2,b,\n", {"header": True}, [("2", "b", None)], id="a header is said to be there"),
        pytest.param("1|a,b|2020-01-01\n", {}, [("1", "a,b", "2020-01-01")], id="another delimiter"),
        pytest.param("1;a;2020-01-01\n", {"delimiter": ";"}, [("1", "a", "2020-01-01")], id="a delimiter that is said"),
        pytest.param('1,"a ""b"",\nc",\n', {}, [("1", 'a "b",\nc', None)], id="quotes"),
        pytest.param('1,"",\n2,,\n', {}, [("1", None, None), ("2", None, None)], id="nothing is NULL"),
        pytest.param("1,NA,2020-01-01\n", {"null": "NA"}, [("1", None, "2020-01-01")], id="a text for NULL"),
        pytest.param("k,s,d\n", {}, [], id="a header alone"),
        pytest.param("", {}, [], id="an empty file"),
    ],
)
def test_csv(tmp_path: Path, text: str, said: dict[str, Any], expected: list[Any]) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert rows(FileOptions(str(path), FileFormat.CSV, **said)) == expected


def test_compressed_csv(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"k,s,d\n1,a,\n"))
    assert rows(FileOptions(str(path), FileFormat.of_path(str(path)))) == [("1", "a", None)]


def test_a_pattern_names_files_in_their_order(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.csv").write_text(f"1,{name},\n")
    assert rows(FileOptions(str(tmp_path / "*.csv"), FileFormat.CSV)) == [("1", "a", None), ("1", "b", None)]


def test_parquet_by_position(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1], "y": ["a"], "z": [None]}), path)
    assert rows(FileOptions(str(path), FileFormat.PARQUET)) == [("1", "a", None)]


@pytest.mark.parametrize("form", ["lines", "array"])
def test_json_by_name(tmp_path: Path, form: str) -> None:
    objects = [{"S": "a", "k": 1, "more": [1]}, {"d": "2020-01-01", "k": 2, "s": {"x": 1}}]
    path = tmp_path / "a.json"
    path.write_text("\n".join(map(json.dumps, objects)) if form == "lines" else " " + json.dumps(objects))
    assert rows(FileOptions(str(path), FileFormat.JSON)) == [("1", "a", None), ("2", '{"x": 1}', "2020-01-01")]


def test_json_numbers_are_exact(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1.1, "b": 3}\n{"a": 2, "b": 0.5}')
    columns = [Column("a", parse_type("DECIMAL(10, 2)")), Column("b", parse_type("DOUBLE"))]
    assert rows(FileOptions(str(path), FileFormat.JSON), columns) == [("1.10", "3.0"), ("2.00", "0.5")]


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        pytest.param("none.csv", None, ProgrammingError, "on the machine of this client", id="no file"),
        pytest.param("*.none", None, ProgrammingError, "no file matches", id="no match"),
        pytest.param("a.csv", "k,s,d\nx,a,\n", DataError, "does not read as csv", id="a value that is none"),
        pytest.param("a.csv", "1,2\n", DataError, "does not read as csv", id="too few values"),
        pytest.param("a.parquet", "no", DataError, "does not read as parquet", id="no parquet"),
        pytest.param("a.json", "{", DataError, "does not read as json", id="no json"),
        pytest.param("a.json", "[1]", DataError, "has objects", id="no objects"),
        pytest.param("a.json", '{"k": "x"}', DataError, "column k is INTEGER", id="a text for a number"),
    ],
)
def test_mistakes(tmp_path: Path, name: str, content: str | None, error: type[Exception], message: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(error, match=message):
        rows(FileOptions(str(path), FileFormat.of_path(name)))


def test_parquet_with_other_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(DataError, match=r"has 1 columns \(x\) for the 3 columns k, s, d"):
        rows(FileOptions(str(path), FileFormat.PARQUET))
