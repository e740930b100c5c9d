"""Files that are loaded: their columns by name, their values by the types of the table, exactly or not at all."""

from __future__ import annotations

import datetime as dt
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secateur.client.copy import FileOptions, open_table_file
from secateur.errors import DataError, Error, NullKeyError, ParameterError, ProgrammingError, UnknownColumnError
from secateur.partitioning.tables import Column
from secateur.partitioning.types import parse_type

FAR = 21_000
"""More rows than DuckDB looks at to find out what a file has."""


def columns_of(text: str) -> list[Column]:
    """Columns as ``a INTEGER; b DECIMAL(10,2)``."""
    return [Column(name, parse_type(type_)) for name, _, type_ in (item.partition(" ") for item in text.split("; "))]


def read(path: Path, table: str | None, **options: Any) -> list[tuple[Any, ...]]:
    with open_table_file(path, FileOptions(**options), None if table is None else columns_of(table)) as opened:
        table = opened.reader.read_all()
        assert table.column_names == [column.name for column in opened.columns]
        return [tuple(row.values()) for row in table.to_pylist()]


def types(path: Path, **options: Any) -> dict[str, str]:
    with open_table_file(path, FileOptions(**options)) as opened:
        opened.reader.read_all()
        return {column.name: str(column.type) for column in opened.columns}


def file(folder: Path, content: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("type_", "most", "last", "expected"),
    [
        ("DOUBLE", "7", "0.5", 0.5),
        ("DECIMAL(10,2)", "7", "19.99", Decimal("19.99")),
        ("TIMESTAMP", "2024-01-02", "2024-01-02 05:06:07", dt.datetime(2024, 1, 2, 5, 6, 7)),
        (
            "TIMESTAMPTZ",
            "2024-01-02 03:00",
            "2024-01-02 03:00+05",
            dt.datetime(2024, 1, 1, 22, tzinfo=dt.UTC),
        ),
        ("VARCHAR", "7", "1.10", "1.10"),
        ("VARCHAR", "2024-01-02", "007", "007"),
        ("VARCHAR", "x", '"a, ""b"""', 'a, "b"'),
    ],
)
def test_a_value_behind_the_rows_that_a_sniffer_looks_at(
    tmp_path: Path, type_: str, most: str, last: str, expected: Any
) -> None:
    path = file(tmp_path, "k,v\n" + "".join(f"{number},{most}\n" for number in range(FAR)) + f"-1,{last}\n")
    assert read(path, f"k INTEGER; v {type_}")[-1] == (-1, expected)
    if type_ != "VARCHAR":
        marks = "" if type_ in ("DOUBLE", "DECIMAL(10,2)") else '"'
        lines = [f'{{"k": {number}, "v": {marks}{most}{marks}}}\n' for number in range(FAR)]
        path = file(tmp_path, "".join([*lines, f'{{"k": -1, "v": {marks}{last}{marks}}}\n']), "a.json")
        assert read(path, f"k INTEGER; v {type_}")[-1] == (-1, expected)


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        ("DECIMAL(18,2)", "9007199254740993.01", Decimal("9007199254740993.01")),
        ("DECIMAL(38,10)", "12345678901234567.01", Decimal("12345678901234567.0100000000")),
        ("DECIMAL(38,20)", "1.23456789012345678e5", Decimal("123456.78901234567800000000")),
        ("HUGEINT", "123456789012345678901234567890", Decimal("123456789012345678901234567890")),
        ("BIGINT", "9007199254740993", 9007199254740993),
        ("BIGINT", "1.0", 1),
        ("BIGINT", "1e3", 1000),
        ("DECIMAL(30,2)[]", "[12345678901234567890.12]", [Decimal("12345678901234567890.12")]),
        ("DOUBLE", "1e300", 1e300),
        ("DOUBLE", "Infinity", float("inf")),
        ("BOOLEAN", "1", True),
        ("VARCHAR", "1.10", "1.10"),
        ("VARCHAR", "1e5", "1e5"),
        ("VARCHAR", "true", "true"),
    ],
)
def test_numbers_keep_all_digits_in_both_formats(tmp_path: Path, type_: str, text: str, expected: Any) -> None:
    assert read(file(tmp_path, f'v\n"{text}"\n'), f"v {type_}") == [(expected,)]
    assert read(file(tmp_path, f'{{"v": {text}}}', "a.json"), f"v {type_}") == [(expected,)]


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        ("VARCHAR", "2024/01/02", "2024/01/02"),
        ("VARCHAR", "TRUE", "TRUE"),
        ("VARCHAR", "9:05", "9:05"),
        ("VARCHAR", " x ", " x "),
        ("INTEGER", "", None),
        ("INTEGER", '""', None),
        ("VARCHAR", "", None),
        ("VARCHAR", '""', ""),
        ("BLOB", '""', b""),
        ("BLOB", "\\xAA\\x00b", b"\xaa\x00b"),
        ("DATE", "2024/01/02", dt.date(2024, 1, 2)),
        ("DATE", "2024-01-02T00:00:00Z", dt.date(2024, 1, 2)),
        ("TIMESTAMP", "2024-01-02T03:04Z", dt.datetime(2024, 1, 2, 3, 4)),
        ("TIMESTAMP", "2024-01-02 03:04+05", dt.datetime(2024, 1, 1, 22, 4)),
        ("TIMESTAMP", "2024-01-02 03:04:05.123456000", dt.datetime(2024, 1, 2, 3, 4, 5, 123456)),
        ("TIME", "9:05", dt.time(9, 5)),
        ("TIME", "10:24:00", dt.time(10, 24)),
        ("UUID", "6F1F1C0E-0000-0000-0000-00000000000A", "6f1f1c0e-0000-0000-0000-00000000000a"),
        ("VARCHAR[]", "\"['a, b', NULL]\"", ["a, b", None]),
        ("STRUCT(a INTEGER, b VARCHAR)", "\"{'a': 1, 'b': x}\"", {"a": 1, "b": "x"}),
        ("MAP(VARCHAR, DATE)", "{k=2024-01-02}", [("k", dt.date(2024, 1, 2))]),
    ],
)
def test_texts_of_csv_become_values_of_the_type(tmp_path: Path, type_: str, text: str, expected: Any) -> None:
    assert read(file(tmp_path, f"k,v\n1,{text}\n"), f"k INTEGER; v {type_}") == [(1, expected)]


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("INTEGER", "1.5"),
        ("INTEGER", "10e-4"),
        ("INTEGER", "5000000000"),
        ("UINTEGER", "-1"),
        ("BIGINT", "abc"),
        ("HUGEINT", str(2**127 - 1)),
        ("DECIMAL(10,2)", "1.005"),
        ("DECIMAL(10,2)", "123456789.5"),
        ("DOUBLE", "1e400"),
        ("FLOAT", "1e40"),
        ("BOOLEAN", "2"),
        ("DATE", "2024-01-02 05:06:07"),
        ("DATE", "01/02/2025"),
        ("DATE", "03/04/20"),
        ("DATE", "25-01-02"),
        ("DATE", "2024-02-30"),
        ("TIMESTAMP", "2024-01-02 03:04:05.1234567"),
        ("TIMESTAMPTZ", "01/02/2025 10:00"),
        ("TIME", "24:00:00"),
        ("TIME", "2024-01-02 10:00"),
        ("INTERVAL", "2562048 hours"),
        ("UUID", "1"),
        ("BLOB", "é"),
        ("INTEGER[]", "[1.5]"),
        ("STRUCT(a DATE)", "{'a': 03/04/20}"),
        ("MAP(INTEGER, INTEGER)", "{1.5=1}"),
    ],
)
@pytest.mark.parametrize("row", [0, 40_000])
@pytest.mark.sampled(one_in=3)
def test_a_text_that_its_type_does_not_hold_is_refused_with_its_place(
    tmp_path: Path, type_: str, text: str, row: int
) -> None:
    path = file(tmp_path, 'k,v\n"0\n",\n' + "1,\n" * row + f'"2",{text}\n')
    with pytest.raises(DataError) as caught:
        read(path, f"k VARCHAR; v {type_}")
    assert caught.value.message.startswith(f"{path}:{row + 4}:5: column v: {text!r} is no {parse_type(type_)}")
    assert caught.value.details["column"] == "v"
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("a,b,c", [(1, "x", True)]),
        ("C,A,B", [(True, 1, "x")]),
        ("b,a", [("x", 1)]),
        (" a , b ", [(1, "x")]),
        ('"b"\t"a"', [("x", 1)]),
        ("a;b", [(1, "x")]),
        ("b|a", [("x", 1)]),
    ],
)
def test_columns_of_csv_are_matched_by_name(tmp_path: Path, header: str, expected: list[tuple[Any, ...]]) -> None:
    delimiter = next(mark for mark in ",;\t|" if mark in header)
    values = {"a": "1", "b": "x", "c": "true"}
    names = [name.strip(' "').lower() for name in header.split(delimiter)]
    path = file(tmp_path, f"{header}\n{delimiter.join(values[name] for name in names)}\n")
    assert read(path, "a INTEGER; b VARCHAR; c BOOLEAN") == expected


@pytest.mark.parametrize(
    ("text", "columns", "options", "expected"),
    [
        pytest.param("5,x\n", "a INTEGER; b VARCHAR", {}, [(5, "x")], id="no header"),
        pytest.param("x,5\n", "a VARCHAR; b VARCHAR", {}, [("x", "5")], id="a number is no name"),
        pytest.param("x,y\n", "a VARCHAR; b VARCHAR", {"header": False}, [("x", "y")], id="said"),
        pytest.param("a,b\n", "a VARCHAR; b VARCHAR", {"header": False}, [("a", "b")], id="said of names"),
        pytest.param("2020,2021\n1,2\n", "2020 INTEGER; 2021 INTEGER", {}, [(1, 2)], id="numbers that are names"),
        pytest.param("1,2\n", "b INTEGER; a INTEGER", {"columns": "a, b"}, [(1, 2)], id="listed"),
        pytest.param("1\n", "b INTEGER; a INTEGER", {"columns": "a VARCHAR"}, [("1",)], id="some, with types"),
        pytest.param("\n\na,b\n1,2\n", "a INTEGER; b INTEGER", {}, [(1, 2)], id="blank lines before"),
        pytest.param("a,b\n\n1,2\n\n", "a INTEGER; b INTEGER", {}, [(1, 2)], id="blank lines between"),
        pytest.param("a\n\n1\n", "a INTEGER", {}, [(None,), (1,)], id="blank lines of one column"),
        pytest.param("\ufeffa,b\n1,2\n", "a INTEGER; b INTEGER", {}, [(1, 2)], id="a byte order mark"),
        pytest.param("a,b\r\n1,2\r\n", "a INTEGER; b INTEGER", {}, [(1, 2)], id="ends of lines of Windows"),
        pytest.param("a,b\n#1,2\n", "a VARCHAR; b INTEGER", {}, [("#1", 2)], id="no comments"),
        pytest.param("a\nx;y\n", "a VARCHAR", {}, [("x;y",)], id="one column"),
        pytest.param(
            "a^b\n1^'x^y'\n", "a INTEGER; b VARCHAR", {"delimiter": "^", "quote": "'"}, [(1, "x^y")], id="marks"
        ),
        pytest.param('a,b\n1,"x\n', "a INTEGER; b VARCHAR", {"quote": ""}, [(1, '"x')], id="no quotes"),
        pytest.param(
            'a,b\n1,NA\n2,"NA"\n3,\nNA,x\n',
            "a INTEGER; b VARCHAR",
            {"null": "NA"},
            [(1, None), (2, "NA"), (3, ""), (None, "x")],
            id="a text for NULL",
        ),
        pytest.param("a\nNA\n-\n\n", "a VARCHAR", {"null": ("NA", "-", "")}, [(None,)] * 3, id="texts for NULL"),
        pytest.param(
            "a,b\n31/12/2025,31/12/2025 10:11\n2025-12-30,2025-12-30 10:00\n",
            "a DATE; b TIMESTAMP",
            {"date_format": "%d/%m/%Y"},
            [
                (dt.date(2025, 12, 31), dt.datetime(2025, 12, 31, 10, 11)),
                (dt.date(2025, 12, 30), dt.datetime(2025, 12, 30, 10)),
            ],
            id="dates",
        ),
    ],
)
def test_how_csv_is_written(
    tmp_path: Path, text: str, columns: str, options: dict[str, Any], expected: list[tuple[Any, ...]]
) -> None:
    assert read(file(tmp_path, text), columns, **options) == expected
    assert read(file(tmp_path, gzip.compress(text.encode()), "a.csv.gz"), columns, **options) == expected


@pytest.mark.parametrize(
    ("text", "columns", "options", "error", "message"),
    [
        pytest.param("", "a INTEGER", {}, DataError, "a.csv is empty", id="empty"),
        pytest.param(
            "x,y\n", "a VARCHAR; b VARCHAR", {}, ProgrammingError, ":1: no column has .* say", id="names, or not"
        ),
        pytest.param(
            "a,x\n1,2\n", "a INTEGER", {}, UnknownColumnError, ":1:3: the table has no column 'x'", id="unknown"
        ),
        pytest.param("a,A\n1,2\n", "a INTEGER", {}, DataError, ":1:3: column 'A' is there twice", id="twice"),
        pytest.param("a,\n1,2\n", "a INTEGER", {}, DataError, ":1:3: a column has no name", id="no name"),
        pytest.param(
            "1,2\n", "a INTEGER; b INTEGER; c INTEGER", {}, DataError, "has 2 values.* 3 columns", id="too few"
        ),
        pytest.param(
            "a,b\n1\n", "a INTEGER; b INTEGER", {}, DataError, ":2:1: the line has 1 values", id="too few later"
        ),
        pytest.param(
            'a,b\n1,"\n', "a INTEGER; b VARCHAR", {}, DataError, ":2:1: .*unterminated quote", id="open quote"
        ),
        pytest.param(b"a\n1\n\xe9\n", "a VARCHAR", {}, DataError, ":3:1: the text is not UTF-8", id="another encoding"),
        pytest.param("a\n1\n", "a INTEGER", {"columns": "b INTEGER"}, UnknownColumnError, "no column 'b'", id="lacks"),
        pytest.param("a\n1\n", None, {"columns": "b INTEGER"}, UnknownColumnError, "no column 'b'", id="lacks, new"),
        pytest.param("1,2\n", None, {}, ProgrammingError, "no names of columns", id="no names, new"),
        pytest.param(
            "d\n01/02/2025\n",
            "d DATE",
            {},
            DataError,
            "'01/02/2025' is no DATE: which part is the day",
            id="day, month",
        ),
        pytest.param(
            "d\n2025-12-31\n", "d DATE", {"date_format": "%Y-%d-%m"}, DataError, ":2:1: column d", id="another format"
        ),
    ],
)
def test_mistakes_in_csv(
    tmp_path: Path,
    text: str | bytes,
    columns: str | None,
    options: dict[str, Any],
    error: type[Error],
    message: str,
) -> None:
    with pytest.raises(error, match=message) as caught:
        read(file(tmp_path, text), columns, **options)
    assert caught.value.message.startswith(str(tmp_path / "a.csv"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ";;"}, "a delimiter is one character"),
        ({"quote": "''"}, "a quote is one character"),
        ({"date_format": "d/m/y"}, "a date format is such as"),
        ({"encoding": "latin-17"}, "there is no encoding"),
        ({"file_format": "xls"}, "there is no format"),
        ({"columns": "a INTEGER, A DATE"}, "write each once"),
        ({"file_format": "json", "delimiter": ";"}, "delimiter is for csv files"),
        ({"file_format": "parquet", "encoding": "utf-8"}, "encoding is for csv and json files"),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        read(file(tmp_path, "a\n1\n"), "a INTEGER", **options)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    assert read(file(tmp_path, "a,é\n1,ü\n".encode(encoding)), "a INTEGER; É VARCHAR", encoding=encoding) == [(1, "ü")]
    path = file(tmp_path, '{"a": "ü"}'.encode(encoding), "a.json")
    assert read(path, "a VARCHAR", encoding=encoding) == [("ü",)]


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        pytest.param('{"A": 1}\n{"a": 2, "b": "x"}', "b VARCHAR; a INTEGER", [(None, 1), ("x", 2)], id="by name"),
        pytest.param('[{"a": 1},\n {"a": null}, {}]', "a INTEGER; b VARCHAR", [(1,), (None,), (None,)], id="an array"),
        pytest.param('{"a":\n 1}\n\n{"a": 2}{"a": 3}', "a INTEGER", [(1,), (2,), (3,)], id="objects of several lines"),
        pytest.param(
            '{"v": "abc"}\n{"v": 1.10}\n{"v": {"x":  [1, 2.0]}}\n{"v": [1,  "a"]}\n{"v": true}\n{"v": "\\u00e9\\n"}',
            "v VARCHAR",
            [("abc",), ("1.10",), ('{"x":  [1, 2.0]}',), ('[1,  "a"]',), ("true",), ("é\n",)],
            id="texts as they are written",
        ),
        pytest.param('{"v": [9007199254740993, 1.0]}', "v BIGINT[]", [([9007199254740993, 1],)], id="beside 1.0"),
        pytest.param(
            '{"v": {"B": 1.5, "a": null}}', "v STRUCT(a INTEGER, b DOUBLE)", [({"a": None, "b": 1.5},)], id="struct"
        ),
        pytest.param(
            '{"v": {"2024-01-02": [1.10]}}',
            "v MAP(DATE, DECIMAL(3,2)[])",
            [([(dt.date(2024, 1, 2), [Decimal("1.10")])],)],
            id="map",
        ),
        pytest.param('{"v": NaN}\n{"v": -Infinity}', "v VARCHAR", [("NaN",), ("-Infinity",)], id="no finite numbers"),
        pytest.param('{"v": "\\\\xAA"}', "v BLOB", [(b"\xaa",)], id="bytes as COPY writes them"),
        pytest.param("", "a INTEGER", [], id="empty"),
        pytest.param("[]", "a INTEGER", [], id="an empty array"),
    ],
)
def test_json(tmp_path: Path, text: str, columns: str, expected: list[tuple[Any, ...]]) -> None:
    assert read(file(tmp_path, text, "a.json"), columns) == expected
    assert read(file(tmp_path, gzip.compress(text.encode()), "a.json.gz"), columns) == expected


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        pytest.param(
            '{"a": 1}\n{"b": "x", "a":  1.5}', DataError, "a.json:2:18: column a: '1.5' is no INTEGER", id="value"
        ),
        pytest.param('[{"a": 1}, {\n  "a":\n [2]}]', DataError, "a.json:3:2: column a: .* is no INTEGER", id="lines"),
        pytest.param(
            '{"a": 1}\n{"a": 1, "x": 2}', UnknownColumnError, "a.json:2:15: the table has no column 'x'", id="name"
        ),
        pytest.param('{"a": 1}\n{"a": 1, "a": 2}', DataError, "a.json:2:1: the object has a name twice", id="twice"),
        pytest.param(
            '{"a": 1, "A": 2}', DataError, "a.json:1:1: the object has 'A' and 'a'", id="twice, in other case"
        ),
        pytest.param('{"a": 1}\n[2]', DataError, r"a.json:2:2: '\[2\]' is no object", id="no object"),
        pytest.param('{"a": 1}\n{"a": }\n', DataError, "a.json:2:1: this is no JSON", id="no JSON"),
        pytest.param('{"l": "x"}\n', DataError, "a.json:1:7: column l: .*Expected `array`", id="no list"),
    ],
)
def test_mistakes_in_json(tmp_path: Path, text: str, error: type[Error], message: str) -> None:
    with pytest.raises(error, match=message):
        read(file(tmp_path, text, "a.json"), "a INTEGER; b VARCHAR; l INTEGER[]")


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (["1", "-2", ""], "BIGINT"),
        (["1", "12345678901234567890"], "HUGEINT"),
        (["00501", "10001"], "VARCHAR"),
        (["+49"], "VARCHAR"),
        (["1.10", "2.00", "100"], "DECIMAL(18,2)"),
        (["12345678901234567.01", "0.10"], "DECIMAL(38,2)"),
        (["12345678901234567.01", "0.1"], "DECIMAL(38,2)"),
        (["3.5", "4.25"], "DOUBLE"),
        (["1e300", "inf"], "DOUBLE"),
        (["0.30000000000000004", "1"], "DOUBLE"),
        (["true", "FALSE"], "BOOLEAN"),
        (["0", "1"], "BIGINT"),
        (["yes"], "VARCHAR"),
        (["2024-01-02"], "DATE"),
        (["2024-01-02", "2024-01-02 03:04"], "TIMESTAMP"),
        (["2024-01-02T03:04:05Z", "2024-01-02 03:04:05+02:00"], "TIMESTAMP WITH TIME ZONE"),
        (["2024-01-02T03:04:05Z", "2024-01-02T03:04:05"], "VARCHAR"),
        (["01/02/2025"], "VARCHAR"),
        (["03:04"], "TIME"),
        (["6f1f1c0e-0000-0000-0000-00000000000a"], "UUID"),
        (["6F1F1C0E-0000-0000-0000-00000000000A"], "VARCHAR"),
        (["", '""'], "VARCHAR"),
        (["1", "a"], "VARCHAR"),
    ],
)
def test_types_of_a_new_table_lose_nothing(tmp_path: Path, values: list[str], type_: str) -> None:
    path = file(tmp_path, "k,v\n" + "".join(f"x,{value}\n" for value in values))
    assert types(path) == {"k": "VARCHAR", "v": type_}
    rows = read(path, None)
    texts = [value if value else None for value in values]
    assert len(rows) == len(values)
    if type_ == "VARCHAR":
        assert [row[1] for row in rows] == [None if text is None else text.strip('"') for text in texts]


def test_the_types_of_a_new_table_are_those_of_all_rows(tmp_path: Path) -> None:
    assert types(file(tmp_path, "v\n" + "1\n" * FAR + "0.5\n")) == {"v": "DOUBLE"}
    assert types(file(tmp_path, '{"v": 1}\n' * FAR + '{"v": 0.5}\n', "a.json")) == {"v": "DOUBLE"}


def test_types_of_a_new_table_that_are_said(tmp_path: Path) -> None:
    path = file(tmp_path, "id,amount,d\n1,2.5,31/12/2025\n")
    assert types(path, columns="amount DECIMAL(10,2)", date_format="%d/%m/%Y") == {
        "id": "BIGINT",
        "amount": "DECIMAL(10,2)",
        "d": "DATE",
    }
    assert types(file(tmp_path, "1,x\n"), columns='a INTEGER, "b c"') == {"a": "INTEGER", "b c": "VARCHAR"}


def test_types_of_a_new_table_of_json(tmp_path: Path) -> None:
    text = (
        '{"i": 1, "n": 1.25, "h": 123456789012345678901234567890, "t": "1", "d": "2024-01-02", "l": [1.5, 2],'
        ' "s": {"x": "y"}, "m": 1, "z": null, "j": [1]}\n{"m": "x", "I": 2, "j": {"a": 1}}'
    )
    assert types(file(tmp_path, text, "a.json")) == {
        "i": "BIGINT",
        "n": "DOUBLE",
        "h": "HUGEINT",
        "t": "VARCHAR",
        "d": "DATE",
        "l": "DOUBLE[]",
        "s": "STRUCT(x VARCHAR)",
        "m": "VARCHAR",
        "z": "VARCHAR",
        "j": "VARCHAR",
    }


def test_a_name_that_could_be_a_pattern(tmp_path: Path) -> None:
    for name in ("a[1]*.csv", "a[1]*.json"):
        path = file(tmp_path, "v\n1\n" if name.endswith("csv") else '{"v": 1}', name)
        assert read(path, "v INTEGER") == [(1,)]


def test_a_null_that_the_table_refuses_has_a_place(tmp_path: Path) -> None:
    for name, text, place in (("a.csv", "k,v\n1,x\n,y\n", "3:1"), ("a.json", '{"k": 1}\n{"v": 1, "k": null}', "2:15")):
        path = file(tmp_path, text, name)
        opened = open_table_file(path, None, columns_of("k INTEGER; v VARCHAR"))
        with pytest.raises(NullKeyError, match=rf"{name}:{place}: column k is NOT NULL"), opened:
            raise NullKeyError("column k is NOT NULL", column="k")


def test_an_object_that_lacks_what_others_have_may_be_refused(tmp_path: Path) -> None:
    path = file(tmp_path, '{"a": 1, "b": null}\n{"A": 2}\n', "a.json")
    assert read(path, "a INTEGER; b INTEGER") == [(1, None), (2, None)]
    with (
        pytest.raises(DataError, match=r"a.json:2:1: the object lacks 'b', which others have: .* missing='null'"),
        open_table_file(path, None, columns_of("a INTEGER; b INTEGER; c INTEGER"), same_names=True),
    ):
        pass
    same = file(tmp_path, '{"a": 1}\n{"A": 2}\n', "b.json")
    with open_table_file(same, None, columns_of("a INTEGER; b INTEGER"), same_names=True) as opened:
        assert opened.reader.read_all().to_pydict() == {"a": [1, 2]}


def test_parquet_has_types_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"A": pa.array([1], pa.int16()), "b": ["x"]}), path)
    with open_table_file(path) as opened:
        assert opened.rows == 1
        assert [str(column.type) for column in opened.columns] == ["SMALLINT", "VARCHAR"]
    with open_table_file(path, FileOptions(columns="a INTEGER")) as opened:
        assert [str(column.type) for column in opened.columns] == ["INTEGER", "VARCHAR"]
    with (
        pytest.raises(UnknownColumnError, match="the table has no column 'b'"),
        open_table_file(path, None, columns_of("a INTEGER")),
    ):
        pass


def test_intervals_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    duckdb.execute(f"COPY (SELECT INTERVAL '1 month 2 days 03:04:05.006' AS i) TO '{path}'")
    with open_table_file(path, None, columns_of("i INTERVAL")) as opened:
        assert [str(column.type) for column in opened.columns] == ["INTERVAL"]
        assert opened.reader.read_all().column("i").to_pylist() == [(1, 2, 11_045_006_000_000)]
