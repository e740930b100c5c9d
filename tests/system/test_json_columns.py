"""Columns of JSON: every way in checks the text, and objects of Python that are a value become their text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secateur
from secateur.errors import DataError, NotSupportedError

OBJECT = {"a": [1, "x", None, {"b": 1.5}]}
TEXT = '{"a":[1,"x",null,{"b":1.5}]}'
BAD = '{"a": }'
WHERE = "at character 7 there is '}', where a value is expected"


@pytest.fixture
def table(conn: secateur.Connection) -> Iterator[secateur.TableHandle]:
    conn.execute("CREATE OR REPLACE TABLE held_json (k INTEGER PRIMARY KEY, j JSON)")
    yield conn.table("held_json")
    conn.execute("DROP TABLE held_json")


def held(conn: secateur.Connection) -> list[tuple[Any, ...]]:
    return conn.execute("SELECT * FROM held_json ORDER BY k").fetchall()


STATEMENTS = {
    "insert": "INSERT INTO held_json VALUES (1, ?)",
    "two rows": "INSERT INTO held_json VALUES (2, NULL), (1, ?)",
    "replace": "INSERT OR REPLACE INTO held_json VALUES (1, ?)",
    "update": "UPDATE held_json SET j = ? WHERE k = 1",
    "update of all": "UPDATE held_json SET j = ?",
    "upsert": "INSERT INTO held_json VALUES (1, ?) ON CONFLICT DO UPDATE SET j = excluded.j",
    "assigned": "INSERT INTO held_json VALUES (1, '1') ON CONFLICT DO UPDATE SET j = ?",
    "returning": "INSERT INTO held_json VALUES (1, ?) RETURNING j",
    "merge": "MERGE INTO held_json USING (SELECT 1 AS k) s USING (k) WHEN MATCHED THEN UPDATE SET j = ?",
}


@pytest.mark.sampled(one_in=2)
@pytest.mark.parametrize("sql", STATEMENTS.values(), ids=STATEMENTS)
@pytest.mark.parametrize("times", [1, 2])
def test_an_object_as_a_parameter(conn: secateur.Connection, table: secateur.TableHandle, sql: str, times: int) -> None:
    values = [(OBJECT, TEXT), ([1, "x"], '[1,"x"]'), (TEXT, TEXT), (7, "7"), (None, None)]
    for value, text in values if times == 1 else reversed(values):  # the plan is made for the first one
        if sql.startswith("INSERT"):
            conn.execute("DELETE FROM held_json")
        if "CONFLICT" in sql or not sql.startswith("INSERT"):
            conn.execute("INSERT OR REPLACE INTO held_json VALUES (1, '0')")
        for _ in range(times if not sql.endswith(("(1, ?)", "RETURNING j")) else 1):
            conn.execute(sql, [value])
        assert dict(held(conn))[1] == text
    for bad, why in (
        (BAD, WHERE),
        ({"a": float("nan")}, "nan"),
        ([Decimal(1)], "Decimal"),
        ({1: 2}, "a key"),
    ):
        before = held(conn)
        with pytest.raises(DataError, match="column j: ") as caught:
            conn.execute(sql, [bad])
        assert why in caught.value.message
        assert held(conn) == before


def test_a_literal_is_refused_at_its_place(conn: secateur.Connection, table: secateur.TableHandle) -> None:
    for sql in (f"INSERT INTO held_json VALUES (1, '{BAD}')", f"UPDATE held_json SET j = '{BAD}' WHERE k = 9"):
        with pytest.raises(DataError, match=rf"^column j: .*{WHERE} \(line 1, column {sql.index(BAD)}\)"):
            conn.execute(sql)
    with pytest.raises(DataError, match="Malformed JSON"):
        conn.execute("INSERT INTO held_json SELECT 1, ?", [BAD])
    assert held(conn) == []


def test_rows_that_are_put_and_many_executions(conn: secateur.Connection, table: secateur.TableHandle) -> None:
    table.put((1, OBJECT))
    table.put({"k": 2, "j": " [1] "})
    conn.cursor().executemany("INSERT INTO held_json VALUES (?, ?)", [(3, TEXT), (4, OBJECT), (5, None)])
    conn.cursor().executemany("UPDATE held_json SET j = ? WHERE k = ?", [([3], 3), ("[4]", 4)])
    conn.cursor().executemany(
        "INSERT INTO held_json VALUES (?, ?) ON CONFLICT DO UPDATE SET j = json_array(held_json.j, excluded.j)",
        [(5, "5"), (6, {"n": [1, "x"]})],
    )
    assert held(conn) == [(1, TEXT), (2, " [1] "), (3, "[3]"), (4, "[4]"), (5, "[null,5]"), (6, '{"n":[1,"x"]}')]
    assert table.get(1) == (1, TEXT)
    with pytest.raises(DataError, match="column j: "):
        table.put((7, BAD))
    with pytest.raises(DataError, match="row 2, column j: "):
        conn.cursor().executemany("INSERT INTO held_json VALUES (?, ?)", [(7, "1"), (8, BAD)])
    assert len(held(conn)) == 6


def test_loads(conn: secateur.Connection, table: secateur.TableHandle, tmp_path: Path) -> None:
    table.load(pa.table({"k": [1, 2], "j": [TEXT, None]}))
    table.load(pa.table({"k": [3], "j": pa.array(["[3]"], pa.json_())}))
    table.load(pd.DataFrame({"k": [4, 5, 6], "j": [OBJECT, "[5]", None]}))
    table.load(pl.DataFrame({"k": [7], "j": ["[7]"]}))
    table.load([{"k": 8, "j": OBJECT}])
    (tmp_path / "new.json").write_text('{"k": 9, "j": {"a": [1, "x"]}}\n{"k": 10, "j": "text"}\n{"k": 11, "j": null}\n')
    table.load(tmp_path / "new.json")
    assert held(conn) == [
        *((1, TEXT), (2, None), (3, "[3]"), (4, TEXT), (5, "[5]"), (6, None), (7, "[7]"), (8, TEXT)),
        *((9, '{"a": [1, "x"]}'), (10, '"text"'), (11, None)),
    ]
    (tmp_path / "bad.csv").write_text('k,j\n20,"[1]"\n21,"{""a"": }"\n')
    pq.write_table(pa.table({"k": [20, 21], "j": ["1", BAD]}), tmp_path / "bad.parquet")
    for data, place in (
        (pa.table({"k": [20, 21], "j": ["1", BAD]}), "row 2"),
        (pd.DataFrame({"k": [20, 21], "j": ["1", BAD]}), "row 2"),
        (pl.DataFrame({"k": [20, 21], "j": ["1", BAD]}), "row 2"),
        ([{"k": 20, "j": {}}, {"k": 21, "j": {"a": float("nan")}}], "row 2"),
        (tmp_path / "bad.csv", "bad.csv:3"),
        (tmp_path / "bad.parquet", "row 2"),
    ):
        with pytest.raises(DataError, match=r"\bcolumn j\b") as caught:
            table.load(data)
        assert place in caught.value.message
    for name in ("bad.csv", "bad.parquet"):
        with pytest.raises(DataError, match="JSON"):
            conn.execute(f"COPY held_json FROM '{tmp_path / name}'")
    assert len(held(conn)) == 11


def test_files_have_the_values_again(conn: secateur.Connection, table: secateur.TableHandle, tmp_path: Path) -> None:
    table.load(pa.table({"k": [1, 2, 3, 4], "j": [TEXT, None, '"it\'s"', "[1.5]"]}))
    before = held(conn)
    for name in ("t.csv", "t.parquet", "t.json"):
        conn.execute(f"COPY held_json TO '{tmp_path / name}'")
        conn.execute("DELETE FROM held_json")
        conn.execute(f"COPY held_json FROM '{tmp_path / name}'")
        assert held(conn) == before
    objects = [json.loads(line) for line in (tmp_path / "t.json").read_text().splitlines()]
    assert {"k": 1, "j": OBJECT} in objects


def test_what_comes_out_is_text(conn: secateur.Connection, table: secateur.TableHandle) -> None:
    table.put((1, OBJECT))
    cursor = conn.execute("SELECT j, j->'a' AS a FROM held_json WHERE k = 1")
    assert [column[1] for column in cursor.description] == ["JSON", "JSON"]
    assert cursor.fetch_arrow_table().schema.types == [pa.string(), pa.string()]
    assert conn.execute("SELECT j FROM held_json").df()["j"].to_list() == [TEXT]
    assert conn.execute("SELECT j FROM held_json").pl()["j"].to_list() == [TEXT]
    conn.execute("SET pruning = verify")
    assert conn.execute("SELECT j->'a'->>1 FROM held_json WHERE k = 1").fetchall() == [("x",)]
    conn.execute("UPDATE held_json SET j = '[2]' WHERE k = 1")
    conn.execute("RESET pruning")
    assert conn.execute("DESCRIBE held_json").fetchall()[1][:2] == ("j", "JSON")


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE keyed (j JSON PRIMARY KEY)",
        "CREATE TABLE keyed (k INTEGER, j JSON, PRIMARY KEY (k, j)) PARTITION BY HASH (j) PARTITIONS 2",
        "CREATE INDEX by_j ON held_json (j)",
    ],
)
def test_it_is_no_key(conn: secateur.Connection, table: secateur.TableHandle, sql: str) -> None:
    with pytest.raises(NotSupportedError, match="column j of type JSON cannot be part of a key or index"):
        conn.execute(sql)
