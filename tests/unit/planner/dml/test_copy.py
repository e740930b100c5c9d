from __future__ import annotations

from typing import Any

import pytest

from secateur.protocol import CopyFile, CopyFormat, CopyFrom, CopyTo


def csv(**given: Any) -> CopyFile:
    return CopyFile("a", CopyFormat.CSV, tuple(given.items()))


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("'a.csv'", CopyFile("a.csv", CopyFormat.CSV)),
        ("'a.csv.gz'", CopyFile("a.csv.gz", CopyFormat.CSV)),
        ("'a.parquet'", CopyFile("a.parquet", CopyFormat.PARQUET)),
        ("'a.ndjson'", CopyFile("a.ndjson", CopyFormat.JSON)),
        ("'a' WITH (FORMAT CSV, HEADER, DELIMITER ';', NULL 'NA')", csv(HEADER=True, DELIMITER=";", NULL="NA")),
        ("'a' (HEADER false, DELIM '\\t', QUOTE '''')", csv(HEADER=False, DELIMITER="\\t", QUOTE="'")),
        (
            "'a' (SEP ',', NULLSTR ('NA', ')'), SKIP 2, ESCAPE '(')",
            csv(DELIMITER=",", NULL=("NA", ")"), SKIP=2, ESCAPE="("),
        ),
        ("'a' (force_not_null (a, \"B c\"), null ['x'])", csv(FORCE_NOT_NULL=("a", "B c"), NULL=("x",))),
        (
            "'a' (ARRAY, FORMAT json, COMPRESSION gzip)",
            CopyFile("a", CopyFormat.JSON, (("ARRAY", True), ("COMPRESSION", "gzip"))),
        ),
    ],
)
def test_options(context: Any, text: str, file: CopyFile) -> None:
    statement = context.prepare(f"COPY orders FROM {text}")
    assert isinstance(statement, CopyFrom)
    assert statement.file == file


def test_options_of_a_file_that_is_written(context: Any) -> None:
    statement = context.prepare("COPY orders TO 'a.parquet' (COMPRESSION zstd, ROW_GROUP_SIZE 1000)")
    assert statement.file == CopyFile(
        "a.parquet", CopyFormat.PARQUET, (("COMPRESSION", "zstd"), ("ROW_GROUP_SIZE", 1000))
    )
    assert context.prepare("COPY orders TO 'a.csv' (FORCE_QUOTE *)").file.given == (("FORCE_QUOTE", ("*",)),)


def test_columns(context: Any) -> None:
    assert context.prepare("COPY airlines (NAME, code) FROM 'a.csv'").columns == ("name", "code")
    assert context.prepare("COPY airlines FROM 'a.csv'").columns == ("code", "name")


def test_what_is_written_is_a_query(context: Any) -> None:
    statement = context.prepare("COPY (SELECT id FROM orders WHERE customer_id = ?) TO 'a.csv'", ["C1"])
    assert isinstance(statement, CopyTo)
    assert statement.select.params == ("C1",)
    assert list(statement.select.plan.scans[0].tree.bind(["C1"]).ids) == [context.partition("orders", customer_id="C1")]
    assert context.prepare("COPY airlines (name) TO 'a.csv'").select.plan.columns == (("name", "VARCHAR"),)


def test_it_is_explained(context: Any) -> None:
    assert (
        context.explain("COPY airlines FROM 'a.csv'").text
        == "COPY: the client reads a.csv and loads its rows into airlines"
    )
    assert context.explain("COPY airlines TO 'a.csv'").text.startswith("COPY to a.csv, written by the client, from:\n")
