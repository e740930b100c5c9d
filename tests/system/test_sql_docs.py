"""What ``docs/sql.md`` says runs: its examples, one after the other, and what it says is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import secateur
from secateur.errors import NotSupportedError, UnknownColumnError
from secateur.planner.binding.refused import STATEMENTS
from secateur.planner.ddl.create_table import REFUSED_CLAUSES, REFUSED_OBJECTS

PAGE = (Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")


def statements() -> list[str]:
    blocks = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return [statement.strip() for block in blocks for statement in block.split(";") if statement.strip()]


def test_the_examples_run() -> None:
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as conn:
        for statement in statements():
            cursor = conn.execute(statement)
            if cursor.description is not None:
                assert cursor.fetchall(), statement
        with pytest.raises(UnknownColumnError) as caught:
            conn.execute("SELECT amuont FROM purchases")
        assert str(caught.value) in PAGE


@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH 'x.db'",
        "USE main",
        "BEGIN",
        "CREATE SEQUENCE s",
        "CREATE TEMP TABLE t (k INTEGER PRIMARY KEY)",
        "CREATE TABLE t (k INTEGER PRIMARY KEY, n DOUBLE DEFAULT random())",
        "CREATE TABLE t (k INTEGER PRIMARY KEY, n INTEGER UNIQUE)",
        "CREATE TABLE t (k INTEGER PRIMARY KEY, n TIMESTAMPTZ CHECK (n < now()))",
        "WITH d AS (DELETE FROM held RETURNING *) SELECT * FROM d",
        "PIVOT held ON k",
        "SELECT * FROM (SHOW TABLES)",
        "SELECT * FROM duckdb_tables()",
        "INSTALL json",
        "PRAGMA version",
        "PREPARE p(INTEGER) AS SELECT 1",
    ],
)
def test_what_is_not_supported_is_refused_with_its_place(conn: secateur.Connection, sql: str) -> None:
    conn.execute("CREATE TABLE IF NOT EXISTS held (k INTEGER PRIMARY KEY)")
    with pytest.raises(NotSupportedError, match=r"\(line 1, column \d+\)"):
        conn.execute(sql)


@pytest.mark.parametrize("word", [*STATEMENTS, *REFUSED_OBJECTS, *REFUSED_CLAUSES])
def test_what_is_refused_by_name_is_on_the_page(word: str) -> None:
    listed = PAGE[PAGE.index("## What is not supported") :]
    assert re.search(rf"\b{word.removesuffix('ORARY')}\b", listed), word
