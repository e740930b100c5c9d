from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secateur.client.copy import read_batches
from secateur.errors import DataError, ProgrammingError
from secateur.partitioning.tables import Column
from secateur.partitioning.types import parse_type
from secateur.protocol import CopyFile, CopyFormat

COLUMNS = [Column("k", parse_type("INTEGER")), Column("s", parse_type("VARCHAR")), Column("d", parse_type("DATE"))]


def rows(options: CopyFile, columns: list[Column] | None = None) -> list[tuple[Any, ...]]:
    return [
        tuple(str(value) if value is not None else None for value in row.values())
        for b in read_batches(options, columns or COLUMNS)
        for row in b.to_pylist()
    ]


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        pytest.param("k,s,d\n1,a,2020-01-01\n", {}, [("1", "a", "2020-01-01")], id="names of the columns"),
        pytest.param(
            "x,y,z\n1,a,2020-01-01\n", {}, [("1", "a", "2020-01-01")], id="a line that the columns cannot hold"
        ),
        pytest.param("1,a,2020-01-01\n", {}, [("1", "a", "2020-01-01")], id="no header"),
        pytest.param("1,a,2020-01-01\n2,b,\n", {"HEADER": True}, [("2", "b", None)], id="a header is said to be there"),
        pytest.param("1|a,b|2020-01-01\n", {}, [("1", "a,b", "2020-01-01")], id="another delimiter"),
        pytest.param("1;a;2020-01-01\n", {"DELIMITER": ";"}, [("1", "a", "2020-01-01")], id="a delimiter that is said"),
        pytest.param('1,"a ""b"",\nc",\n', {}, [("1", 'a "b",\nc', None)], id="quotes"),
        pytest.param('1,"",\n2,,\n', {}, [("1", "", None), ("2", None, None)], id="nothing is NULL without quotes"),
        pytest.param(
            '1,"",\n2,,""\n',
            {"ALLOW_QUOTED_NULLS": True},
            [("1", None, None), ("2", None, None)],
            id="nothing is NULL with quotes if that is said",
        ),
        pytest.param("1,'a',\n", {"QUOTE": "'"}, [("1", "a", None)], id="another quote"),
        pytest.param("1,NA,2020-01-01\n", {"NULL": "NA"}, [("1", None, "2020-01-01")], id="a text for NULL"),
        pytest.param("k,s,d\n", {}, [], id="a header alone"),
        pytest.param(
            "#\n1,-,2020-01-01\n2,NA,01.02.2020\n",
            {"COMMENT": "#", "NULL": ("-", "NA"), "DATEFORMAT": "%d.%m.%Y", "IGNORE_ERRORS": True},
            [("2", None, "2020-02-01")],
            id="more",
        ),
    ],
)
def test_csv(tmp_path: Path, text: str, said: dict[str, Any], expected: list[Any]) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert rows(CopyFile(str(path), CopyFormat.CSV, tuple(said.items()))) == expected


def test_quotes_behind_the_rows_that_are_looked_at_are_no_part_of_the_text(tmp_path: Path) -> None:
    """DuckDB finds the quote in the first 20,480 rows, and without any takes later ones for text."""
    path = tmp_path / "a.csv"
    path.write_text("k,s,d\n" + "1,a,\n" * 30_000 + '2,"b, ""c""",\n3,"",\n')
    assert rows(CopyFile(str(path), CopyFormat.CSV))[-2:] == [("2", 'b, "c"', None), ("3", "", None)]


def test_compressed_csv(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"k,s,d\n1,a,\n"))
    assert rows(CopyFile(str(path), CopyFormat.of_path(str(path)))) == [("1", "a", None)]


def test_a_pattern_names_files_in_their_order(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.csv").write_text(f"1,{name},\n")
    assert rows(CopyFile(str(tmp_path / "*.csv"), CopyFormat.CSV)) == [("1", "a", None), ("1", "b", None)]


def test_parquet_by_position(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1], "y": ["a"], "z": [None]}), path)
    assert rows(CopyFile(str(path), CopyFormat.PARQUET)) == [("1", "a", None)]


@pytest.mark.parametrize("form", ["lines", "array"])
def test_json_by_name(tmp_path: Path, form: str) -> None:
    objects = [{"s": "a", "k": 1, "more": [1]}, {"d": "2020-01-01", "K": 2, "s": {"x": 1}}]
    path = tmp_path / "a.json"
    path.write_text("\n".join(map(json.dumps, objects)) if form == "lines" else " " + json.dumps(objects))
    assert rows(CopyFile(str(path), CopyFormat.JSON)) == [("1", "a", None), ("2", '{"x": 1}', "2020-01-01")]


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "*.json"])
def test_json_numbers_are_exact(tmp_path: Path, name: str) -> None:
    """DuckDB alone would read the first as 123456789012345671.68."""
    lines = [
        '{"a": 123456789012345678.91, "b": 3, "l": [-12345678901234567890123456789012345678, 1.0],',
        ' "t": "a \\"12345678901234567890\\" b"}',
        '{"a": 2, "b": 0.5, "l": null}',
        '{"a": "-999999999999999999.99", "b": 1e300, "l": [0.1e1], "t": "x"}',
    ]
    path = tmp_path / name.replace("*", "a")
    path.write_bytes(gzip.compress("\n".join(lines).encode()) if name.endswith("gz") else "\n".join(lines).encode())
    columns = [
        Column(name, parse_type(type_))
        for name, type_ in (("a", "DECIMAL(20, 2)"), ("b", "DOUBLE"), ("l", "DECIMAL(38, 0)[]"), ("t", "VARCHAR"))
    ]
    assert rows(CopyFile(str(tmp_path / name), CopyFormat.JSON), columns) == [
        (
            "123456789012345678.91",
            "3.0",
            "[Decimal('-12345678901234567890123456789012345678'), Decimal('1')]",
            'a "12345678901234567890" b',
        ),
        ("2.00", "0.5", None, None),
        ("-999999999999999999.99", "1e+300", "[Decimal('1')]", "x"),
    ]


def test_json_with_a_compression_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(b'{"a": 123456789012345678.91}'))
    columns = [Column("a", parse_type("DECIMAL(20, 2)"))]
    assert rows(CopyFile(str(path), CopyFormat.JSON, (("COMPRESSION", "gzip"),)), columns) == [
        ("123456789012345678.91",)
    ]


@pytest.mark.parametrize(
    ("type_", "text", "message"),
    [
        ("HUGEINT", str(2**127 - 1), "HUGEINT|DECIMAL"),
        ("INTERVAL", "2562048 hours", "too long"),
        ("INTERVAL[]", "[2562048 hours]", "too long"),
        ("DECIMAL(5, 2)", "1234.5", "DECIMAL"),
    ],
)
def test_values_that_no_column_holds(tmp_path: Path, type_: str, text: str, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"a\n{text}\n")
    with pytest.raises(DataError, match=message):
        rows(CopyFile(str(path), CopyFormat.CSV), [Column("a", parse_type(type_))])


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        pytest.param("none.csv", None, ProgrammingError, "on the machine of this client", id="no file"),
        pytest.param("*.none", None, ProgrammingError, "on the machine of this client", id="no match"),
        pytest.param("a.csv", "k,s,d\nx,a,\n", DataError, "/a.csv:2:1: column k: 'x' is no INTEGER$", id="no value"),
        pytest.param(
            "a.csv",
            "k,s,d\n" + '1,"a\nb",\n' * 3 + "1,c,2024-13-01\n",
            DataError,
            "/a.csv:8:5: column d: '2024-13-01' is no DATE$",
            id="no value behind texts of several lines",
        ),
        pytest.param(
            "a.csv", 'k,s,d\n"",a,\n', DataError, "'' is no INTEGER; .* ALLOW_QUOTED_NULLS", id="quoted nothing"
        ),
        pytest.param("a.csv", "1,2\n", DataError, "/a.csv: the lines have 2 values.* 3 columns: say", id="too few"),
        pytest.param("a.csv", "", DataError, "/a.csv: the lines have 1 values", id="an empty file"),
        pytest.param(
            "a.csv",
            "k,s,d\n" + "1,a,\n" * 30_000 + "1,a\n",
            DataError,
            "/a.csv:30002:1: the line has 2 values, and there are 3 columns$",
            id="too few values far behind",
        ),
        pytest.param("a.parquet", "no", DataError, "cannot be read as parquet", id="no parquet"),
        pytest.param("a.json", "{", DataError, "cannot be read as json", id="no json"),
        pytest.param("a.json", "[1]", DataError, "/a.json:1:2: '1' is no object with columns", id="no objects"),
        pytest.param("a.json", '{"k": "x"}', DataError, "/a.json:1:7: column k: 'x' is no INTEGER", id="no number"),
        pytest.param(
            "http://127.0.0.1:9/a.csv",
            None,
            ProgrammingError,
            "on the machine of this client",
            id="no place of this machine",
        ),
    ],
)
def test_mistakes(tmp_path: Path, name: str, content: str | None, error: type[Exception], message: str) -> None:
    path = name if "://" in name else str(tmp_path / name)
    if content is not None:
        Path(path).write_text(content)
    with pytest.raises(error, match=message):
        rows(CopyFile(path, CopyFormat.of_path(name)))


def test_parquet_with_other_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(DataError, match="column count mismatch: expected 3 columns but found 1"):
        rows(CopyFile(str(path), CopyFormat.PARQUET))
