from __future__ import annotations

from typing import Any

import pytest

from secateur.client.files.file_options import FileFormat, FileOptions
from secateur.errors import Error, ProgrammingError, SqlSyntaxError, UnknownColumnError, UnknownTableError
from secateur.planner.statement import CopyFrom, CopyTo


def csv(**given: Any) -> FileOptions:
    return FileOptions("a", FileFormat.CSV, tuple(given.items()))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("'a.csv'", FileOptions("a.csv", FileFormat.CSV)),
        ("'a.csv.gz'", FileOptions("a.csv.gz", FileFormat.CSV)),
        ("'a.parquet'", FileOptions("a.parquet", FileFormat.PARQUET)),
        ("'a.ndjson'", FileOptions("a.ndjson", FileFormat.JSON)),
        ("'a' WITH (FORMAT CSV, HEADER, DELIMITER ';', NULL 'NA')", csv(HEADER=True, DELIMITER=";", NULL="NA")),
        ("'a' (HEADER false, DELIM '\\t', QUOTE '''')", csv(HEADER=False, DELIMITER="\\t", QUOTE="'")),
        ("'a' (SEP ',', NULLSTR ('NA', ')'), SKIP 2, ESCAPE '(')", csv(DELIMITER=",", NULL=("NA", ")"), SKIP=2, ESCAPE="(")),
        ("'a' (force_not_null (a, \"B c\"), null ['x'])", csv(FORCE_NOT_NULL=("a", "B c"), NULL=("x",))),
        ("'a' (ARRAY, FORMAT json, COMPRESSION gzip)", FileOptions("a", FileFormat.JSON, (("ARRAY", True), ("COMPRESSION", "gzip")))),
    ],
)
def test_options(bench: Any, text: str, options: FileOptions) -> None:
    statement = bench.prepare(f"COPY orders FROM {text}")
    assert isinstance(statement, CopyFrom)
    assert statement.options == options


def test_options_of_a_file_that_is_written(bench: Any) -> None:
    statement = bench.prepare("COPY orders TO 'a.parquet' (COMPRESSION zstd, ROW_GROUP_SIZE 1000)")
    assert statement.options == FileOptions("a.parquet", FileFormat.PARQUET, (("COMPRESSION", "zstd"), ("ROW_GROUP_SIZE", 1000)))
    assert bench.prepare("COPY orders TO 'a.csv' (FORCE_QUOTE *)").options.given == (("FORCE_QUOTE", ("*",)),)


def test_columns(bench: Any) -> None:
    assert bench.prepare("COPY airlines (NAME, code) FROM 'a.csv'").columns == ("name", "code")
    assert bench.prepare("COPY airlines FROM 'a.csv'").columns == ("code", "name")


def test_what_is_written_is_a_query(bench: Any) -> None:
    statement = bench.prepare("COPY (SELECT id FROM orders WHERE customer_id = ?) TO 'a.csv'", ["C1"])
    assert isinstance(statement, CopyTo)
    assert statement.select.params == ("C1",)
    assert list(statement.select.plan.scans[0].tree.bind(["C1"]).ids) == [bench.partition("orders", customer_id="C1")]
    assert bench.prepare("COPY airlines (name) TO 'a.csv'").select.plan.columns == (("name", "VARCHAR"),)


def test_it_is_explained(bench: Any) -> None:
    assert bench.explain("COPY airlines FROM 'a.csv'").text == "COPY: the client reads a.csv and loads its rows into airlines"
    assert bench.explain("COPY airlines TO 'a.csv'").text.startswith("COPY to a.csv, written by the client, from:\n")


@pytest.mark.parametrize(
    ("sql", "kind", "message", "column"),
    [
        pytest.param("COPY nowhere FROM 'a'", UnknownTableError, "'nowhere' does not exist", 6, id="unknown table"),
        pytest.param("COPY airlines (nam) FROM 'a'", UnknownColumnError, "did you mean name?", 16, id="unknown column"),
        pytest.param("COPY airlines 'a'", SqlSyntaxError, "expected FROM or TO", 15, id="no direction"),
        pytest.param("COPY airlines FROM a", SqlSyntaxError, "expected the path of a file", 20, id="no path"),
        pytest.param("COPY airlines FROM 'a' (FORMAT xml)", ProgrammingError, "'xml' is no format", 32, id="unknown format"),
        pytest.param("COPY airlines FROM 'a' (SPEED 9)", ProgrammingError, "no option SPEED", 25, id="unknown option"),
        pytest.param("COPY airlines FROM 'a' (HEADER maybe)", ProgrammingError, "neither true nor false", 32, id="no boolean"),
        pytest.param("COPY airlines FROM 'a' (DELIMITER)", SqlSyntaxError, "expected a text", 35, id="no text"),
        pytest.param("COPY airlines FROM 'a' (SKIP x)", SqlSyntaxError, "expected a number", 30, id="no number"),
        pytest.param("COPY airlines FROM 'a' (HEADER, HEADER)", ProgrammingError, "twice", 33, id="an option twice"),
        pytest.param("COPY airlines FROM 'a' (QUOTE 'x' 'y')", SqlSyntaxError, "expected a text for QUOTE", 35, id="two values"),
        pytest.param("COPY airlines FROM 'a' (FORCE_QUOTE (a))", ProgrammingError, "no option FORCE_QUOTE", 25, id="an option of writing"),
        pytest.param("COPY airlines TO 'a' (SKIP 1)", ProgrammingError, "no option SKIP", 23, id="an option of reading"),
        pytest.param("COPY airlines TO 'a' (HEADER, FORMAT parquet)", ProgrammingError, "no option HEADER", 23, id="an option of another format"),
        pytest.param("COPY airlines TO 'a' (PARTITION_BY (code))", ProgrammingError, "no option PARTITION_BY", 23, id="several files"),
        pytest.param("COPY airlines FROM 'a' (STORE_REJECTS)", ProgrammingError, "no option STORE_REJECTS", 25, id="tables that nobody sees"),
        pytest.param("COPY airlines FROM 'a' 'b'", SqlSyntaxError, "the end of the statement", 24, id="something behind"),
        pytest.param("COPY (SELECT amout FROM orders) TO 'a'", UnknownColumnError, "did you mean amount?", 14, id="unknown column in the query"),
        pytest.param("COPY (SELECT 1) FROM 'a'", SqlSyntaxError, "expected TO", 17, id="into a query"),
    ],
)
def test_mistakes(bench: Any, sql: str, kind: type[Error], message: str, column: int) -> None:
    with pytest.raises(kind) as caught:
        bench.prepare(sql)
    assert type(caught.value) is kind
    assert message in str(caught.value)
    assert caught.value.details["column"] == column
