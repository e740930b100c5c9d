"""Types of listed texts: their names are kept, columns and plans have the values, and every way in checks them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import secateur
from secateur.cluster import Cluster
from secateur.errors import DataError, NotSupportedError, ProgrammingError, UnknownColumnError

VALUES = ["sad", "ok", "glad"]
TEXT = "ENUM('sad', 'ok', 'glad')"


@pytest.fixture
def table(conn: secateur.Connection) -> Iterator[secateur.TableHandle]:
    conn.execute(f"CREATE OR REPLACE TYPE held_mood AS {TEXT}")
    conn.execute("CREATE OR REPLACE TABLE held_enum (k INTEGER PRIMARY KEY, m held_mood)")
    yield conn.table("held_enum")
    conn.execute("DROP TABLE held_enum")
    conn.execute("DROP TYPE held_mood")


def held(conn: secateur.Connection) -> list[tuple[Any, ...]]:
    return conn.execute("SELECT * FROM held_enum ORDER BY k").fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO held_enum VALUES (1, ?)",
        "INSERT OR REPLACE INTO held_enum VALUES (1, ?)",
        "INSERT INTO held_enum VALUES (1, ?) RETURNING m",
        "INSERT INTO held_enum VALUES (1, ?) ON CONFLICT DO UPDATE SET m = excluded.m",
        "UPDATE held_enum SET m = ? WHERE k = 1",
        "UPDATE held_enum SET m = ?",
        "MERGE INTO held_enum USING (SELECT 1 AS k) s USING (k) WHEN MATCHED THEN UPDATE SET m = ?",
    ],
)
def test_parameters(conn: secateur.Connection, table: secateur.TableHandle, sql: str) -> None:
    for value in ("ok", "glad", None):
        conn.execute("DELETE FROM held_enum")
        if not sql.startswith("INSERT"):
            conn.execute("INSERT INTO held_enum VALUES (1, 'sad')")
        conn.execute(sql, [value])
        assert held(conn) == [(1, value)]
    for bad, why in (("OK", "none of the values"), (3, "give a str")):
        with pytest.raises(DataError, match="column m: ") as caught:
            conn.execute(sql, [bad])
        assert why in caught.value.message
        assert TEXT in caught.value.message
        assert held(conn) == [(1, None)]


def test_rows_and_loads(conn: secateur.Connection, table: secateur.TableHandle) -> None:
    table.put((1, "ok"))
    conn.cursor().executemany("INSERT INTO held_enum VALUES (?, ?)", [(2, "sad"), (3, None)])
    table.load(pa.table({"k": [4, 5], "m": pa.array(["glad", None]).dictionary_encode()}))
    table.load(pd.DataFrame({"k": [6, 7], "m": pd.Categorical(["ok", None], ["ok", "unused"])}))
    table.load(pl.DataFrame({"k": [8], "m": ["sad"]}, schema={"k": pl.Int32, "m": pl.Enum(["x", "sad"])}))
    table.load([{"k": 9, "m": "glad"}])
    expected = ["ok", "sad", None, "glad", None, "ok", None, "sad", "glad"]
    assert held(conn) == list(enumerate(expected, 1))
    assert table.get(4) == (4, "glad")
    for data in (
        pa.table({"k": [20, 21], "m": ["ok", "bad"]}),
        pd.DataFrame({"k": [20, 21], "m": pd.Categorical(["ok", "bad"])}),
        [{"k": 20, "m": "ok"}, {"k": 21, "m": "bad"}],
    ):
        with pytest.raises(DataError, match=r"row 2.*'bad'.* does not fit ENUM\('sad'.* none of the values"):
            table.load(data)
    assert len(held(conn)) == 9


def test_what_comes_out(conn: secateur.Connection, table: secateur.TableHandle) -> None:
    table.load([{"k": 1, "m": "ok"}, {"k": 2, "m": None}, {"k": 3, "m": "sad"}])
    sql = "SELECT m, [m] AS ms FROM held_enum ORDER BY k"
    assert [column[1] for column in conn.execute(sql).description] == [TEXT, f"{TEXT}[]"]
    for rows in (conn.execute(sql).fetch_arrow_table(), conn.execute(sql).fetch_record_batch(1).read_all()):
        assert rows.schema.types == [pa.dictionary(pa.uint8(), pa.string()), pa.list_(pa.string())]
        assert rows.column("m").chunk(0).dictionary.to_pylist() == VALUES
        assert rows.column("m").to_pylist() == ["ok", None, "sad"]
    column = conn.execute(sql).df()["m"]
    assert list(column.cat.categories) == VALUES
    assert column.cat.ordered
    assert conn.execute(sql).pl()["m"].to_list() == ["ok", None, "sad"]
    assert conn.execute("SELECT m FROM held_enum WHERE k = 1").fetch_arrow_table()["m"].to_pylist() == ["ok"]
    assert conn.execute("SELECT m FROM held_enum WHERE k < 0").fetch_arrow_table().num_rows == 0
    many = ", ".join(f"'{number}'" for number in range(300))
    wide = conn.execute(f"SELECT '299'::ENUM({many}) AS m").fetch_arrow_table()
    assert wide.schema.types == [pa.dictionary(pa.uint16(), pa.string())]
    assert wide["m"].to_pylist() == ["299"]


def test_a_plan_is_not_run_with_what_a_name_meant_before(
    conn: secateur.Connection, cluster: Cluster, table: secateur.TableHandle
) -> None:
    table.put((1, "ok"))
    sql = "SELECT k FROM held_enum WHERE k = 1 AND 'ok'::held_mood > 'sad'::held_mood"
    change = "UPDATE held_enum SET m = 'ok' WHERE k = 1 AND 'ok'::held_mood > 'sad'::held_mood RETURNING m"
    bare = "SELECT enum_code('ok'::held_mood)"
    with cluster.connect() as other:
        for _ in range(3):
            assert other.execute(sql).fetchall() == [(1,)]
            assert other.execute(change).fetchall() == [("ok",)]
            assert other.execute(bare).fetchall() == [(1,)]
        conn.execute("CREATE OR REPLACE TYPE held_mood AS ENUM ('ok', 'sad')")
        assert other.execute(sql).fetchall() == []
        assert other.execute(change).fetchall() == []
        assert other.execute(bare).fetchall() == [(0,)]
        conn.execute("DROP TYPE held_mood")
        for each in (sql, change, bare):
            with pytest.raises(ProgrammingError, match="Type with name held_mood does not exist"):
                other.execute(each)
    conn.execute(f"CREATE TYPE held_mood AS {TEXT}")


def test_errors_have_their_place(conn: secateur.Connection, table: secateur.TableHandle) -> None:
    for sql, params in (
        ("SELECT 'ok'::held_mood,\n 'sad'::held_mood, nix FROM held_enum", []),
        ("UPDATE held_enum SET m = $value::held_mood WHERE k + nix = 1", {"value": "ok"}),
        ("SELECT held_mood 'ok' < ?::held_mood, nix FROM held_enum", ["ok"]),
    ):
        with pytest.raises(UnknownColumnError) as caught:
            conn.execute(sql, params)
        line = sql.count("\n") + 1
        assert caught.value.details["line"] == line
        assert caught.value.details["column"] == sql.splitlines()[line - 1].index("nix") + 1
    key = r"column m of type ENUM.* cannot be part of a key or index"
    with pytest.raises(NotSupportedError, match=key):
        conn.execute("CREATE INDEX by_m ON held_enum (m)")
    with pytest.raises(NotSupportedError, match=key):
        conn.execute("CREATE TABLE keyed (m held_mood PRIMARY KEY)")
    with pytest.raises(ProgrammingError, match="type 'held_mood' is that of column m of table held_enum"):
        conn.execute("DROP TYPE held_mood")


def test_named_types_are_kept(tmp_path: Path) -> None:
    for turn in range(3):
        with (
            secateur.start(members=2, runtime="embedded", data_directory=tmp_path / "data") as cluster,
            cluster.connect() as conn,
        ):
            if not turn:
                conn.execute(f"CREATE TYPE mood AS {TEXT}")
                conn.execute("CREATE TYPE gone AS ENUM ('x')")
                conn.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, m mood)")
                conn.execute("INSERT INTO t VALUES (1, 'ok'), (2, 'sad')")
                conn.execute("CREATE VIEW v AS SELECT * FROM t WHERE m >= 'ok'::mood")
                conn.execute("DROP TYPE gone")
                conn.execute(f"BACKUP TO '{tmp_path / 'backup'}'")
            assert conn.execute("SELECT type_name, data_type FROM secateur.types").fetchall() == [("mood", TEXT)]
            assert conn.execute("SELECT k FROM t WHERE m < 'ok'::mood").fetchall() == [(2,)]
            assert conn.execute("SELECT * FROM v").fetchall() == [(1, "ok")]


def test_named_types_are_restored(tmp_path: Path) -> None:
    with secateur.start(members=1, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.execute(f"CREATE TYPE mood AS {TEXT}")
        conn.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, m mood)")
        conn.execute("INSERT INTO t VALUES (1, 'ok')")
        conn.execute(f"BACKUP TO '{tmp_path / 'backup'}'")
    with secateur.start(members=2, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.execute("CREATE TYPE mood AS ENUM ('other')")
        with pytest.raises(ProgrammingError, match="type 'mood' exists already with other values"):
            conn.execute(f"RESTORE FROM '{tmp_path / 'backup'}'")
        assert conn.execute("SELECT count(*) FROM secateur.tables").fetchall() == [(0,)]
        conn.execute(f"RESTORE OR REPLACE FROM '{tmp_path / 'backup'}'")
        assert conn.execute("SELECT enum_code(m), enum_range(NULL::mood) FROM t").fetchall() == [(1, VALUES)]
        conn.execute("DROP TABLE t")
        conn.execute(f"RESTORE FROM '{tmp_path / 'backup'}'")  # the type is there already
        assert conn.execute("SELECT m FROM t").fetchall() == [("ok",)]
